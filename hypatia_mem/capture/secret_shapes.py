"""Secrets that their own shape gives away: tokens, keys, logins in addresses, numbers, texture.

Each family is one function that first asks, with a plain ``in``, whether its mark is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hypatia_mem.capture import hints
from hypatia_mem.capture.secret_names import BARE, ENV, is_name_of_secret, is_reference, is_secret
from hypatia_mem.capture.spans import Span, positions, starts_word

__all__ = [
    "TOKENS",
    "commands",
    "headers",
    "numbers",
    "pem",
    "random_words",
    "seed_phrases",
    "tokens",
    "url_logins",
]


def pem(text: str, _lowered: str) -> Iterator[Span]:
    """Private keys between BEGIN and END; without END, as far as the key's letters go."""
    at = text.find("PRIVATE KEY")
    end = 0  # of the next END line; looked up again only when it is passed, so time stays linear
    while at >= 0:
        start = text.rfind("-----BEGIN", max(0, at - 40), at)
        stop = at + 11
        if start >= 0:
            if 0 <= end < at:
                end = text.find("-----END", at)
            begin = text.rfind("-----BEGIN", at, end) if end >= 0 else -1
            if end >= 0 and begin < 0:
                tail = re.compile(r"-----END[A-Z0-9 ]{0,40}-{0,5}").match(text, end)
                stop = tail.end() if tail else end
                if stop - start > 70:
                    yield start, stop, "private-key"
            else:
                following = text.find("-----BEGIN", stop)
                body = re.compile(r"(?: BLOCK)?-{0,5}[A-Za-z0-9+/=\s\\,:.-]{40,}").match(
                    text, stop, following if following >= 0 else len(text)
                )
                if body and any(hints.is_texture(w) for w in re.split(r"\\n|\s", body[0])):
                    stop = body.end()
                    yield start, stop, "private-key"
        at = text.find("PRIVATE KEY", stop)
    for at in positions(text, "Private-Lines:"):
        body = re.compile(r"[ \t]*\d+(?:\s+[A-Za-z0-9+/=]{20,})+").match(text, at + 14)
        if body:
            yield at, body.end(), "private-key"


_ENDS = {
    "a": "[A-Za-z0-9]*",
    "d": r"[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]{10,})*",
    "x": "[0-9a-f]*",
    "u": "[A-Z0-9]*",
    "w": r"[A-Za-z0-9_+/=.~%:$,&?-]*[A-Za-z0-9_+/=~%$-]",
}
TOKENS = tuple(
    (prefix.decode(), kind, alphabet, count) for prefix, kind, alphabet, count in hints.TOKENS
)


def tokens(text: str, _lowered: str) -> Iterator[Span]:
    """Tokens that say by their first letters whose they are."""
    for prefix, kind, alphabet, count in TOKENS:
        if not count or kind == "jwt" or prefix not in text:
            continue
        allowed = hints.ALPHABETS[alphabet]
        last = 0
        for at in positions(text, prefix):
            start = at + len(prefix)
            if start < last:
                continue  # inside the token before it
            body = text[start : start + count]
            if len(body) < count or not body.isascii() or body.encode().translate(None, allowed):
                continue
            # A long prefix is a mark of its own; a short one may be the end of any word.
            if len(prefix) <= 5 and prefix[0] != "." and not starts_word(text, at):
                continue
            match = re.compile(_ENDS[alphabet]).match(text, start)
            end = last = match.end() if match else start + count
            if alphabet in "xu" and len(prefix) <= 4 and text[end : end + 1].isalnum():
                continue
            if not _is_placeholder_token(text[start:end], alphabet):
                before = 14 if prefix == ".atlasv1." else 0
                yield max(0, at - before), end, kind
    yield from _odd_tokens(text)


def _is_placeholder_token(body: str, alphabet: str) -> bool:
    lowered = body.lower()
    if not lowered.strip("x0*._-") or any(word in lowered for word in ("xxxx", "your", "_here")):
        return True
    # With dashes and underscores allowed, words of a name would pass.
    return (
        alphabet == "d"
        and lowered == body
        and not any(c.isdigit() for c in body)
        and ("-" in body or "_" in body)
    )


