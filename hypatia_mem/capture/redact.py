r"""Takes secrets out of an event before it touches the disk.

A secret is replaced by ``[REDACTED:<kind>]``; every other character stays as it was. The result
depends on the text alone, and redacting it again changes nothing: placeholders are never looked
into, and the passes run until one finds nothing.

Each family of secrets is one function that first asks, with a plain ``in``, whether its mark is
there, so that an event costs only the patterns it needs: compiling a regular expression is the
dearest thing that happens here. No pattern can backtrack further than a fixed number of
characters, so that the time grows with the length of the text and nothing else.

When in doubt between a secret and a name in code, quoted values and values with a digit or a
mark in them count as secrets; bare words and references do not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from hypatia_mem.capture import hints

__all__ = ["redact_event", "redact_text"]

Span = tuple[int, int, str]  # start, end, kind
Family = Callable[[str, str], Iterator[Span]]

_MARK = "[REDACTED:"
_PASSES = 6  # the second finds nothing in any text a person writes
# The client's own names of things: redacting them would tear the record from its session.
_KEPT = frozenset({"session_id", "transcript_path", "cwd", "prompt_id", "hook_event_name"})


def redact_text(text: str) -> str:
    """Return the text with every secret replaced by ``[REDACTED:<kind>]``.

    Lone surrogates and NUL are ordinary characters here. Never raises.
    """
    for _ in range(_PASSES):
        text, changed = _redact_once(text)
        if not changed:
            break
    return text


def redact_event(data: bytes) -> bytes:
    """Return a hook's input with every string value and key redacted, as one line of ASCII JSON.

    The client's identifiers (session, transcript path, directory, prompt, event) keep their
    values. Input that is not JSON is redacted as text. Never raises.
    """
    try:
        event = json.loads(data)
        if isinstance(event, dict):
            event = {
                redact_text(key): value if key in _KEPT else _redact_member(key, value)
                for key, value in event.items()
            }
        else:
            event = _redact_value(event)
        return json.dumps(event, separators=(",", ":")).encode("ascii")
    except (ValueError, RecursionError):
        return _redact_bytes(data)


def _redact_bytes(data: bytes) -> bytes:
    """Redact bytes that are no JSON, in the encoding they seem to be in."""
    encoding = json.detect_encoding(data) if b"\0" in data else "utf-8"
    try:
        return redact_text(data.decode(encoding)).encode(encoding)
    except ValueError:
        return redact_text(data.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )


def _redact_value(value: object) -> object:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, list):
        return [_redact_value(item) for item in value]
    if isinstance(value, dict):
        return {redact_text(key): _redact_member(key, item) for key, item in value.items()}
    return value


def _redact_member(key: str, value: object) -> object:
    """Redact a value of an object, whose key may say that all of it is a secret."""
    if isinstance(value, str) and value and _MARK not in value:
        kind = _kind_of_key(key)
        if kind and _is_secret(value, kind, _QUOTED):
            return f"{_MARK}{_LABELS[kind]}]"
    return _redact_value(value)


# --- passes -------------------------------------------------------------------------------------


def _redact_once(text: str) -> tuple[str, bool]:
    text, changed = _apply(text, list(_private(text)))
    if _MARK not in text:
        text, more = _apply(text, _find(text))
        return text, changed or more
    parts = []
    for number, part in enumerate(re.split(r"(\[REDACTED:[a-z0-9 -]{1,40}\])", text)):
        if number % 2 == 0 and len(part) > 3:
            part, more = _apply(part, _find(part))
            changed = changed or more
        parts.append(part)
    return "".join(parts), changed


def _find(text: str) -> list[Span]:
    lowered = text.lower()
    if len(lowered) != len(text):  # only the dotted capital I grows when it is lowered
        lowered = text.replace("\u0130", "I").lower()
    return [span for family in _FAMILIES for span in family(text, lowered)]


def _apply(text: str, spans: list[Span]) -> tuple[str, bool]:
    """Replace the spans; of overlapping ones the earlier in the list gives its kind to all."""
    if not spans:
        return text, False
    ranked = sorted((start, rank, end, kind) for rank, (start, end, kind) in enumerate(spans))
    merged: list[list[int]] = []
    kinds: list[str] = []
    for start, rank, end, kind in ranked:
        if merged and start < merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
            if rank < merged[-1][2]:
                merged[-1][2], kinds[-1] = rank, kind
        else:
            merged.append([start, end, rank])
            kinds.append(kind)
    parts, last = [], 0
    for (start, end, _), kind in zip(merged, kinds, strict=True):
        parts += [text[last:start], _MARK, kind, "]"]
        last = end
    parts.append(text[last:])
    return "".join(parts), True


def _positions(text: str, needle: str) -> Iterator[int]:
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def _starts_word(text: str, at: int) -> bool:
    r"""Tell whether no word runs into position ``at``; an escaped ``\n`` before it is no word."""
    before = text[at - 1 : at] if at else ""
    return not before.isalnum() or (text[max(0, at - 2) : at - 1] == "\\" and before in "nrt")


# --- families -----------------------------------------------------------------------------------


def _private(text: str) -> Iterator[Span]:
    """What the user marked as not to be kept; a tag that is never closed reaches to the end."""
    if "<private" not in text and "<PRIVATE" not in text and "<Private" not in text:
        return
    lowered = text.lower() if len(text.lower()) == len(text) else text
    at = lowered.find("<private>")
    while at >= 0:
        if text[at - 1 : at] == "`" and text[at + 9 : at + 10] == "`":
            at = lowered.find("<private>", at + 9)  # a mention of the tag
            continue
        end = lowered.find("</private>", at)
        end = len(text) if end < 0 else end + 10
        yield at, end, "private"
        at = lowered.find("<private>", end)


def _pem(text: str, _lowered: str) -> Iterator[Span]:
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
    for at in _positions(text, "Private-Lines:"):
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
_TOKENS = tuple(
    (prefix.decode(), kind, alphabet, count) for prefix, kind, alphabet, count in hints.TOKENS
)


def _tokens(text: str, _lowered: str) -> Iterator[Span]:
    """Tokens that say by their first letters whose they are."""
    for prefix, kind, alphabet, count in _TOKENS:
        if not count or kind == "jwt" or prefix not in text:
            continue
        allowed = hints.ALPHABETS[alphabet]
        last = 0
        for at in _positions(text, prefix):
            start = at + len(prefix)
            if start < last:
                continue  # inside the token before it
            body = text[start : start + count]
            if len(body) < count or not body.isascii() or body.encode().translate(None, allowed):
                continue
            # A long prefix is a mark of its own; a short one may be the end of any word.
            if len(prefix) <= 5 and prefix[0] != "." and not _starts_word(text, at):
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


def _url_logins(text: str, _lowered: str) -> Iterator[Span]:
    """The password in ``scheme://user:password@host``, and a token in the user's place."""
    if "://" not in text or "@" not in text:
        return
    pattern = re.compile(r"""[^\s"'`\\<>]{1,400}""")
    for at in _positions(text, "://"):
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
        if colon and not _is_reference(password) and password.lower() not in _NOT_PASSWORDS:
            if password:
                yield start, at + 3 + end, "url-password"
        elif not colon and len(user) >= 20 and any(c.isdigit() for c in user):
            yield at + 3, at + 3 + end, "url-token"


