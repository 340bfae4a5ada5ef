"""Probes that show, on a copy of a person's own memory, that each mechanism holds.

``probe`` runs one and judges it, ``world`` is the scratch memory it works in, and the others are
the probes themselves: ``marks`` (seven), ``portable`` and its rooms (twenty), ``editing`` (seven),
``sequence`` (a deletion in thirteen steps) and ``contradictions`` (five shapes, five checks).
``negative`` holds the committed cases of what must not be retrieved. ``catalogue`` lists them all.

They are part of the program, not of its tests: whoever has installed it can run them.
"""
