"""Full-text search from the command line. It reads the search index alone: no DuckDB, no lease."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.options import (
    AllProjects,
    AsJson,
    AsKnownAt,
    AsOf,
    AsSession,
    Cursor,
    Limit,
    Offset,
    Scopes,
)
from hypatia_mem.cli.output import print_page, print_rows
from hypatia_mem.errors import IndexUnavailable, UsageError, one_of

if TYPE_CHECKING:
    from hypatia_mem.memory.paging import Page
    from hypatia_mem.store.search import Filters, Hit, SearchIndex

__all__ = ["find", "find_keys", "find_known", "find_page", "moment", "search"]

_KINDS = (
    "knowledge",
    "rule",
    "taboo",
    "memory",
    "message",
    "summary",
    "episode",
    "goal",
    "thread",
    "session",
    "statement",
)
_ROLES = ("user", "assistant")
_AGO = re.compile(r"(\d{1,6})\s*(min|h|d|w)")
_UNITS = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
# Relative times, and what is not told, may be others on each page of one question.
_UNASKED: dict[str, Any] = {"since": None, "until": None, "as_of": None, "hidden": ()}
_TIME = "%Y-%m-%d %H:%M:%S.%f"  # as in every row; the module that says so imports much else
_DIGITS = 6  # of a score that is printed, and may be typed again as a threshold
_Found = TypeVar("_Found")


def find(
    home: Path,
    text: str,
    *,
    scopes: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    catalog: str | None = None,
    filters: Filters | None = None,
    limit: int = 20,
    offset: int = 0,
) -> list[Hit]:
    """Return hits of the search index, building it first where there is none.

    ``filters`` says more than ``scopes``, ``kinds`` and ``catalog`` can, and stands for them. A
    phrase in quotation marks has to be in a hit as it stands. Only the rare case of no index opens
    the store. Raises IndexUnavailable when it cannot be built now.
    """
    from hypatia_mem.store.search import Filters

    if filters is None:
        filters = Filters(scopes=scopes, kinds=kinds, catalog=catalog)
    words, filters = _unquoted(text, filters)
    return _asked(
        home, lambda index: index.search(words, filters=filters, limit=limit, offset=offset)
    )


def find_keys(
    home: Path,
    text: str,
    *,
    catalog: str | None = None,
    scopes: Sequence[str] | None = None,
    limit: int,
) -> list[tuple[str, float]]:
    """Return (name or triple, score) of what ``find`` finds: all that a query needs of a hit."""
    from hypatia_mem.store.search import Filters

    words, wanted = _unquoted(text, Filters(catalog=catalog, scopes=scopes))
    return _asked(home, lambda index: index.keys(words, wanted, limit=limit))


def find_known(
    home: Path, text: str, *, filters: Filters, known_at: datetime, limit: int, offset: int = 0
) -> list[Hit]:
    """Return hits among what was known at a time; this alone opens the store."""
    from dataclasses import replace

    from hypatia_mem.memory import known

    words, filters = _unquoted(text, filters)
    wanted = replace(filters, threshold=None)

    def proposed(catalog: str) -> list[str]:
        if filters.catalog not in (None, catalog):
            return []
        asked = replace(wanted, catalog=catalog)
        found = _asked(home, lambda index: index.keys(words, asked, limit=known.CANDIDATES))
        return [name for name, _ in found]

    return known.find_known(
        home,
        words,
        filters,
        known_at=known_at,
        names=proposed("knowledge"),
        triples=proposed("statement"),
        limit=limit,
        offset=offset,
    )


def find_page(home: Path, text: str, *, filters: Filters, cursor: str, limit: int) -> Page[Hit]:
    """Return a page of hits in the order that they had when the first page was read.

    Raises NotFound for a cursor that is none, or is one of another question.
    """
    from dataclasses import asdict, replace

    from hypatia_mem.memory import paging

    words, filters = _unquoted(text, filters)
    asked = json.loads(json.dumps([words, asdict(replace(filters, **_UNASKED))]))

    def read(keys: Sequence[str]) -> dict[str, Hit]:
        ids = {key.partition(" ")[0]: key for key in keys}
        there = _asked(home, lambda index: [index.among(list(ids), words, filters)])
        found = there[0] if there else {}
        return {
            key: replace(found[one], score=float(key.partition(" ")[2]))
            for one, key in ids.items()
            if one in found
        }

    if cursor != paging.FIRST:
        return paging.next_page(home, cursor, "search", asked, read, limit=limit)
    order = _asked(home, lambda index: index.ranking(words, filters, limit=paging.MOST_KEYS))
    keys = [f"{one} {score:.6f}" for one, score in order]
    return paging.first_page(home, "search", asked, keys, read, limit=limit)


def _unquoted(text: str, filters: Filters) -> tuple[str, Filters]:
    """Return the words to look for, and the filters with the phrases and what is not told."""
    from dataclasses import replace

    from hypatia_mem.store import hidden
    from hypatia_mem.store.terms import split_quoted

    words, phrases = split_quoted(text)
    filters = replace(filters, exact=(*filters.exact, *phrases))
    if not filters.hidden:
        filters = replace(filters, hidden=hidden.told(context.home(), context.asker()))
    return words, filters


def _asked(home: Path, ask: Callable[[SearchIndex], list[_Found]]) -> list[_Found]:
    from hypatia_mem.store.search import SearchIndex

    try:
        return ask(SearchIndex(home))
    except IndexUnavailable:
        if not (home / "memory.duckdb").exists():
            return []
        from hypatia_mem.memory import curate

        curate.refresh(home)
        return ask(SearchIndex(home))


def search(  # noqa: PLR0913 - one parameter an option
    text: Annotated[
        str | None,
        typer.Argument(
            help='Words to look for; all forms count. A phrase in "quotation marks" has to be '
            "there as it stands.",
            show_default=False,
        ),
    ] = None,
    catalog: Annotated[
        str | None, typer.Option("-c", "--catalog", help="Only knowledge, or only statement.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help=f"Only this kind, may be repeated: {', '.join(_KINDS)}."),
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option("--role", help="Only messages of the user, or only of the assistant."),
    ] = None,
    session: Annotated[
        list[str] | None,
        typer.Option(
            "--session",
            help="Only what was said in this session, for a branch with what it shares; may be "
            "repeated.",
        ),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", help="Only entries that have this tag; may be repeated: and this."),
    ] = None,
    keyword: Annotated[
        list[str] | None,
        typer.Option(
            "--keyword",
            help="Only what holds these words side by side as they are typed, in any case; may be "
            "repeated: and these.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            help="Only from then on: 2026-11-30, 2026-11-30T09:00 (local time), 7d, 12h, 30min.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", help="Only before then; a day counts whole."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Only hits of at least this score.")
    ] = None,
    as_of: AsOf = None,
    as_known_at: AsKnownAt = None,
    limit: Limit = 100,
    offset: Offset = 0,
    cursor: Cursor = None,
    as_session: AsSession = None,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Search the full text of entries, messages and statements, best first.

    Reads the current project and the global scope. Rows carry catalog, key, content (a JSON
    text), score (higher is better) and rank (lower is better); tr_start and tr_end where somebody
    said since when or until when it is true. What is not true now is found too, unless --as-of now.

    \b
    Example:
      hypatia-mem search "connection pool" --limit 5 -c knowledge
      hypatia-mem search timeout --role user --since 7d --keyword ERR_CONN_RESET
    """
    from hypatia_mem.store import hidden
    from hypatia_mem.store.search import Filters

    keywords = [_checked_keyword(words) for words in keyword or ()]
    if text is None and not keywords:
        raise UsageError(
            "Missing argument 'TEXT': there is nothing to look for",
            hint="Give some words, or --keyword. Entries by tag or scope: hypatia-mem query",
        )
    asked = " ".join(keywords) if text is None else values.checked(text, "the search text")
    sessions = [_session_id(one) for one in session or ()]
    context.ask_as(as_session or (sessions[0] if len(sessions) == 1 else None))
    home = context.home()
    filters = Filters(
        scopes=context.scopes_for(scope, all_projects),
        catalog=_one_of(catalog, ("knowledge", "statement"), "--catalog"),
        kinds=_each_of(kind, _KINDS, "--kind"),
        roles=_each_of(role, _ROLES, "--role"),
        turns=[part for one in sessions for part in hidden.turns_of(home, one)] or None,
        tags=[values.checked(one, "--tag") for one in tag or ()],
        since=None if since is None else _moment(since, "--since"),
        until=None if until is None else _moment(until, "--until", end=True),
        as_of=moment(as_of, "--as-of"),
        exact=keywords,
        threshold=None if threshold is None else threshold - 0.5 * 10**-_DIGITS,
    )
    known_at = moment(as_known_at, "--as-known-at")
    if cursor is not None:
        if offset or known_at is not None:
            wrong = "--offset" if offset else "--as-known-at"
            raise UsageError(f"--cursor and {wrong} contradict each other")
        page = find_page(home, asked, filters=filters, cursor=cursor, limit=limit)
        rows = [_hit_row(place, hit) for place, hit in enumerate(page.rows, start=1)]
        print_page(rows, page.cursor, None, as_json)
        return
    if known_at is None:
        found = find(home, asked, filters=filters, limit=limit, offset=offset)
    else:
        found = find_known(
            home, asked, filters=filters, known_at=known_at, limit=limit, offset=offset
        )
    rows = [_hit_row(offset + place, hit) for place, hit in enumerate(found, start=1)]
    print_rows(rows, as_json)