_NOT_PASSWORDS = frozenset({"password", "pass", "passwd", "pwd", "secret", "token", "pw", "..."})


def _headers(text: str, lowered: str) -> Iterator[Span]:
    """``Authorization:`` and ``Cookie:`` lines, and Bearer or Basic wherever they stand."""
    if "bearer " in lowered:
        for at in _positions(lowered, "bearer "):
            match = re.compile(r"""[A-Za-z0-9_+/=.~:|-]{8,}""").match(text, at + 7)
            if match and _is_secret(match[0].rstrip("."), "T", _BARE):
                yield match.start(), match.start() + len(match[0].rstrip(".")), "bearer-token"
    if "basic " in lowered:
        for at in _positions(lowered, "basic "):
            match = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}").match(text, at + 6)
            if match and _is_login(match[0]):
                yield match.start(), match.end(), "basic-auth"
    if "authorization" in lowered:
        pattern = re.compile(
            r"""["'\]\s\\]{0,6}[:=,]\s{0,4}\\?["'`]?(?:[A-Za-z]{3,12}[ \t]+)?([A-Za-z0-9_+/=.~:-]{8,})"""
        )
        for at in _positions(lowered, "authorization"):
            match = pattern.match(text, at + 13)
            if match and (_is_secret(match[1], "T", _BARE) or _is_bare_token(match[1])):
                yield match.start(1), match.end(1), "authorization"
    if "cookie" in lowered:
        yield from _cookies(text, lowered)


