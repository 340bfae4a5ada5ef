"""Decides, without reading the event, whether a secret or a request may be in it.

The hook asks this module before anything else may be imported. It works on the raw bytes of the
hook's input and uses only operations that run at C speed (``in``, ``find``, ``translate``,
``split``): no regular expressions, no JSON, and no import unless the text is a large one (``large``).

The guarantee is one-sided. When :func:`may_hold_secret` answers False, the redactor would not
have changed anything; when it answers True the redactor looks closely. The tables are shared
with :mod:`hypatia_mem.capture.redact`, so that neither side can know a kind the other does not.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["looks_random", "may_be_request", "may_hold_secret"]

_LOWER = b"abcdefghijklmnopqrstuvwxyz"
_UPPER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGIT = b"0123456789"
_ALNUM = _LOWER + _UPPER + _DIGIT

ALPHABETS = {
    "a": _ALNUM,
    "d": _ALNUM + b"_-",
    "x": b"0123456789abcdef",
    "u": _UPPER + _DIGIT,
    "w": _ALNUM + b"_-+/=.~%:$,&?",
}

# (prefix, kind, alphabet of what follows, how many characters of it must follow).
TOKENS = (
    (b"sk-ant-", "anthropic-key", "d", 16), (b"sk-proj-", "openai-key", "d", 16),
    (b"sk-svcacct-", "openai-key", "d", 16), (b"sk-admin-", "openai-key", "d", 16),
    (b"sk-or-v1-", "openrouter-key", "d", 16), (b"sk-lf-", "langfuse-key", "d", 16),
    (b"sk-", "openai-key", "a", 20), (b"gsk_", "groq-key", "a", 20), (b"xai-", "xai-key", "a", 20),
    (b"pplx-", "perplexity-key", "a", 20), (b"r8_", "replicate-token", "a", 30),
    (b"pcsk_", "pinecone-key", "d", 20), (b"lsv2_", "langsmith-key", "d", 20),
    (b"nvapi-", "nvidia-key", "d", 20), (b"ghp_", "github-token", "a", 20),
    (b"gho_", "github-token", "a", 20), (b"ghu_", "github-token", "a", 20),
    (b"ghs_", "github-token", "a", 20), (b"ghr_", "github-token", "a", 20),
    (b"github_pat_", "github-token", "d", 20), (b"glpat-", "gitlab-token", "d", 16),
    (b"gldt-", "gitlab-token", "d", 16), (b"glrt-", "gitlab-token", "d", 16),
    (b"glcbt-", "gitlab-token", "d", 16), (b"glptt-", "gitlab-token", "d", 16),
    (b"glft-", "gitlab-token", "d", 16), (b"glimt-", "gitlab-token", "d", 16),
    (b"glagent-", "gitlab-token", "d", 16), (b"gloas-", "gitlab-token", "d", 16),
    (b"glsoat-", "gitlab-token", "d", 16), (b"ATBB", "bitbucket-token", "a", 24),
    (b"ATATT3", "atlassian-token", "w", 24), (b"CCIPAT_", "circleci-token", "d", 20),
    (b"xoxb-", "slack-token", "d", 12), (b"xoxp-", "slack-token", "d", 12),
    (b"xoxa-", "slack-token", "d", 12), (b"xoxr-", "slack-token", "d", 12),
    (b"xoxs-", "slack-token", "d", 12), (b"xoxc-", "slack-token", "d", 12),
    (b"xoxd-", "slack-token", "w", 12), (b"xoxe.", "slack-token", "w", 12),
    (b"xoxe-", "slack-token", "d", 12), (b"xapp-", "slack-token", "d", 12),
    (b"hooks.slack.com/services/", "slack-webhook", "w", 12),
    (b"hooks.slack.com/workflows/", "slack-webhook", "w", 12),
    (b"hooks.slack.com/triggers/", "slack-webhook", "w", 12),
    (b"discord.com/api/webhooks/", "discord-webhook", "w", 12),
    (b"discordapp.com/api/webhooks/", "discord-webhook", "w", 12),
    (b"webhook.office.com/webhookb2/", "teams-webhook", "w", 12),
    (b"hooks.zapier.com/hooks/catch/", "zapier-webhook", "w", 8), (b"AKIA", "aws-key", "u", 16),
    (b"ASIA", "aws-key", "u", 16), (b"ABIA", "aws-key", "u", 16), (b"ACCA", "aws-key", "u", 16),
    (b"ABSKQmVkcm9ja0FQSUtleS", "aws-key", "w", 20), (b"AIza", "google-key", "d", 30),
    (b"ya29.", "google-token", "w", 16), (b"GOCSPX-", "google-secret", "d", 16),
    (b"1//0", "google-token", "d", 30), (b"AccountKey=", "azure-key", "w", 20),
    (b"SharedAccessKey=", "azure-key", "w", 20), (b"sk_live_", "stripe-key", "a", 10),
    (b"sk_test_", "stripe-key", "a", 10), (b"rk_live_", "stripe-key", "a", 10),
    (b"rk_test_", "stripe-key", "a", 10), (b"whsec_", "webhook-secret", "w", 16),
    (b"SK", "twilio-key", "x", 32), (b"AC", "twilio-sid", "x", 32),
    (b"SG.", "sendgrid-key", "d", 16), (b"key-", "mailgun-key", "x", 32),
    (b"xkeysib-", "brevo-key", "d", 32), (b"xsmtpsib-", "brevo-key", "d", 32),
    (b"npm_", "npm-token", "a", 30), (b"pypi-", "pypi-token", "d", 40),
    (b"rubygems_", "rubygems-token", "a", 32), (b"CLOJARS_", "clojars-token", "a", 32),
    (b"dckr_pat_", "docker-token", "d", 16), (b"dckr_oat_", "docker-token", "d", 16),
    (b"hf_", "huggingface-token", "a", 24), (b"api_org_", "huggingface-token", "a", 24),
    (b"dop_v1_", "digitalocean-token", "a", 32), (b"doo_v1_", "digitalocean-token", "a", 32),
    (b"dor_v1_", "digitalocean-token", "a", 32), (b"HRKU-", "heroku-key", "d", 30),
    (b"shpat_", "shopify-token", "a", 24), (b"shpca_", "shopify-token", "a", 24),
    (b"shppa_", "shopify-token", "a", 24), (b"shpss_", "shopify-token", "a", 24),
    (b"sq0atp-", "square-token", "d", 20), (b"sq0csp-", "square-token", "d", 20),
    (b"EAAAE", "square-token", "d", 50), (b"lin_api_", "linear-key", "a", 20),
    (b"lin_oauth_", "linear-key", "a", 20), (b"secret_", "notion-token", "a", 40),
    (b"ntn_", "notion-token", "a", 30), (b"figd_", "figma-token", "d", 20),
    (b"figo_", "figma-token", "d", 20), (b"dapi", "databricks-token", "x", 32),
    (b"hvs.", "vault-token", "d", 20), (b"hvb.", "vault-token", "d", 20),
    (b"hvr.", "vault-token", "d", 20), (b".atlasv1.", "terraform-token", "d", 40),
    (b"sntrys_", "sentry-token", "w", 20), (b"sntryu_", "sentry-token", "a", 20),
    (b"glsa_", "grafana-token", "d", 24), (b"glc_", "grafana-token", "w", 32),
    (b"NRAK-", "newrelic-key", "a", 20), (b"NRJS-", "newrelic-key", "a", 16),
    (b"NRII-", "newrelic-key", "d", 20), (b"dp.pt.", "doppler-token", "a", 24),
    (b"dp.st.", "doppler-token", "w", 24), (b"dp.ct.", "doppler-token", "a", 24),
    (b"dp.sa.", "doppler-token", "a", 24), (b"dp.scim.", "doppler-token", "a", 24),
    (b"dp.audit.", "doppler-token", "a", 24), (b"FlyV1 ", "fly-token", "w", 16),
    (b"fo1_", "fly-token", "d", 30), (b"fm1r_", "fly-token", "w", 30),
    (b"fm2_", "fly-token", "w", 30), (b"sbp_", "supabase-token", "a", 32),
    (b"sb_secret_", "supabase-token", "d", 16), (b"pscale_tkn_", "planetscale-token", "w", 16),
    (b"pscale_pw_", "planetscale-token", "w", 16), (b"pscale_oauth_", "planetscale-token", "w", 16),
    (b"PMAK-", "postman-key", "d", 24), (b"AGE-SECRET-KEY-1", "age-key", "u", 30),
    (b"LTAI", "alibaba-key", "a", 20), (b"AKIDz", "tencent-key", "a", 28),
    (b"dt0c01.", "dynatrace-token", "w", 24), (b"EZAK", "easypost-key", "a", 50),
    (b"EZTK", "easypost-key", "a", 50), (b"FLWSECK", "flutterwave-key", "d", 14),
    (b"CFPAT-", "contentful-token", "d", 30), (b"pul-", "pulumi-token", "x", 40),
    (b"pnu_", "prefect-key", "a", 32), (b"rdme_", "readme-key", "a", 40),
    (b"shippo_live_", "shippo-key", "x", 32), (b"tskey-", "tailscale-key", "d", 16),
    (b"nfp_", "netlify-token", "a", 32), (b"rnd_", "render-key", "a", 24),
    (b"napi_", "neon-key", "a", 40), (b"bkua_", "buildkite-token", "x", 32),
    (b"AKCp", "artifactory-key", "a", 40), (b"ddp_", "deno-token", "a", 30),
    (b"re_", "resend-key", "a", 20), (b"sk_", "elevenlabs-key", "x", 40),
    (b"PRIVATE KEY-----", "pem", "", 0), (b"PRIVATE KEY BLOCK-----", "pem", "", 0),
    (b"Private-Lines:", "pem", "", 0), (b"eyJ", "jwt", "d", 10),
    (b"$2a$", "password-hash", "w", 20), (b"$2b$", "password-hash", "w", 20),
    (b"$2y$", "password-hash", "w", 20), (b"$argon2", "password-hash", "w", 20),
    (b"$6$", "password-hash", "w", 20), (b"$5$", "password-hash", "w", 20),
)  # fmt: skip

# Words that name a secret: P a password, S a secret or key, T a token (only a value that looks
# like one counts), C the same as P in a script without spaces.
WORDS = (
    ("password", "P"), ("passwd", "P"), ("passwort", "P"), ("passphrase", "P"), ("passcode", "P"),
    ("pw", "P"), ("pwd", "P"), ("kennwort", "P"), ("mot de passe", "P"), ("contraseña", "P"),
    ("senha", "P"), ("пароль", "P"), ("密码", "C"), ("密碼", "C"), ("口令", "C"), ("パスワード", "C"),
    ("비밀번호", "C"), ("secret", "S"), ("credential", "S"), ("key", "S"), ("token", "T"),
    ("pass", "P"), ("auth", "T"), ("signature", "T"), ("sig", "T"), ("sessid", "T"),
    ("sessionid", "T"), ("connect.sid", "T"),
)  # fmt: skip
# "key" alone is a word of every day; with one of these before it, it names a secret.
KEY_QUALIFIERS = (
    "api", "access", "secret", "private", "auth", "encryption", "signing", "master", "account",
    "shared", "service", "admin", "app", "client", "session", "license", "webhook", "deploy",
    "storage", "subscription", "root", "hmac", "aes", "jwt", "openai", "anthropic", "stripe",
    "gemini", "datadog", "sendgrid", "twilio", "mailgun", "algolia", "supabase",
)  # fmt: skip
_WORDS_BYTES = tuple((word.encode(), kind) for word, kind in WORDS if word != "key")
_ASCII_WORDS = tuple(row for row in _WORDS_BYTES if row[0].isascii())
_QUALIFIERS_BYTES = tuple(word.encode() for word in KEY_QUALIFIERS)

_IDENTIFIER = _LOWER + _DIGIT + b"_-."
_CLOSERS = b" \t\"'`\\])*?!>"
_OPERATORS = (b"=", b":", b"|", b"->", b"value=", "：".encode(), "＝".encode())
_VERBS = (b"is", b"was", b"ist", b"lautet", b"war", b"est", b"es", b"era", "é".encode())
_CJK_VERBS = ("是".encode(), "为".encode(), "為".encode(), "は".encode(), "が".encode())
# Plain markers, in lower case: each is rare, and what follows is the redactor's to judge.
_MARKERS = (
    b"<private", b"bearer ", b"authorization", b"cookie", b"sshpass", b"redis-cli", b"mysql",
    b"mariadb", b"requirepass", b"identified by", b"seed phrase", b"mnemonic", b"passin",
    b"recovery phrase", b"with password", b"machine ", b"login -", b"passout", b"ldapsearch", b"htpasswd", b"smbclient",
)  # fmt: skip
MANY = 256  # more candidates than this are the redactor's business
LARGE = 1 << 14  # bytes; in a larger text many literals are sought together


def looks_random(word: str) -> bool:
    """Tell whether an ASCII word has the texture of a generated token.

    Three classes of characters that change place more often than in any name a person would
    give, 24 characters or more. Hexadecimal digests, UUIDs and identifiers do not.
    """
    if len(word) < 24 or word.startswith(_KNOWN_STARTS) or not word.translate(_NOT_HEX):
        return False
    return is_texture(word)


def is_texture(word: str) -> bool:
    """Tell whether 22 or more letters and digits change class as often as chance would have it."""
    return len(word.translate(_CLASSES)) >= 22 and changes_often(word)


def changes_often(word: str) -> bool:
    """Tell whether small letters, capitals and digits take turns as chance would have it."""
    texture = word.translate(_CLASSES)
    if "0" not in texture or "a" not in texture or "A" not in texture:
        return False
    # A single digit is what a name in camelCase may have: "convertOldToNewFormatV2Data".
    least = 0.4 if texture.count("0") > 1 else 0.55
    return sum(map(texture.count, _CHANGES)) >= least * len(texture)


def may_hold_secret(data: bytes) -> bool:
    """Return False only if the redactor would leave the event's text as it is."""
    # No encoder writes NUL into JSON, or ASCII letters as \\u escapes, unless it hides something.
    if b"\0" in data or _has_escaped_ascii(data):
        return True
    # A tab stands between words like a space, but JSON writes it as two characters; and those two
    # may be the end of a path and the beginning of a name, so both readings are looked at. So are
    # a terminal's colours, whose last letter runs into the word behind them.
    if _shows_secret(data) or (b"\\t" in data and _shows_secret(data.replace(b"\\t", b" "))):
        return True
    plain = _without_codes(data)
    return plain is not data and _shows_secret(plain.replace(b"\\t", b" "))


