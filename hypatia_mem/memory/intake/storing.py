"""Stores what a session brought: its turns, its title, and what its prompts asked for."""

from __future__ import annotations

import getpass
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.capture import immediate
from hypatia_mem.capture.hints import may_be_request
from hypatia_mem.memory import curate, projects
from hypatia_mem.memory.intake import reconcile
from hypatia_mem.memory.intake.batch import Work, when
from hypatia_mem.memory.intake.turns import Facts
from hypatia_mem.memory.logged import Logged
from hypatia_mem.model import CLOCKS_APART, GLOBAL_SCOPE, Author, Channel, Message, Session

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction

__all__ = ["store_session"]


def store_session(
    home: Path,
    store: Store,
    txn: Transaction,
    one: Work,
    plan: reconcile.Plan,
    touched: set[str],
) -> Logged:
    """Store what a plan says about a session; returns its new messages."""
    before = store.session(one.session_id)
    if before is None and not plan.store and not plan.repeated:
        # A start without a turn, or an end of something that never began.
        return Logged(one.session_id, "", ())
    scope = before.project if before is not None else _claim(store, txn, one)
    if scope in {project.scope for project in store.projects() if project.excluded}:
        # The hook did not know this folder (a worktree elsewhere): from now on it does.
        projects.tell_hook(store, home, also={r.dir for r in one.records if r.dir})
        return Logged(one.session_id, scope, ())
    title = _title(store, one)
    session = _session(one, plan, scope, title, txn.now)
    outcome = txn.put_session(_branched(store, session, plan))
    turns = txn.put_messages(one.session_id, plan.store, scope)
    amended: dict[int, dict[str, Any]] = {}
    for amendment in plan.amend:
        amended.setdefault(amendment.turn, {}).update(amendment.changes)
    if amended:
        txn.amend_messages(one.session_id, amended)
    _store_summary(store, txn, one, scope, title)
    _press(txn, one)
    for message, turn in zip(plan.store, turns, strict=True):
        if turn and message.role == "user":
            typed = message.uuid in plan.typed
            folder = _folder(one, message)
            touched |= _obey(home, store, txn, message, turn, scope, folder, typed=typed)
    if plan.store or plan.amend or outcome.verb != "unchanged":
        touched.add(scope)
    return Logged(one.session_id, scope, tuple(turn for turn in turns if turn))


def _claim(store: Store, txn: Transaction, one: Work) -> str:
    folders = [record.dir for record in one.records if record.dir]
    if one.facts is not None and one.facts.cwd:
        folders.append(one.facts.cwd)
    folders += [str(r.event["cwd"]) for r in one.records if isinstance(r.event.get("cwd"), str)]
    return projects.claim(store, txn, folders[0] if folders else str(Path.home()))


def _title(store: Store, one: Work) -> str:
    """Return the latest title; one that a person gave beats one the client made up.

    What the client makes up says what was said: it goes with a message that was taken out.
    """
    custom = [title.text for title in one.titles if title.custom]
    made = [title.text for title in one.titles if not title.custom]
    if made and not custom and _is_withdrawn(store, one.session_id, made[-1]):
        return ""
    return (custom or made or [""])[-1]


def _store_summary(store: Store, txn: Transaction, one: Work, scope: str, title: str) -> None:
    """Keep a real summary of the session, never a made-up one: compaction's beats a title."""
    from hypatia_mem.store import sources

    named = any(each.custom and each.text == title for each in one.titles)
    source = sources.NAMED if named else "title"
    if one.summaries:
        txn.put_summary(one.session_id, one.summaries[-1], "compaction", scope)
    elif title and store.producer_of(f"session-{one.session_id}") in ("", "title", source):
        txn.put_summary(one.session_id, title, source, scope)


def _press(txn: Transaction, one: Work) -> None:
    """Have what the client condensed condensed here too; its transcript tells when, or its hook.

    Nothing is installed on PreCompact; SessionStart with this source comes right after it.
    """
    started = [
        when(record)
        for record in one.records
        if record.event.get("hook_event_name") == "SessionStart"
        and record.event.get("source") == "compact"
    ]
    at = one.compacted_at or max(started, default=None)
    if at is not None:
        from hypatia_mem.memory import pressure

        pressure.compacted(txn, one.session_id, at)