def _is_bare_token(word: str) -> bool:
    """In the place of a header's token, letters alone will do."""
    return len(word) >= 16 and word.isalnum() and not _is_name_of_secret(word.lower())


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
    for at in _positions(lowered, "cookie"):
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
                if not _is_reference(match[2]):
                    yield match.start(2), match.end(2), "cookie"
            gap = re.compile(r";[ \t]{0,2}").match(text, match.end())
            if not gap:
                break
            place = gap.end()


# --- values that a name gives away --------------------------------------------------------------

_QUOTED, _BARE, _ENV, _SAID = "quoted", "bare", "env", "said"
_LABELS = {"P": "password", "C": "password", "S": "secret", "T": "token"}
# What may follow the word in a name: DB_PASSWORD_PROD, SECRET_KEY_BASE, token2.
_SUFFIXES = frozenset(
    {
        "", "1", "2", "3", "4", "base", "value", "plain", "prod", "production", "dev", "test", "staging",
        "old", "new", "current", "string", "hash", "digest", "confirm", "confirmation", "raw",
        "key", "accesskey", "keybase", "text", "env", "id", "data", "live", "primary", "secondary",
    }
)  # fmt: skip
# What before it says that the value is none: token ids of a tokenizer, cursors, counts.
_HARMLESS = (
    "max_", "min_", "num_", "n_", "next", "page", "eos_", "bos_", "pad_", "unk_", "sep_", "cls_",
    "mask_", "stop_", "start_", "end_", "special_", "public", "partition_", "primary", "foreign",
    "sort_", "no", "not_",
)  # fmt: skip
_PLAIN = frozenset(
    {
        "true", "false", "null", "none", "nil", "undefined", "str", "string", "int", "integer", "bytes",
        "bool", "boolean", "any", "text", "varchar", "char", "required", "optional", "empty", "hidden",
        "visible", "yes", "no", "on", "off", "todo", "tbd", "unknown", "default", "secret", "password",
        "passwd", "pass", "pwd", "token", "key", "changeme", "change_me", "bearer", "basic", "jwt",
        "oauth", "oauth2", "bcrypt", "argon2", "argon2id", "argon2i", "sha1", "sha256", "sha512",
        "scrypt", "pbkdf2", "md5", "plaintext", "hashed", "encrypted", "utf-8", "utf8", "input",
        "field", "current-password", "new-password", "passphrase", "apikey", "api_key", "api-key",
        "credentials", "redacted", "username", "user", "admin_password", "access_token", "value",
        "oauth1", "base64", "hs256", "rs256", "es256", "http", "https", "v1", "v2", "v3", "totp",
        "wrong", "correct", "invalid", "valid", "missing", "expired", "stored", "not", "the", "a",
        "an", "it", "in", "being", "too", "used", "set", "sent", "never", "always", "also", "still",
        "now", "only", "safe", "weak", "strong", "long", "short", "generated", "this", "that",
        "what", "ok", "good", "bad", "here", "there", "null,", "uuid", "uuid4", "self", "read", "write",
        "none,", "enabled", "disabled", "leaked", "stale", "reset", "handled", "public",
        "private", "similar", "different", "obvious", "simple", "complex", "broken", "unique", "blank",
        "falsch", "richtig", "nicht", "zu", "faux", "incorrect", "incorrecta", "secure", "insecure",
        "based", "part", "passed", "defined", "provided", "given", "typed", "entered", "ignored",
    }
)  # fmt: skip