def _odd_tokens(text: str) -> Iterator[Span]:
    if ":AA" in text:
        for match in re.compile(r"\d{6,12}:AA[A-Za-z0-9_-]{29,}").finditer(text):
            yield match.start(), match.end(), "telegram-token"
    if "-us" in text:
        for match in re.compile(r"[0-9a-f]{32}-us\d{1,2}").finditer(text):
            yield match.start(), match.end(), "mailchimp-key"
    if "pat" in text:
        for match in re.compile(r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}").finditer(text):
            yield match.start(), match.end(), "airtable-token"
    if "eyJ" in text:
        jwt = re.compile(
            r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
            r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){0,3}"
        )
        for match in jwt.finditer(text):
            yield match.start(), match.end(), "jwt"


def url_logins(text: str, _lowered: str) -> Iterator[Span]:
    """The password in ``scheme://user:password@host``, and a token in the user's place."""
    if "://" not in text or "@" not in text:
        return
    pattern = re.compile(r"""[^\s"'`\\<>]{1,400}""")
    for at in positions(text, "://"):
        match = pattern.match(text, at + 3)
        if not match or "@" not in match[0]:
            continue
        url = match[0]
        # The last "@" before the host; an "@" in the path belongs to no login.
        end = url.find("@")
        while (more := url.find("@", end + 1)) > 0 and "/" not in url[end + 1 : more]:
            end = more
        user, colon, password = url[:end].partition(":")
        if "/" in user or "?" in user or re.match(r"\d{1,5}/", password):
            continue
        start = at + 3 + len(user) + 1
        if colon and not is_reference(password) and password.lower() not in _NOT_PASSWORDS:
            if password:
                yield start, at + 3 + end, "url-password"
        elif not colon and len(user) >= 20 and any(c.isdigit() for c in user):
            yield at + 3, at + 3 + end, "url-token"


_NOT_PASSWORDS = frozenset({"password", "pass", "passwd", "pwd", "secret", "token", "pw", "..."})


def headers(text: str, lowered: str) -> Iterator[Span]:
    """``Authorization:`` and ``Cookie:`` lines, and Bearer or Basic wherever they stand."""
    if "bearer " in lowered:
        for at in positions(lowered, "bearer "):
            match = re.compile(r"""[A-Za-z0-9_+/=.~:|-]{8,}""").match(text, at + 7)
            if match and is_secret(match[0].rstrip("."), "T", BARE):
                yield match.start(), match.start() + len(match[0].rstrip(".")), "bearer-token"
    if "basic " in lowered:
        for at in positions(lowered, "basic "):
            match = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}").match(text, at + 6)
            if match and _is_login(match[0]):
                yield match.start(), match.end(), "basic-auth"
    if "authorization" in lowered:
        pattern = re.compile(
            r"""["'\]\s\\]{0,6}[:=,]\s{0,4}\\?["'`]?(?:[A-Za-z]{3,12}[ \t]+)?([A-Za-z0-9_+/=.~:-]{8,})"""
        )
        for at in positions(lowered, "authorization"):
            match = pattern.match(text, at + 13)
            if match and (is_secret(match[1], "T", BARE) or _is_bare_token(match[1])):
                yield match.start(1), match.end(1), "authorization"
    if "cookie" in lowered:
        yield from _cookies(text, lowered)


def _is_bare_token(word: str) -> bool:
    """In the place of a header's token, letters alone will do."""
    return len(word) >= 16 and word.isalnum() and not is_name_of_secret(word.lower())


def _is_login(word: str) -> bool:
    """Tell whether base64 text decodes to ``user:password``."""
    from binascii import a2b_base64

    try:
        login = a2b_base64(word.replace("-", "+").replace("_", "/") + "==")
    except ValueError:
        return False
    return b":" in login and all(32 <= byte < 127 for byte in login)


_COOKIE_ATTRIBUTES = frozenset(
    {"path", "domain", "expires", "max-age", "samesite", "secure", "httponly", "priority"}
)


