"""JSE, the query language: JSON in, ``(sql, params)`` out; no database in sight.

``parser.parse`` turns an expression into the frozen nodes of ``nodes``: every field is resolved and
every value has its field's type, so whatever is wrong with an expression is an ``ExpressionError``
before anything is executed. ``compiler.compile_query`` turns the nodes into one SELECT with
parameters, ``matcher.select`` into an answer over rows in memory; each holds the other to its word.
``rows`` gives a result its published shape, ``walking`` says what names and steps mean.
"""