def _assigned(text: str, lowered: str) -> Iterator[Span]:
    """Values after a name of a secret: ``=``, ``:``, a flag, "is", a call, a table cell."""
    for word, kind in hints.WORDS:
        if word not in lowered:
            continue
        last = 0
        for at in _positions(lowered, word):
            span = _value_after(text, lowered, at, at + len(word), kind) if at >= last else None
            if span:
                last = span[1]
                yield span


def _value_after(text: str, lowered: str, at: int, end: int, kind: str) -> Span | None:
    word = lowered[at:end]
    prefix = _name_before(lowered, at)
    match = re.compile(r"[A-Za-z0-9_-]{0,32}").match(text, end)
    suffix = match[0] if match else ""
    if kind != "C" and suffix.strip("_-").lower() not in _SUFFIXES:
        return None
    if not _names_a_secret(text, at, word, prefix):
        return None
    label = _LABELS[kind]
    if (prefix.startswith(("--", "-")) and word != "auth") or prefix == "-":
        span = _flag_value(text, end + len(suffix), kind)
        if span:
            return (*span, label)
    place = end + len(suffix)
    value = _after_operator(
        text, lowered, place, at - len(prefix), kind, word == "pass" and not prefix
    )
    if value is None and word == "passphrase":
        value = _phrase(text, place)
    if value is None and (word != "pass" or prefix):
        value = _after_verb(text, place, kind) or _before_verb(text, lowered, at, kind)
    if value and word in ("sessid", "sessionid") and "-" in text[slice(*value)]:
        return None  # a session has names as well: "original-session", a UUID
    return (*value, label) if value else None


def _phrase(text: str, place: int) -> tuple[int, int] | None:
    """Four words or more to the end of the line: "passphrase: correct horse ..."."""
    match = re.compile(
        r"[ \t]{0,2}(?:is|[:=])[ \t]{1,3}((?:[a-z]{3,12}[ -]){3,11}[a-z]{3,12})[.!]?(?=\s*(?:\n|$))"
    ).match(text, place)
    return match.span(1) if match and not _is_sentence(match[1]) else None


def _name_before(lowered: str, at: int) -> str:
    piece = lowered[max(0, at - 48) : at]
    return piece[len(piece.rstrip("abcdefghijklmnopqrstuvwxyz0123456789_-.$")) :]


def _names_a_secret(text: str, at: int, word: str, prefix: str) -> bool:
    if prefix.startswith(_HARMLESS) or prefix.endswith(_HARMLESS):
        return False
    joined = prefix[-1:] in ("", "_", "-", ".", "$")
    if word == "key":
        name = prefix.rstrip("_-.")
        spaced = text[max(0, at - 16) : at].lower().rstrip("_-. ")
        return spaced.endswith(hints.KEY_QUALIFIERS) or (name == "" and _in_query(text, at))
    if word in ("pass", "auth", "sig", "pw"):
        return joined or (word == "pass" and text[at] == "P")
    return True


def _in_query(text: str, at: int) -> bool:
    return text[at - 1 : at] in ("?", "&")