def _cookies(text: str, lowered: str) -> Iterator[Span]:
    place = 0
    for at in positions(lowered, "cookie"):
        if at < place:
            continue  # a cookie of that name inside the line just read
        opening = re.compile(r"""["'\\]{0,3}[ \t]{0,2}[:=][ \t]{0,2}\\?["'`]?(?=[\w.-]{1,60}=)""")
        start = opening.match(text, at + 6)
        if not start:
            continue
        pair = re.compile(
            r"""([\w.-]{1,60})=([^\s;"'`\\,]{6,})|[\w.-]{1,60}(?:=[^;"'`\n\\]{0,60})?"""
        )
        place = start.end()
        while match := pair.match(text, place):
            if match[1] and match[1].lower() not in _COOKIE_ATTRIBUTES:
                if not is_reference(match[2]):
                    yield match.start(2), match.end(2), "cookie"
            gap = re.compile(r";[ \t]{0,2}").match(text, match.end())
            if not gap:
                break
            place = gap.end()


# --- commands, prose, numbers, texture ----------------------------------------------------------

_COMMANDS = (
    ("mysql", r"[ \t]-p([^\s\"'-][^\s\"']{2,100})"),
    ("mariadb", r"[ \t]-p([^\s\"'-][^\s\"']{2,100})"),
    ("sshpass", r"[ \t]-p[ \t]?['\"]?([^\s\"']{3,100})"),
    ("login -", r"[ \t]-p[ \t]['\"]?([^\s\"']{3,100})"),
    ("redis-cli", r"[ \t]-a[ \t]['\"]?([^\s\"']{3,100})"),
    ("curl", r"[ \t](?:-u|--user)[ \t=]?['\"]?[^\s:\"']{0,80}:([^\s\"']{1,200})"),
    ("mongo", r"[ \t](?:-u|--username)[ \t]\S{1,60}[ \t]+-p[ \t]['\"]?([^\s\"']{3,100})"),
    ("passin", r"[ \t]pass:([^\s\"']{3,100})"),
    ("passout", r"[ \t]pass:([^\s\"']{3,100})"),
    ("ldapsearch", r"[ \t]-w[ \t]['\"]?([^\s\"']{3,100})"),
    ("htpasswd", r"[ \t]-\w{0,4}b\w{0,4}[ \t]\S{1,80}[ \t]\S{1,80}[ \t]['\"]?([^\s\"']{3,100})"),
    ("smbclient", r"[^\s%]{1,40}%([^\s\"']{3,100})"),
    ("requirepass", r"[ \t]['\"]?([^\s\"']{3,100})"),
    ("identified by", r"[ \t]['\"]([^\s\"']{3,100})"),
    ("with password", r"[ \t]['\"]([^\s\"']{3,100})"),
    ("machine ", r"[ \t]password[ \t]([^\s\"']{3,100})"),
)


def commands(text: str, lowered: str) -> Iterator[Span]:
    """Command lines that take a password by a letter, not by a word."""
    for command, pattern in _COMMANDS:
        for at in positions(lowered, command) if command in lowered else ():
            newline = text.find("\n", at, at + 400)
            stop = min(len(text), at + 400) if newline < 0 else newline
            match = re.compile(pattern).search(text, at + len(command) - 1, stop)
            if match and is_secret(match[1].rstrip("`,;)"), "P", ENV):
                yield match.start(1), match.start(1) + len(match[1].rstrip("`,;)")), "password"


def seed_phrases(text: str, lowered: str) -> Iterator[Span]:
    """Twelve to twenty-four words after "seed phrase" or "mnemonic"."""
    for word in ("seed phrase", "mnemonic", "recovery phrase"):
        for at in positions(lowered, word) if word in lowered else ():
            pattern = re.compile(
                r"[^a-z\n]{0,3}(?:is|=|:)?[\s:=\"'`]{1,4}((?:[a-z]{3,8} ){11,23}[a-z]{3,8})\b"
            )
            match = pattern.match(text, at + len(word))
            if match:
                yield match.start(1), match.end(1), "seed-phrase"


