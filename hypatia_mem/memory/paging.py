"""Pages that neither repeat a row nor leave one out, whatever comes in between them.

The first page keeps the whole order as it was then: a list of keys in ``index/pages``, which is
derived and private as all of the index. A cursor names the list and a place in it, so a page can be
asked for again. What came in later is in no page of it; what was withdrawn since is left out when
its page is read, and says nothing in the list: entries stand in it as keyed digests.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from hypatia_mem.errors import NotFound

__all__ = ["FIRST", "MOST_KEYS", "Page", "first_page", "next_page", "sweep"]

FIRST = "first"  # the cursor of the first page
MOST_KEYS = 10_000  # that a list holds; what ranks behind them is in no page
_KEPT_SECONDS = 24 * 3600.0
_KEPT_LISTS = 100
_CURSOR = re.compile(r"([0-9a-f]{16})\.(\d{1,9})")
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class Page(Generic[_Row]):
    """One page; ``cursor`` is that of the next, None when this is the last."""

    rows: list[_Row]
    cursor: str | None


def first_page(
    home: Path,
    what: str,
    asked: Any,  # noqa: ANN401 - anything that JSON holds
    keys: Sequence[str],
    read: Callable[[Sequence[str]], dict[str, _Row]],
    *,
    limit: int,
) -> Page[_Row]:
    """Keep an order and return its first page.

    ``what`` and ``asked`` say what was asked for: a later page has to be of the same. ``read``
    returns the rows of some keys, without those that are gone.
    """
    keys = list(keys)[:MOST_KEYS]
    if len(keys) <= limit:
        rows, _ = _taken(keys, 0, read, limit)
        return Page(rows, None)
    folder = _folder(home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    sweep(home)
    token = secrets.token_hex(8)
    data = json.dumps({"what": what, "asked": asked, "keys": keys}).encode()
    handle = os.open(folder / token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return _page(token, keys, 0, read, limit)


def next_page(
    home: Path,
    cursor: str,
    what: str,
    asked: Any,  # noqa: ANN401 - as above
    read: Callable[[Sequence[str]], dict[str, _Row]],
    *,
    limit: int,
) -> Page[_Row]:
    """Return the page that a cursor stands for. Raises NotFound: it is none, or not any more."""
    found = _CURSOR.fullmatch(cursor)
    try:
        kept = json.loads((_folder(home) / found[1]).read_bytes()) if found else None
    except (OSError, ValueError):
        kept = None
    if found is None or not isinstance(kept, dict) or kept.get("what") != what:
        raise NotFound(
            f"the cursor {cursor[:40]!a}",
            hint=f"Cursors are kept for a day. Begin anew with: --cursor {FIRST}",
        )
    if kept["asked"] != json.loads(json.dumps(asked)):
        raise NotFound(
            "a page of this cursor for another question",
            hint=f"Ask the same as on the first page, or begin anew: --cursor {FIRST}",
        )
    return _page(found[1], kept["keys"], int(found[2]), read, limit)


def sweep(home: Path, *, now: float | None = None) -> None:
    """Remove lists that nobody comes back to."""
    now = time.time() if now is None else now
    with contextlib.suppress(OSError):
        lists = sorted(_aged(_folder(home)), reverse=True)
        for number, (changed, path) in enumerate(lists, start=1):
            if number >= _KEPT_LISTS or now - changed > _KEPT_SECONDS:
                path.unlink(missing_ok=True)


# ----------------------------------------------------------------------------------------------


def _page(
    token: str,
    keys: Sequence[str],
    place: int,
    read: Callable[[Sequence[str]], dict[str, _Row]],
    limit: int,
) -> Page[_Row]:
    rows, place = _taken(keys, place, read, limit)
    return Page(rows, f"{token}.{place}" if place < len(keys) else None)


def _taken(
    keys: Sequence[str],
    place: int,
    read: Callable[[Sequence[str]], dict[str, _Row]],
    limit: int,
) -> tuple[list[_Row], int]:
    """Return up to ``limit`` rows from a place on, and the place behind them."""
    rows: list[_Row] = []
    while place < len(keys) and len(rows) < limit:
        some = keys[place : place + limit - len(rows)]
        there = read(some)
        rows += [there[key] for key in some if key in there]
        place += len(some)
    return rows, place


def _folder(home: Path) -> Path:
    return home / "index" / "pages"


def _aged(folder: Path) -> Iterator[tuple[float, Path]]:
    for path in folder.iterdir():
        yield path.stat().st_mtime, path
