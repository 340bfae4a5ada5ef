"""Memory beside memory: shelves, kept files, export and import."""
