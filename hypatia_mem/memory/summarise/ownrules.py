"""A user's own rules for models: one file for messages, one for summaries of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hypatia_mem.capture.redact import redact_text
from hypatia_mem.config.file import write_text
from hypatia_mem.errors import ConfigError, UsageError
from hypatia_mem.memory.summarise.prompts import KINDS, SLOT, built_in
from hypatia_mem.memory.summarise.protocol import prompt_digest

__all__ = ["MOST", "Rules", "path_of", "read", "remove", "rules_of", "write"]

MOST = 20_000  # characters: every one of them is paid for with every question


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one kind: in force, whether they are the user's own, and where those belong.

    ``slot``: they say where the items come.
    """

    kind: str
    text: str
    own: bool
    path: Path

    @property
    def slot(self) -> bool:
        """Tell whether they say where the items come."""
        return SLOT in self.text

    @property
    def digest(self) -> str:
        """Return the digest of these rules alone."""
        return prompt_digest(self.text)


def path_of(home: Path, kind: str) -> Path:
    """Return where the user's own rules of a kind belong. Raises UsageError for another kind."""
    if kind not in KINDS:
        raise UsageError(
            f"there are no rules {kind[:40]!a}",
            hint=f"Use one of {', '.join(KINDS)}: for messages, and for summaries of them.",
        )
    return home / "prompts" / f"{kind}.md"


def rules_of(home: Path, kind: str) -> Rules:
    """Return the rules in force. Raises UsageError."""
    own = read(home, kind)
    return Rules(kind, own or built_in(kind), bool(own), path_of(home, kind))


def read(home: Path, kind: str) -> str:
    """Return the user's own rules, ``""`` where there is no file, or it is blank or unreadable."""
    try:
        return path_of(home, kind).read_text("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def write(home: Path, kind: str, text: str) -> Rules:
    """Keep own rules; a blank text goes back to the built-in ones. Returns those in force.

    Raises UsageError for another kind, a text too long or one that holds a secret (every question
    would give it away), ConfigError where it cannot be written.
    """
    path = path_of(home, kind)
    if len(text) > MOST:
        raise UsageError(
            f"these rules have {len(text)} characters, more than {MOST}",
            hint="Shorten them: they are part of every question, and paid for each time.",
        )
    if not text.strip():
        remove(home, kind)
        return rules_of(home, kind)
    if redact_text(text) != text:
        raise UsageError(
            "these rules hold what looks like a secret, and would tell it with every question",
            hint="Say them without it. Nothing was changed.",
        )
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_text(path, text.strip() + "\n")
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}", hint="Nothing was changed."
        ) from error
    return rules_of(home, kind)


def remove(home: Path, kind: str) -> bool:
    """Go back to the built-in rules; False when there were no own ones. Raises as ``write``."""
    path = path_of(home, kind)
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be removed: {error.strerror}", hint="Nothing was changed."
        ) from error
    return True
