"""Sessions and what was said in them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.graph import entry_row, is_withheld
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import MOST, AllProjects, AsJson, Cursor, Limit, Offset, Scopes
from hypatia_mem.cli.output import columns, details, emit, print_json, print_page, say, who
from hypatia_mem.errors import NotFound, Refused, UsageError
from hypatia_mem.memory.trust import etag
from hypatia_mem.model import Entry, Message, Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypatia_mem.memory.paging import Page
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.listing import SessionsOf
    from hypatia_mem.store.trust import Verdict

__all__ = ["sessions", "show"]

_SOURCES = 3  # that are named of an entry

sessions = typer.Typer(
    add_completion=False,
    help="""List the sessions of this project, newest first; edit what is noted about one.

    \b
    Example:
      hypatia-mem sessions --limit 5
    """,
)


@sessions.callback(invoke_without_command=True)
def list_sessions(  # noqa: PLR0913 - one parameter an option
    ctx: typer.Context,
    limit: Limit = 20,
    offset: Offset = 0,
    cursor: Cursor = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Only those of this person, by login name.")
    ] = None,
    archived: Annotated[
        bool, typer.Option("--archived", help="Include archived sessions.")
    ] = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """List the sessions of this project, newest first; edit what is noted about one.

    \b
    Example:
      hypatia-mem sessions --limit 5
    """
    if ctx.invoked_subcommand is not None:
        return
    from hypatia_mem.store import branches, listing
    from hypatia_mem.store.connection import open_store

    if scope and len(scope) > 1:
        raise UsageError("a session belongs to one project: give --scope once")
    scopes = context.scopes_for(scope, all_projects)
    project = None if scopes is None else scopes[0]
    wanted = listing.SessionsOf(project, user, include_archived=archived)
    if cursor is not None:
        page = _page_of_sessions(cursor, wanted, limit, offset)
        found = page.rows
        with open_store(context.home(), write=False) as store:
            heads = branches.heads(store)
    else:
        with open_store(context.home(), write=False) as store:
            order = listing.session_order(store, wanted, limit=limit, offset=offset)
            there = listing.sessions_named(store, order, wanted)
            heads = branches.heads(store)
        found = [there[one] for one in order]
    rows = [
        {**_session_row(session, turns), "head": session.id in heads} for session, turns in found
    ]
    said = [_session_cells(session, turns, head=session.id in heads) for session, turns in found]
    if cursor is not None:
        print_page(rows, page.cursor, columns(said), as_json)
    elif as_json:
        print_json(rows)
    elif found:
        say(columns(said))
    else:
        say("No sessions here yet.")


def _page_of_sessions(
    cursor: str, wanted: SessionsOf, limit: int, offset: int
) -> Page[tuple[Session, int]]:
    from hypatia_mem.memory import paging
    from hypatia_mem.store import listing
    from hypatia_mem.store.connection import open_store

    if offset:
        raise UsageError("--cursor and --offset contradict each other")
    home = context.home()
    with open_store(home, write=False) as store:

        def read(ids: Sequence[str]) -> dict[str, tuple[Session, int]]:
            return listing.sessions_named(store, ids, wanted)

        asked = [wanted.project, wanted.user, wanted.include_archived]
        if cursor != paging.FIRST:
            return paging.next_page(home, cursor, "sessions", asked, read, limit=limit)
        order = listing.session_order(store, wanted, limit=paging.MOST_KEYS)
        return paging.first_page(home, "sessions", asked, order, read, limit=limit)


@sessions.command(cls=Leaf)
def edit(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The session's id.")],
    title: Annotated[str | None, typer.Option("--title", help="A title of your own.")] = None,
    pin: Annotated[
        bool | None, typer.Option("--pin/--no-pin", help="Mark it as worth keeping.")
    ] = None,
    archive: Annotated[
        bool | None, typer.Option("--archive/--no-archive", help="Leave it out of the list.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Set the tags; may be repeated.")
    ] = None,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Change a session's title, pin, archive mark or tags; what is not named stays.

    A session of another project is changed when --scope names that project, or with --all-projects.
    """
    from hypatia_mem.capture.redact import redact_text
    from hypatia_mem.memory import curate

    changes: dict[str, Any] = {}
    if title is not None:
        changes["title"] = redact_text(values.checked(title, "--title"))
    if pin is not None:
        changes["pinned"] = pin
    if archive is not None:
        changes["archived"] = archive
    if tag is not None:
        changes["tags"] = tuple(dict.fromkeys(item for item in tag if item))
    if not changes:
        raise UsageError("nothing to change", hint="Name at least one, for example --title.")
    context.reach_to_change([id_], scope, all_projects, verb="edit session")
    with curate.changing(context.home(), context.author(), context.now()) as (store, txn):
        if store.session(id_) is None:
            raise NotFound(f"session {id_!r}", hint="List them with: hypatia-mem sessions")
        outcome = txn.edit_session(id_, **changes)
    if outcome.verb == "refused":
        raise Refused(
            f"the session was not changed: {outcome.reason}",
            hint="A person can say it by running this command in a terminal.",
        )
    emit({"id": id_, **changes}, f"Updated session: {id_}", as_json)


