"""Read what one line of a transcript says, whatever its shape: nothing here raises."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

__all__ = [
    "BLANK",
    "PART_CHARS",
    "Redact",
    "blocks_of",
    "clean",
    "cut",
    "image_of",
    "tagged",
    "text_of",
    "texts_cut",
    "time_of",
    "tokens_of",
    "words",
]

PART_CHARS = 2000  # of a tool's input or output that are kept
TAIL_CHARS = 760  # of them from its end: that is where an output says how it ended
REDACT_CHARS = 65_536  # redacted before the cut, so that a cut never halves a secret
MAX_TOKENS = 2**31 - 1

_TAG = {
    name: re.compile(rf"<{name}>(.*?)</{name}>", re.DOTALL)
    for name in ("command-name", "command-args", "bash-input", "bash-stdout", "bash-stderr")
}
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# What the client trims off an answer before it hands it to a hook.
BLANK = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)

Redact = Callable[[str], str]


def clean(text: str) -> str:
    """Join surrogate pairs and replace lone halves, so that the text can be encoded."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def words(value: object) -> str:
    """Return a text, and an empty one for anything else."""
    return value if isinstance(value, str) else ""


def blocks_of(content: object) -> list[Mapping[str, Any]]:
    """Return the blocks of a message's content; a plain text is one of them."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        return [block for block in content if isinstance(block, Mapping)]
    return []


def text_of(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Return the texts among blocks, a line each."""
    return "\n".join(words(block.get("text")) for block in blocks if block.get("type") == "text")


def tokens_of(usage: object) -> dict[str, int]:
    """Return a response's tokens by what they are priced by; what it does not say is left out."""
    if not isinstance(usage, Mapping):
        return {}
    written = usage.get("cache_creation")
    found = {
        "input_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "cache_read_tokens": usage.get("cache_read_input_tokens"),
        "cache_write_tokens": usage.get("cache_creation_input_tokens"),
        "cache_write_1h_tokens": written.get("ephemeral_1h_input_tokens")
        if isinstance(written, Mapping)
        else None,
    }
    return {
        name: min(count, MAX_TOKENS)
        for name, count in found.items()
        if isinstance(count, int) and not isinstance(count, bool) and count >= 0
    }


def image_of(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part that stands for an image: what it was, never its bytes."""
    source = block.get("source")
    held = source if isinstance(source, Mapping) else {}
    data = words(held.get("data"))
    return {
        "type": "image",
        "media_type": words(held.get("media_type")),
        "bytes": len(data) * 3 // 4 - data[-2:].count("="),
        "digest": hashlib.sha256(data.encode("utf-8", "replace")).hexdigest()[:12],
    }


def tagged(name: str, text: str) -> str:
    """Return what stands between the tags of that name, or nothing."""
    found = _TAG[name].search(text)
    return found.group(1) if found else ""


def time_of(value: object) -> datetime | None:
    """Return a time as naive UTC; None for what is none."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo is not None else at


def texts_cut(value: object, redact: Redact) -> object:
    """Redact and shorten every text of a tool's input, however deep."""
    if isinstance(value, str):
        return cut(value, redact)
    if isinstance(value, list):
        return [texts_cut(item, redact) for item in value]
    if isinstance(value, Mapping):
        return {cut(str(key), redact): texts_cut(item, redact) for key, item in value.items()}
    return value


def cut(text: str, redact: Redact) -> str:
    """Return the beginning and the end of what is too long, redacted before it is cut."""
    head = redact(clean(text[:REDACT_CHARS]))
    if len(text) <= REDACT_CHARS and len(head) <= PART_CHARS:
        return head
    tail = redact(clean(text[-REDACT_CHARS:])) if len(text) > REDACT_CHARS else head
    gap = f"\n[... {len(text) - PART_CHARS} characters left out ...]\n"
    room = PART_CHARS - TAIL_CHARS - len(gap)
    return f"{head[:room]}{gap}{tail[-TAIL_CHARS:]}"
