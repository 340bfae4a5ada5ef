"""Our hooks inside somebody's ``settings.json``, without touching anything else in it.

The file is edited as text: what is not ours keeps its bytes (order, indentation, line ends, byte
order mark, number spelling, doubled keys). A file that is not plain JSON is refused with the lines
to paste. What was inserted is remembered by its place, so that an untouched file is restored byte
for byte, and one that its owner changed meanwhile loses our entries alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from hypatia_mem.errors import InstallError

__all__ = ["Edited", "holds", "insert", "is_ours", "names_us", "paste_lines", "read", "remove"]

BOM = "\ufeff"
_MARK = re.compile(r"hypatia-memory[\\/]+hooks[\\/]+hook\.py")
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|(?P<comment>//[^\n]*|/\*.*?\*/)', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|(?P<comma>,)(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Edited:
    """A file's new text, and the slices of it that are ours (start and end, in characters)."""

    text: str
    slices: tuple[tuple[int, int], ...]

    def without(self) -> str:
        """Return the text without our slices: what was there before."""
        text = self.text
        for start, end in sorted(self.slices, reverse=True):
            text = text[:start] + text[end:]
        return text


def is_ours(handler: object) -> bool:
    """Tell whether a handler in a hooks block starts our launcher."""
    if not isinstance(handler, dict):
        return False
    arguments = handler.get("args")
    words = [handler.get("command"), *(arguments if isinstance(arguments, list) else [])]
    return any(isinstance(word, str) and _MARK.search(word) for word in words)


def names_us(text: str) -> bool:
    """Tell whether a text that need not be JSON names our launcher."""
    return _MARK.search(text) is not None


def holds(text: str, hooks: dict[str, Any]) -> bool:
    """Tell whether our entries in the text are exactly these; it has been through `read`."""
    body = text.removeprefix(BOM)
    present = _loads(body).get("hooks", {}) if body.strip(" \t\r\n") else {}
    ours = {
        event: [one for one in groups if _names_us(one)]
        for event, groups in present.items()
        if isinstance(groups, list)
    }
    return {event: groups for event, groups in ours.items() if groups} == hooks


def _names_us(group: object) -> bool:
    handlers = group.get("hooks") if isinstance(group, dict) else None
    return isinstance(handlers, list) and any(map(is_ours, handlers))


def paste_lines(hooks: dict[str, Any]) -> str:
    """Return the block as lines that a person can paste into a settings file."""
    return json.dumps({"hooks": hooks}, indent=2, ensure_ascii=False)[2:-2]