@sessions.command(cls=Leaf)
def tree(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id of any session of the family.")],
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Show a session's branches as a tree: where each branched off, why, and which is the head.

    \b
    Example:
      hypatia-mem sessions tree 7f3c0c1e-5b1d
    """
    from dataclasses import asdict

    from hypatia_mem.memory import branching

    scopes = context.scopes_for(scope, all_projects)
    found = branching.tree(context.home(), values.checked(id_, "the session"), scopes=scopes)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    for one in found:
        where = f"  at {one.at}" if one.forked_from else ""
        why = f"  {one.reason}" if one.reason else ""
        mark = "  [head]" if one.head else ""
        noun = "message" if one.messages == 1 else "messages"
        say(f"{'  ' * one.depth}{one.id}{where}  {one.messages} {noun}{why}{mark}")


def show(  # noqa: PLR0913 - one option for each thing that can be shown
    what: Annotated[
        str,
        typer.Argument(
            metavar="NAME|SESSION",
            help="An entry's name, a message (msg-...), or a session's id.",
            show_default=False,
        ),
    ],
    first: Annotated[
        int, typer.Option("--from", min=1, max=MOST, help="The first turn of a session to show.")
    ] = 1,
    limit: Limit = 200,
    reasoning: Annotated[
        bool, typer.Option("--reasoning", help="Include what the model thought.")
    ] = False,
    raw_parts: Annotated[
        bool, typer.Option("--raw-parts", help="Include tool calls and results.")
    ] = False,
    meta: Annotated[
        bool,
        typer.Option("--meta", help="Say who made an entry, when, by what, and what it stands on."),
    ] = False,
    scope: Scopes = None,
    all_projects: AllProjects = False,
    as_json: AsJson = False,
) -> None:
    """Show an entry, a message, or the turns of a session, of this project or a global one.

    \b
    Example:
      hypatia-mem show 7f3c0c1e-... --from 40 --limit 10
    """
    from hypatia_mem.memory import reach, retelling
    from hypatia_mem.store import branches
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.reviewing import origin
    from hypatia_mem.store.trust import verdicts

    scopes = context.scopes_for(scope, all_projects)
    with open_store(context.home(), write=False) as store:
        session = store.session(what)
        if session is not None:
            reach.refuse(what, (session.project,), scopes)
            said = branches.reading(store, what, start=first, limit=limit, scopes=scopes)
            messages = [replace(one, turn=place) for place, one in said]
            names = [f"msg-{one.session_id}-{one.turn}" for _, one in said]
            _show_session(session, messages, names, reasoning, raw_parts, as_json)
            return
        entry = store.entry(what)
        if entry is None:
            raise NotFound(
                f"{what!r} is neither an entry nor a session",
                hint='Look for it with: hypatia-mem search "..."',
            )
        reach.refuse(what, entry.scopes, scopes)
        tag = etag(entry)
        entry = retelling.cleared(store, [entry])[0]
        message = _message_of(store, entry)
        verdict = verdicts(store, [entry.name]).get(entry.name)
        came = origin(store, entry.name)
    if message is not None and not meta:
        _show_message(message, entry, reasoning, raw_parts, as_json)
    else:
        _show_entry(entry, tag, verdict, came, as_json, meta=meta)


def _message_of(store: Store, entry: Entry) -> Message | None:
    if entry.kind != "message" or entry.turn is None:
        return None
    found = store.messages(entry.session_id, start=entry.turn, limit=1)
    return found[0] if found and found[0].turn == entry.turn else None


def _show_session(
    session: Session,
    messages: list[Message],
    names: list[str],
    reasoning: bool,
    raw_parts: bool,
    as_json: bool,
) -> None:
    """Show a session as it is read; a message's turn is its place there, ``names`` whose it is."""
    if as_json:
        rows = [
            {**_message_row(message, reasoning, raw_parts), "name": name}
            for message, name in zip(messages, names, strict=True)
        ]
        print_json({**_session_row(session, len(rows)), "messages": rows})
        return
    title = f"  {session.title}" if session.title else ""
    say(f"Session {session.id}  {session.project}{title}{_branch_mark(session)}")
    for message in messages:
        say("")
        say(_message_text(message, reasoning, raw_parts))


def _show_message(
    message: Message, entry: Entry, reasoning: bool, raw_parts: bool, as_json: bool
) -> None:
    row = {
        **_message_row(message, reasoning, raw_parts),
        "trust": str(entry.trust),
        "withheld": is_withheld(entry),
        "etag": etag(entry),
    }
    emit(
        row,
        _message_text(message, reasoning, raw_parts),
        as_json,
    )


def _show_entry(
    entry: Entry,
    tag: str,
    verdict: Verdict | None,
    came: dict[str, Any],
    as_json: bool,
    *,
    meta: bool,
) -> None:
    """Show an entry; ``tag`` is its etag as it is stored, whatever of it is shown."""
    from hypatia_mem.cli.activation import said as told_when
    from hypatia_mem.memory import activation

    said = _last_word(entry, verdict)
    row = {
        **entry_row(entry),
        "kind": entry.kind,
        "trust": str(entry.trust),
        "pinned": entry.pinned,
        "version": entry.version,
        "withheld": is_withheld(entry),
        "suppressed": entry.suppressed,
        **activation.row(entry),
        "etag": tag,
        "verdict": said,
        **({"meta": _plain(came)} if meta else {}),
    }
    marks = [entry.kind, str(entry.trust), *(["withheld"] if is_withheld(entry) else [])]
    scopes = ", ".join(scope or "global" for scope in entry.scopes) or "no scope"
    head = f"{entry.name}  [{', '.join(marks)}]  scopes: {scopes}  tags: {', '.join(entry.tags)}"
    why = f"\n{said['trust']} by {said['by']} at {said['at']}" if said else ""
    why += f": {said['reason']}" if said and said["reason"] else ""
    more = f"\n{details(_as_text(came))}" if meta else f"\nfrom {_from(came)}"
    told = told_when(activation.of(entry), entry.priority)
    more += f"\n{told}" if told else ""
    emit(row, f"{head}{why}\netag {tag}{more}\n\n{entry.content}", as_json)


def _from(came: dict[str, Any]) -> str:
    """Say in a line who brought an entry, who changed it last, and what it stands on."""
    said = f"{who(came['agent'], came['channel'])}, {came['created_at']:%Y-%m-%d %H:%M} UTC"
    if came["session_id"]:
        turn = f", turn {came['turn']}" if came["turn"] else ""
        said += f", in session {came['session_id']}{turn}"
    if came["version"] > 1:
        by = who(came["changed_by"] or "", came["changed_through"] or "")
        said += f"; version {came['version']} by {by}, {came['updated_at']:%Y-%m-%d %H:%M} UTC"
    some, more = came["sources"][:_SOURCES], len(came["sources"]) - _SOURCES
    if some:
        said += f"; stands on {', '.join(some)}{f' and {more} more' if more > 0 else ''}"
    return said


def _plain(came: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _zulu(value) if isinstance(value, datetime) else value for key, value in came.items()
    }


def _as_text(came: dict[str, Any]) -> dict[str, str]:
    """Return what is known of where an entry came from, without what is not known."""
    return {
        key.replace("_", " "): ", ".join(value) if isinstance(value, list) else str(value)
        for key, value in _plain(came).items()
        if value not in ("", None, [])
    }


def _last_word(entry: Entry, verdict: Verdict | None) -> dict[str, Any] | None:
    """Return the last word on an entry, if its trust still is what that said."""
    if verdict is None or verdict.trust != entry.trust:
        return None
    by = ", ".join(part for part in (verdict.actor, verdict.channel) if part)
    at = _zulu(verdict.at)
    return {"trust": verdict.trust, "reason": verdict.reason, "by": by, "at": at}


def _message_text(message: Message, reasoning: bool, raw_parts: bool) -> str:
    flags = f"  [{', '.join(message.flags)}]" if message.flags else ""
    lines = [f"{message.turn}  {message.role}  {_zulu(message.at)}{flags}", message.text]
    for part in _parts(message, reasoning, raw_parts):
        lines.append(f"--- {part.get('type', 'part')}")
        lines.append(_part_text(part))
    return "\n".join(lines)


def _part_text(part: Any) -> str:  # noqa: ANN401 - a typed part as the store keeps it
    import json

    text = part.get("text")
    if isinstance(text, str):
        return text
    rest = {key: value for key, value in part.items() if key != "type"}
    return json.dumps(rest, ensure_ascii=False, default=str)


def _parts(message: Message, reasoning: bool, raw_parts: bool) -> list[dict[str, Any]]:
    wanted = []
    for part in message.parts:
        kind = part.get("type")
        if (kind == "reasoning" and reasoning) or (kind not in ("reasoning", "text") and raw_parts):
            wanted.append(dict(part))
    return wanted


def _message_row(message: Message, reasoning: bool, raw_parts: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": f"msg-{message.session_id}-{message.turn}",
        "session_id": message.session_id,
        "turn": message.turn,
        "role": message.role,
        "at": _zulu(message.at),
        "text": message.text,
        "agent_id": message.agent_id,
        "flags": list(message.flags),
    }
    if reasoning or raw_parts:
        row["parts"] = _parts(message, reasoning, raw_parts)
    return row


def _session_row(session: Session, turns: int) -> dict[str, Any]:
    return {
        "id": session.id,
        "project": session.project,
        "title": session.title,
        "turns": turns,
        "started_at": _zulu(session.started_at),
        "updated_at": _zulu(session.updated_at),
        "ended_at": _zulu(session.ended_at),
        "end_reason": session.end_reason,
        "client": session.client,
        "cwd": session.cwd,
        "git_branch": session.git_branch,
        "forked_from": session.forked_from,
        "forked_at": session.forked_at,
        "fork_reason": session.fork_reason,
        "pinned": session.pinned,
        "archived": session.archived,
        "tags": list(session.tags),
    }


def _branch_mark(session: Session) -> str:
    """Return what is said of a branch behind its title."""
    if not session.forked_from:
        return ""
    at = f" at {session.forked_at}" if session.forked_at else ""
    why = f": {session.fork_reason}" if session.fork_reason else ""
    return f"  [fork of {session.forked_from}{at}{why}]"


def _session_cells(session: Session, turns: int, *, head: bool = False) -> tuple[str, ...]:
    marks = [
        *([_branch_mark(session).strip()[1:-1]] if session.forked_from else []),
        *(["head"] if head else []),
        *(["pinned"] if session.pinned else []),
        *(["archived"] if session.archived else []),
        *session.tags,
    ]
    started = (_zulu(session.started_at) or "")[:16].replace("T", " ")
    return (
        session.id,
        started,
        f"{turns} turn{'' if turns == 1 else 's'}",
        session.project,
        session.title,
        " ".join(f"[{mark}]" for mark in marks),
    )


def _zulu(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="milliseconds") + "Z"
