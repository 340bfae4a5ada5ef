"""Keys that documentation prints: they open nothing, and whoever quotes them wants to read them.

The set is closed, and a value is one of them only as a whole: a key that merely begins, ends or
goes on like an example is somebody's. Passwords and card numbers of examples are not here, for
people do use those. Each is kept in pieces, so that no literal of this file looks like a key.
"""

from __future__ import annotations

__all__ = ["is_example"]

_JOHN_DOE = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIi"
)

# (where it is printed, the value in pieces).
_PRINTED = (
    ("AWS, access keys of the user guides", ("wJalrXUtnFEMI/", "K7MDENG/bPxRfiCYEXAMPLEKEY")),
    ("AWS, the same with a letter more", ("wJalrXUtnFEMI/", "K7MDENG/bPxRfiCYzEXAMPLEKEY")),
    ("AWS, the second profile", ("je7MtGbClwBF/", "2Zp9Utk/h3yCo8nvbEXAMPLEKEY")),
    ("Stripe, API reference", ("sk_test_", "4eC39HqLyjWDarjtT1zdp7dc")),
    ("Stripe, API reference until 2018", ("sk_test_", "BQokikJOvBiI2HlWgH4olfQ2")),
    ("Google Cloud, using API keys", ("AIza", "SyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe")),
    ("jwt.io", (_JOHN_DOE, "wiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c")),
    (
        "jwt.io since 2024",
        (
            _JOHN_DOE,
            "wiYWRtaW4iOnRydWUsImlhdCI6MTUxNjIzOTAyMn0.",
            "KMUFsIDTnFmyG3nMiGM6H9FNFUROf3wh7SmqJp-QV30",
        ),
    ),
    (
        "RFC 7519, section 3.1",
        (
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAs",
            "DQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.",
            "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        ),
    ),
    ("RFC 6749, an access token", ("2YotnFZFEj", "r1zCsicMWpAA")),
    ("RFC 6749, a refresh token", ("tGzv3JOkF0", "XG5Qx2TlKWIA")),
    ("RFC 6749, a client's login", ("czZCaGRSa3F0Mzpn", "WDFmQmF0M2JW")),
    ("RFC 6750", ("mF_9.B5f-", "4.1JqM")),
    ("RFC 7617", ("QWxhZGRpbjpv", "cGVuIHNlc2FtZQ==")),
    ("RFC 6455", ("s3pPLMBiTxaQ", "9kYGzzhZRbK+xOo=")),
)
_VALUES = frozenset("".join(pieces) for _, pieces in _PRINTED)
# AWS ends the id of every key that it prints so; of those it gives out one in 36**7 would.
_AWS_ID = ("AKIA", "ASIA", "ABIA", "ACCA")
_AWS_END = "EXAMPLE"
_AWS_LENGTH = 20


def is_example(value: str) -> bool:
    """Tell whether a value is, as a whole, a key that documentation prints.

    >>> is_example("AKIA" + "IOSFODNN7EXAMPLE")
    True
    """
    value = value.rstrip(".")  # of the sentence that it ends
    return value in _VALUES or (
        len(value) == _AWS_LENGTH
        and value.startswith(_AWS_ID)
        and value.endswith(_AWS_END)
        and value.isascii()
        and value.isalnum()
    )