def _without_codes(data: bytes) -> bytes:
    """Return the data without a terminal's colour codes; itself when there are none."""
    if b"[" not in data:
        return data
    for mark in _CODE_MARKS:
        if mark in data:
            first, *rest = data.split(mark)
            data = first + b"".join(piece.lstrip(b"0123456789;:?")[1:] for piece in rest)
    return data


def _shows_secret(data: bytes) -> bool:
    lowered = data.lower()
    words = _words_of(data)
    return (
        _has_token(data, words)
        or _has_marker(lowered, words and words.lower())
        or _names_secret(lowered, words and words.lower())
        or _has_url_login(data)
        or _has_number(data)
        or _has_random_word(data)
    )


def may_be_request(data: bytes) -> bool:
    """Tell whether a word of remembering or forgetting, in any of our languages, is there."""
    lowered = data.lower()
    if b"\\u" in lowered and any(word in lowered for word in _escaped(_REQUEST_WORDS)):
        return True
    words = _words_of(lowered)
    # Some are said too often to count anywhere but at the very start of a prompt.
    asked = _ASCII_REQUEST_WORDS if lowered.isascii() else _REQUEST_WORDS
    return any(word in lowered for word in _said(asked, words)) or any(
        word in piece[:60] for piece in lowered.split(b'"prompt":')[1:] for word in _FIRST_WORDS
    )


