"""The published shape of a row: what ``query``, ``search`` and ``knowledge-get`` print as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

__all__ = [
    "knowledge_row",
    "shape_row",
    "statement_row",
    "time_text",
    "triple_text",
]


def shape_row(catalog: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a compiled query's row in its published shape.

    A row of ``$search`` or ``$similar`` keeps its ``score``, one of ``$k-hop`` its ``hop``.
    """
    shaped = knowledge_row(row) if catalog == "knowledge" else statement_row(row)
    if "score" in row:
        score = row["score"]
        shaped["score"] = None if score is None else round(float(score), 6)
    if "hop" in row:
        shaped["hop"] = row["hop"]
    return shaped


def knowledge_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``{name, content, created_at}`` and, when they are set, ``tr_start`` and ``tr_end``.

    Absent lists are null, as upstream stores them.
    """
    content = {
        "format": row["format"],
        "data": row["content"],
        "tags": list(row["tags"] or ()),
        "synonyms": list(row["synonyms"] or ()) or None,
        "figures": list(row["figures"] or ()) or None,
        "scopes": list(row["scopes"] or ()) or None,
    }
    shaped = {"name": row["name"], "content": content, "created_at": time_text(row["created_at"])}
    return _with_validity(shaped, row)


def statement_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``{triple, subject, predicate, object, content, created_at}``, and validity if set."""
    synonyms = row["synonyms"]
    if isinstance(synonyms, str):
        synonyms = json.loads(synonyms)
    content = {
        "format": "markdown",
        "data": row["content"],
        "tags": [],
        "synonyms": synonyms or None,
        "figures": None,
        "scopes": list(row["scopes"] or ()) or None,
    }
    shaped: dict[str, Any] = {
        "triple": row["triple"],
        "subject": row["subject"],
        "predicate": row["predicate"],
        "object": row["object"],
        "content": content,
        "created_at": time_text(row["created_at"]),
    }
    return _with_validity(shaped, row)


def _with_validity(shaped: dict[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    for key in ("tr_start", "tr_end"):
        if row.get(key) is not None:
            shaped[key] = time_text(row[key])
    return shaped


def time_text(moment: datetime | None) -> str | None:
    """Return ``YYYY-MM-DD HH:MM:SS.ffffff`` (UTC), or None."""
    return moment.isoformat(" ", "microseconds") if moment else None


def triple_text(parts: Sequence[str]) -> str:
    """Return the three parts as one line of CSV, quoted where a part needs it."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(parts)
    return out.getvalue()
