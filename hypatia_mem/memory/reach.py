"""Whose a name is: what belongs to another project is neither read nor changed by the way (I5).

Names are of the whole memory, so a name alone says nothing about a scope. A command that is given
one works on it only where the project and the global scope reach; another project's is named on
purpose, with ``--scope`` or ``--all-projects``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hypatia_mem.errors import NotFound

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["refuse", "refuse_foreign", "scopes_of"]


def scopes_of(store: Store, name: str) -> tuple[str, ...]:
    """Return the scopes of an entry, of one that was deleted, of a statement's key, of a session.

    Nothing for a name that nothing has.
    """
    from hypatia_mem.store import history

    entry = store.entry(name) or history.last_entry(store, name)
    if entry is not None:
        return entry.scopes
    session = store.session(name)
    if session is not None:
        return (session.project,)
    states = history.statement_states(store, name)
    return tuple(states[-1].value.scopes) if states else ()


def refuse_foreign(store: Store, names: Iterable[str], scopes: Sequence[str] | None) -> None:
    """Raise NotFound when a name belongs to none of these scopes; None reaches everything."""
    if scopes is not None:
        for name in names:
            refuse(name, scopes_of(store, name), scopes)


def refuse(name: str, own: Sequence[str], scopes: Sequence[str] | None) -> None:
    """Raise NotFound when what has these scopes of its own is out of reach of ``scopes``.

    What has no scope at all is nobody else's, and in reach.
    """
    if scopes is None or not own or set(own) & set(scopes):
        return
    raise NotFound(
        f"{name!r} is not of this project",
        hint=f"It belongs to {', '.join(repr(one) for one in own[:3])}: say so with --scope,"
        " or look everywhere with --all-projects.",
    )
