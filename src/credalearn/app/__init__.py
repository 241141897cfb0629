"""The application: files in, decisions out.

Shapes in all its modules: N items, K classes, D features, S pixels, V votes.
"""
