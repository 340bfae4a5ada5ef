r"""Takes secrets out of an event before it touches the disk.

A secret is replaced by ``[REDACTED:<kind>]``; every other character stays as it was. The result
depends on the text alone, and redacting it again changes nothing: placeholders are never looked
into, and the passes run until one finds nothing.

Each family of secrets is one function and the question whether its mark is there at all, so that an
event costs only the patterns it needs: compiling a regular expression is the dearest thing that
happens here. No pattern can backtrack further than a fixed number of characters, and what occurs
ten thousand times is asked in C, so that the time grows with the length of the text and nothing
else (``spans``).

The families: ``secret_shapes`` (what a value looks like), ``secret_names`` (what it is called),
``secret_breaks`` (what is broken over lines). What they find and documentation prints stays
(``secret_examples``). A terminal's colour codes are read as if they were not there; they go only
where a secret stood beside them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from hypatia_mem.capture.secret_breaks import BROKEN, continued
from hypatia_mem.capture.secret_examples import is_example
from hypatia_mem.capture.secret_names import ASSIGNED, LABELS, QUOTED, is_secret, kind_of_key
from hypatia_mem.capture.secret_shapes import (
    COMMANDS,
    HEADERS,
    NUMBERS,
    PEM,
    RANDOM,
    SEEDS,
    TOKENS,
    URLS,
)
from hypatia_mem.capture.spans import Family, Span, View, later

__all__ = ["redact_event", "redact_text"]

_MARK = "[REDACTED:"
# How terminals are told of colours (ECMA-48, CSI), and how programs and logs spell that.
_CODE = later(r"(?:\x1b|\\(?:x1[bB]|0?33|e|E|u001[bB])|\^\[)\[[0-9;:?]{0,24}[A-Za-z]")
_CODE_MARKS = ("\x1b[", "1b[", "1B[", "33[", "\\e[", "\\E[", "^[[")
_PASSES = 6  # the second finds nothing in any text a person writes
# The client's own names of things: redacting them would tear the record from its session.
_KEPT = frozenset({"session_id", "transcript_path", "cwd", "prompt_id", "hook_event_name"})


def redact_text(text: str) -> str:
    """Return the text with every secret replaced by ``[REDACTED:<kind>]``.

    Lone surrogates and NUL are ordinary characters here. Never raises.
    """
    return _redact(text, View(text))


def _redact(text: str, whole: View) -> str:
    """Redact a text that is ``whole``'s, or a piece of it."""
    text = _redact_all(text, whole)
    if "[" not in text or not any(mark in text for mark in _CODE_MARKS):
        return text
    plain = _CODE().sub("", text)  # a code's last letter runs into the word behind it
    done = plain if plain == text else _redact_all(plain, View(plain))
    return text if done == plain else done


def _redact_all(text: str, whole: View) -> str:
    for _ in range(_PASSES):
        text, changed = _redact_once(text, whole)
        if not changed:
            break
    return text


def redact_event(data: bytes) -> bytes:
    """Return a hook's input with every string value and key redacted, as one line of ASCII JSON.

    The client's identifiers (session, transcript path, directory, prompt, event) keep their
    values. Input that is not JSON is redacted as text. Never raises.
    """
    try:
        event = json.loads(data)
        whole = View("\n".join(_strings(event)))
        if isinstance(event, dict):
            event = {
                _redact(key, whole): value if key in _KEPT else _redact_member(key, value, whole)
                for key, value in event.items()
            }
        else:
            event = _redact_value(event, whole)
        return json.dumps(event, separators=(",", ":")).encode("ascii")
    except (ValueError, RecursionError):
        return _redact_bytes(data)


def _redact_bytes(data: bytes) -> bytes:
    """Redact bytes that are no JSON, in the encoding they seem to be in."""
    encoding = json.detect_encoding(data) if b"\0" in data else "utf-8"
    try:
        return redact_text(data.decode(encoding)).encode(encoding)
    except ValueError:
        return redact_text(data.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )


def _strings(event: object) -> Iterator[str]:
    """Yield every string of an event, keys too, in any order."""
    left = [event]
    while left:
        value = left.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            left += value
            left += value.values()
        elif isinstance(value, list):
            left += value


def _redact_value(value: object, whole: View) -> object:
    if isinstance(value, str):
        return _redact(value, whole)
    if isinstance(value, list):
        return [_redact_value(item, whole) for item in value]
    if isinstance(value, dict):
        return {
            _redact(key, whole): _redact_member(key, item, whole) for key, item in value.items()
        }
    return value


def _redact_member(key: str, value: object, whole: View) -> object:
    """Redact a value of an object, whose key may say that all of it is a secret."""
    if isinstance(value, str) and value and _MARK not in value:
        kind = kind_of_key(key)
        if kind and is_secret(value, kind, QUOTED) and not is_example(value):
            return f"{_MARK}{LABELS[kind]}]"
    return _redact_value(value, whole)


# --- passes -------------------------------------------------------------------------------------


def _redact_once(text: str, whole: View) -> tuple[str, bool]:
    text, changed = _apply(text, list(_private(text)))
    if _MARK not in text:
        view = whole if text is whole.text else View(text, whole)
        text, more = _apply(text, _find(view))
        return text, changed or more
    parts = _PLACEHOLDER().split(text)
    whole = View("\n".join(parts[::2]), whole)
    same: dict[str, str] = {}  # what stands between secrets is often the same
    for number in range(0, len(parts), 2):
        part = parts[number]
        if len(part) > 3 and part not in same:
            same[part], more = _apply(part, _find(View(part, whole)))
            changed = changed or more
        parts[number] = same.get(part, part)
    return "".join(parts), changed


_PLACEHOLDER = later(r"(\[REDACTED:[a-z0-9 -]{1,40}\])")


def _find(view: View) -> list[Span]:
    text = view.text
    spans = [
        span
        for find in view.families(_FAMILIES)
        for span in find(view)
        if not is_example(text[span[0] : span[1]])
    ]
    return [*spans, *continued(text, spans)]


def _apply(text: str, spans: list[Span]) -> tuple[str, bool]:
    """Replace the spans; of overlapping ones the earlier in the list gives its kind to all."""
    if not spans:
        return text, False
    ranked = sorted((start, rank, end, kind) for rank, (start, end, kind) in enumerate(spans))
    merged: list[list[int]] = []
    kinds: list[str] = []
    for start, rank, end, kind in ranked:
        if merged and start < merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
            if rank < merged[-1][2]:
                merged[-1][2], kinds[-1] = rank, kind
        else:
            merged.append([start, end, rank])
            kinds.append(kind)
    parts, last = [], 0
    for (start, end, _), kind in zip(merged, kinds, strict=True):
        parts += [text[last:start], _MARK, kind, "]"]
        last = end
    parts.append(text[last:])
    return "".join(parts), True


def _private(text: str) -> Iterator[Span]:
    """What the user marked as not to be kept; a tag that is never closed reaches to the end."""
    if "<private" not in text and "<PRIVATE" not in text and "<Private" not in text:
        return
    lowered = text.lower() if len(text.lower()) == len(text) else text
    at = lowered.find("<private>")
    while at >= 0:
        if text[at - 1 : at] == "`" and text[at + 9 : at + 10] == "`":
            at = lowered.find("<private>", at + 9)  # a mention of the tag
            continue
        end = lowered.find("</private>", at)
        end = len(text) if end < 0 else end + 10
        yield at, end, "private"
        at = lowered.find("<private>", end)


# What is of two families is named after the first.
_FAMILIES: tuple[Family, ...] = (
    PEM,
    TOKENS,
    BROKEN,
    URLS,
    HEADERS,
    COMMANDS,
    ASSIGNED,
    SEEDS,
    NUMBERS,
    RANDOM,
)
