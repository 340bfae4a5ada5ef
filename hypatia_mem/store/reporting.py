"""The questions of ``hypatia-mem report``: fixed SQL over the documented views, with parameters.

They are asked as a person's own SQL is (``reading``), so they see what it sees: nothing withheld,
some scopes, and a long one keeps nobody waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from hypatia_mem.store.reading import ask

__all__ = ["Span", "activity", "models", "projects", "silent_answers", "tools"]

_TIMEOUT = 300.0
_WITHIN = "($1::TIMESTAMP IS NULL OR said_at >= $1) AND ($2::TIMESTAMP IS NULL OR said_at < $2)"
# A quarter of an hour fits into the hours and days of every time zone there is.
_ACTIVITY = f"""
    SELECT time_bucket(INTERVAL '15 minutes', said_at) AS quarter, session_id,
           count(*) FILTER (role = 'user') AS prompts,
           count(*) FILTER (role = 'assistant') AS answers
    FROM messages WHERE {_WITHIN} GROUP BY ALL ORDER BY ALL
"""  # noqa: S608 - our own clause
_PROJECTS = f"""
    SELECT project, count(DISTINCT session_id) AS sessions,
           count(*) FILTER (role = 'user') AS prompts,
           count(*) FILTER (role = 'assistant') AS answers,
           min(said_at) AS first_active, max(said_at) AS last_active
    FROM messages WHERE {_WITHIN} GROUP BY project ORDER BY last_active DESC, project
"""  # noqa: S608 - our own clause
_MODELS = f"""
    SELECT model, count(DISTINCT (session_id, turn)) AS messages, count(*) AS responses,
           sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
           sum(cache_read_tokens) AS cache_read_tokens,
           sum(cache_write_tokens) AS cache_write_tokens,
           sum(cache_write_1h_tokens) AS cache_write_1h_tokens
    FROM responses WHERE {_WITHIN} GROUP BY model ORDER BY responses DESC, model
"""  # noqa: S608 - our own clause
_SILENT = f"""
    SELECT count(*) AS answers FROM messages AS m
    WHERE role = 'assistant' AND {_WITHIN}
      AND (session_id, turn) NOT IN (SELECT (session_id, turn) FROM responses)
"""  # noqa: S608 - our own clause
_TOOLS = f"""
    SELECT tool, count(*) AS calls, count(*) FILTER (failed) AS failures,
           count(*) FILTER (failed IS NULL) AS without_result, max(said_at) AS last_used
    FROM tool_calls WHERE {_WITHIN} GROUP BY tool ORDER BY calls DESC, tool
"""  # noqa: S608 - our own clause


@dataclass(frozen=True, slots=True)
class Span:
    """What to look at: the scopes (None: every project) and the time, ``until`` not included.

    Times are naive UTC; None is no bound.
    """

    scopes: Sequence[str] | None
    since: datetime | None = None
    until: datetime | None = None


def activity(home: Path, span: Span) -> list[dict[str, Any]]:
    """Return prompts and answers by quarter of an hour (``quarter``, UTC) and session."""
    return _rows(home, _ACTIVITY, span, "messages")


def projects(home: Path, span: Span) -> list[dict[str, Any]]:
    """Return what was said in each project, and when first and last."""
    return _rows(home, _PROJECTS, span, "messages")


def models(home: Path, span: Span) -> list[dict[str, Any]]:
    """Return responses and tokens by model."""
    return _rows(home, _MODELS, span, "responses")


def silent_answers(home: Path, span: Span) -> int:
    """Return how many answers say neither their model nor their tokens."""
    return int(_rows(home, _SILENT, span, "messages", "responses")[0]["answers"])


def tools(home: Path, span: Span) -> list[dict[str, Any]]:
    """Return calls and failures by tool."""
    return _rows(home, _TOOLS, span, "tool_calls")


def _rows(home: Path, sql: str, span: Span, *reads: str) -> list[dict[str, Any]]:
    params = [span.since, span.until]
    with ask(home, sql, scopes=span.scopes, timeout=_TIMEOUT, params=params, reads=reads) as answer:
        return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows()]
