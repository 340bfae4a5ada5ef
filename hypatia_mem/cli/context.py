"""Where a command stands: home, time, author, and the scopes of the current project.

The shelf is the one option every command shares: ``group`` sets it here when it stands on the
command line, and everything that asks for ``home()`` works on that shelf.

The scope comes from the resolved project (I5). A known folder's scope is read from the small file
beside its brief, so that ``search`` needs no DuckDB; only a folder not seen before asks the store.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import paths
from hypatia_mem.errors import UsageError

if TYPE_CHECKING:  # and imported where they are used: ``search`` needs neither
    from hypatia_mem.model import Author, Channel

__all__ = [
    "ask_as",
    "asker",
    "author",
    "by_agents_client",
    "channel",
    "choose_shelf",
    "current_folder",
    "current_scope",
    "home",
    "now",
    "own_home",
    "reach_of",
    "reach_to_change",
    "refuse_agent",
    "refuse_client",
    "scopes_for",
    "scopes_to_change",
    "shelf",
]

_AGENT_MARKS = ("CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT", "AI_AGENT")


_shelf: str | None = None
_asker: str | None = None


def choose_shelf(name: str | None) -> None:
    """Let the commands from now on work on this shelf; None is this memory itself."""
    global _shelf
    _shelf = name


def shelf() -> str:
    """Return the name of the shelf in use; ``default`` is this memory itself."""
    return "default" if _shelf is None else _shelf


def ask_as(session: str | None) -> None:
    """Let the reads from now on be answered as this session is told; None is whoever asks."""
    global _asker
    _asker = session


def asker() -> str:
    """Return the session that asks, as its client says or ``--as-session``; ``""`` for none."""
    return _asker if _asker is not None else os.environ.get("CLAUDE_CODE_SESSION_ID", "")


def home() -> Path:
    """Return the home of the shelf in use; nothing is created. Raises ShelfError."""
    if _shelf is None:
        return own_home()
    from hypatia_mem.memory.sharing import shelves

    return shelves.shelf_home(own_home(), _shelf)


def own_home() -> Path:
    """Return this memory's home, whatever shelf is in use; nothing is created."""
    return Path(paths.home())


def now() -> datetime:
    """Return the time as the store keeps it: naive UTC."""
    return datetime.now(UTC).replace(tzinfo=None)


def channel() -> Channel:
    """Return by which door this command came in; observed, never claimed.

    An agent is recognised by the marks its client leaves in the environment, or by there being no
    terminal to type at.
    """
    from hypatia_mem.model import Channel

    if by_agents_client():
        return Channel.CLI_AGENT
    try:
        at_terminal = sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # closed
        at_terminal = False
    return Channel.CLI_PERSON if at_terminal else Channel.CLI_AGENT


def by_agents_client() -> bool:
    """Tell whether an agent's client started this: its marks are in the environment.

    For what is about the installation: a script without a terminal may set that up.
    """
    return any(os.environ.get(mark) for mark in _AGENT_MARKS)


def refuse_client(what: str) -> None:
    """Raise Refused where an agent's client started this; ``what`` a person has to do."""
    if by_agents_client():
        from hypatia_mem.errors import Refused

        raise Refused(
            f"only a person can {what}", hint="Run this command in a terminal of your own."
        )


def refuse_agent(what: str, verb: str) -> None:
    """Raise Refused for whoever is no person; the ledger notes that ``verb`` was asked for."""
    from hypatia_mem.memory import persons

    persons.only(home(), author(), what, now=now(), verb=verb)


def author() -> Author:
    """Return who writes: the login name, the observed channel, the agent's session if it says."""
    from hypatia_mem.model import Author

    return Author(
        channel=channel(),
        actor=os.environ.get("USER") or os.environ.get("LOGNAME") or "",
        producer=os.environ.get("AI_AGENT", ""),
        session_id=os.environ.get("CLAUDE_CODE_SESSION_ID", ""),
    )


def current_folder() -> str:
    """Return the working directory; UsageError when it is gone."""
    try:
        return str(Path.cwd())
    except OSError:
        raise UsageError(
            "the current folder does not exist any more, so its project cannot be told",
            hint="Change to a folder, or name the scope with --scope.",
        ) from None


def current_scope(*, claim: bool = False) -> str:
    """Return the scope of the project the current folder lies in.

    ``claim`` writes down a folder that the store has not seen, before something is stored under its
    scope: else a second folder of the same name would be given that scope too.
    """
    folder = current_folder()
    root = paths.find_root(folder)
    written = home() / "briefs" / f"{root.key}.scope"
    try:
        return written.read_text("utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return _claimed(folder) if claim else _resolved(folder)


def _resolved(folder: str) -> str:
    from hypatia_mem.memory import projects
    from hypatia_mem.store.connection import open_store

    with open_store(home(), write=False) as store:
        return projects.resolve(store, folder).scope


def _claimed(folder: str) -> str:
    from hypatia_mem.memory import projects
    from hypatia_mem.store.connection import open_store

    with open_store(home(), write=True) as store, store.transaction(author(), now=now()) as txn:
        return projects.claim(store, txn, folder)


def reach_of(names: Iterable[str], scope: list[str] | None, all_projects: bool) -> list[str] | None:
    """Return the scopes to work in, as ``scopes_for``; NotFound when a name is of another project.

    For a command that is given names: a name says nothing about whose it is.
    """
    from hypatia_mem.memory import reach
    from hypatia_mem.store.connection import open_store

    scopes = scopes_for(scope, all_projects)
    if scopes is not None:
        with open_store(home(), write=False) as store:
            reach.refuse_foreign(store, names, scopes)
    return scopes


def reach_to_change(
    names: Iterable[str], scope: list[str] | None, all_projects: bool, *, verb: str
) -> list[str] | None:
    """As ``reach_of``, for a command that changes what it is given; only a person looks further."""
    scopes_to_change(scope, all_projects, verb=verb)
    return reach_of(names, scope, all_projects)


def scopes_to_change(scope: list[str] | None, all_projects: bool, *, verb: str) -> list[str] | None:
    """As ``scopes_for``, for a command that changes something: Refused for an agent elsewhere."""
    from hypatia_mem.memory import persons

    scopes = scopes_for(scope, all_projects)
    if scope or all_projects:
        persons.refuse_foreign(home(), author(), scopes, current_scope(), now=now(), verb=verb)
    return scopes


def scopes_for(scope: list[str] | None, all_projects: bool) -> list[str] | None:
    """Return the scopes to read: those named, or the project's and the global; None means all."""
    if scope and all_projects:
        raise UsageError("--scope and --all-projects contradict each other")
    if all_projects:
        return None
    if scope:
        return list(dict.fromkeys(scope))
    return [current_scope(), ""]  # the global scope
