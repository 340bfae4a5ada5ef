"""The lines that a hook prints beside a prompt when there is something for the agent to do.

Imported only then: an ordinary prompt does not pay for it.
"""

from __future__ import annotations

from hypatia_mem.capture import paths
from hypatia_mem.capture.paths import system

__all__ = [
    "BATCH",
    "BATCHED",
    "LOGGED",
    "batch",
    "due",
    "logged",
    "of_request",
    "pressure",
    "shell",
]

MAX_DUE = 1 << 14
BATCH, BATCHED = ".batch", ".batched"
LOGGED = ".logged"


def of_request(home: str, prompt: str, folder: str, mode: str) -> list[str]:
    """Confirm what the person asked to remember or forget; the worker does it from the record."""
    from hypatia_mem.capture import immediate

    # As the spool's reader has it, so that the worker names it the same.
    request = immediate.parse(prompt.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
    if request is None:
        return []
    if request.verb == "remember":
        where = "global" if request.is_global else f"scoped to {_scope(home, folder)}"
        name = immediate.entry_name(request)
        stored = f'[hypatia-memory] Stored: "{name}" ({request.kind}, {where}).'
        return ["TRIGGER:immediate", stored] if mode == "literal" else [stored]
    words = " ".join(request.text.split())[:200]
    return [
        "TRIGGER:immediate",
        f'[hypatia-memory] Forget requested: "{words}". Run: hypatia-mem forget {shell(words)} '
        "--dry-run. Of rules, taboos and memories a single clear match is withheld already; what"
        " else holds the words (messages, goals, facts) stays, unless the person runs it without"
        " --dry-run.",
    ]


def due(home: str, session: str, *, at_end: bool) -> list[str]:
    """Take what the worker has rendered for the agent to judge; it is told once.

    The file is the turn up to which it reaches, the lines, a line ``--``, and what a session's end
    says in addition (``memory.extract.offering``).
    """
    path = f"{home}/{paths.BRIEFS}/{session}.due"
    try:
        text = paths.read_file(path, MAX_DUE).decode("utf-8", "replace")
        units, _, at_hand = text.partition("\n--\n")
        lines = units.split("\n")[1:] + (at_hand.splitlines() if at_end else [])
        if lines:
            system.replace(path, path.removesuffix("due") + "told")
    except OSError:  # nothing is due, or somebody else has just told it
        return []
    return lines


def pressure(home: str, session: str) -> list[str]:
    """Take what the worker says of a context that fills up (``memory.pressure``); told once."""
    return _taken(f"{home}/{paths.BRIEFS}/{session}.pressure")


def logged(home: str, session: str) -> list[str]:
    """Take what the worker has logged since the last prompt (``memory.logged``); told once."""
    return _taken(f"{home}/{paths.BRIEFS}/{session}{LOGGED}")


def _taken(path: str) -> list[str]:
    try:
        text = paths.read_file(path, MAX_DUE).decode("utf-8", "replace")
        system.unlink(path)
    except OSError:
        return []
    return text.splitlines()


def batch(home: str, session: str) -> list[str]:
    """Take what the worker says of a batch that the agent may condense; it is told once.

    The file is the batch's ticket, and the line (``memory.cascade.announcing``).
    """
    path = f"{home}/{paths.BRIEFS}/{session}{BATCH}"
    try:
        lines = paths.read_file(path, MAX_DUE).decode("utf-8", "replace").splitlines()
        system.replace(path, path.removesuffix(BATCH) + BATCHED)
    except OSError:
        return []
    return lines[1:]


def shell(words: str) -> str:
    """Quote a text so that a shell takes it as one word and runs none of it."""
    if not any(c in words for c in '"$`\\!'):
        return f'"{words}"'
    return "'" + words.replace("'", "'\"'\"'") + "'"


def _scope(home: str, folder: str) -> str:
    path = paths.brief_path(home, paths.find_root(folder).key).removesuffix("json") + "scope"
    try:
        return paths.read_file(path, 1024).decode("utf-8", "replace").strip() or "this project"
    except (OSError, ValueError):
        return "this project"
