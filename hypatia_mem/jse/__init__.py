"""JSE, the query language: JSON in, ``(sql, params)`` out; no database in sight.

``parser.parse`` turns an expression into the frozen nodes of ``nodes``; ``compiler.compile_query``
turns those into one SELECT with parameters; ``rows`` gives a result its published shape. Whatever
is wrong with an expression is an ``ExpressionError`` before anything is executed.
"""
