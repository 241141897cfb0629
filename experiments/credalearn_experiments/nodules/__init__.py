"""Methods side by side on lung nodules."""