_REQUEST_WORDS = tuple(
    word.encode()
    for word in (
        "remember", "memori", " memory", "make a note", "take a note", "mental note", "forget",
        "keep in mind", "bear in mind", "future reference", "for later", "in future", "in the future",
        "future session", "next time", "next session", "note to self", "save this", "keep this",
        "note this", "a rule", "new rule", "rule for", "house rule", "project rule", "standing rule", "you know about",
        "whenever ", "every time ", "始终", "始終", "二度と", "次回から", "常に", "für die zukunft",
        "nächste mal", "gedächtnis", "dir merken", "denk dran", "note que", "note qu", "notez que",
        "l'avenir", "l\u2019avenir", " partir d", "apunta", "en el futuro", "a partir de hoy", "sesiones", "no vuelvas",
        "unlearn", "from now on", "from here on", "going forward", "henceforth",
        "记住", "記住", "记下", "記下", "记得", "記得", "记一下", "記一下", "再记", "再記", "从现在", "從現在", "从今", "今后", "以后", "忘",
        "记忆", "覚え", "おぼえ", "記憶", "メモ", "忘れ", "わすれ", "今後", "これから",
        "merk dir", "merke dir", "merkt euch", "merken sie sich", "erinnere dich", "denk daran",
        "denke daran", "denke dran", "behalte im", "behalt im", "notier", "erinnerung", "vergiss", "vergesst", "vergessen", "ab jetzt", "ab sofort",
        "ab heute", "von jetzt an", "von nun an", "künftig", "in zukunft",
        "souviens-toi", "souvenez-vous", "rappelle-toi", "rappelez-vous", "retiens", "retenez",
        "émorise", "oublie", "ésormais", "orénavant", " partir de maintenant",
        "en mémoire", "ta mémoire", "la mémoire", "votre mémoire", "en cuenta", "recuerd", "acuérdate", "olvid", "olvíd", "a partir de ahora", "de ahora en adelante",
        "desde ahora",
    )
)  # fmt: skip