def _flag_value(text: str, place: int, kind: str) -> tuple[int, int] | None:
    match = re.compile(r"""[ \t]{1,4}(["']?)([^\s"']{3,200})""").match(text, place)
    if not match or match[2].startswith(("-", "|", ">", "&")):
        return None
    style = _QUOTED if match[1] else _ENV
    value = match[2].rstrip("`,.;)")
    if _is_secret(value, "P" if kind == "P" else kind, style):
        return match.start(2), match.start(2) + len(value)
    return None


_CLOSING = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "「": "」", "『": "』"}


def _after_operator(
    text: str, lowered: str, place: int, name_at: int, kind: str, quoted_only: bool
) -> tuple[int, int] | None:
    pattern = re.compile(
        r"""[ \t"'`\])*?!\\]{0,8}(=>|:=|->|={1,3}|!==?|value=|[:：＝|>,(])[ \t*]{0,12}(\n?[ \t*]{0,12})"""
    )
    match = pattern.match(text, place)
    if not match:
        return None
    operator, start = match[1], match.end()
    if match[2] and kind not in "PC":
        return None
    if operator == ">" and lowered[name_at - 1 : name_at] != "<":
        return None
    if operator in "(," and not (kind == "P" or _name_sets(lowered, name_at)):
        return None
    if operator == ":" and text[start : start + 1] not in _CLOSING:
        # A type comes first: password: string = "..."
        typed = re.compile(r"""[\w.\[\]<>|?& ]{1,40}=[ \t]{0,4}(?=["'])""").match(text, start)
        start = typed.end() if typed else start
    if text.startswith('\\"', start) or text.startswith("\\'", start):
        return _escaped_value(text, start, kind)
    start += _string_prefix(text, start)
    if text[start : start + 1] in _CLOSING:
        value = _quoted_value(text, start, kind)
        # ["user", "password", "email"]: in a list or a call, only what looks like a password is.
        listed = operator in "(," and not _name_sets(lowered, name_at)
        return None if value and listed and not _mixes(text[slice(*value)], 6) else value
    if operator in ("(", ",", "===", "==", "!=", "!==") or quoted_only or match[2]:
        loose = quoted_only or operator in ("(", ",", "==", "===", "!=", "!==")
        if quoted_only and operator in ("=", ":"):
            span = _bare_value(text, start, kind, _SAID)
            return span if span and _mixes(text[slice(*span)], 6) else None
        return None if loose else _bare_value(text, start, kind, _SAID)
    return _bare_value(text, start, kind, _style(text, match.start(), operator, name_at, start))


def _name_sets(lowered: str, name_at: int) -> bool:
    name = lowered[name_at : name_at + 60].split("(", 1)[0]
    return name.rsplit(".", 1)[-1].startswith(("set", "with"))


def _string_prefix(text: str, start: int) -> int:
    """Return how long the ``f`` of ``f"..."`` is."""
    for length in (1, 2):
        if text[start + length : start + length + 1] in ('"', "'"):
            letters = text[start : start + length].lower()
            return length if letters.isalpha() and not letters.strip("fbru@") else 0
    return 0


def _style(text: str, gap: int, operator: str, name_at: int, start: int) -> str:
    """A value right behind ``=`` is the shell's or a file's: anything up to the blank."""
    tight = operator == "=" and text[gap] == "=" and start == gap + 1
    name = text[name_at:gap]
    if tight and name == name.upper() and text[name_at - 1 : name_at] not in (";", "?", "&"):
        return _ENV
    return _BARE


def _escaped_value(text: str, start: int, kind: str) -> tuple[int, int] | None:
    quote = text[start : start + 2]
    end = text.find(quote, start + 2, start + 514)
    if end < 0:
        return None
    return (start + 2, end) if _is_secret(text[start + 2 : end], kind, _QUOTED) else None


def _quoted_value(text: str, start: int, kind: str) -> tuple[int, int] | None:
    closing = _CLOSING[text[start]]
    if text.startswith(closing * 3, start):
        start += 2
    match = re.compile(rf"((?:[^\\\n{closing}]|\\.){{0,2000}}){closing}?").match(text, start + 1)
    if not match or not match[1]:
        return None
    return match.span(1) if _is_secret(match[1], kind, _QUOTED) else None


