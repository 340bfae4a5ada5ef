"""Questions to a selected part of the graph, and what makes it whole."""