def read(data: bytes, name: str, hooks: dict[str, Any]) -> str:
    """Decode a settings file and make sure that it can be edited; its text, mark included.

    Raises:
        InstallError: not UTF-8, not JSON, with comments, or not an object; the sentence names the
            place and the hint holds the lines to paste.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        _refuse(name, "is not UTF-8", hooks)
    body = text.removeprefix(BOM)
    if not body.strip(" \t\r\n"):
        return text
    try:
        value = _loads(body)
    except (ValueError, RecursionError) as error:
        if _without_comments_is_json(body):
            _refuse(name, "has comments or trailing commas, which an edit could lose", hooks)
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        _refuse(name, f"is not valid JSON{where}", hooks)
    if not isinstance(value, dict):
        _refuse(name, "holds no JSON object at its top", hooks)
    present = value.get("hooks", {})
    if not isinstance(present, dict):
        _refuse(name, 'has a "hooks" that is not an object', hooks)
    for event in hooks:
        if not isinstance(present.get(event, []), list):
            _refuse(name, f'has a "hooks.{event}" that is not a list', hooks)
    return text


def _refuse(name: str, what: str, hooks: dict[str, Any]) -> NoReturn:
    raise InstallError(
        f"{name} {what}, so it was left as it is.",
        hint="Fix the file and run the command again, or install without --settings. "
        "To add the hooks by hand, merge these lines into its top level:\n" + paste_lines(hooks),
    )


def _loads(text: str) -> Any:  # noqa: ANN401 - any JSON value
    def refuse(word: str) -> NoReturn:
        raise ValueError(word)  # NaN and Infinity: Python reads them, the client does not

    return json.loads(text, parse_constant=refuse)


def _without_comments_is_json(text: str) -> bool:
    bare = _COMMENT.sub(lambda m: " " if m["comment"] else m[0], text)
    bare = _TRAILING_COMMA.sub(lambda m: "" if m["comma"] else m[0], bare)
    try:
        _loads(bare)
    except (ValueError, RecursionError):
        return False
    return True


# ---- where things stand in the text -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Item:
    """An element of a list, or a member of an object with its key; places in the text."""

    key: str
    start: int
    value: int
    end: int


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _items(text: str, at: int) -> list[_Item]:
    """Return what the object or list that opens at ``at`` holds; the text is valid JSON."""
    decoder = json.JSONDecoder()
    found: list[_Item] = []
    keyed = text[at] == "{"
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        start, key = at, ""
        if keyed:
            key, at = decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        _, end = decoder.raw_decode(text, at)
        found.append(_Item(key, start, at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _member(text: str, at: int, key: str) -> _Item | None:
    """Return the member of that name; of doubled names the last, as the client reads it."""
    return next((item for item in reversed(_items(text, at)) if item.key == key), None)


def _top(text: str) -> int:
    return _skip(text, 1 if text.startswith(BOM) else 0)


# ---- inserting ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Look:
    """How the file is laid out; an empty unit means all on one line."""

    newline: str
    unit: str

    def render(self, value: object, depth: int) -> str:
        if not self.unit:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        lines = json.dumps(value, ensure_ascii=False, indent=self.unit).split("\n")
        return (self.newline + self.unit * depth).join(lines)

    def lead(self, depth: int) -> str:
        return self.newline + self.unit * depth if self.unit else ""

    def member(self, key: str, value: object, depth: int) -> str:
        colon = ": " if self.unit else ":"
        return json.dumps(key) + colon + self.render(value, depth)


def _look(text: str) -> _Look:
    body = text.removeprefix(BOM).strip()
    newline = "\r\n" if "\r\n" in text else "\n"
    if "\n" not in body:
        return _Look(newline, "" if len(body) > len("{}") and body != "{ }" else "  ")
    match = re.search(r"\{[ \t]*\r?\n([ \t]+)\S", body)
    return _Look(newline, match[1] if match else "  ")


def insert(text: str, hooks: dict[str, Any]) -> Edited:
    """Add one group for each event; the text has been through `read` and holds none of ours."""
    look = _look(text)
    if not text.removeprefix(BOM).strip(" \t\r\n"):
        at = len(text) - len(text.removeprefix(BOM))
        return _splice(text, [(at, look.render({"hooks": hooks}, 0) + look.newline)])
    top = _top(text)
    present = _member(text, top, "hooks")
    if present is None:
        return _splice(text, [_append(text, top, look, 0, look.member("hooks", hooks, 1))])
    edits: list[tuple[int, str]] = []
    missing: list[str] = []
    for event, groups in hooks.items():
        member = _member(text, present.value, event)
        if member is None:
            missing.append(look.member(event, groups, 2))
        else:
            added = ("," + look.lead(3)).join(look.render(group, 3) for group in groups)
            edits.append(_append(text, member.value, look, 2, added))
    if missing:
        joined = ("," + look.lead(2)).join(missing)
        edits.append(_append(text, present.value, look, 1, joined))
    return _splice(text, edits)


def _append(text: str, at: int, look: _Look, depth: int, body: str) -> tuple[int, str]:
    """Return the edit that puts ``body`` last in the object or list that opens at ``at``."""
    items = _items(text, at)
    if items:
        return items[-1].end, "," + look.lead(depth + 1) + body
    closing = _skip(text, at + 1)
    tail = "" if "\n" in text[at + 1 : closing] else look.lead(depth)
    return at + 1, look.lead(depth + 1) + body + tail


def _splice(text: str, edits: list[tuple[int, str]]) -> Edited:
    slices: list[tuple[int, int]] = []
    shift = 0
    for at, added in sorted(edits):
        start = at + shift
        text = text[:start] + added + text[start:]
        slices.append((start, start + len(added)))
        shift += len(added)
    return Edited(text, tuple(slices))


# ---- removing -----------------------------------------------------------------------------------


def remove(text: str) -> str:
    """Take out every entry of ours and what it leaves empty; the rest keeps its bytes."""
    if not text.removeprefix(BOM).strip(" \t\r\n"):
        return text
    while True:
        smaller = _remove_one(text)
        if smaller is None:
            return text
        text = smaller


def _remove_one(text: str) -> str | None:
    top = _top(text)
    present = _member(text, top, "hooks")
    if present is None or text[present.value] != "{":
        return None
    for event in _items(text, present.value):
        if text[event.value] != "[":
            continue
        for group in _items(text, event.value):
            inner = _member(text, group.value, "hooks") if text[group.value] == "{" else None
            if inner is None or text[inner.value] != "[":
                continue
            handlers = _items(text, inner.value)
            ours = [one for one in handlers if is_ours(json.loads(text[one.value : one.end]))]
            if ours:
                chain = [(top, present), (present.value, event), (event.value, group)]
                if len(ours) < len(handlers):
                    return _cut(text, inner.value, ours[0])
                return _cut_up(text, chain)
    return None


def _cut_up(text: str, chain: list[tuple[int, _Item]]) -> str:
    """Cut the innermost item, or the outermost one that holds nothing else."""
    container, item = chain[-1]
    for outer, candidate in reversed(chain[:-1]):
        if len(_items(text, container)) > 1:
            break
        container, item = outer, candidate
    return _cut(text, container, item)


def _cut(text: str, container: int, item: _Item) -> str:
    """Remove the item with the one comma that goes with it."""
    items = _items(text, container)
    index = next(i for i, one in enumerate(items) if one.start == item.start)
    if index > 0:
        return text[: items[index - 1].end] + text[item.end :]
    if len(items) > 1:
        return text[: item.start] + text[items[1].start :]
    return text[: container + 1] + text[_skip(text, item.end) :]
