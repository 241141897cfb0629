"""The paper's experiments and ours: settings, data, runs, and tables and figures of their records.

``credalearn-experiments`` is the command; docs/how-to/extending.md explains how to add methods,
tasks and settings.
"""
