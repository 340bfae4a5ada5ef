"""Editing the words of an entry: at the command line, or in the person's own editor."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hypatia_mem.cli import context, values
from hypatia_mem.cli.blast import After, DryRun, or_later, reach_row, say_reach, settle
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import print_json, say
from hypatia_mem.cli.trust import Scope, scopes_to_change
from hypatia_mem.errors import StaleEdit, UsageError

__all__ = ["edit", "edit_text"]


def edit(
    name: Annotated[str, typer.Argument(help="The entry.", show_default=False)],
    text: Annotated[
        str | None,
        typer.Option(
            "--text",
            help="The new words; - reads standard input, @FILE a file. Without it an editor opens.",
            show_default=False,
        ),
    ] = None,
    etag: Annotated[
        str | None,
        typer.Option("--etag", help="The state you read (show prints it); another is refused."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over what changed since; the ledger tells it.")
    ] = False,
    scope: Scope = None,
    dry_run: DryRun = False,
    after: After = False,
    as_json: AsJson = False,
) -> None:
    """Edit the words of an entry in place. What a person edited nothing automatic writes over.

    In a terminal the editor of $VISUAL or $EDITOR opens. When somebody changed the entry since you
    read it, nothing is stored and both differences are shown; exit code 1.

    \b
    Example:
      hypatia-mem edit "rule:use-port-4711" --text "use port 4712" --etag 2-9ab01f3c
    """
    from hypatia_mem.memory import trust

    scopes = scopes_to_change(scope)
    if text is None:
        words, etag = _in_editor(name, scopes, etag)
    else:
        words = values.read_text(text, "the text")
    more: dict[str, Any] = {"tag": etag, "force": force}
    try:
        changed = or_later(
            lambda: trust.edit(
                context.home(), name, words, scopes=scopes, dry_run=dry_run, **more,
                author=context.author(), now=context.now(),
            ),
            after=after,
            verb="edit",
            names=[name],
            # It is for the words as they are now.
            arguments=lambda: {
                "text": words, "scopes": scopes, **more, "tag": etag or _state_of(name, scopes)
            },
            as_json=as_json,
        )  # fmt: skip
    except StaleEdit as error:
        _show_clash(error, as_json)
        raise
    if changed is None:
        return
    blast, outcome = settle(changed.blast), changed.outcomes[0]
    machine = {"verb": outcome.verb, "name": outcome.name, **dict(outcome.details)}
    if as_json:
        print_json({**machine, "dry_run": dry_run, "reach": reach_row(blast)})
        return
    done = "Would be edited" if dry_run else "Edited"
    say(
        f"{done if outcome.verb == 'updated' else 'Unchanged'}: {outcome.name}"
        f"  (etag {outcome.details['etag']})"
    )
    say_reach(blast)


# ----------------------------------------------------------------------------------------------


def _state_of(name: str, scopes: list[str] | None) -> str:
    from hypatia_mem.memory import trust
    from hypatia_mem.store.connection import open_store

    with open_store(context.home(), write=False) as store:
        return trust.etag(trust.resolve_entry(store, name, scopes))


def _show_clash(error: StaleEdit, as_json: bool) -> None:
    if as_json:
        print_json({"base": error.base, "theirs": error.theirs, "yours": error.yours})
    else:
        say(error.difference)


def _in_editor(name: str, scopes: list[str] | None, etag: str | None) -> tuple[str, str]:
    """Open the words in the person's editor; return what was saved, and the state it began from."""
    from hypatia_mem.memory import trust
    from hypatia_mem.store.connection import open_store

    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command or not _at_terminal():
        raise UsageError(
            "say the new words with --text, or set $EDITOR and run this in a terminal",
            hint="Example: hypatia-mem edit NAME --text - < new.txt",
        )
    with open_store(context.home(), write=False) as store:
        entry = trust.resolve_entry(store, name, scopes)
    words = edit_text(trust.words_of(entry), command)
    return words, etag or trust.etag(entry)


def _at_terminal() -> bool:
    return sys.stdin.isatty()


def edit_text(words: str, command: str) -> str:
    """Let a person edit words in a file of their own; return them as saved. Raises UsageError."""
    import shlex
    import subprocess
    import tempfile

    handle, path = tempfile.mkstemp(suffix=".md", prefix="hypatia-mem-")
    file = Path(path)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(words)
        done = subprocess.run([*shlex.split(command), path], check=False)
        if done.returncode:
            raise UsageError(f"the editor ended with code {done.returncode}; nothing was changed")
        saved = file.read_text("utf-8")
    finally:
        file.unlink(missing_ok=True)
    return saved[:-1] if saved.endswith("\n") and not words.endswith("\n") else saved
