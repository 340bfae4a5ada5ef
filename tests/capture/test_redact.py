"""What the redactor takes out, what it must leave, and what it may cost."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hypatia_mem.capture.hints import may_hold_secret
from hypatia_mem.capture.redact import redact_event, redact_text
from tests.capture.corpus.lookalikes import (
    BY_KIND,
    EXAMPLES,
    LOOKALIKES,
    prompt_event,
    stop_event,
)
from tests.capture.corpus.secrets import (
    NAMED,
    PLACES,
    PREFIXED,
    Planted,
    body,
    pem,
    planted,
    tokens,
    wrapped,
)

ROOT = Path(__file__).resolve().parents[2]
KINDS: dict[str, list[Planted]] = {}
for _case in planted():
    KINDS.setdefault(_case.name.partition("/")[0], []).append(_case)


def test_the_corpus_has_the_breadth_it_claims() -> None:
    """At least 140 kinds of secrets, and 80 look-alikes of the six kinds that matter most."""
    assert len({name for name, *_ in (*PREFIXED, *NAMED)}) >= 140
    assert len({case.text for case in planted()}) >= 120
    assert set(BY_KIND) == {"git commit", "uuid", "hash", "path", "icon", "example key"}
    assert all(len(set(texts)) >= 12 for texts in BY_KIND.values())
    assert len({text for texts in BY_KIND.values() for text in texts}) >= 80
    assert len(set(LOOKALIKES)) >= 200


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_secret_is_gone(kind: str) -> None:
    """Nothing of it reaches the disk, and redacting again changes nothing."""
    for case in KINDS[kind]:
        out = redact_text(case.text)
        assert not [needle for needle in case.needles if needle in out], case.name
        assert "[REDACTED:" in out, case.name
        assert redact_text(out) == out, case.name


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_secret_is_gone_from_both_events(kind: str) -> None:
    """As a prompt and as an answer, in the JSON the client writes."""
    for case in KINDS[kind]:
        for event in (prompt_event(case.text), stop_event(case.text)):
            out = json.loads(redact_event(event))
            text = out.get("prompt") or out["last_assistant_message"]
            assert not [needle for needle in case.needles if needle in text], case.name


def test_a_wrapped_or_broken_secret_is_gone() -> None:
    """In base64, in a file's name, over two lines: as prompt, as answer, and as it stands."""
    cases = wrapped()
    assert len(cases) > 10 * len(tokens())
    for case in cases:
        out = redact_text(case.text)
        assert not [needle for needle in case.needles if needle in out], case.name
        assert redact_text(out) == out, case.name
        for event in (prompt_event(case.text), stop_event(case.text)):
            assert may_hold_secret(event), case.name
        assert may_hold_secret(case.text.encode()), case.name  # as a transcript is asked


@pytest.mark.parametrize("first", [secret for _, secret in tokens()[:8]])
@pytest.mark.parametrize(
    "second",
    [
        "and then it failed", "main", "UserProfile2Panel", "convertOldToNewHypaV2Data", "README.md",
        "2024-01-02T03:04:05", "3f2c1ab", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "v1.2.3-rc1",
        "01234567-89ab-4cde-8f01-23456789abcd", "PORT=8080", "/usr/local/bin", "12345678901234",
        "MAX_CONNECTIONS_V2", "https://example.org/a1B2c3", "npm run build2", "Übermut",
    ],
)  # fmt: skip
def test_the_line_after_a_secret_stays(first: str, second: str) -> None:
    """What follows a secret is no part of it."""
    assert redact_text(f"{first}\n{second}\nend").endswith(f"]\n{second}\nend")


@pytest.mark.parametrize("text", LOOKALIKES)
def test_a_look_alike_is_unharmed(text: str) -> None:
    """What only looks like a secret, or speaks of one, stays as it was."""
    assert redact_text(text) == text


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_key_of_the_documentation_is_unharmed_and_one_like_it_is_not(example: str) -> None:
    """It opens nothing wherever it stands; one letter more, or another one, is somebody's key."""
    for _, place in PLACES:
        text = place.format(*[example] * place.count("{}"))
        assert redact_text(text) == text
    for event in (prompt_event(f"use {example}"), stop_event(f"use {example}")):
        assert example.encode() in redact_event(event)
    assert json.loads(redact_event(json.dumps({"secret_key": example}).encode())) == {
        "secret_key": example
    }
    assert example not in redact_text(f"<private>{example}</private>")
    for real in (_other(example, at=len(example) - 2), f"{example}7Q"):
        assert real not in redact_text(f"SECRET_KEY={real}")


def _other(example: str, at: int) -> str:
    """Return the example with another letter at one place."""
    return example[:at] + ("Z" if example[at] != "Z" else "Y") + example[at + 1 :]