def moment(text: str | None, option: str) -> datetime | None:
    """Return the time that an option names, as naive UTC; ``now`` is one, None stays None."""
    if text is None:
        return None
    if text.strip().lower() == "now":
        return context.now()
    found = values.parse_time(text, option)
    if found is None:
        raise UsageError(f"{option} needs a time", hint="Like 2026-03-01, or now.")
    return found


def _one_of(value: str | None, allowed: Sequence[str], option: str) -> str | None:
    return None if value is None else one_of(value, allowed, option)


def _each_of(named: Sequence[str] | None, allowed: Sequence[str], option: str) -> list[str] | None:
    return [one_of(one, allowed, option) for one in named] if named else None


def _checked_keyword(words: str) -> str:
    if not values.checked(words, "--keyword").strip():
        raise UsageError("--keyword needs a word")
    return words


def _session_id(text: str) -> str:
    """Return a session's id, which may be given as the name of its entry too."""
    return values.checked(text, "--session").removeprefix("session-")


def _moment(text: str, option: str, *, end: bool = False) -> datetime | None:
    """Return a time that is written out, or told by how long ago it was, as naive UTC."""
    ago = _AGO.fullmatch(text.strip())
    if ago is None:
        return values.parse_time(text, option, end=end)
    try:
        return context.now() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    except OverflowError:
        return datetime.min  # noqa: DTZ901 - naive UTC


def _hit_row(place: int, hit: Hit) -> dict[str, Any]:
    content = {
        "format": "markdown",
        "data": hit.snippet_text,
        "scopes": list(hit.scopes) or None,
    }
    return {
        "id": place,
        "catalog": hit.catalog,
        "key": hit.name,
        "kind": hit.kind,
        "content": json.dumps(content, ensure_ascii=False),
        "score": round(hit.score, _DIGITS),
        "rank": round(-hit.score, _DIGITS),
        "created_at": None if hit.at is None else hit.at.strftime(_TIME),
        **({} if hit.valid_from is None else {"tr_start": hit.valid_from.strftime(_TIME)}),
        **({} if hit.valid_to is None else {"tr_end": hit.valid_to.strftime(_TIME)}),
    }
