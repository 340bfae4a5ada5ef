"""A pasted log of megabytes costs what its length costs: counted in calls and passes, not in time."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from functools import partial

import pytest

from hypatia_mem.capture import hints, large, secret_shapes, spans
from hypatia_mem.capture.immediate import parse
from hypatia_mem.capture.redact import redact_text
from tests.capture.corpus.lookalikes import LOOKALIKES, PROMPTS
from tests.capture.corpus.secrets import NAMED, planted, tokens

PROSE = "Please find out why the parser drops the last line of src/app/read.py and fix it. "


def fill(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


def calls(act: Callable[[], object]) -> int:
    """Return how many functions, of Python and of C, an act calls."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    act()  # what is compiled once is no part of it
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "piece",
    [
        "the token is old, ", "password ", "author: Joe\n", "key: ", "密码", "sk-", "ghp_aaaa\n",
        "password=hunter2 ", "curl -u a ", "https://a@b.example/ ", "-----BEGIN PRIVATE KEY-----",
        "AB12 CD34 ", "4111-", "[REDACTED:x] the key ", "setpassword(a,", "cookie: a=b; ",
        "aGVsbG8gd29ybGQhIEhvdyBhcmU5\n", "Bearer abcdefgh1234 ", "<private>x</private>",
    ],
)  # fmt: skip
def test_redacting_calls_grow_with_the_length(piece: str) -> None:
    """Eight times the text: about eight times the calls, whatever the text repeats."""
    small, large = (calls(partial(redact_text, fill(piece, n))) for n in (4_000, 32_000))
    assert large <= 9 * small + 500


@pytest.mark.parametrize(
    "piece",
    [
        "the token was old ", "an author wrote ", "passing tests ", "my password for a b c d ",
        "密码重置流程有问题", "tokenizers ", "sk-learn ", "git@github.com:a/b https://a.b/c ",
    ],
)  # fmt: skip
def test_no_word_is_looked_at_one_by_one_when_nothing_follows_it(piece: str) -> None:
    """A word that names secrets, ten thousand times and never with a value: C passes over it."""
    text = fill(piece, 100_000)
    assert redact_text(text) == text
    assert calls(lambda: redact_text(text)) < 6_000


def test_a_long_prompt_is_read_for_requests_line_by_line_once() -> None:
    """Requests that are none, on every line: no line takes the lines below it along."""
    for line in ("remember when it broke\n", "out of memory\n", "Remember:\nwhen\n"):
        small, large = (calls(partial(parse, fill(line, n))) for n in (4_000, 32_000))
        assert parse(fill(line, 8_000)) is None
        assert large <= 9 * small + 500


class Passes(str):
    """A text that counts how often all of it is searched."""

    __slots__ = ("passes",)
    passes: int

    def __contains__(self, part: object) -> bool:
        self.passes = getattr(self, "passes", 0) + 1
        return super().__contains__(part)  # type: ignore[operator]


def test_tokens_are_sought_in_few_passes_over_a_large_text() -> None:
    """A hundred and forty beginnings of tokens, each found, and the text passed a few times."""
    text = Passes(fill(PROSE, 20_000))
    view = spans.View(text)
    assert view.among(secret_shapes.PREFIXES, lowered=False) == ()
    assert text.passes < len(secret_shapes.PREFIXES) / 3
    for row in secret_shapes.PREFIXES:
        held = spans.View(f"{text} x{row[0]}y {text}")
        assert row in held.among(secret_shapes.PREFIXES, lowered=False), row


def test_a_secret_in_a_large_prompt_is_seen_as_in_a_small_one() -> None:
    """Every planted secret, among prose of twenty kilobytes: the look at the bytes says so."""
    prose = fill(PROSE, hints.LARGE + 100) + "\n"
    assert not hints.may_hold_secret(prose.encode())
    texts = [secret for _, secret in tokens()] + [text.format(secret) for _, text, secret in NAMED]
    for text in texts:
        if hints.may_hold_secret(text.encode()):
            assert hints.may_hold_secret(f"{prose}{text}\n{prose}".encode()), text


def test_a_request_in_a_large_prompt_is_seen_as_in_a_small_one() -> None:
    """A word of remembering, in any language, among prose of twenty kilobytes."""
    prose = fill(PROSE, hints.LARGE + 100) + "\n"
    assert not hints.may_be_request(prose.encode())
    for word in hints._REQUEST_WORDS:
        assert hints.may_be_request(f"{prose}a {word.decode()} b\n{prose}".encode()), word


def test_no_prefix_is_longer_than_what_is_looked_at() -> None:
    """The ends of a large text's words are taken that long."""
    assert max(len(prefix) for prefix, *_ in hints.TOKENS) <= large.LONGEST


@pytest.mark.parametrize("few", [0, 1, 3])
def test_the_quick_look_loses_no_place(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What must follow a name is asked before the look in Python: both find the same."""
    texts = [case.text for case in planted()[::3]] + [*LOOKALIKES, *PROMPTS]
    expected = [redact_text(text) for text in texts]
    monkeypatch.setattr(spans, "_FEW", few)
    monkeypatch.setattr(spans, "_LARGE", 64)
    joined = [f"{text}\n{other}" for text, other in itertools.pairwise(texts)]
    found = [redact_text(text) for text in joined]
    monkeypatch.undo()
    assert [redact_text(text) for text in joined] == found
    monkeypatch.setattr(spans, "_FEW", few)
    assert [redact_text(text) for text in texts] == expected