_ASCII_REQUEST_WORDS = tuple(word for word in _REQUEST_WORDS if word.isascii())
_FIRST_WORDS = tuple(
    word.encode()
    for word in (
        "always ", "never ", "t ever ", "not ever ", "不要", "絶対に", "nie ", "niemals ", "jamais",
        "nunca ", "siempre ", " immer ", " toujours ",
    )
)  # fmt: skip


def _table(source: bytes, target: bytes) -> bytes:
    """Return a ``bytes.translate`` table that maps every byte of ``source`` to ``target``."""
    return bytes.maketrans(source, target * len(source))


SHAPE = _table(_DIGIT, b"0")
CARD_MARKS = (b"0000-0000-0000-", b"0000 0000 0000 ", b"0000 000000 ", b"0000-000000-", b"0" * 14)
IBAN_SHAPE = bytes.maketrans(_UPPER + _DIGIT, b"A" * 26 + b"0" * 10)
_ESCAPES = (b"\\n", b"\\t", b"\\r", b"\\f", b"\\b")  # of JSON, of what stands between words
_CODE_MARKS = (  # ECMA-48's CSI as JSON writes it, and as programs and logs spell it
    b"\\u001b[", b"\\u001B[", b"\\\\x1b[", b"\\\\x1B[", b"\\\\033[", b"\\\\33[", b"\\\\e[", b"\\\\E[",
    b"^[[", b"\x1b[",
)  # fmt: skip
_NOT_URL = _table(b" \t\r\n\"'`\\<>", b" ")
_WORD = _ALNUM + b"_-+/~."
_WORD_SHAPE = bytearray(b" " * 256)
for _byte in _WORD:
    _WORD_SHAPE[_byte] = ord("w")