def _bare_value(text: str, start: int, kind: str, style: str) -> tuple[int, int] | None:
    ends = r"\s\"'`<>" if style == _ENV else r"\s\"'`<>,;&|）。，、；"
    match = re.compile(rf"[^{ends}]{{1,1000}}").match(text, start)
    if not match:
        return None
    value = match[0]
    if style != _ENV:
        value = value.rstrip(".:?)]}*_\\")
    else:
        value = value.rstrip(";,.)")
    after = text[start + len(value) : start + len(value) + 2]
    if not value or not _is_secret(value, kind, style, ends=_ends_line(after)):
        return None
    return start, start + len(value)


def _ends_line(after: str) -> bool:
    return after.strip(" .,;!。\"'`")[:1] in ("", "\n", "\r") and not after.startswith("  ")


_VERB_PATTERN = (
    r"(?:[ \t]{1,3}[^\s.,;:=]{1,24}){0,4}?[ \t*`\"']{1,3}(?:is|was|ist|lautet|war|est|es|era|é)"
    r"(?:[ \t]{1,3}(?:now|jetzt|set to|changed to|maintenant|ahora)){0,1}[ \t:]{1,3}"
)


def _after_verb(text: str, place: int, kind: str) -> tuple[int, int] | None:
    """Plain words: "my password is hunter2", "the password for staging is ...", "密码是..."."""
    if kind == "C":
        match = re.compile(
            r"[ \t]{0,2}[一-鿿ぁ-んァ-ヶ]{0,6}?(?:是|为|為|は|が|改成|改为|を)?[ \t]{0,2}"
        ).match(text, place)
        start = match.end() if match else place
        if text[start : start + 1] in _CLOSING:
            return _quoted_value(text, start, "P")
        found = re.compile(r"[!-~]{4,200}").match(text, start)
        if found and _is_secret(found[0].rstrip(".,;:)"), "P", _SAID, ends=True):
            return start, start + len(found[0].rstrip(".,;:)"))
        return None
    # Only a password is told with so few words between: a token's sentence is about tokens.
    pattern = _VERB_PATTERN if kind == "P" else r"[ \t]{1,3}(?:is|ist|est|es)[ \t:]{1,3}"
    match = re.compile(pattern).match(text, place)
    start = match.end() if match else place
    if not match:
        gap = re.compile(r"[ \t]{1,3}(?:(?:->|[-–—→(])[ \t]{0,2})?").match(text, place)
        if not gap or kind != "P":
            return None
        start = gap.end()
    if text[start : start + 1] in _CLOSING:
        quoted = _quoted_value(text, start, kind)
        if quoted and (match or _is_secret(text[slice(*quoted)], kind, _SAID)):
            return quoted
        return None
    mine = match is not None and len(match[0].split()) == 1
    value = _bare_value(text, start, kind, _SAID if mine else _BARE)
    if value and (mine or _mixes(text[slice(*value)])):
        return value
    return None


def _before_verb(text: str, lowered: str, at: int, kind: str) -> tuple[int, int] | None:
    """Look at the other order: "hunter2 is my password"."""
    if kind != "P":
        return None
    match = re.compile(
        r"""([^\s"'`]{4,100})["'`]?[ \t](?:is|ist|est|es)[ \t](?:my|our|the|mein|das|mon|mi)[ \t]$"""
    ).search(lowered[max(0, at - 130) : at])
    if not match or not _mixes(match[1]):
        return None
    start = max(0, at - 130) + match.start(1)
    return start, start + len(match[1])


def _mixes(value: str, least: int = 5) -> bool:
    """Tell whether a word of prose has the digits and letters, or marks, of a password."""
    if len(value) < least or value.lower() in _PLAIN or value.isalpha():
        return False
    has_digit = any(c.isdigit() for c in value)
    has_letter = any(c.isalpha() for c in value)
    return has_letter and (has_digit or any(c in "!@#$%^&*+~" for c in value))


