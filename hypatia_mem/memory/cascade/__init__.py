"""Summaries of summaries: what is due, the pass that makes it, and the way back to the words."""