def _obey(
    home: Path,
    store: Store,
    txn: Transaction,
    message: Message,
    turn: int,
    scope: str,
    folder: str,
    *,
    typed: bool,
) -> set[str]:
    """Do what a prompt asks to remember or to forget, in the transaction that stores it.

    It holds for the project of ``folder``, where the client ran: a session can be resumed
    elsewhere. ``scope`` is the session's, for where that is not known.

    Returns the scopes whose briefs are no longer true.
    """
    if not may_be_request(message.text.encode("utf-8", "replace")):
        return set()
    request = immediate.parse(message.text)
    if request is None:
        return set()
    channel = Channel.HOOK_PROMPT if typed else Channel.TRANSCRIPT
    author = Author(channel, session_id=message.session_id, turn=turn)
    if folder:
        scope = projects.claim(store, txn, folder)
    with txn.acting(author, said_at=message.at):
        if request.verb == "remember":
            scopes = (GLOBAL_SCOPE,) if request.is_global else (scope,)
            curate.remember_in(txn, request.text, kind=request.kind, scopes=scopes, author=author)
            return set(scopes)
        plan = curate.plan_forget(curate.forgettable(store, scope), request.text)
        if plan.chosen:
            curate.leave_index(home, store, plan.chosen)
            curate.forget_in(txn, plan)
            return {GLOBAL_SCOPE}  # what was forgotten may have been told everywhere
    return set()


def _session(one: Work, plan: reconcile.Plan, scope: str, title: str, now: datetime) -> Session:
    facts = one.facts or Facts()
    ends = [r for r in one.records if r.event.get("hook_event_name") == "SessionEnd"]
    times = [when(record) for record in one.records] + [message.at for message in plan.store]
    client = next((r.client for r in one.records if r.client), "")
    return Session(
        id=one.session_id,
        project=scope,
        title=title,
        user=_user(),
        agent="claude-code",
        client=client or (f"claude-code {facts.version}" if facts.version else ""),
        cwd=next((r.dir for r in one.records if r.dir), "") or facts.cwd,
        git_branch=facts.git_branch,
        transcript_path=one.transcript_path,
        forked_from=facts.forked_from,
        started_at=min((t for t in [*times, facts.started_at] if t), default=None),
        updated_at=_latest([*times, facts.updated_at], now),
        ended_at=when(ends[-1]) if ends else None,
        end_reason=str(ends[-1].event.get("reason") or "") if ends else "",
    )


def _branched(store: Store, session: Session, plan: reconcile.Plan) -> Session:
    """Return the session with where it branched off, when its transcript repeats another one's."""
    from hypatia_mem.store import branches

    if not plan.repeated:
        return session
    said = session.forked_from
    found = branches.origin(store, session.id, plan.repeated, said)
    return replace(session, **found._asdict()) if found else replace(session, forked_from="")


def _latest(times: Iterable[datetime | None], now: datetime) -> datetime | None:
    """Return the latest of some times that can be: one from a clock gone wrong is none."""
    there = [one for one in times if one is not None]
    likely = [one for one in there if one <= now + CLOCKS_APART]
    return max(likely or there, default=None)


def _folder(one: Work, message: Message) -> str:
    """Return where the client ran when a prompt was typed, ``""`` when no hook says so."""
    folders = {str(r.event.get("prompt_id") or ""): r.dir for r in one.records if r.dir}
    same = set(folders.values())
    return folders.get(message.prompt_id) or (same.pop() if len(same) == 1 else "")


def _is_withdrawn(store: Store, session_id: str, title: str) -> bool:
    """Tell whether a title that the client made stands on messages that are not there any more."""
    from hypatia_mem.store import sources

    name = f"session-{session_id}"
    return sources.lacks_messages(store, session_id) or sources.was_withdrawn(store, name, title)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""