_LONG = b"w" * 24
_CLASSES = {
    **dict.fromkeys(_LOWER, "a"),
    **dict.fromkeys(_UPPER, "A"),
    **dict.fromkeys(_DIGIT, "0"),
    **dict.fromkeys(b"_-+/~.=", None),
}
_NOT_HEX = dict.fromkeys(b"0123456789abcdefABCDEFx-_./")
_CHANGES = ("aA", "Aa", "a0", "0a", "A0", "0A")
# Names of things, digests and images: random to look at, and no secret.
_KNOWN_STARTS = (
    "toolu_", "msg_", "req_", "call_", "chatcmpl-", "resp_", "price_", "prod_", "cus_", "evt_",
    "acct_", "pi_", "cs_", "asst_", "thread_", "run_", "file-", "agent-", "pk_live_", "pk_test_",
    "sha1-", "sha256-", "sha384-", "sha512-", "AAAAB3Nza", "AAAAC3Nza", "AAAAE2Vj", "AAAAGnNr",
    "iVBOR", "R0lGOD", "/9j/", "UklGR", "PHN2Z", "PD94b", "Qk0", "AAABAA",
)  # fmt: skip


def _escaped(words: tuple[bytes, ...]) -> list[bytes]:
    r"""Return the non-ASCII words as JSON's ``\uXXXX`` escapes, in lower case."""
    texts = [word.decode() for word in words]
    return [
        "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in text).encode()
        for text in texts
        if not text.isascii()
    ]


