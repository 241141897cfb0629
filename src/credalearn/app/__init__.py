"""The application: files in, decisions out."""
