"""JSE, the query language: JSON in, ``(sql, params)`` out; no database in sight."""
