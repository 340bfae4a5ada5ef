"""Who found a work unit, or what a session leaves open, where no model did: the rules themselves.

They are recorded as a model is: a name with its version, and a digest of what it works by, so that
whoever reads an entry can tell by which rules it came about.
"""

from __future__ import annotations

import re
from types import ModuleType

from hypatia_mem.memory.extract import cues, templates, topics
from hypatia_mem.memory.summarise.extractive import Extractive
from hypatia_mem.memory.summarise.protocol import prompt_digest

__all__ = ["DIGEST", "PRODUCER"]


def _patterns(module: ModuleType) -> list[tuple[str, str]]:
    return sorted(
        (name, one.pattern) for name, one in vars(module).items() if isinstance(one, re.Pattern)
    )


DIGEST = prompt_digest(
    repr(
        (
            sorted((str(kind), names) for kind, names in templates.HEADINGS.items()),
            sorted((str(kind), sorted(names)) for kind, names in templates.ESSENTIAL.items()),
            sorted(topics._WEIGHTS.items()),
            [_patterns(module) for module in (cues, templates, topics)],
            Extractive().digest,
        )
    )
)
PRODUCER = f"extractive-1#{DIGEST}"
