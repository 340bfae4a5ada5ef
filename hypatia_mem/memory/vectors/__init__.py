"""Likeness of texts: the models and the ranking."""
