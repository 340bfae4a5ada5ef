"""The only room that speaks to DuckDB and to the search index."""
