"""What a model wrote for a summary that is looked at, kept until it is accepted.

A model would write another text when it is asked again, and be paid again. So its draft lies at
``briefs/<ticket>.draft``, for a day at most, and goes as soon as a message it stands on is not what
it was, or something it says is forgotten.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.capture import paths
from hypatia_mem.config.file import write_text
from hypatia_mem.memory.summarise.protocol import Draft, Request, Sentence, Span

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["Kept", "keep", "read", "remove", "sweep"]

_SUFFIX = ".draft"
_KEPT_SECONDS = 86400.0


@dataclass(frozen=True, slots=True)
class Kept:
    """A draft, who made it (as it is recorded), and the digests of what it stands on.

    As a summariser it says again what was said.
    """

    by: str
    draft: Draft
    digests: Mapping[str, str]
    scopes: tuple[str, ...]

    @property
    def producer(self) -> str:
        """Return who made it."""
        return self.by.partition("#")[0]

    @property
    def digest(self) -> str:
        """Return the digest of the rules it was made by."""
        return self.by.partition("#")[2]

    @property
    def window(self) -> int:
        """Return 0: it is asked about nothing else."""
        return 0

    def summarise(self, request: Request) -> Draft:
        """Return the draft."""
        del request
        return self.draft


def keep(home: Path, ticket: str, kept: Kept) -> None:
    """Keep a draft until its ticket is accepted. Raises OSError."""
    folder = home / paths.BRIEFS
    folder.mkdir(mode=0o700, exist_ok=True)
    write_text(folder / f"{ticket}{_SUFFIX}", json.dumps(asdict(kept)))


def read(home: Path, ticket: str) -> Kept | None:
    """Return the draft of a ticket, None where none was kept, or it cannot be read."""
    return _read(home / paths.BRIEFS / f"{ticket}{_SUFFIX}") if ticket.isalnum() else None


def remove(home: Path, ticket: str) -> None:
    """Remove the draft of a ticket, if there is one."""
    with contextlib.suppress(OSError):
        (home / paths.BRIEFS / f"{ticket}{_SUFFIX}").unlink(missing_ok=True)


def sweep(home: Path, store: Store) -> None:
    """Remove drafts that are old, stand on what has changed, or say what is forgotten."""
    from hypatia_mem.store import graves, summaries

    for path in (home / paths.BRIEFS).glob(f"*{_SUFFIX}"):
        kept = _read(path)
        if kept is not None and _is_young(path):
            known = graves.load(store)
            now = {one.name: one.digest for one in summaries.as_items(store, list(kept.digests))}
            said = "\n".join(one.text for one in kept.draft.sentences)
            if now == dict(kept.digests) and known.blanked(said, kept.scopes) == said:
                continue
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _is_young(path: Path) -> bool:
    try:
        return abs(time.time() - path.stat().st_mtime) < _KEPT_SECONDS
    except OSError:
        return False


def _read(path: Path) -> Kept | None:
    try:
        found: Any = json.loads(path.read_text("utf-8"))
        sentences = tuple(
            Sentence(**{**one, "spans": tuple(Span(**span) for span in one["spans"])})
            for one in found["draft"]["sentences"]
        )
        draft = Draft(sentences, tuple(found["draft"]["topics"]))
        return Kept(found["by"], draft, found["digests"], tuple(found["scopes"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None
