"""Where something stands in a text: what the families of secrets are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator

__all__ = ["Family", "Span", "positions", "starts_word"]

Span = tuple[int, int, str]  # start, end, kind
Family = Callable[[str, str], Iterator[Span]]  # of the text, and of the same in lower case


def positions(text: str, needle: str) -> Iterator[int]:
    """Yield every place where ``needle`` begins, overlapping ones too."""
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def starts_word(text: str, at: int) -> bool:
    r"""Tell whether no word runs into position ``at``; an escaped ``\n`` before it is no word."""
    before = text[at - 1 : at] if at else ""
    return not before.isalnum() or (text[max(0, at - 2) : at - 1] == "\\" and before in "nrt")
