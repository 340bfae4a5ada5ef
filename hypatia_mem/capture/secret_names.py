"""Secrets that a name gives away: ``password = ...``, ``--token ...``, "the key is ...".

When in doubt between a secret and a name in code, quoted values and values with a digit or a
mark in them count as secrets; bare words and references do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from hypatia_mem.capture import hints
from hypatia_mem.capture.spans import Family, Later, Span, View, has_digit, later, places

__all__ = [
    "ASSIGNED",
    "BARE",
    "ENV",
    "LABELS",
    "QUOTED",
    "is_name_of_secret",
    "is_reference",
    "is_secret",
    "kind_of_key",
]

QUOTED, BARE, ENV, _SAID = "quoted", "bare", "env", "said"
LABELS = {"P": "password", "C": "password", "S": "secret", "T": "token"}
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


def assigned(view: View) -> Iterator[Span]:
    """Values after a name of a secret: ``=``, ``:``, a flag, "is", a call, a table cell."""
    text, lowered, is_odd = view.text, view.lowered, view.is_odd()
    for word, kind in view.among(hints.WORDS):
        last = 0
        for at in places(lowered, word, None if is_odd else _gate(word, kind)):
            span = _value_after(text, lowered, at, at + len(word), kind) if at >= last else None
            if span:
                last = span[1]
                yield span


ASSIGNED: Family = (assigned, lambda view: view.among(hints.WORDS))


def _value_after(text: str, lowered: str, at: int, end: int, kind: str) -> Span | None:
    word = lowered[at:end]
    match = _NAME_END().match(text, end)
    place = match.end() if match else end
    if place > end and kind != "C" and text[end:place].strip("_-").lower() not in _SUFFIXES:
        return None
    prefix = _name_before(lowered, at)
    if not _names_a_secret(text, at, word, prefix):
        return None
    label = LABELS[kind]
    if (prefix.startswith("-") and word != "auth") or prefix == "-":
        span = _flag_value(text, place, kind)
        if span:
            return (*span, label)
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


# What of the above can be told of the text in lower case, without a look at the value: of ten
# thousand times "the token" or "author" nothing is left.
_NAME_ENDS = r"[A-Za-z0-9_-]{0,32}"
_NAME_END = later(_NAME_ENDS)
_OPERATORS = r"""[ \t"'`\])*?!\\]{0,8}(=>|:=|->|={1,3}|!==?|value=|[:：＝|>,(])[ \t*]{0,12}(\n?[ \t*]{0,12})"""
_IS = r"[ \t]{1,3}(?:is|ist|est|es)[ \t:]{1,3}"
_GAP = r"[ \t]{1,3}(?:(?:->|[-–—→(])[ \t]{0,2})?"
_SAID_VERB = r"(?:is|was|ist|lautet|war|est|es|era|é)"
_VERBS = (
    rf"(?:[ \t]{{1,3}}[^\s.,;:=]{{1,24}}){{0,4}}?[ \t*`\"']{{1,3}}{_SAID_VERB}"
    r"(?:[ \t]{1,3}(?:now|jetzt|set to|changed to|maintenant|ahora)){0,1}[ \t:]{1,3}"
)
# Where that can match: a verb behind so many words, or a quote or a star so near that it may be
# what the verb stands behind.
_NEAR_VERBS = (
    rf"(?:[ \t]{{1,3}}+[^\s.,;:=]{{1,24}}+){{0,4}}?[ \t]{{1,3}}{_SAID_VERB}[ \t:]"
    r"|(?=[ \t*`\"'])[^\n.,;:=*`\"']{0,120}+[*`\"']"
)
_SCRIPT_VERBS = r"[ \t]{0,2}[一-鿿ぁ-んァ-ヶ]{0,6}?(?:是|为|為|は|が|改成|改为|を)?[ \t]{0,2}"
_OPENING = r"""["'`“‘«「『]"""
_TELLING = {
    "S": _IS,
    "T": _IS,
    "C": rf"{_SCRIPT_VERBS}(?:{_OPENING}|[!-~]{{4}})",
    # "password hunter2": a digit or a mark in the next word.
    "P": rf"{_NEAR_VERBS}|{_GAP}(?:{_OPENING}|[^\s\"'`<>,;&|）。，、；]{{0,1000}}?[^a-z\s\"'`<>,;&|_.:/?()-])",
}


@cache
def _gate(word: str, kind: str) -> Later:
    """Return the pattern of a name and what must follow it, or stand before it."""
    name = re.escape(word)
    before = ""
    if kind == "P":  # "... is my password"
        for who in _MINE:
            before += rf"|(?<=[st][ \t]{who}[ \t]{name})|(?<=[st][ \t]{who}[ \t]\n{name})"
    phrase = rf"|{_PHRASES}" if word == "passphrase" else ""
    return later(
        rf"{name}(?=(?>{_NAME_ENDS})(?:{_OPERATORS}|{_TELLING[kind]}{phrase})"
        rf"|(?<=[a-z0-9_.$-]{name})(?>{_NAME_ENDS})[ \t]{{1,4}}[\"']?[^\s\"'|>&-]{before})"
    )


def _phrase(text: str, place: int) -> tuple[int, int] | None:
    """Four words or more to the end of the line: "passphrase: correct horse ..."."""
    match = _PHRASE().match(text, place)
    return match.span(1) if match and not _is_sentence(match[1]) else None


_PHRASES = (
    r"[ \t]{0,2}(?:is|[:=])[ \t]{1,3}((?:[a-z]{3,12}[ -]){3,11}[a-z]{3,12})[.!]?(?=\s*(?:\n|$))"
)
_PHRASE = later(_PHRASES)


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
    match = _FLAG_VALUE().match(text, place)
    if not match or match[2].startswith(("-", "|", ">", "&")):
        return None
    style = QUOTED if match[1] else ENV
    value = match[2].rstrip("`,.;)")
    if is_secret(value, "P" if kind == "P" else kind, style):
        return match.start(2), match.start(2) + len(value)
    return None


_FLAG_VALUE = later(r"""[ \t]{1,4}(["']?)([^\s"']{3,200})""")
_CLOSING = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»", "「": "」", "『": "』"}


def _after_operator(
    text: str, lowered: str, place: int, name_at: int, kind: str, quoted_only: bool
) -> tuple[int, int] | None:
    match = _OPERATOR().match(text, place)
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
        typed = _TYPED().match(text, start)
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


_OPERATOR = later(_OPERATORS)
_TYPED = later(r"""[\w.\[\]<>|?& ]{1,40}=[ \t]{0,4}(?=["'])""")


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
        return ENV
    return BARE


def _escaped_value(text: str, start: int, kind: str) -> tuple[int, int] | None:
    quote = text[start : start + 2]
    end = text.find(quote, start + 2, start + 514)
    if end < 0:
        return None
    return (start + 2, end) if is_secret(text[start + 2 : end], kind, QUOTED) else None


def _quoted_value(text: str, start: int, kind: str) -> tuple[int, int] | None:
    closing = _CLOSING[text[start]]
    if text.startswith(closing * 3, start):
        start += 2
    match = _quoted(closing).match(text, start + 1)
    if not match or not match[1]:
        return None
    return match.span(1) if is_secret(match[1], kind, QUOTED) else None


@cache
def _quoted(closing: str) -> re.Pattern[str]:
    return re.compile(rf"((?:[^\\\n{closing}]|\\.){{0,2000}}){closing}?")


def _bare_value(text: str, start: int, kind: str, style: str) -> tuple[int, int] | None:
    match = (_SETTING if style == ENV else _BARE)().match(text, start)
    if not match:
        return None
    value = match[0]
    if style != ENV:
        value = value.rstrip(".:?)]}*_\\")
    else:
        value = value.rstrip(";,.)")
    after = text[start + len(value) : start + len(value) + 2]
    if not value or not is_secret(value, kind, style, ends=_ends_line(after)):
        return None
    return start, start + len(value)


_SETTING = later(r"[^\s\"'`<>]{1,1000}")
_BARE = later(r"[^\s\"'`<>,;&|）。，、；]{1,1000}")


def _ends_line(after: str) -> bool:
    return after.strip(" .,;!。\"'`")[:1] in ("", "\n", "\r") and not after.startswith("  ")


def _after_verb(text: str, place: int, kind: str) -> tuple[int, int] | None:
    """Plain words: "my password is hunter2", "the password for staging is ...", "密码是..."."""
    if kind == "C":
        match = _SCRIPT_VERB().match(text, place)
        start = match.end() if match else place
        if text[start : start + 1] in _CLOSING:
            return _quoted_value(text, start, "P")
        found = _PRINTABLE().match(text, start)
        if found and is_secret(found[0].rstrip(".,;:)"), "P", _SAID, ends=True):
            return start, start + len(found[0].rstrip(".,;:)"))
        return None
    # Only a password is told with so few words between: a token's sentence is about tokens.
    match = (_VERB if kind == "P" else _TOKEN_VERB)().match(text, place)
    start = match.end() if match else place
    if not match:
        gap = _SPACE().match(text, place) if kind == "P" else None
        if not gap:
            return None
        start = gap.end()
    if text[start : start + 1] in _CLOSING:
        quoted = _quoted_value(text, start, kind)
        if quoted and (match or is_secret(text[slice(*quoted)], kind, _SAID)):
            return quoted
        return None
    mine = match is not None and len(match[0].split()) == 1
    value = _bare_value(text, start, kind, _SAID if mine else BARE)
    if value and (mine or _mixes(text[slice(*value)])):
        return value
    return None


_VERB, _TOKEN_VERB, _SCRIPT_VERB = later(_VERBS), later(_IS), later(_SCRIPT_VERBS)
_SPACE, _PRINTABLE = later(_GAP), later(r"[!-~]{4,200}")
_MINE = ("my", "our", "the", "mein", "das", "mon", "mi")


def _before_verb(text: str, lowered: str, at: int, kind: str) -> tuple[int, int] | None:
    """Look at the other order: "hunter2 is my password"."""
    if kind != "P":
        return None
    behind = lowered[max(0, at - 130) : at]
    if not behind.removesuffix("\n").endswith(_MINE_ENDS):
        return None
    match = _SAID_FIRST().search(behind)
    if not match or not _mixes(match[1]):
        return None
    start = max(0, at - 130) + match.start(1)
    return start, start + len(match[1])


_MINE_ENDS = tuple(f"{gap}{who}{end}" for who in _MINE for gap in " \t" for end in " \t")
_SAID_FIRST = later(
    rf"""([^\s"'`]{{4,100}})["'`]?[ \t](?:is|ist|est|es)[ \t](?:{"|".join(_MINE)})[ \t]$"""
)


def _mixes(value: str, least: int = 5) -> bool:
    """Tell whether a word of prose has the digits and letters, or marks, of a password."""
    if len(value) < least or value.lower() in _PLAIN or value.isalpha():
        return False
    if not has_digit(value) and not _MARK().search(value):
        return False
    return any(c.isalpha() for c in value)


_MARK = later(r"[!@#$%^&*+~]")
_MARK_OR_SIGN = later(r"[!@#$%^&*+~=]")


def kind_of_key(key: str) -> str:
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


def is_reference(value: str) -> bool:
    """Tell whether the value only says where the secret is, or that one belongs there."""
    if value[:1] in "<" or value.startswith(
        ("${", "$(", "{{", "%(", "#{", "[REDACTED", "...", "…")
    ):
        return True
    lowered = value.lower()
    if not lowered.strip("x*._-•#?") or value in _BEGINNINGS:
        return True
    if any(word in lowered for word in _PLACEHOLDERS) and not _looks_made(value):
        return True
    return value[0] in "$%:@?!&*{poeisv" and _REFERENCE().match(value) is not None


# Of a token whose rest is left out: "sk-ant-...".
_BEGINNINGS = frozenset(prefix.decode() for prefix, *_ in hints.TOKENS)


def _looks_made(value: str) -> bool:
    """Tell whether a long value is a generated one, though a word seems to stand in it."""
    return (
        len(value) >= 30
        and has_digit(value)
        and any(c.islower() for c in value)
        and any(c.isupper() for c in value)
        and "xxxx" not in value.lower()
    )


_PLACEHOLDERS = (
    "your", "xxxx", "****", "placeholder", "example", "replace", "change-me", "changeme",
    "insert", "${", "{{", "dummy", "redacted", "_here", "-here", "……",
)  # fmt: skip
_REFERENCE = later(
    r"\$\w+$|%\w+%$|[:@]\w+$|%[sdv]$|\?$|![A-Za-z]+$|[&*][A-Za-z_]\w*$|\{[\w.$ ]*\}$"
    r"|process\.env|os\.environ|env\.|import\.meta|secrets\.|vars\."
)


def is_secret(value: str, kind: str, style: str, *, ends: bool = False) -> bool:
    """Judge a value by what it looks like, how it is written and what its name promised."""
    lowered = value.lower()
    if not value or lowered in _PLAIN or is_reference(value):
        return False
    if style == QUOTED:
        return _is_secret_string(value, kind)
    if style == ENV:
        return _is_secret_setting(value, kind)
    if _looks_like_code(value):
        return False
    digits = has_digit(value)
    if kind in "PC":
        if len(value) < 4:
            return False
        if digits and value.isdigit():
            return True
        if digits and is_name_of_secret(lowered):
            return False
        return digits or bool(_MARK_OR_SIGN().search(value)) or (ends and _is_word(value))
    least = 8 if kind == "S" else 12
    if kind == "S" and ends and len(value) >= 16 and value.isalnum():
        return True
    return (
        len(value) >= least
        and digits
        and any(c.isalpha() for c in value)
        and not is_name_of_secret(lowered)
        and not _is_date_or_path(value)
    )


def _is_word(value: str) -> bool:
    """A bare lower-case word at the end of its line can be a password, if it is no usual one."""
    return value.isalpha() and len(value) >= 6 and not value.endswith(("ed", "ing", "able", "en"))


def _is_secret_string(value: str, kind: str) -> bool:
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
    return len(value) >= 16 or (len(value) >= 8 and has_digit(value))


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
    if is_name_of_secret(value.lower()):
        return not any(c.isdigit() for c in value)
    return _LABEL().match(value) is not None


_LABEL = later(r"[A-Z][A-Z]*(?:_[A-Z]+)+$|[a-z]+(?:\.[a-z]+)+$")


def is_name_of_secret(lowered: str) -> bool:
    """Tell whether a name, in lower case, is one that secrets have."""
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


def _is_secret_setting(value: str, kind: str) -> bool:
    if value.startswith(("$", "(", "[", "{")) or _is_date_or_path(value):
        return False
    if _CALL().match(value):
        return False
    if kind in "PC":
        return len(value) >= 3
    return len(value) >= (6 if kind == "S" else 8) and not value.isdigit()


_CALL = later(r"[A-Za-z_][\w.]*[(\[]")


def _is_date_or_path(value: str) -> bool:
    if value.startswith(("/", "./", "../", "~/", "http://", "https://", "file:")):
        return True
    return "://" in value or _DATE_OR_VERSION().match(value) is not None


_DATE_OR_VERSION = later(r"\d{4}-\d\d-\d\d|v?\d+(?:\.\d+)+$")


def _looks_like_code(value: str) -> bool:
    """Tell whether a bare value is a call, an index, a dotted name or an operator."""
    if value[:1] in "([{<=>|&+-/$@" or _is_date_or_path(value):
        return True
    return _CODE().match(value) is not None


_CODE = later(
    r"[A-Za-z_&][\w.?:]*[(\[{<]|[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+$|[A-Za-z]+(?:_[A-Za-z]+)+\d?$"
)
