"""Secrets that their own shape gives away: tokens, keys, logins in addresses, numbers, texture.

Each family is one function that first asks, with a plain ``in``, whether its mark is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from hypatia_mem.capture import hints
from hypatia_mem.capture.secret_names import BARE, ENV, is_name_of_secret, is_reference, is_secret
from hypatia_mem.capture.spans import (
    Family,
    Later,
    Span,
    View,
    has_digit,
    later,
    places,
    positions,
    starts_word,
)

__all__ = [
    "COMMANDS",
    "HEADERS",
    "NUMBERS",
    "PEM",
    "PREFIXES",
    "RANDOM",
    "SEEDS",
    "TOKENS",
    "URLS",
]


def pem(view: View) -> Iterator[Span]:
    """Private keys between BEGIN and END; without END, as far as the key's letters go."""
    text = view.text
    at = text.find("PRIVATE KEY")
    # The next END line and the last BEGIN before it; looked up again only when they are passed, so
    # that time stays linear.
    end, begin = 0, -1
    while at >= 0:
        start = text.rfind("-----BEGIN", max(0, at - 40), at)
        stop = at + 11
        if start >= 0:
            if 0 <= end < at:
                end = text.find("-----END", at)
                begin = text.rfind("-----BEGIN", at, end) if end >= 0 else -1
            if end >= 0 and begin < at:
                tail = _PEM_END().match(text, end)
                stop = tail.end() if tail else end
                if stop - start > 70:
                    yield start, stop, "private-key"
            else:
                following = text.find("-----BEGIN", stop)
                body = _PEM_BODY().match(text, stop, following if following >= 0 else len(text))
                if body and any(hints.is_texture(w) for w in _PEM_LINES().split(body[0])):
                    stop = body.end()
                    yield start, stop, "private-key"
        at = text.find("PRIVATE KEY", stop)
    for at in positions(text, "Private-Lines:"):
        body = _PUTTY_BODY().match(text, at + 14)
        if body:
            yield at, body.end(), "private-key"


_KEY_BLOCKS = (("PRIVATE KEY",), ("Private-Lines:",))
PEM: Family = (pem, lambda view: view.among(_KEY_BLOCKS, lowered=False))
_PEM_END = later(r"-----END[A-Z0-9 ]{0,40}-{0,5}")
_PEM_BODY = later(r"(?: BLOCK)?-{0,5}[A-Za-z0-9+/=\s\\,:.-]{40,}")
_PEM_LINES = later(r"\\n|\s")
_PUTTY_BODY = later(r"[ \t]*\d+(?:\s+[A-Za-z0-9+/=]{20,})+")

_ENDS = {
    "a": later("[A-Za-z0-9]*"),
    "d": later(r"[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]{10,})*"),
    "x": later("[0-9a-f]*"),
    "u": later("[A-Z0-9]*"),
    "w": later(r"[A-Za-z0-9_+/=.~%:$,&?-]*[A-Za-z0-9_+/=~%$-]"),
}
PREFIXES = tuple(
    (prefix.decode(), kind, alphabet, count) for prefix, kind, alphabet, count in hints.TOKENS
)


def tokens(view: View) -> Iterator[Span]:
    """Tokens that say by their first letters whose they are."""
    text = view.text
    for prefix, kind, alphabet, count in view.among(PREFIXES, lowered=False):
        if not count or kind == "jwt":
            continue
        allowed = hints.ALPHABETS[alphabet]
        last = 0
        for at in places(text, prefix, _whole_token(prefix, alphabet, count)):
            start = at + len(prefix)
            if start < last:
                continue  # inside the token before it
            body = text[start : start + count]
            if len(body) < count or not body.isascii() or body.encode().translate(None, allowed):
                continue
            # A long prefix is a mark of its own; a short one may be the end of any word.
            if len(prefix) <= 5 and prefix[0] != "." and not starts_word(text, at):
                continue
            match = _ENDS[alphabet]().match(text, start)
            end = last = match.end() if match else start + count
            if alphabet in "xu" and len(prefix) <= 4 and text[end : end + 1].isalnum():
                continue
            if not _is_placeholder_token(text[start:end], alphabet):
                before = 14 if prefix == ".atlasv1." else 0
                yield max(0, at - before), end, kind
    yield from _odd_tokens(view)