def numbers(text: str, _lowered: str) -> Iterator[Span]:
    """Cards that pass Luhn, social security numbers, bank accounts that pass mod 97."""
    shape = text.encode("ascii", "replace").translate(hints.SHAPE)
    if any(mark in shape for mark in hints.CARD_MARKS):
        pattern = re.compile(
            r"\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5}|\d{14,19}", re.ASCII
        )
        for match in pattern.finditer(text):
            digits = match[0].replace(" ", "").replace("-", "").encode()
            if _stands_alone(text, *match.span()) and 14 <= len(digits) <= 19:
                if hints.passes_luhn(digits):
                    yield match.start(), match.end(), "card-number"
    if b"000-00-0000" in shape:
        for match in re.compile(r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}", re.ASCII).finditer(
            text
        ):
            if _stands_alone(text, *match.span()):
                yield match.start(), match.end(), "ssn"
    for match in (
        re.compile(r"[A-Z]{2}\d\d(?: ?[A-Z0-9]{1,4}){3,8}", re.ASCII).finditer(text)
        if (b"AA00" in text.encode("ascii", "replace").translate(hints.IBAN_SHAPE))
        else ()
    ):
        account = _iban(match[0])
        if account and _stands_alone(text, match.start(), match.start() + len(account)):
            yield match.start(), match.start() + len(account), "iban"


def _stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    if after.isalnum() or after in ("-", "_"):
        return False
    return before not in ("-", "_", ".") and starts_word(text, start)


def _iban(candidate: str) -> str:
    """Return the longest beginning of the candidate that is a valid account, or nothing."""
    for length in range(len(candidate), 14, -1):
        part = candidate[:length]
        plain = part.replace(" ", "")
        if not 15 <= len(plain) <= 34 or part.endswith(" "):
            continue
        number = "".join(str(int(c, 36)) for c in plain[4:] + plain[:4])
        if int(number) % 97 == 1:
            return part
    return ""


_DIGEST_NAMES = ("sha256:", "sha512:", "sha384:", "sha1:", "md5:", "h1:", "base64,", "sha256=")


def random_words(text: str, _lowered: str) -> Iterator[Span]:
    """Long words with the texture of a generated token; large base64 by its size."""
    public = _public_blocks(text)
    begin, stop = next(public, (len(text), len(text)))
    for match in re.compile(r"[A-Za-z0-9_+/~.-]{24,}").finditer(text):
        start, end = _trim_escape(text, match.start()), match.end()
        word = text[start:end]
        while stop <= start:
            begin, stop = next(public, (len(text), len(text)))
        if not hints.has_random_part(word):
            continue
        word = word.rstrip(".")
        end = start + len(word)
        if hints.is_blob(word):
            yield start, end + _padding(text, end), f"base64 {len(word)} bytes"
        elif not (
            text[max(0, start - 8) : start].lower().endswith(_DIGEST_NAMES)
            or begin <= start
            or _in_url(text, start)
        ):
            yield start, end + _padding(text, end), "high-entropy"


def _trim_escape(text: str, start: int) -> int:
    r"""Skip the letter of an escaped ``\n`` that the word seems to begin with."""
    return start + 1 if text[start - 1 : start] == "\\" and text[start] in "nrt" else start


def _padding(text: str, end: int) -> int:
    return 2 if text.startswith("==", end) else int(text.startswith("=", end))


def _public_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Certificates and public keys may be shown to anyone."""
    at = text.find("-----BEGIN ")
    while at >= 0:
        end = text.find("-----END", at)
        end = len(text) if end < 0 else end
        if "PRIVATE" not in text[at : at + 40]:
            yield at, end
        at = text.find("-----BEGIN ", end)


def _in_url(text: str, start: int) -> bool:
    """Tell whether the word is part of an address; names decide about its parameters."""
    at = text.rfind("://", max(0, start - 300), start + 2)
    if at < 0:
        return False
    between = text[at:start]
    return not any(c.isspace() or c in "\"'`<>\\" for c in between)
