"""Redacting one text outside a hook, where most texts have nothing to redact."""

from __future__ import annotations

from hypatia_mem.capture.hints import may_hold_secret

__all__ = ["without_secrets"]


def without_secrets(text: str) -> str:
    """Return a text as the hook would have written it; most have nothing to redact."""
    if not may_hold_secret(text.encode("utf-8", "replace")):
        return text
    from hypatia_mem.capture.redact import redact_text

    return redact_text(text)
