"""Redaction: idempotent, deterministic, byte-faithful elsewhere, and never surprised by the hint."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypatia_mem.capture.hints import may_hold_secret
from hypatia_mem.capture.redact import redact_event, redact_text
from tests.capture.corpus.lookalikes import LOOKALIKES, PROMPTS, prompt_event, stop_event
from tests.capture.corpus.secrets import NAMED, planted, tokens

_CASES = planted()
_PIECES = st.one_of(
    st.sampled_from([case.text for case in _CASES]),
    st.sampled_from([secret for _, secret in tokens()]),
    st.sampled_from([text for _, text, _ in NAMED]),
    st.sampled_from(LOOKALIKES),
    st.sampled_from(PROMPTS),
    st.sampled_from(
        ["password", "=", ": ", " is ", '"', "'", "\\n", "\n", "[REDACTED:", "]", "[REDACTED:x]",
         "://", "@", ":", "token", "-----BEGIN PRIVATE KEY-----", "-----END", "<private>",
         "</private>", "cookie: ", "Bearer ", " ", "hunter2", "\ud83d", "\0", "eyJ", "İ"]
    ),
    st.text(max_size=30),
)  # fmt: skip
_TEXTS = st.lists(_PIECES, max_size=6).map("".join)
_PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9 -]+\]")


@pytest.mark.deep
@settings(max_examples=600, deadline=None)
@given(_TEXTS)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    """Text is redacted again whenever it is edited, exported or recalled."""
    once = redact_text(text)
    assert redact_text(once) == once
    assert redact_text(text) == once


@pytest.mark.deep
@settings(max_examples=600, deadline=None)
@given(_TEXTS)
def test_what_is_no_placeholder_stays_in_order_and_unchanged(text: str) -> None:
    """Every stretch between two placeholders is a stretch of the original, in the same order."""
    place = 0
    for stretch in _PLACEHOLDER.split(redact_text(text)):
        found = text.find(stretch, place)
        assert found >= 0, stretch
        place = found + len(stretch)


@pytest.mark.deep
@settings(max_examples=600, deadline=None)
@given(_TEXTS)
def test_a_hint_of_nothing_means_nothing_to_redact(text: str) -> None:
    """The hook asks the hint only: a False must never hide what the redactor would have found."""
    for event in (prompt_event(text), stop_event(text)):
        if not may_hold_secret(event):
            assert redact_text(text) == text


@pytest.mark.deep
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(_CASES), _TEXTS, _TEXTS)
def test_a_planted_secret_is_gone_whatever_lines_stand_around_it(case, before, after) -> None:
    """Neighbouring lines never save a secret."""
    if before.count("<private>") or after.count("[REDACTED") or before.count("[REDACTED"):
        return
    if case.name.startswith(("fence", "json")) or "BEGIN" in before + after:
        return
    out = redact_text(f"{before}\n\n{case.text}\n\n{after}")
    assert not [needle for needle in case.needles if needle in out and needle not in before + after]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.deep
@settings(max_examples=200, deadline=None)
@given(_JSON)
def test_an_event_keeps_its_shape_and_is_redacted_once(value: object) -> None:
    """Whatever the client sends is one line of ASCII JSON afterwards, and stable."""
    event = {"session_id": "s", "cwd": "/x", "value": value}
    out = redact_event(json.dumps(event).encode())
    assert out.isascii()
    assert b"\n" not in out
    assert redact_event(out) == out
    loaded = json.loads(out)
    assert (loaded["session_id"], loaded["cwd"]) == ("s", "/x")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_come_back_as_bytes(data: bytes) -> None:
    """Input that is no JSON, in any encoding, never raises and keeps what is no secret."""
    assert isinstance(redact_event(data), bytes)
    may_hold_secret(data)
