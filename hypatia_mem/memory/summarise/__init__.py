"""Summarising: one protocol, what every summary goes through, and the summariser without a model.

``protocol`` says what a summariser is given and gives back; ``extractive`` is the one that needs
no key and no network. Whatever made a summary, ``hygiene`` cleans what goes in and what comes
out, ``grounding`` ties each sentence to the words it stands on, and ``loss`` counts what was lost.
"""
