"""Between the model's dataclasses and the store's rows, and the one normaliser of text.

DuckDB text holds neither NUL nor lone surrogates: NUL becomes the symbol U+2400, a lone half of a
surrogate pair U+FFFD. Everything that enters the store goes through ``clean``.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hypatia_mem.model import (
    Author,
    Entry,
    Message,
    Session,
    Statement,
    Trust,
    normal_predicate,
)

if TYPE_CHECKING:
    from hypatia_mem.store.keys import Key

__all__ = [
    "clean",
    "digest",
    "entry_of",
    "entry_row",
    "is_sealed",
    "iso",
    "message_entry",
    "message_of",
    "seal",
    "session_of",
    "statement_of",
    "statement_row",
    "storable",
    "triple_key",
    "triple_keys",
    "triple_parts",
]

_SEALED = "~"  # begins what is kept of a deleted text's digest
_UNQUOTED = re.compile(r"[\w.:/-]+")  # what CSV writes as it is
_LISTS = (list, tuple)
_WITHOUT_TEXT = frozenset({bool, int, float, datetime, type(None)})
_LONE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Make a text storable; a text that is storable already comes back as it is."""
    if "\0" in text:
        text = text.replace("\0", "\u2400")
    if text.isascii() or _LONE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def storable(value: Any) -> Any:
    """Return a value with every text in it cleaned; lists of texts too."""
    if isinstance(value, str):
        return clean(value)
    if not isinstance(value, _LISTS):
        return value
    kinds = set(map(type, value))
    if kinds != {str}:
        return value if kinds <= _WITHOUT_TEXT else [storable(item) for item in value]
    said = "".join(value)
    if "\0" in said or not (said.isascii() or _LONE.search(said) is None):
        return [clean(item) for item in value]
    return value if type(value) is list else list(value)


def digest(text: str) -> str:
    """Return the SHA-256 of a stored text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def seal(key: Key, text_digest: str) -> str:
    """Return the keyed form of a text's digest; what is sealed, or empty, stays as it is."""
    if not text_digest or text_digest.startswith(_SEALED):
        return text_digest
    return _SEALED + key.digest("said", text_digest)[:40]


def is_sealed(text_digest: str) -> bool:
    """Tell whether a message's digest is that of a text which was deleted."""
    return text_digest.startswith(_SEALED)


def iso(at: datetime) -> str:
    """Return a naive UTC time as ISO-8601 with ``Z``; milliseconds when there are any.

    >>> iso(datetime(2026, 11, 30, 4, 5, 6))
    '2026-11-30T04:05:06Z'
    """
    text = at.isoformat(timespec="milliseconds" if at.microsecond else "seconds")
    return text + "Z"


def triple_key(subject: str, predicate: str, object_: str) -> str:
    """Return the CSV of a triple, quoted where a part has a comma, a quote or a line break."""
    if all(map(_UNQUOTED.fullmatch, (subject, predicate, object_))):
        return f"{subject},{predicate},{object_}"
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([subject, predicate, object_])
    return out.getvalue()


def triple_parts(subject: str, predicate: str, object_: str) -> tuple[str, str, str]:
    """Return a triple as it is stored: storable text, and the one spelling of its predicate."""
    return clean(subject), normal_predicate(clean(predicate)), clean(object_)


def triple_keys(subject: str, predicate: str, object_: str) -> list[str]:
    """Return the keys a triple may be stored under: the usual one, then the one as it is written.

    They differ for a predicate in another spelling, in which an older version stored it.
    """
    parts = triple_parts(subject, predicate, object_)
    written = triple_key(parts[0], clean(predicate), parts[2])
    return list(dict.fromkeys((triple_key(*parts), written)))


def message_entry(message: Message, turn: int, scope: str) -> Entry:
    """Return the entry of a message: the skill's name, its three headings, tag ``message``."""
    text = (
        f"## Role\n{message.role}\n\n## Timestamp\n{iso(message.at)}\n\n"
        f"## Content\n{clean(message.text)}"
    )
    return Entry(
        name=f"msg-{message.session_id}-{turn}",
        content=text,
        tags=("message",),
        scopes=(scope,),
        kind="message",
        session_id=message.session_id,
        turn=turn,
        created_at=message.at,
    )


