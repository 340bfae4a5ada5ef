"""What a person says of a memory: true, doubtful, wrong, pinned, suppressed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.blast import After, DryRun, or_later, reach_row, say_reach, settle
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import columns, emit, print_json, say, warn
from hypatia_mem.errors import Refused, UsageError, one_of
from hypatia_mem.model import PERSON_CHANNELS, Trust

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypatia_mem.memory.blast import Changed
    from hypatia_mem.model import Entry

__all__ = [
    "accept",
    "dispute",
    "pin",
    "reject",
    "stale",
    "suppress",
    "trust",
    "unpin",
    "unsuppress",
    "verify",
]

Names: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...",
        help="Entries by name; or one statement by its three parts or its key.",
        show_default=False,
    ),
]
_Maybe: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME...]", help="Entries by name.", show_default=False),
]
Reason: TypeAlias = Annotated[
    str, typer.Option("--reason", help="Why, in your words; it can be read with show.")
]
Scope: TypeAlias = Annotated[
    str | None,
    typer.Option("--scope", help="Change what is in this scope instead of this project's."),
]
_DONE = {
    Trust.ASSERTED: "Accepted",
    Trust.VERIFIED: "Verified",
    Trust.DISPUTED: "Disputed",
    Trust.STALE: "Stale",
    Trust.REJECTED: "Rejected",
    Trust.CANDIDATE: "Candidate",
}
_MARKED = {
    "pin": "Pinned",
    "unpin": "Unpinned",
    "suppress": "Suppressed",
    "unsuppress": "Shown again",
}


def verify(
    name: _Maybe = None,
    reason: Reason = "",
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Say that something is true; only a person can. Without NAME: check the ledger's chain.

    What is verified loses the mark [unverified] in what a session is told. The check of the chain
    finds a row that was edited, put in, taken out or cut off at the end; exit code 1 then.

    \b
    Example:
      hypatia-mem verify "rule:never-mock-the-database" --reason "asked the team"
    """
    if not name:
        _verify_ledger(as_json)
        return
    _set_trust(name, Trust.VERIFIED, reason, scope, dry_run, after, as_json)


