"""Errors that point: the expression on one line, carets under the operand, a corrected query."""

from __future__ import annotations

import json
from typing import NoReturn

from hypatia_mem.errors import ExpressionError
from hypatia_mem.jse.nodes import Json, Where

__all__ = ["describe", "fail", "replaced", "shown"]

_WIDTH = 96
_LONGEST_FIX = 400


def fail(where: Where, message: str, *, fix: Json = None, note: str = "") -> NoReturn:
    """Raise the error for one operand.

    ``fix`` is a whole expression that does what was probably meant; ``note`` a sentence. Both
    stand after the caret line.
    """
    lines = [shown(where.root, where.steps)]
    if note:
        lines.append(note)
    if fix is not None:
        text = _dump(fix)
        if len(text) <= _LONGEST_FIX:
            lines.append(f"Did you mean: {text}")
    raise ExpressionError(message, path=where.text, hint="\n".join(lines))


def replaced(where: Where, value: Json) -> Json:
    """Return the whole expression with the operand at ``where`` replaced."""

    def put(node: Json, steps: tuple[str | int, ...]) -> Json:
        if not steps:
            return value
        if isinstance(node, list) and isinstance(steps[0], int):
            return [put(v, steps[1:]) if i == steps[0] else v for i, v in enumerate(node)]
        if isinstance(node, dict):
            return {k: put(v, steps[1:]) if k == steps[0] else v for k, v in node.items()}
        return node

    return put(where.root, where.steps)


def shown(root: Json, steps: tuple[str | int, ...]) -> str:
    """Return the expression and, below it, carets under the part at ``steps``; two short lines."""
    before, target, after = _split(root, steps)
    marks = "^" * max(1, min(len(target), _WIDTH))
    if len(before) > _WIDTH // 2:
        before = "…" + before[-_WIDTH // 2 :]
    if len(target) > _WIDTH:
        target = target[: _WIDTH - 1] + "…"
    room = max(0, _WIDTH - len(before) - len(target))
    if len(after) > room:
        after = after[:room] + "…"
    return f"  {before}{target}{after}\n  {' ' * len(before)}{marks}"


def describe(value: Json) -> str:
    """Return what a JSON value is, in words: ``a number``, ``a list``."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"


def _split(node: Json, steps: tuple[str | int, ...]) -> tuple[str, str, str]:
    """Return the JSON of ``node`` as the text before, of and after the part at ``steps``."""
    if not steps:
        return "", _dump(node), ""
    step, rest = steps[0], steps[1:]
    if isinstance(node, list) and isinstance(step, int) and step < len(node):
        inner = _split(node[step], rest)
        head = "".join(f"{_dump(v)}, " for v in node[:step])
        tail = "".join(f", {_dump(v)}" for v in node[step + 1 :])
        return f"[{head}{inner[0]}", inner[1], f"{inner[2]}{tail}]"
    if isinstance(node, dict) and step in node:
        keys = list(node)
        at = keys.index(str(step))
        inner = _split(node[keys[at]], rest)
        head = "".join(f"{_dump(k)}: {_dump(node[k])}, " for k in keys[:at])
        tail = "".join(f", {_dump(k)}: {_dump(node[k])}" for k in keys[at + 1 :])
        return f"{{{head}{_dump(step)}: {inner[0]}", inner[1], f"{inner[2]}{tail}}}"
    return "", _dump(node), ""


def _dump(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