def entry_row(entry: Entry, author: Author, now: datetime) -> dict[str, Any]:
    """Return the row of a new entry; its order and names are those of the table."""
    content = clean(entry.content)
    made = entry.created_at or now
    return {
        "name": clean(entry.name),
        "content": content,
        "content_digest": digest(content),
        "tags": [clean(tag) for tag in entry.tags],
        "scopes": [clean(scope) for scope in entry.scopes],
        "synonyms": [clean(word) for word in entry.synonyms],
        "figures": [clean(figure) for figure in entry.figures],
        "format": entry.format,
        "kind": entry.kind,
        "trust": str(entry.trust),
        "valid_from": entry.valid_from,
        "valid_to": entry.valid_to,
        "recorded_at": now,
        "expired_at": None,
        "pinned": entry.pinned,
        "suppressed": entry.suppressed,
        "category": "",
        "priority": entry.priority,
        "session_id": entry.session_id,
        "turn": entry.turn,
        "agent": author.actor,
        "channel": str(author.channel),
        "producer": author.producer,
        "version": entry.version,
        "created_at": made,
        "updated_at": now,
        "activation": clean(entry.activation),
    }


def statement_row(statement: Statement, author: Author, now: datetime) -> dict[str, Any]:
    """Return the row of a new statement; its predicate in the spelling that all are stored in."""
    subject, predicate, object_ = triple_parts(
        statement.subject, statement.predicate, statement.object
    )
    synonyms = (
        None
        if statement.synonyms is None
        else clean(json.dumps(dict(statement.synonyms), ensure_ascii=False))
    )
    return {
        "triple": triple_key(subject, predicate, object_),
        "subject": subject,
        "predicate": predicate,
        "object": object_,
        "content": clean(statement.content),
        "scopes": [clean(scope) for scope in statement.scopes],
        "synonyms": synonyms,
        "trust": str(statement.trust),
        "valid_from": statement.valid_from,
        "valid_to": statement.valid_to,
        "recorded_at": now,
        "expired_at": None,
        "session_id": statement.session_id or author.session_id,
        "turn": statement.turn if statement.turn is not None else author.turn,
        "channel": str(author.channel),
        "created_at": statement.created_at or now,
    }


def entry_of(row: Mapping[str, Any]) -> Entry:
    """Return the entry of a row."""
    return Entry(
        name=row["name"],
        content=row["content"],
        tags=tuple(row["tags"]),
        scopes=tuple(row["scopes"]),
        synonyms=tuple(row["synonyms"]),
        figures=tuple(row["figures"]),
        format=row["format"],
        kind=row["kind"],
        trust=Trust(row["trust"]),
        pinned=row["pinned"],
        suppressed=row["suppressed"],
        session_id=row["session_id"],
        turn=row["turn"],
        created_at=row["created_at"],
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
        version=row["version"],
        priority=row.get("priority") or 0,
        activation=row.get("activation") or "",  # an older file has none
    )


def statement_of(row: Mapping[str, Any]) -> Statement:
    """Return the statement of a row."""
    return Statement(
        subject=row["subject"],
        predicate=row["predicate"],
        object=row["object"],
        content=row["content"],
        scopes=tuple(row["scopes"]),
        synonyms=None if row["synonyms"] is None else json.loads(row["synonyms"]),
        trust=Trust(row["trust"]),
        session_id=row["session_id"],
        turn=row["turn"],
        created_at=row["created_at"],
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
    )


def message_of(row: Mapping[str, Any]) -> Message:
    """Return the message of a row that holds its entry's content too."""
    content: str = row["content"] or ""
    return Message(
        session_id=row["session_id"],
        uuid=row["uuid"],
        role=row["role"],
        text=content.partition("\n## Content\n")[2],
        at=row["at"],
        turn=row["turn"],
        parent_uuid=row["parent_uuid"],
        prompt_id=row["prompt_id"],
        response_id=row["response_id"],
        agent_id=row["agent_id"],
        parts=tuple(json.loads(row["parts"])),
        tokens=row["tokens"],
        flags=tuple(row["flags"]),
    )


def session_of(row: Mapping[str, Any]) -> Session:
    """Return the session of a row."""
    fields = [one for one in Session.__dataclass_fields__.values() if one.name != "tags"]
    said = {one.name: row[one.name] for one in fields if row[one.name] is not None}
    return Session(**said, tags=tuple(row["tags"]))
