"""Secrets in what leaves a memory and in what comes into one.

What the hook writes has none. An older redactor, or a program that writes by itself, may have let
one in; so every row of an export is looked at again, on its way out and on its way in. Ids and
digests stay as they are, and so do folders, as in the hook.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from hypatia_mem.capture.hints import may_hold_secret
from hypatia_mem.memory.redaction import secretless, without_secrets
from hypatia_mem.memory.sharing.archive import SCHEME
from hypatia_mem.store.entries import MAX_NAME
from hypatia_mem.store.rows import digest, triple_key, triple_parts

__all__ = ["MARK", "Redactor"]

MARK = "[REDACTED:"
# Columns that hold no words: what other rows, the client's files or the digests go by.
_KEPT = {
    "entry": {"format", "kind", "trust", "session_id", "channel"},
    "statement": {"trust", "session_id", "channel"},
    "verdict": {"kind", "trust"},
    "message": {
        "session_id", "uuid", "parent_uuid", "prompt_id", "response_id", "role", "agent_id",
        "text_digest",
    },
    "session": {"id", "cwd", "transcript_path", "forked_from"},
    "tombstone": {"digest", "key_id", "reason", "actor", "target", "part", "sketch"},
    "root": {"path", "git_key", "origin_key"},
}  # fmt: skip
_NAMES = {"entry": {"name"}, "statement": {"subject", "predicate", "object"}}
# Texts that are JSON, and what is empty there.
_JSON = {
    ("message", "parts"): "[]",
    ("statement", "synonyms"): "{}",
    ("entry", "activation"): "",
}
_SHORT = 64  # characters
_WORDS = "\n## Content\n"  # behind it are a message's words
_IDS = {"id", "tool_use_id", "type"}  # in the parts of a message


class Redactor:
    """Redacts the rows of one export, in the order of its tables; counts the texts it changed.

    A name is changed in the same way wherever it stands, and no two become one: the second is
    numbered.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """Begin; ``taken`` are the names with a placeholder that entries bear already."""
        self.changed = 0
        self.marked: set[str] = set()  # such names among the rows that were looked at
        self.lines: set[tuple[str, int]] = set()  # by table and number: where a secret was found
        self._taken = set(taken)
        self._names: dict[str, str] = {}
        self._digests: dict[str, tuple[str, str]] = {}  # of messages: what it was and is now
        self._triples: dict[str, str] = {}

    def again(self) -> Redactor:
        """Return one that begins anew and already knows what this one has learnt of the rows."""
        other = Redactor(self.marked)
        for name in self._names:
            other.name(name)
        other.lines = self.lines
        other._digests = dict(self._digests)
        return other

    def look(self, table: str, number: int, row: Mapping[str, Any]) -> None:
        """Learn what is to be redacted in a row, the ``number``-th of its table."""
        if self.row(table, row) != row:
            self.lines.add((table, number))

    def row(self, table: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row without secrets, with the digests and names that go with it."""
        kept = _KEPT.get(table, set())
        said = table == "entry" and row["kind"] == "message"
        if said:
            kept = kept | {"content"}
        made = {
            column: value if column in kept else self._value(table, column, value)
            for column, value in row.items()
        }
        if said:
            made["content"] = self._message(row["name"], row["content"])
        count = sum(_differing(row[column], made[column]) for column in row)
        self.changed += count
        if table == "statement" and count:
            self._triples[_triple(row)] = _triple(made)
        elif table == "verdict":
            made["name"] = self._triples.get(row["name"]) or self.name(row["name"])
        elif table == "message":
            was, now = self._digests.get(f"msg-{row['session_id']}-{row['turn']}", ("", ""))
            if was and row["text_digest"] == was:
                made["text_digest"] = now
        return made

    def name(self, text: str) -> str:
        """Return a name without secrets, the same one whenever it is asked for."""
        if text in self._names:
            return self._names[text]
        base = without_secrets(text)
        if base == text:
            if MARK in text:
                self.marked.add(text)
            return text
        base = base[: MAX_NAME - 8]
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base} ({number})"
        self._taken.add(name)
        self._names[text] = name
        return name

    def _message(self, name: str, content: str) -> str:
        """Redact a message; its words by themselves, as they were when they were stored."""
        head, mark, words = content.partition(_WORDS)
        made = without_secrets(words)
        if made != words:
            self._digests[name] = digest(words), digest(made)
        return without_secrets(head) + mark + made

    def _value(self, table: str, column: str, value: object) -> object:
        if isinstance(value, list):
            return [self._value(table, column, item) for item in value]
        if not isinstance(value, str):
            return value
        if column in _NAMES.get(table, ()):
            return self.name(value)
        if column == "figures" and value.startswith(SCHEME):
            return SCHEME + self.name(value.removeprefix(SCHEME))
        if (table, column) in _JSON:
            return _in_json(value, _JSON[table, column])
        return _short(value) if len(value) < _SHORT else without_secrets(value)


_short = lru_cache(4096)(without_secrets)  # tags, scopes, branches: the same again and again


def _in_json(text: str, empty: str) -> str:
    """Redact the texts in a JSON text; one that cannot be read is emptied if it holds a secret."""
    if not may_hold_secret(text.encode("utf-8", "replace")):
        return text
    try:
        found = json.loads(text)
        made = secretless(found, _IDS)
        return text if made == found else json.dumps(made, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text if without_secrets(text) == text else empty


def _differing(was: object, now: object) -> int:
    if isinstance(was, list) and isinstance(now, list):
        return sum(one != other for one, other in zip(was, now, strict=True))
    return int(was != now)


def _triple(row: Mapping[str, Any]) -> str:
    return triple_key(*triple_parts(row["subject"], row["predicate"], row["object"]))