def test_an_example_before_a_key_hides_nothing_of_it() -> None:
    """The example stays and the real one goes, beside each other and on the next line."""
    secret = "ghp_" + body("beside", 36)
    for example in EXAMPLES:
        for between in (" ", "\n", ",", "\\n", '", "'):
            out = redact_text(f"{example}{between}{secret}")
            assert secret not in out
            assert out.startswith(example)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("my password is hunter2.", "my password is [REDACTED:password]."),
        ("DB_PASSWORD=hunter2\nPORT=1", "DB_PASSWORD=[REDACTED:password]\nPORT=1"),
        ('{"password":"hunter2"}', '{"password":"[REDACTED:password]"}'),
        ("postgres://app:hunter2@db/x", "postgres://app:[REDACTED:url-password]@db/x"),
        ("a<private>b</private>c", "a[REDACTED:private]c"),
        ("a<private>b", "a[REDACTED:private]"),
        ("a <private>b</private> <private>c</private>", "a [REDACTED:private] [REDACTED:private]"),
        ("pay 4111111111111111 now", "pay [REDACTED:card-number] now"),
        ("mysql -u root -phunter2 app", "mysql -u root -p[REDACTED:password] app"),
        ("curl -u joe:hunter2 https://x", "curl -u joe:[REDACTED:password] https://x"),
        ("Cookie: a=bcdefg7; b=1", "Cookie: a=[REDACTED:cookie]; b=1"),
        ("", ""),
        ("\ud83d password=\0hunter2 \udc00", "\ud83d password=[REDACTED:password] \udc00"),
    ],
)
def test_everything_around_a_secret_stays(text: str, expected: str) -> None:
    """Names, punctuation and the next words are what makes the turn readable."""
    assert redact_text(text) == expected


def test_large_base64_is_replaced_by_its_size_and_small_is_kept() -> None:
    """An image of megabytes is no text; a small icon in a style sheet is."""
    blob = body("image", 5000)
    assert redact_text(f"see {blob} end") == "see [REDACTED:base64 5000 bytes] end"
    assert redact_text("a" * 5000) == "a" * 5000


def test_the_clients_identifiers_keep_their_values() -> None:
    """A session id or a path that looks like a secret still names the same session."""
    odd = "ghp_" + body("odd", 36)
    event = {
        "session_id": odd,
        "transcript_path": f"/x/{odd}.jsonl",
        "cwd": f"/home/{odd}",
        "prompt_id": odd,
        "hook_event_name": odd,
        "prompt": odd,
        "nested": {"cwd": odd, odd: [odd, {"password": "word"}, 3, None, True]},
    }
    out = json.loads(redact_event(json.dumps(event).encode()))
    gone = "[REDACTED:github-token]"
    for key in ("session_id", "transcript_path", "cwd", "prompt_id", "hook_event_name"):
        assert out[key] == event[key]
    assert out["prompt"] == gone
    assert out["nested"]["cwd"] == gone
    assert out["nested"][gone] == [gone, {"password": "word"}, 3, None, True] or out["nested"][
        gone
    ] == [gone, {"password": "[REDACTED:password]"}, 3, None, True]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-8-sig"])
def test_other_encodings_hide_nothing(encoding: str) -> None:
    """An event in another encoding is redacted all the same."""
    secret = "ghp_" + body("enc", 36)
    out = redact_event(json.dumps({"prompt": secret}).encode(encoding))
    assert secret.encode() not in out
    assert secret.encode(encoding) not in out


def test_what_is_no_json_is_redacted_as_text_and_keeps_its_bytes() -> None:
    """A damaged event may hold a secret as well as a whole one."""
    secret = ("ghp_" + body("raw", 36)).encode()
    assert redact_event(b'{"prompt": "' + secret + b"\xff\xfe") == (
        b'{"prompt": "[REDACTED:github-token]\xff\xfe'
    )
    deep = b'{"a":' * 100_000 + b'"' + secret
    assert secret not in redact_event(deep)


def test_lone_surrogates_survive_as_escapes() -> None:
    """The client sends half an emoji as an escape; it stays one."""
    out = redact_event(b'{"prompt":"\\ud83d password=hunter2"}')
    assert out == b'{"prompt":"\\ud83d password=[REDACTED:password]"}'


@pytest.mark.deep
@pytest.mark.parametrize(
    "piece",
    [
        "a", "A1b", "password ", "password: ", "password=", "is ", "://", "a@b:c/", "eyJ", "eyJa.",
        "-----BEGIN PRIVATE KEY-----", "<private>", "<private", "sk-", "cookie: a=b; ", "0000 ",
        "1 2-3 ", "4111-", "AA00 ", "token is ", "Bearer ", "basic ", "[REDACTED:", "'\"", "key key ",
        "my password for a b c d ", "mysql -p ", "seed phrase word ", "curl -u a", "\\n", "密码", "= ",
        "sk-ant-", "glpat-a1", "hooks.slack.com/services/a", "cookie=a; ", "aZ3", "eyJa.eyJ", "pat.",
        "-----BEGIN PRIVATE KEY-----\nMIIE", "htpasswd -bbbb ", "AA00 AAAA",
    ],
)  # fmt: skip
def test_time_grows_with_the_length_and_nothing_else(piece: str) -> None:
    """Twice the text takes about twice as long, for every piece a pattern could stumble over."""
    small, large = ((piece * (size // len(piece) + 1))[:size] for size in (20_000, 160_000))
    cost = {}
    for text in (small, large):
        times = []
        for _ in range(2):
            start = time.process_time()
            redact_text(text)
            times.append(time.process_time() - start)
        cost[text] = min(times)
    assert cost[large] < 24 * max(cost[small], 0.002)


def test_a_private_key_is_gone_even_when_it_is_cut_off() -> None:
    """A paste that ends in the middle of a key holds the key all the same."""
    block = pem("RSA ")
    for cut in (200, 300, 450):
        out = redact_text(f"here:\n{block[:cut]}")
        assert block[60:100] not in out
