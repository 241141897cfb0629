"""Methods compared on the lung nodules that ship with the package."""