def _kind_of_key(key: str) -> str:
    """Return the kind of secret that a JSON key announces, or an empty string."""
    lowered = key.lower()
    for word, kind in hints.WORDS:
        at = lowered.rfind(word)
        if at < 0 or len(lowered) != len(key):
            continue
        suffix = lowered[at + len(word) :].strip("_-")
        if suffix in _SUFFIXES and _names_a_secret(key, at, word, _name_before(lowered, at)):
            return kind
    return ""


def _is_reference(value: str) -> bool:
    """Tell whether the value only says where the secret is, or that one belongs there."""
    if value[:1] in "<" or value.startswith(
        ("${", "$(", "{{", "%(", "#{", "[REDACTED", "...", "…")
    ):
        return True
    lowered = value.lower()
    if not lowered.strip("x*._-•#?"):
        return True
    if any(word in lowered for word in _PLACEHOLDERS) and not _looks_made(value):
        return True
    pattern = (
        r"\$\w+$|%\w+%$|[:@]\w+$|%[sdv]$|\?$|![A-Za-z]+$|[&*][A-Za-z_]\w*$|\{[\w.$ ]*\}$"
        r"|process\.env|os\.environ|env\.|import\.meta|secrets\.|vars\."
    )
    return re.match(pattern, value) is not None


def _looks_made(value: str) -> bool:
    """Tell whether a long value is a generated one, though a word seems to stand in it."""
    return (
        len(value) >= 30
        and any(c.isdigit() for c in value)
        and any(c.islower() for c in value)
        and any(c.isupper() for c in value)
        and "xxxx" not in value.lower()
    )


_PLACEHOLDERS = (
    "your", "xxxx", "****", "placeholder", "example", "replace", "change-me", "changeme",
    "insert", "${", "{{", "dummy", "redacted", "_here", "-here", "……",
)  # fmt: skip


def _is_secret(value: str, kind: str, style: str, *, ends: bool = False) -> bool:
    """Judge a value by what it looks like, how it is written and what its name promised."""
    lowered = value.lower()
    if not value or lowered in _PLAIN or _is_reference(value):
        return False
    has_digit = any(c.isdigit() for c in value)
    if style == _QUOTED:
        return _is_secret_string(value, kind, has_digit)
    if style == _ENV:
        return _is_secret_setting(value, kind, has_digit)
    if _looks_like_code(value):
        return False
    if kind in "PC":
        if has_digit and value.isdigit():
            return len(value) >= 4
        if has_digit and _is_name_of_secret(lowered):
            return False
        marks = any(c in "!@#$%^&*+~=" for c in value) and len(value) >= 4
        return len(value) >= 4 and (has_digit or marks or (ends and _is_word(value)))
    least = 8 if kind == "S" else 12
    if kind == "S" and ends and len(value) >= 16 and value.isalnum():
        return True
    return (
        len(value) >= least
        and has_digit
        and any(c.isalpha() for c in value)
        and not _is_name_of_secret(lowered)
        and not _is_date_or_path(value)
    )


def _is_word(value: str) -> bool:
    """A bare lower-case word at the end of its line can be a password, if it is no usual one."""
    return value.isalpha() and len(value) >= 6 and not value.endswith(("ed", "ing", "able", "en"))


def _is_secret_string(value: str, kind: str, has_digit: bool) -> bool:
    if kind in "PC":
        if any(c.isspace() for c in value):
            words = value.split()
            odd = any(_mixes(word, 4) for word in words)
            return (odd or (len(words) >= 4 and value.islower())) and not _is_sentence(value)
        return len(value) >= 3 and not value.startswith(("/", "#", "./")) and not _is_label(value)
    if any(c.isspace() for c in value) or _is_date_or_path(value) or _is_label(value):
        return False
    if kind == "S":
        return len(value) >= 6
    return len(value) >= 16 or (len(value) >= 8 and has_digit)