def _has_escaped_ascii(data: bytes) -> bool:
    if b"\\u" not in data:
        return False
    if any(b"\\u00" + high in data for high in (b"2", b"3", b"4", b"5", b"6", b"7")):
        return True
    lowered = data.lower()
    return any(word in lowered for word in _escaped(tuple(word for word, _ in _WORDS_BYTES)))


def _hits(data: bytes, needle: bytes) -> Iterator[int]:
    at = data.find(needle)
    while at >= 0:
        yield at
        at = data.find(needle, at + 1)


def _words_of(data: bytes) -> bytes | None:
    """Return the different words of a large text (of prose and logs that is little), else None."""
    return None if len(data) < LARGE else b" ".join(set(data.split()))


def _said(literals: Sequence[bytes], words: bytes | None) -> Sequence[bytes]:
    if words is None:
        return literals
    from hypatia_mem.capture.large import said

    return said(literals, words)


def _tokens_in(words: bytes | None) -> Iterable[tuple[bytes, str, str, int]]:
    if words is None:
        return TOKENS
    from hypatia_mem.capture.large import tokens_in

    return tokens_in(TOKENS, words)


def _has_token(data: bytes, words: bytes | None = None) -> bool:
    for prefix, _, alphabet, count in _tokens_in(words):
        if prefix not in data:
            continue
        if not count:
            return True
        allowed = ALPHABETS[alphabet]
        for number, at in enumerate(_hits(data, prefix)):
            if number > 16 * MANY:
                return True
            start = at + len(prefix)
            body = data[start : start + count]
            if len(body) == count and not body.translate(None, allowed):
                return True
            if _is_broken(body, allowed) and (len(prefix) > 5 or _starts_word(data, at)):
                return True
    return _has_odd_token(data)


def _starts_word(data: bytes, at: int) -> bool:
    before = data[at - 1 : at]
    return not before.isalnum() or (data[at - 2 : at - 1] == b"\\" and before in b"nrt")


# What a line or a string ends with, in JSON and in a text of its own.
_BREAKS = (b"\\", b"\n", b"\r", b"'", b'"', b"`")


def _is_broken(body: bytes, allowed: bytes) -> bool:
    """Tell whether a token's letters stop at the end of a line or a string, four or more of them."""
    length = len(body) - len(body.lstrip(allowed))
    return length >= 4 and body[length : length + 1] in _BREAKS


