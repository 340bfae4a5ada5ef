"""Facts by key: kept until they are asked for, each new value a version of the last one.

A fact is a knowledge entry with the tag ``fact``; no session is told it unasked. A preference or a
procedure has that tag beside it, and so is found with those that were remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from hypatia_mem.errors import Conflict, UsageError, one_of
from hypatia_mem.memory import curate
from hypatia_mem.model import Author, Entry, Outcome

__all__ = ["TAG", "put"]

TAG = "fact"


def put(
    home: Path,
    key: str,
    value: str,
    *,
    sort: str = "",
    tags: Sequence[str] = (),
    scope: str,
    author: Author,
    now: datetime,
) -> Outcome:
    """Keep a value under a key; one that is there becomes its history.

    ``sort`` is one of ``curate.SORTS`` or ``""``. Both texts are redacted first. Raises UsageError
    for an empty text, Conflict for a key that is the name of something else, or another project's.
    """
    from hypatia_mem.capture.redact import redact_text

    name, words = " ".join(redact_text(key).split()), redact_text(value).strip()
    if not name or not words:
        raise UsageError(
            "a fact needs a key and a value",
            hint='Example: hypatia-mem fact set "default region" eu-west-1',
        )
    if sort:
        one_of(sort, curate.SORTS, "--kind")
    with curate.changing(home, author, now) as (_, txn):
        there = txn.entry(name)
        if there is not None and (TAG not in there.tags or there.scopes != (scope,)):
            what = f"a {there.kind}" if TAG not in there.tags else "a fact of another project"
            raise Conflict(
                f"{name[:80]!a} is the name of {what}", hint="Take another key for the fact."
            )
        own = (TAG, *([sort] if sort else []), *tags)
        if there is not None and not sort and not tags:
            own = there.tags
        return txn.put_entry(
            Entry(
                name=name,
                content=words,
                tags=tuple(dict.fromkeys(own)),
                scopes=(scope,),
                session_id=author.session_id,
            ),
            replace=True,
        )