def _is_sentence(value: str) -> bool:
    """Tell whether several words speak of a password rather than are one."""
    lowered = f" {value.lower()} "
    return any(word in lowered for word in _SENTENCE)


_SENTENCE = (
    "pass", "your", " must ", "please", " the ", " is ", " are ", "enter", " for ", " and ", " not ",
    " with ", " when ", " to ", " of ", "character",
)  # fmt: skip


def _is_label(value: str) -> bool:
    """Tell whether the string is a name of the secret: "new_password", "auth.token", "apiKey"."""
    if _is_name_of_secret(value.lower()):
        return not any(c.isdigit() for c in value)
    return re.match(r"[A-Z][A-Z]*(?:_[A-Z]+)+$|[a-z]+(?:\.[a-z]+)+$", value) is not None


def _is_name_of_secret(lowered: str) -> bool:
    return any(
        word in lowered
        for word in (
            "password",
            "passwd",
            "token",
            "secret",
            "passwort",
            "pwd",
            "api_key",
            "apikey",
        )
    )


def _is_secret_setting(value: str, kind: str, has_digit: bool) -> bool:
    if value.startswith(("$", "(", "[", "{")) or _is_date_or_path(value):
        return False
    if re.match(r"[A-Za-z_][\w.]*[(\[]", value):
        return False
    if kind in "PC":
        return len(value) >= 3
    return len(value) >= (6 if kind == "S" else 8) and not value.isdigit()


def _is_date_or_path(value: str) -> bool:
    if value.startswith(("/", "./", "../", "~/", "http://", "https://", "file:")):
        return True
    return "://" in value or re.match(r"\d{4}-\d\d-\d\d|v?\d+(?:\.\d+)+$", value) is not None


def _looks_like_code(value: str) -> bool:
    """Tell whether a bare value is a call, an index, a dotted name or an operator."""
    if value[:1] in "([{<=>|&+-/$@" or _is_date_or_path(value):
        return True
    if re.match(r"[A-Za-z_&][\w.?:]*[(\[{<]", value):
        return True
    return (
        re.match(r"[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+$|[A-Za-z]+(?:_[A-Za-z]+)+\d?$", value)
        is not None
    )


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


def _commands(text: str, lowered: str) -> Iterator[Span]:
    """Command lines that take a password by a letter, not by a word."""
    for command, pattern in _COMMANDS:
        for at in _positions(lowered, command) if command in lowered else ():
            newline = text.find("\n", at, at + 400)
            stop = min(len(text), at + 400) if newline < 0 else newline
            match = re.compile(pattern).search(text, at + len(command) - 1, stop)
            if match and _is_secret(match[1].rstrip("`,;)"), "P", _ENV):
                yield match.start(1), match.start(1) + len(match[1].rstrip("`,;)")), "password"


def _seed_phrases(text: str, lowered: str) -> Iterator[Span]:
    for word in ("seed phrase", "mnemonic", "recovery phrase"):
        for at in _positions(lowered, word) if word in lowered else ():
            pattern = re.compile(
                r"[^a-z\n]{0,3}(?:is|=|:)?[\s:=\"'`]{1,4}((?:[a-z]{3,8} ){11,23}[a-z]{3,8})\b"
            )
            match = pattern.match(text, at + len(word))
            if match:
                yield match.start(1), match.end(1), "seed-phrase"


def _numbers(text: str, _lowered: str) -> Iterator[Span]:
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
    return before not in ("-", "_", ".") and _starts_word(text, start)


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


def _random_words(text: str, _lowered: str) -> Iterator[Span]:
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


_FAMILIES: tuple[Family, ...] = (
    _pem,
    _tokens,
    _url_logins,
    _headers,
    _commands,
    _assigned,
    _seed_phrases,
    _numbers,
    _random_words,
)