def _has_odd_token(data: bytes) -> bool:
    """Look for tokens whose mark stands in their middle or at their end."""
    for at in _hits(data, b":AA"):  # Telegram: digits, a colon, 35 characters
        if data[at - 1 : at].isdigit() and not data[at + 1 : at + 31].translate(
            None, ALPHABETS["d"]
        ):
            return True
    for at in _hits(data, b"-us"):  # Mailchimp: 32 hexadecimal digits, then the data centre
        if data[at + 3 : at + 4].isdigit() and _is_hex(data[max(0, at - 32) : at], 32):
            return True
    # Airtable: "pat", 14 characters, a dot, 64 hexadecimal digits.
    return any(
        data[at + 17 : at + 18] == b"." and _is_hex(data[at + 18 : at + 82], 64)
        for at in _hits(data, b"pat")
    )


def _is_hex(piece: bytes, length: int) -> bool:
    return len(piece) == length and not piece.translate(None, ALPHABETS["x"])


def _has_marker(lowered: bytes, words: bytes | None) -> bool:
    if any(marker in lowered for marker in _said(_MARKERS, words)):
        return True
    if b"mongo" in lowered and (b" -p " in lowered or b"\t-p\t" in lowered):
        return True
    if b"curl" in lowered and any(flag in lowered for flag in (b" -u", b"\t-u", b"--user")):
        return True
    return b"basic " in lowered and any(
        len(piece[:8]) == 8 and not piece[:8].translate(None, _ALNUM + b"+/=")
        for piece in lowered.split(b"basic ")[1:]
    )


def _names_secret(lowered: bytes, words: bytes | None) -> bool:
    rows = _ASCII_WORDS if lowered.isascii() else _WORDS_BYTES
    said = _said([word for word, _ in rows], words)
    for word, kind in rows:
        if word not in said or word not in lowered:
            continue
        for count, at in enumerate(_hits(lowered, word)):
            if count > MANY or _is_assigned(lowered, at, at + len(word), kind):
                return True
    for count, at in enumerate(_hits(lowered, b"key")):
        if count > 16 * MANY:
            return True
        before = lowered[max(0, at - 16) : at].rstrip(b"_-. ")
        plain = before[-1:] in (b"", b"?", b"&", b'"', b"'", b";")
        if (plain or before.endswith(_QUALIFIERS_BYTES)) and (
            count > MANY or _is_assigned(lowered, at, at + 3, "S")
        ):
            return True
    return False


def _is_assigned(lowered: bytes, start: int, end: int, kind: str) -> bool:
    """Tell whether a value may follow the word at ``start``: ``=``, ``:``, "is", a flag, ..."""
    if b"-" in lowered[max(0, start - 24) : start].rsplit(b" ", 1)[-1]:
        return True  # --password X
    rest = lowered[end : end + 160]
    if end - start <= 4 and kind != "C" and rest[:1].isalpha():
        return False  # "pass", "sig", "auth" and "key" only as whole words: not in "bypass..."
    rest = rest.lstrip(_IDENTIFIER).lstrip(_CLOSERS)
    if rest.startswith(_OPERATORS) or b">" in lowered[end : end + 32]:
        return True
    if lowered[start:end] == b"pass" and lowered[start - 1 : start] not in (b"_", b"-"):
        return False  # "all tests pass 3 times" is no secret
    if rest.startswith((b"(", b",")) and kind == "P":
        return True
    if kind == "C":
        return True
    words = rest.split(None, 7)[:7]
    if any(word.strip(b":") in _VERBS for word in words[: 6 if kind == "P" else 2]):
        return True
    if kind != "P":
        return False
    behind = lowered[max(0, start - 16) : start].split()
    if len(behind) > 1 and behind[-2] in _VERBS:  # "... is my password"
        return True
    # "password hunter2": a digit or a mark inside the next word.
    return bool(words) and any(
        word != word.translate(None, _DIGIT) or b"\\n" in word for word in words[:2]
    )