@cache
def _whole_token(prefix: str, alphabet: str, count: int) -> Later:
    letters = "".join(re.escape(chr(byte)) for byte in hints.ALPHABETS[alphabet])
    return later(f"{re.escape(prefix)}[{letters}]{{{count}}}")


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


# (mark, kind, pattern): those that begin with their mark.
_ODD_STARTS = (
    ("pat", "airtable-token", later(r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}")),
    (
        "eyJ",
        "jwt",
        later(
            r"eyJ(?:(?<![A-Za-z0-9_-]eyJ)|(?<=\\[nrt]eyJ))"
            r"[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){0,3}"
        ),
    ),
)
# (mark, kind, pattern, least and most before the mark, whether it is one of that).
_ODD_MIDDLES = (
    (":AA", "telegram-token", later(r"\d{6,12}:AA[A-Za-z0-9_-]{29,}"), 6, 12, str.isdecimal),
    (
        "-us",
        "mailchimp-key",
        later(r"[0-9a-f]{32}-us\d{1,2}"),
        32,
        32,
        "0123456789abcdef".__contains__,
    ),
)


def _odd_tokens(view: View) -> Iterator[Span]:
    """Tokens whose mark is a word's beginning, or stands in their middle."""
    text = view.text
    for mark, kind, pattern, least, most, belongs in view.among(_ODD_MIDDLES, lowered=False):
        last = 0
        for at in positions(text, mark):
            start = at
            while start > max(last, at - most) and belongs(text[start - 1]):
                start -= 1
            match = pattern().match(text, start) if at - start >= least else None
            if match:
                last = match.end()
                yield start, last, kind
    for _, kind, pattern in view.among(_ODD_STARTS, lowered=False):
        for match in pattern().finditer(text):
            yield match.start(), match.end(), kind


TOKENS: Family = (
    tokens,
    lambda view: any(
        view.among(rows, lowered=False) for rows in (PREFIXES, _ODD_STARTS, _ODD_MIDDLES)
    ),
)


def url_logins(view: View) -> Iterator[Span]:
    """The password in ``scheme://user:password@host``, and a token in the user's place."""
    text = view.text
    if "@" not in text:
        return
    for at in places(text, "://", _LOGIN):
        match = _URL().match(text, at + 3)
        if not match or "@" not in match[0]:
            continue
        url = match[0]
        # The last "@" before the host; an "@" in the path belongs to no login.
        end = url.find("@")
        while (more := url.find("@", end + 1)) > 0 and "/" not in url[end + 1 : more]:
            end = more
        user, colon, password = url[:end].partition(":")
        if "/" in user or "?" in user or _PORT().match(password):
            continue
        start = at + 3 + len(user) + 1
        if colon and not is_reference(password) and password.lower() not in _NOT_PASSWORDS:
            if password:
                yield start, at + 3 + end, "url-password"
        elif not colon and len(user) >= 20 and has_digit(user):
            yield at + 3, at + 3 + end, "url-token"


_URL_MARKS = (("://",), ("@",))
URLS: Family = (url_logins, lambda view: len(view.among(_URL_MARKS, lowered=False)) == 2)
_URL = later(r"""[^\s"'`\\<>]{1,400}""")
# A colon before the first "@" or behind it, or a user so long that it is a token.
_LOGIN = later(
    r"""://(?:[^\s"'`\\<>/?@:]{0,400}(?::[^\s"'`\\<>@]{0,400}@"""
    r"""|@[^\s"'`\\<>/?:]{0,400}:[^\s"'`\\<>/]{0,400}@)|[^\s"'`\\<>/?:]{20,400}@)"""
)
_PORT = later(r"\d{1,5}/")
_NOT_PASSWORDS = frozenset({"password", "pass", "passwd", "pwd", "secret", "token", "pw", "..."})


def headers(view: View) -> Iterator[Span]:
    """``Authorization:`` and ``Cookie:`` lines, and Bearer or Basic wherever they stand."""
    there = [mark for (mark,) in view.among(_HEADER_MARKS)]
    text, lowered = view.text, view.lowered
    if "bearer " in there:
        for at in positions(lowered, "bearer "):
            match = _BEARER().match(text, at + 7)
            if match and is_secret(match[0].rstrip("."), "T", BARE):
                yield match.start(), match.start() + len(match[0].rstrip(".")), "bearer-token"
    if "basic " in there:
        for at in positions(lowered, "basic "):
            match = _BASIC().match(text, at + 6)
            if match and _is_login(match[0]):
                yield match.start(), match.end(), "basic-auth"
    if "authorization" in there:
        for at in positions(lowered, "authorization"):
            match = _AUTHORIZATION().match(text, at + 13)
            if match and (is_secret(match[1], "T", BARE) or _is_bare_token(match[1])):
                yield match.start(1), match.end(1), "authorization"
    if "cookie" in there:
        yield from _cookies(text, lowered)


_HEADER_MARKS = (("bearer ",), ("basic ",), ("authorization",), ("cookie",))
HEADERS: Family = (headers, lambda view: view.among(_HEADER_MARKS))
_BEARER = later(r"""[A-Za-z0-9_+/=.~:|-]{8,}""")
_BASIC = later(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_AUTHORIZATION = later(
    r"""["'\]\s\\]{0,6}[:=,]\s{0,4}\\?["'`]?(?:[A-Za-z]{3,12}[ \t]+)?([A-Za-z0-9_+/=.~:-]{8,})"""
)


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


_COOKIE = later(r"""["'\\]{0,3}[ \t]{0,2}[:=][ \t]{0,2}\\?["'`]?(?=[\w.-]{1,60}=)""")
_COOKIE_PAIR = later(r"""([\w.-]{1,60})=([^\s;"'`\\,]{6,})|[\w.-]{1,60}(?:=[^;"'`\n\\]{0,60})?""")
_COOKIE_GAP = later(r";[ \t]{0,2}")


def _cookies(text: str, lowered: str) -> Iterator[Span]:
    place = 0
    for at in positions(lowered, "cookie"):
        if at < place:
            continue  # a cookie of that name inside the line just read
        start = _COOKIE().match(text, at + 6)
        if not start:
            continue
        place = start.end()
        while match := _COOKIE_PAIR().match(text, place):
            if match[1] and match[1].lower() not in _COOKIE_ATTRIBUTES:
                if not is_reference(match[2]):
                    yield match.start(2), match.end(2), "cookie"
            gap = _COOKIE_GAP().match(text, match.end())
            if not gap:
                break
            place = gap.end()


# --- commands, prose, numbers, texture ----------------------------------------------------------

_COMMANDS = tuple(
    (command, later(pattern))
    for command, pattern in (
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
        (
            "htpasswd",
            r"[ \t]-\w{0,4}b\w{0,4}[ \t]\S{1,80}[ \t]\S{1,80}[ \t]['\"]?([^\s\"']{3,100})",
        ),
        ("smbclient", r"[^\s%]{1,40}%([^\s\"']{3,100})"),
        ("requirepass", r"[ \t]['\"]?([^\s\"']{3,100})"),
        ("identified by", r"[ \t]['\"]([^\s\"']{3,100})"),
        ("with password", r"[ \t]['\"]([^\s\"']{3,100})"),
        ("machine ", r"[ \t]password[ \t]([^\s\"']{3,100})"),
    )
)
_FEW = 64  # commands of a kind that are looked at each for itself
_LINE = 400  # characters of a command's line that are looked at


def commands(view: View) -> Iterator[Span]:
    """Command lines that take a password by a letter, not by a word."""
    text, lowered = view.text, view.lowered
    for command, pattern in view.among(_COMMANDS):
        ahead = -1  # of many commands: where the next password that no line's end cuts off begins
        count, at = 0, lowered.find(command)
        while at >= 0:
            begin, stop = at + len(command) - 1, min(len(text), at + _LINE)
            if count > _FEW and ahead < begin:
                found = pattern().search(text, begin)
                ahead = found.start() if found else len(text)
            count, at = count + 1, lowered.find(command, max(at + 1, ahead - _LINE + 1))
            if ahead >= stop:
                continue
            newline = text.find("\n", begin, stop)
            match = pattern().search(text, begin, stop if newline < 0 else newline)
            if match and is_secret(match[1].rstrip("`,;)"), "P", ENV):
                yield match.start(1), match.start(1) + len(match[1].rstrip("`,;)")), "password"


COMMANDS: Family = (commands, lambda view: view.among(_COMMANDS))
_SEEDS = (("seed phrase",), ("mnemonic",), ("recovery phrase",))
_SEED_WORDS = later(r"[^a-z\n]{0,3}(?:is|=|:)?[\s:=\"'`]{1,4}((?:[a-z]{3,8} ){11,23}[a-z]{3,8})\b")


def seed_phrases(view: View) -> Iterator[Span]:
    """Twelve to twenty-four words after "seed phrase" or "mnemonic"."""
    for (word,) in view.among(_SEEDS):
        for at in positions(view.lowered, word):
            match = _SEED_WORDS().match(view.text, at + len(word))
            if match:
                yield match.start(1), match.end(1), "seed-phrase"


SEEDS: Family = (seed_phrases, lambda view: view.among(_SEEDS))


def numbers(view: View) -> Iterator[Span]:
    """Cards that pass Luhn, social security numbers, bank accounts that pass mod 97."""
    text = view.text
    plain = text.encode("ascii", "replace")
    shape = plain.translate(hints.SHAPE)
    for match in _matches(text, shape, hints.CARD_MARKS, _CARD):
        digits = match[0].replace(" ", "").replace("-", "").encode()
        if 14 <= len(digits) <= 19 and _stands_alone(text, *match.span()):
            if hints.passes_luhn(digits):
                yield match.start(), match.end(), "card-number"
    if b"000-00-0000" in shape:
        for match in _SSN().finditer(text):
            if _stands_alone(text, *match.span()):
                yield match.start(), match.end(), "ssn"
    for match in _matches(text, plain.translate(hints.IBAN_SHAPE), (b"AA00",), _IBAN):
        start = match.start()
        account = _iban(match[0]) if _begins(text, start) else ""
        if account and _stands_alone(text, start, start + len(account)):
            yield start, start + len(account), "iban"


def _has_number(view: View) -> bool:
    plain = view.text.encode("ascii", "replace")
    shape = plain.translate(hints.SHAPE)
    return any(mark in shape for mark in (b"000-00-0000", *hints.CARD_MARKS)) or (
        b"AA00" in plain.translate(hints.IBAN_SHAPE)
    )


NUMBERS: Family = (numbers, _has_number)
_CARD = later(r"\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5}|\d{14,19}", re.ASCII)
_SSN = later(r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}", re.ASCII)
_IBAN = later(r"[A-Z]{2}\d\d(?: ?[A-Z0-9]{1,4}){3,8}", re.ASCII)


def _matches(
    text: str, shape: bytes, marks: tuple[bytes, ...], pattern: Later
) -> Iterator[re.Match[str]]:
    """Yield what ``finditer`` would, of a pattern that can match at one of the marks only."""
    next_of = {mark: shape.find(mark) for mark in marks}
    while places := [place for place in next_of.values() if place >= 0]:
        at = min(places)
        match = pattern().match(text, at)
        if match:
            yield match
        at = match.end() if match else at + 1
        for mark, place in next_of.items():
            if 0 <= place < at:
                next_of[mark] = shape.find(mark, at)


def _begins(text: str, start: int) -> bool:
    return text[max(0, start - 1) : start] not in ("-", "_", ".") and starts_word(text, start)


def _stands_alone(text: str, start: int, end: int) -> bool:
    after = text[end : end + 1]
    return not after.isalnum() and after not in ("-", "_") and _begins(text, start)


def _iban(candidate: str) -> str:
    """Return the longest beginning of the candidate that is a valid account, or nothing."""
    plain = candidate.replace(" ", "")
    head = int("".join(str(int(c, 36)) for c in plain[:4]))  # six digits, and they come last
    rest = wanted = 0
    for count, c in enumerate(plain[4:34], 5):
        value = int(c, 36)
        rest = (rest * (10 if value < 10 else 100) + value) % 97
        if count >= 15 and (rest * 1_000_000 + head) % 97 == 1:
            wanted = count
    end = 0
    while wanted:  # so many letters and digits, and the blanks between them
        wanted -= candidate[end] != " "
        end += 1
    return candidate[:end]


_DIGEST_NAMES = ("sha256:", "sha512:", "sha384:", "sha1:", "md5:", "h1:", "base64,", "sha256=")


def random_words(view: View) -> Iterator[Span]:
    """Long words with the texture of a generated token; large base64 by its size."""
    text = view.text
    public = _public_blocks(text)
    begin, stop = next(public, (len(text), len(text)))
    for match in _LONG_WORD().finditer(text):
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


_LONG_WORD = later(r"[A-Za-z0-9_+/~.-]{24,}")
RANDOM: Family = (random_words, lambda view: _LONG_WORD().search(view.text))


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
