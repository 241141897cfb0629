"""The report page and the model card: a view model of a run, and templates that show it."""