def _has_url_login(data: bytes) -> bool:
    if b"://" not in data or b"@" not in data:
        return False
    for piece in data.split(b"://")[1:]:
        login, at, _ = piece[:400].translate(_NOT_URL).split(b" ", 1)[0].rpartition(b"@")
        if at and (b":" in login or len(login) >= 20):
            return True
    return False


def _has_number(data: bytes) -> bool:
    shape = data.translate(SHAPE)
    for pattern in (b"000-00-0000", *CARD_MARKS[:-1]):
        if pattern in shape and any(_starts_number(data, at) for at in _hits(shape, pattern)):
            return True
    if b"0" * 14 in shape and _has_card(data, shape):
        return True
    return _has_iban(data)


def _starts_number(data: bytes, at: int) -> bool:
    """Tell whether no word, UUID or decimal fraction runs into the digits at ``at``."""
    before = data[max(0, at - 1) : at]
    if before in (b"-", b"_", b"."):
        return False
    # A tab between the cells of a table is written as a backslash and a letter.
    return (
        not before.isalnum()
        or data[max(0, at - 2) : at] in _ESCAPES
        or data[max(0, at - 6) : max(0, at - 4)] == b"\\u"
    )


def _has_card(data: bytes, shape: bytes) -> bool:
    at = shape.find(b"0" * 14)
    count = 0
    while at >= 0:
        escape = data.rfind(b"\\u", max(0, at - 5), at)  # whose digits run into the number's
        at = at if escape < 0 else escape + 6
        run = shape[at : at + 64]
        length = len(run) - len(run.lstrip(b"0"))
        if 14 <= length <= 19 and _starts_number(data, at) and passes_luhn(data[at : at + length]):
            return True
        count += 1
        if count > MANY:
            return True
        at = shape.find(b"0" * 14, at + length)
    return False


def passes_luhn(digits: bytes) -> bool:
    """Tell whether a card number of these digits begins and ends as the issuers' rules say."""
    if digits[:1] not in b"23456":
        return False
    total = 0
    for place, byte in enumerate(reversed(digits)):
        digit = byte - 48
        if place % 2:
            digit = digit * 2 - 9 if digit > 4 else digit * 2
        total += digit
    return total % 10 == 0


def _has_iban(data: bytes) -> bool:
    shape = data.translate(IBAN_SHAPE)
    for count, at in enumerate(_hits(shape, b"AA00")):
        if count > 16 * MANY:
            return True
        body = shape[at : at + 42].replace(b" ", b"")[:15]
        if len(body) == 15 and not body.translate(None, b"A0") and body.count(b"0") >= 8:
            return True
    return False


def _has_random_word(data: bytes) -> bool:
    if b"\\" in data:
        for escape in _ESCAPES:
            data = data.replace(escape, b"  ")
        if b"\\u" in data:
            head, *tail = data.split(b"\\u")
            data = b"  ".join([head, *(piece[4:] for piece in tail)])
    words = data.translate(_WORD_SHAPE)
    at = words.find(_LONG)
    while at >= 0:
        end = words.find(b" ", at)
        end = len(data) if end < 0 else end
        if has_random_part(data[at:end].decode("ascii")):
            return True
        at = words.find(_LONG, end)
    return False


def has_random_part(word: str) -> bool:
    """Tell whether a word, or a part of it between dots, looks random; paths never do."""
    word = word.strip("._-+~")
    if "/" in word:
        if word.startswith(("/", "~")) or "." in word:
            return is_blob(word)
        return looks_random(word) or is_blob(word) or wraps_token(word)
    return any(looks_random(part) for part in word.split(".")) or is_blob(word) or wraps_token(word)


def wraps_token(word: str) -> bool:
    """Tell whether the word is base64 of a line with a token in it."""
    if len(word) > 4096 or "." in word or "_" in word or "-" in word:
        return False
    from binascii import a2b_base64

    try:
        line = a2b_base64(word + "==")
    except ValueError:
        return False
    return line.isascii() and _has_token(line)


def is_blob(word: str) -> bool:
    """Tell whether the word is a large piece of base64: an image, a file."""
    return len(word) >= 4096 and len(set(word[:2048])) > 24