def accept(
    name: Names,
    reason: Reason = "",
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Take in a candidate, or say that a doubt is over: it is asserted from now on.

    \b
    Example:
      hypatia-mem accept "rule:never-mock-the-database"
    """
    _set_trust(name, Trust.ASSERTED, reason, scope, dry_run, after, as_json)


def dispute(
    name: Names,
    reason: Reason = "",
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Say that something is doubtful: it is still told, with the mark [disputed], and reviewed.

    \b
    Example:
      hypatia-mem dispute "rule:use-port-4711" --reason "the staging logs say otherwise"
    """
    _set_trust(name, Trust.DISPUTED, reason, scope, dry_run, after, as_json)


def stale(
    name: Names,
    reason: Reason = "",
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Say that something may be out of date: it is still told, with the mark [stale], and reviewed.

    \b
    Example:
      hypatia-mem stale "rule:use-port-4711" --reason "from before the move"
    """
    _set_trust(name, Trust.STALE, reason, scope, dry_run, after, as_json)


def reject(
    name: Names,
    reason: Annotated[
        str, typer.Option("--reason", help="Why it is wrong; needed.", show_default=False)
    ] = "",
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Say that something is wrong: it is withheld, and its value is refused when it comes again.

    It stays in the store as rejected, with its history, so this can be undone; "forget" leaves
    nothing of it. Only a person can reject.

    \b
    Example:
      hypatia-mem reject "rule:use-port-4711" --reason "the port changed in May"
    """
    if not reason.strip():
        raise UsageError(
            "a rejection needs a reason", hint='Example: --reason "the port changed in May"'
        )
    _set_trust(name, Trust.REJECTED, reason, scope, dry_run, after, as_json)


def trust(
    name: Annotated[
        str, typer.Argument(help="An entry, or a statement by its key.", show_default=False)
    ],
    state: Annotated[
        str | None,
        typer.Argument(
            metavar="[STATE]",
            help="candidate, asserted, verified, disputed, stale or rejected.",
            show_default=False,
        ),
    ] = None,
    reason: Reason = "",
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Say how far something is believed, or (without STATE) ask, with the last word on it.

    "candidate" withholds it again until somebody decides. The other states have commands of their
    own: accept, verify, dispute, stale, reject.

    \b
    Example:
      hypatia-mem trust "rule:use-port-4711" candidate --reason "to be looked at"
    """
    if state is None:
        _show_trust(name, scope, as_json)
        return
    one_of(state, [one.value for one in Trust], "the state")
    _set_trust([name], Trust(state), reason, scope, dry_run, after, as_json)


def pin(
    name: _Maybe = None,
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Tell these first, whatever else there is room for. Without NAME: list what is pinned.

    \b
    Example:
      hypatia-mem pin "rule:never-mock-the-database" "taboo:force-push"
    """
    _mark_or_list("pin", name, scope, dry_run, as_json, after=after)


def unpin(
    name: Names,
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Let go of what was pinned.

    \b
    Example:
      hypatia-mem unpin "rule:never-mock-the-database"
    """
    _mark("unpin", name, scope, dry_run, after, as_json)


def suppress(
    name: _Maybe = None,
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Keep these, but show them nowhere, however well they fit. Without NAME: list them.

    \b
    Example:
      hypatia-mem suppress "notes-on-the-old-build"
    """
    _mark_or_list("suppress", name, scope, dry_run, as_json, after=after)


def unsuppress(
    name: Names,
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Show again what was suppressed.

    \b
    Example:
      hypatia-mem unsuppress "notes-on-the-old-build"
    """
    _mark("unsuppress", name, scope, dry_run, after, as_json)


# ----------------------------------------------------------------------------------------------


def scopes_to_change(scope: str | None) -> list[str] | None:
    """Return the scopes in which a command may change something: this project's and the global.

    Another project's is named on purpose, and by a person. Raises Refused.
    """
    here = [context.current_scope(), ""]
    if scope is None or scope in here:
        return here if scope is None else [scope]
    if context.channel() not in PERSON_CHANNELS:
        raise Refused(
            f"only a person changes another project's memory ({scope!r})",
            hint="A person can do it by running this command in a terminal.",
        )
    return [scope]


def _set_trust(
    names: Sequence[str],
    trust: Trust,
    reason: str,
    scope: str | None,
    dry_run: bool,
    after: bool,
    as_json: bool,
) -> None:
    from hypatia_mem.memory import trust as trust_

    scopes = scopes_to_change(scope)
    words = values.checked(reason, "--reason")
    changed = or_later(
        lambda: trust_.set_trust(
            context.home(),
            names,
            trust,
            reason=words,
            scopes=scopes,
            dry_run=dry_run,
            author=context.author(),
            now=context.now(),
        ),
        after=after,
        verb="trust",
        names=names,
        arguments=lambda: {"trust": str(trust), "reason": words, "scopes": scopes},
        as_json=as_json,
    )
    if changed is not None:
        report(changed, f"{_DONE[trust]}:", {"trust": str(trust)}, dry_run, as_json)


def _show_trust(name: str, scope: str | None, as_json: bool) -> None:
    from hypatia_mem.jse.rows import time_text
    from hypatia_mem.memory import trust as trust_
    from hypatia_mem.store.connection import open_store
    from hypatia_mem.store.trust import verdicts

    scopes = context.scopes_for([scope] if scope is not None else None, False)
    with open_store(context.home(), write=False) as store:
        subject = trust_.resolve(store, [name], scopes)[0]
        said = verdicts(store, [subject.name]).get(subject.name)
    if said is not None and said.trust != subject.value.trust:
        said = None
    machine: dict[str, Any] = {"name": subject.name, "trust": str(subject.value.trust)}
    text = f"{subject.name}: {subject.value.trust}"
    if said is not None:
        by = ", ".join(part for part in (said.actor, said.channel) if part)
        machine |= {"reason": said.reason, "by": by, "at": time_text(said.at)}
        text += f" (by {by} at {time_text(said.at)}{': ' if said.reason else ''}{said.reason})"
    emit(machine, text, as_json)


def _mark_or_list(
    verb: str,
    names: list[str] | None,
    scope: str | None,
    dry_run: bool,
    as_json: bool,
    *,
    after: bool = False,
) -> None:
    if names:
        _mark(verb, names, scope, dry_run, after, as_json)
        return
    from hypatia_mem.store import reviewing
    from hypatia_mem.store.connection import open_store

    read = reviewing.pinned if verb == "pin" else reviewing.suppressed
    scopes = context.scopes_for([scope] if scope is not None else None, False)
    with open_store(context.home(), write=False) as store:
        found = read(store, scopes)
    _print_entries(found, f"Nothing is {_MARKED[verb].lower()} here.", as_json)


def _mark(
    verb: str, names: Sequence[str], scope: str | None, dry_run: bool, after: bool, as_json: bool
) -> None:
    from hypatia_mem.memory import trust

    scopes = scopes_to_change(scope)
    changed = or_later(
        lambda: trust.mark(
            context.home(),
            names,
            verb,
            scopes=scopes,
            dry_run=dry_run,
            author=context.author(),
            now=context.now(),
        ),
        after=after,
        verb=verb,
        names=names,
        arguments=lambda: {"scopes": scopes},
        as_json=as_json,
    )
    if changed is None:
        return
    report(changed, f"{_MARKED[verb]}:", {}, dry_run, as_json)
    if verb == "pin":
        _tell_long(names)


def _tell_long(names: Sequence[str]) -> None:
    """Say of which pins a brief shows only the beginning."""
    from hypatia_mem.memory.listed import ITEM_UNITS
    from hypatia_mem.memory.quoting import units
    from hypatia_mem.memory.trust import words_of
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=False) as store:
        found = store.entries(names)
    for one in found:
        if units(words_of(one)) > ITEM_UNITS:
            warn(f"{one.name} is long: a brief shows its first {ITEM_UNITS} characters.")


def report(changed: Changed, word: str, more: dict[str, Any], dry_run: bool, as_json: bool) -> None:
    """Print what became of each name, and of what stands on it."""
    blast = settle(changed.blast)
    outcomes = changed.outcomes
    rows = [{"verb": one.verb, "name": one.name, **dict(one.details), **more} for one in outcomes]
    if as_json:
        print_json({"dry_run": dry_run, "changed": rows, "reach": reach_row(blast)})
        return
    for one in outcomes:
        unchanged = one.verb == "unchanged"
        head = "Already so:" if unchanged else f"Would be {word.lower()}" if dry_run else word
        say(f"{head} {one.name}")
    say_reach(blast)


def _print_entries(found: Sequence[Entry], nothing: str, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"name": one.name, "kind": one.kind, "scopes": list(one.scopes),
                 "content": one.content, "trust": str(one.trust)}
                for one in found
            ]
        )  # fmt: skip
        return
    lines = [(one.name, one.kind, " ".join(one.content.split())[:80]) for one in found]
    say(columns(lines) or nothing)


def _verify_ledger(as_json: bool) -> None:
    from hypatia_mem.memory import ledger

    found = ledger.check(context.home())
    emit(found.as_dict(), found.sentence, as_json)
    if not found.whole:
        raise typer.Exit(1)
