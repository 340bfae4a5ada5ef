"""What must not go into a summariser, and what must not come out of one.

Going in, what is no one's words is blanked, not cut, so that offsets stay those of the stored text:
reasoning, pictures, encoded data, and our own lines and briefs (a memory must not remember itself).
Coming out, reasoning is stripped first and only then is asked whether anything is left; the rest is
redacted again, for a model may put together what was apart; and the sources put together again are
no summary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from hypatia_mem.capture.redact import redact_text
from hypatia_mem.memory.summarise.protocol import FailureKind, SummaryFailed

__all__ = ["LONGEST_QUOTE", "blank", "cleaned", "refuse_concatenation", "strip_reasoning"]

LONGEST_QUOTE = 200  # characters that may be repeated from a source in one run
_NAMES = (
    r"(?:think|thinking|thoughts?|reason|reasoning|reflection|scratchpad|analysis"
    r"|inner_?monologue|chain_?of_?thought|cot|antml:thinking|seed:think)"
)
_OPEN = re.compile(rf"<\|?\s*({_NAMES})\b[^<>]*\|?>|◁think▷|\[THINK\]", re.IGNORECASE)
_CLOSE = re.compile(rf"<\s*/\s*({_NAMES})\s*>|<\|/{_NAMES}\|>|◁/think▷|\[/THINK\]", re.IGNORECASE)
_FENCED = re.compile(
    rf"^[ \t]*(```+|~~~+)[ \t]*{_NAMES}\b[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_CHANNEL = re.compile(
    r"(?:<\|start\|>\w*)?<\|channel\|>(?:analysis|commentary)\b.*?"
    r"(?=<\|start\|>|<\|channel\|>final|\Z)"
    r"|<\|start\|>\w*|<\|channel\|>\w+|<\|(?:end|return|message)\|>",
    re.DOTALL,
)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_PICTURE = re.compile(
    r"data:[\w.+/-]+(?:;[\w=-]+)*;base64,[A-Za-z0-9+/=_-]+|!\[[^\]\n]*\]\([^)\n]*\)|<img\b[^>]*>"
    r"|\[Image[ :#][^\]\n]*\]|\{\{(?:inlay|img|image|inlayed|inlayeddata)::[^}\n]*\}\}",
    re.IGNORECASE,
)
_ENCODED_LINE = 76  # characters
_ENCODED = re.compile(
    rf"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/_-]{{{_ENCODED_LINE}}}[\r\n]*){{2,}}[A-Za-z0-9+/_=-]*"
)
_OWN_BLOCK = re.compile(
    r"^\[hypatia-memory\] Memory of .*?^More: hypatia-mem search[^\n]*$", re.MULTILINE | re.DOTALL
)
_OWN_LINE = re.compile(
    r"^[ \t>]*(?:TRIGGER:(?:log|immediate|extract|session-end)\b|\[hypatia-mem(?:ory)?\]"
    r"|\[RESUMED_SESSION\]|hypatia-mem:internal)[^\n]*$|\bhypatia-mem:internal\b",
    re.MULTILINE,
)
_HEAD = re.compile(r"\A## Role\n\w+\n\n## Timestamp\n[^\n]+\n\n## Content\n")
_REFUSAL = re.compile(
    r"\A\W*(?:I['’]?m sorry|sorry, (?:but )?I|I (?:can(?:no|['’])t|am (?:not able|unable)|won['’]t)"
    r"|as an AI)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"```.*?```|`[^`\n]+`|\"[^\"\n]*\"|“[^”\n]*”", re.DOTALL)
_FENCE_WHOLE = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)


# What each pattern but the encoded data's begins with, or cannot do without.
_SIGNS = ("<", "[", "{", "◁", "```", "~~~", "data:", "trigger:", "hypatia-mem")


def blank(text: str, *, spoken_by: str = "") -> str:
    """Return a source with all that may not be summarised turned to blanks, at the same length.

    What a person typed about ``<think>`` is no reasoning; only a pair of tags around something is.
    """
    head = _HEAD.match(text)
    if head is not None:
        text = _spaces(head.group()) + text[head.end() :]
    if _may_need(text):
        text = _thoroughly(text, spoken_by)
    return text


def _may_need(text: str) -> bool:
    """Tell whether any of the patterns could find something: in most of what is said none can."""
    low = text.lower()
    if any(sign in low for sign in _SIGNS):
        return True
    return len(text) > _ENCODED_LINE and max(map(len, text.split()), default=0) >= _ENCODED_LINE


def _thoroughly(text: str, spoken_by: str) -> str:
    text = _blanked(text, _OWN_BLOCK)
    text = _blanked(text, _OWN_LINE)
    text = _blanked(text, _PICTURE)
    text = _blanked(text, _ENCODED)
    text = _blanked(text, _FENCED)
    spans = _reasoning(text, strict=False, closed_only=spoken_by != "assistant")
    return _without(text, spans, _spaces)


def strip_reasoning(text: str) -> str:
    """Return a generated text without any reasoning in it.

    Whatever the tag is called and however it is written; nested, several, never closed, or only
    closed, for some models begin in the middle of it. Tags in code are somebody's words.

    >>> strip_reasoning("so ...</think>The <b>answer</b><Thoughts>hm")
    'The <b>answer</b>'
    """
    text = _FENCED.sub("", text)
    text = _CHANNEL.sub("", text)
    return _without(text, _reasoning(text, strict=True, closed_only=False), lambda _: "").strip()


def cleaned(text: str) -> str:
    """Return a generated summary fit to be stored. Raises SummaryFailed: empty, or a refusal."""
    text = strip_reasoning(text)
    whole = _FENCE_WHOLE.match(text)
    text = whole.group(1) if whole else text
    text = _OWN_BLOCK.sub("", text)
    text = _OWN_LINE.sub("", text)
    text = _PICTURE.sub("", text)
    text = _ENCODED.sub("", text)
    text = redact_text(text).strip()
    if not any(char.isalnum() for char in text):
        raise SummaryFailed(
            FailureKind.EMPTY,
            "there is nothing in this summary but reasoning, or nothing at all",
            hint="Send the summary itself, as plain text or a list.",
        )
    if len(text) < 400 and _REFUSAL.match(text):
        raise SummaryFailed(
            FailureKind.REFUSAL, "this is not a summary: the model declined to write one"
        )
    return text


def refuse_concatenation(text: str, sources: Iterable[str]) -> None:
    """Raise SummaryFailed when a summary repeats its sources instead of condensing them.

    A stretch of more than ``LONGEST_QUOTE`` characters of one source, but for what stands in
    quotation marks or code; or a text hardly shorter than long sources.
    """
    texts = [" ".join(source.split()) for source in sources]
    total = sum(map(len, texts))
    line = " ".join(text.split())
    if total > 4 * LONGEST_QUOTE and len(line) > 0.8 * total:
        raise SummaryFailed(
            FailureKind.VERBATIM,
            f"this is no summary: it has {len(line)} characters of the {total} it stands for",
            hint="Say it in your own words, in a quarter of the length at most.",
        )
    bare = " ".join(_QUOTED.sub(" \n ", text).split(" "))
    joined = "\n".join(texts)
    for piece in bare.split("\n"):
        piece = " ".join(piece.split())
        step = LONGEST_QUOTE // 2
        for start in range(0, len(piece) - step + 1, step):
            probe = piece[start : start + step]
            at = joined.find(probe)
            while at >= 0:
                if _run(piece, start, joined, at) > LONGEST_QUOTE:
                    raise SummaryFailed(
                        FailureKind.VERBATIM,
                        f"this is no summary: more than {LONGEST_QUOTE} characters of it are "
                        "word for word one of its sources",
                        hint="Condense it; a short quotation may stand in quotation marks.",
                    )
                at = joined.find(probe, at + 1)


def _run(piece: str, start: int, joined: str, at: int) -> int:
    """Return the length of the common stretch around two places that begin alike."""
    left = 0
    while left < start and left < at and piece[start - left - 1] == joined[at - left - 1]:
        left += 1
    right = 0
    most = min(len(piece) - start, len(joined) - at)
    while right < most and piece[start + right] == joined[at + right]:
        right += 1
    return left + right


def _reasoning(text: str, *, strict: bool, closed_only: bool) -> list[tuple[int, int]]:
    """Return the stretches that are reasoning, in order.

    ``strict``: a tag never closed hides all to the end, one never opened all from the start;
    otherwise a tag never closed counts only at the beginning of a line.
    """
    code = [match.span() for match in _CODE.finditer(text)]
    marks = sorted(
        [(m.start(), m.end(), 1) for m in _OPEN.finditer(text)]
        + [(m.start(), m.end(), -1) for m in _CLOSE.finditer(text)]
    )
    spans: list[tuple[int, int]] = []
    depth = begin = 0
    for start, end, change in marks:
        if depth == 0 and any(left <= start < right for left, right in code):
            continue
        if change > 0:
            begin = begin if depth else start
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                spans.append((begin, end))
        elif strict:  # closed, never opened: the model began inside
            spans = [(0, end)]
    if depth and (strict or (not closed_only and text[:begin].rpartition("\n")[2].strip() == "")):
        spans.append((begin, len(text)))
    return spans


def _blanked(text: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda match: _spaces(match.group()), text)


def _spaces(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


def _without(text: str, spans: list[tuple[int, int]], put: Callable[[str], str]) -> str:
    kept: list[str] = []
    at = 0
    for start, end in spans:
        kept += [text[at:start], put(text[start:end])]
        at = end
    return "".join([*kept, text[at:]])
