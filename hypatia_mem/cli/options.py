"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

__all__ = [
    "MOST",
    "AllProjects",
    "AsJson",
    "AsKnownAt",
    "AsOf",
    "AsSession",
    "Cursor",
    "Limit",
    "Offset",
    "Scopes",
    "ValidFrom",
    "ValidTo",
]

MOST = 1_000_000_000  # of anything a person counts; the store and the calendar end behind it

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON.")]
Scopes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--scope",
        help="Read this scope alone; may be repeated. The empty text is the global scope.",
    ),
]
AllProjects: TypeAlias = Annotated[
    bool, typer.Option("--all-projects", help="Read every project's scope.")
]
AsSession: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as-session",
        metavar="ID",
        help="As this session is told: of its own family of branches only what it reads. By "
        "default the session that asks.",
    ),
]
Limit: TypeAlias = Annotated[int, typer.Option("--limit", min=1, max=MOST, help="At most so many.")]
Offset: TypeAlias = Annotated[
    int, typer.Option("--offset", min=0, max=MOST, help="Leave out the first.")
]
AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        help="Only what was true at this time: 2026-03-01, 2026-03-01T14:30 (local time), "
        "...+05:45, ...Z, or now.",
    ),
]
AsKnownAt: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as-known-at",
        help="As the memory held it at this time; what was forgotten since stays forgotten.",
    ),
]
Cursor: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--cursor",
        help="Page by page without repeating or leaving out a row, whatever comes in meanwhile: "
        "first, then what each page gives for the next one.",
    ),
]
ValidFrom: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--valid-from",
        help="When it became true: a date, or a time like 2026-03-01T14:30+02:00; without a zone "
        "local time.",
    ),
]
ValidTo: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--valid-to",
        help="When it stops being true; a date is true to its end. Without it: not known to end.",
    ),
]
