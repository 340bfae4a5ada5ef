"""How many tokens a model takes at once: a short table that the user extends in ``config.toml``.

    [model_windows]
    "my-model" = 128000

A name stands for every model whose name begins with it; the longest that fits decides, and the
user's own come before the table's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hypatia_mem.config import read_table, write_table
from hypatia_mem.errors import UsageError

__all__ = ["BUILT_IN", "DEFAULT", "TABLE", "own", "set_window", "tokens_of", "window_of"]

TABLE = "model_windows"
DEFAULT = 200_000
BUILT_IN: Mapping[str, int] = {
    "claude": 200_000,
    "glm": 200_000,
    "deepseek": 128_000,
    "deepseek-v4": 1_000_000,
    "gpt-5": 400_000,
    "gemini": 1_000_000,
    "qwen": 256_000,
    "kimi": 256_000,
}
_LONG = "[1m]"  # how the client writes that a model runs with its long window


def own(home: Path) -> dict[str, int]:
    """Return the user's rows; what is no positive number counts as not there."""
    found = {
        name.lower(): value.replace("_", "") for name, value in read_table(home, TABLE).items()
    }
    return {name: int(value) for name, value in found.items() if value.isdecimal() and int(value)}


def window_of(model: str, rows: Mapping[str, int]) -> int:
    """Return a model's window in tokens; ``rows`` are the user's.

    >>> window_of("claude-x-20260101", {}), window_of("claude-x[1m]", {}), window_of("", {"a": 1})
    (200000, 1000000, 200000)
    """
    name = model.lower()
    for table in (rows, BUILT_IN):
        fitting = [key for key in table if key and name.startswith(key)]
        if fitting and (table is rows or _LONG not in name):
            return table[max(fitting, key=len)]
    return 1_000_000 if _LONG in name else DEFAULT


def set_window(home: Path, model: str, tokens: int) -> None:
    """Put a row into the user's table, or with 0 tokens take it out. Raises ConfigError."""
    name = model.strip().lower()
    if not name or any(char < " " for char in name):
        raise UsageError("a model needs a name", hint="Example: cascade windows my-model 128000")
    rows = {key: str(value) for key, value in own(home).items()}
    if tokens:
        rows[name] = str(tokens)
    elif rows.pop(name, None) is None:
        raise UsageError(f"there is no row {name!a} of your own to take out")
    write_table(home, TABLE, rows)


def tokens_of(text: str) -> int:
    """Estimate tokens for a summariser's window: a quarter of ASCII, all other characters whole.

    >>> tokens_of("abcdefgh"), tokens_of("四个字啊")
    (2, 4)
    """
    plain = sum(map(str.isascii, text)) if not text.isascii() else len(text)
    return plain // 4 + len(text) - plain
