"""A terminal's colours stand before and in what people paste: secrets are found behind them."""

from __future__ import annotations

import json

import pytest

from hypatia_mem.capture import hints, redact

CODES = ("\x1b[32m", "\x1b[0m", "\x1b[1;31m\x1b[K", "\\x1b[32m", "\\033[0;32m", "\\e[1m", "^[[33m")
VALUE = "Xk9vQ2mLp7Rt4"
SECRETS = {
    "AWS": "AKIAQ4XZ7PLM2KDN83RT",
    "GitHub": "ghp_a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5f6g7h8",
    "card": "4242 4242 4242 4242",
    "social security": "536-22-8143",
    "IBAN": "DE89370400440532013000",
    "JWT": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI5ODc2NTQzMjEwIn0.dBjftJeZ4CVPmB92K27uhbUJU",
}
SPLIT = {
    "name": "password{}: " + VALUE,
    "value": "DB_PASSWORD={}" + VALUE,
    "bearer": "Authorization: Bearer {}" + VALUE,
    "login": "postgres://bob:{}" + VALUE + "@db.local/x",
}


def leaks(text: str, secret: str) -> list[str]:
    """Return by which way in the secret would reach the disk."""
    event = json.dumps({"session_id": "s", "prompt": text}).encode()
    ways = []
    if secret in redact.redact_text(text):
        ways.append("text")
    if not hints.may_hold_secret(event):
        ways.append("look")
    if secret.encode() in redact.redact_event(event):
        ways.append("event")
    return ways


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_behind_a_colour_is_found(code, name):
    secret = SECRETS[name]
    assert leaks(f"it is {code}{secret}\x1b[0m here", secret) == []


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", SPLIT)
def test_a_secret_whose_name_is_parted_from_it_by_a_colour_is_found(code, name):
    assert leaks("see " + SPLIT[name].format(code), VALUE) == []


@pytest.mark.parametrize("code", CODES)
def test_what_is_coloured_and_no_secret_stays_to_the_letter(code):
    text = f"{code}FAILED\x1b[0m tests/test_a.py 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b {code}ok"
    assert redact.redact_text(text) == text
    event = json.dumps({"session_id": "s", "prompt": text})
    assert json.loads(redact.redact_event(event.encode())) == json.loads(event)


def test_beside_a_secret_only_the_codes_go():
    found = redact.redact_text("run \x1b[32mAKIAQ4XZ7PLM2KDN83RT\x1b[0m now, then `a[33]`")
    assert found.startswith("run [REDACTED:")
    assert found.endswith(" now, then `a[33]`")
    assert redact.redact_text(found) == found
