"""The look at the bytes: it must never overlook what the redactor would find, and be cheap."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hypatia_mem.capture.hints import looks_random, may_hold_secret
from hypatia_mem.capture.redact import redact_text
from tests.capture.corpus.lookalikes import ANSWERS, PROMPTS, encode, prompt_event, stop_event
from tests.capture.corpus.secrets import Planted, body, planted

ROOT = Path(__file__).resolve().parents[2]
KINDS: dict[str, list[Planted]] = {}
for _case in planted():
    KINDS.setdefault(_case.name.partition("/")[0], []).append(_case)


@pytest.mark.parametrize("kind", KINDS)
def test_no_planted_secret_is_overlooked(kind: str) -> None:
    """As a prompt, as an answer, and in the all-ASCII spelling of JSON."""
    for case in KINDS[kind]:
        event = prompt_event(case.text)
        assert may_hold_secret(event), case.name
        assert may_hold_secret(stop_event(case.text)), case.name
        assert may_hold_secret(json.dumps(json.loads(event)).encode()), case.name


@pytest.mark.parametrize(
    "before", ["\t", "\r", "\r\n", "\v", "\x1c", "\x01", "\u00a0", "\u3000", "\u2028"]
)
@pytest.mark.parametrize(
    "number", ["4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111", "219-09-9998"]
)
def test_a_number_in_a_table_is_not_overlooked(number: str, before: str) -> None:
    """Between the cells stands a tab or another escape, whose letters run into the digits."""
    text = f"paid{before}{number}{before}yes"
    assert number not in redact_text(text)
    assert may_hold_secret(prompt_event(text))
    assert may_hold_secret(json.dumps({"prompt": text}).encode())
    twin = f"paid{before}x{number}{before}yes"  # the end of a name
    assert redact_text(twin) == twin
    assert " " in number or not may_hold_secret(prompt_event(twin))


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_between_tabs_is_not_overlooked(kind: str) -> None:
    """What is aligned with tabs, as programs and their settings are: whatever is redacted there."""
    for case in KINDS[kind]:
        for tabs in ("\t", " \t", "\t "):
            text = case.text.replace(" ", tabs)
            if redact_text(text) != text:
                assert may_hold_secret(prompt_event(text)), (case.name, tabs)
                assert may_hold_secret(text.encode()), (case.name, tabs)


def test_an_ordinary_event_with_tabs_needs_no_redactor() -> None:
    """Its twin: a tab alone is no sign of a secret."""
    tabbed = [text.replace(" ", "\t") for text in PROMPTS]
    assert sum("\t" in text for text in tabbed) >= 10
    assert [text for text in tabbed if may_hold_secret(prompt_event(text))] == []


@pytest.mark.parametrize(
    "event",
    [
        *(pytest.param(prompt_event(text), id=text[:30]) for text in PROMPTS),
        *(pytest.param(stop_event(text), id=text[:30]) for text in ANSWERS),
    ],
)
def test_an_ordinary_event_needs_no_redactor(event: bytes) -> None:
    """Its twin: every false alarm costs the prompt the import of json and re."""
    assert not may_hold_secret(event)


def test_the_ordinary_events_are_many() -> None:
    """Forty at the least."""
    assert len(PROMPTS) + len(ANSWERS) >= 40


@pytest.mark.parametrize(
    "event",
    [
        {"hook_event_name": "SessionStart", "source": "startup", "cwd": "/home/dev/my project"},
        {"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"},
        {"hook_event_name": "PreCompact", "trigger": "auto", "custom_instructions": None},
        {"prompt": "half an emoji \ud83d and \u001b[31mred\u001b[0m"},
        {"prompt": ""},
    ],
)
def test_the_other_events_are_ordinary_too(event: dict[str, object]) -> None:
    """What the client itself writes, escapes included, is no secret."""
    assert not may_hold_secret(encode(event))


def test_hidden_letters_raise_an_alarm() -> None:
    r"""ASCII letters as ``\u`` escapes, NUL and UTF-16 could hide anything: better to look."""
    secret = "ghp_" + body("hidden", 36)
    escaped = "".join(f"\\u{ord(c):04x}" for c in secret)
    assert may_hold_secret(f'{{"prompt":"{escaped}"}}'.encode())
    assert may_hold_secret(json.dumps({"prompt": secret}).encode("utf-16-le"))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (body("random", 40), True),
        (body("random2", 24), True),
        ("da39a3ee5e6b4b0d3255bfef95601890afd80709", False),
        ("01234567-89ab-4cde-8f01-23456789abcd", False),
        ("AbstractSingletonProxyFactoryBean2Configuration", False),
        ("test_forget_withholds_summaries_of_the_turn_2", False),
        ("sha512-" + body("digest", 86), False),
        (body("short", 20), False),
    ],
)
def test_texture_tells_tokens_from_names(word: str, expected: bool) -> None:
    """Digests, UUIDs and names in code are long as well."""
    assert looks_random(word) is expected


def test_it_imports_nothing() -> None:
    """Neither json nor re, nor anything else that the interpreter did not start with."""
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import hypatia_mem.capture\n"
        "before = set(sys.modules)\n"
        "from hypatia_mem.capture import hints\n"
        f"hints.may_hold_secret({prompt_event(PROMPTS[0])!r})\n"
        f"hints.may_be_request({prompt_event(PROMPTS[0])!r})\n"
        "print(sorted(set(sys.modules) - before - {'__future__'}))\n"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "['hypatia_mem.capture.hints']"


@pytest.mark.deep
@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "A1b",
        "password ",
        "key ",
        "://a@",
        "eyJ ",
        "0000 ",
        "1",
        "3",
        "AA00 ",
        "sk-",
        "\\n",
        "\\u",
    ],
)
def test_time_grows_with_the_length_and_nothing_else(piece: str) -> None:
    """Five megabytes of anything: at most a fixed multiple of lowering and splitting them."""
    data = (piece * (5_000_000 // len(piece))).encode()
    start = time.process_time()
    plain = data.lower().split(b"\0")
    for number in range(32):
        assert plain[0].find(b"%c\xff" % number) < 0
    scan = time.process_time() - start
    start = time.process_time()
    may_hold_secret(data)
    assert time.process_time() - start < 100 * max(scan, 0.02)
