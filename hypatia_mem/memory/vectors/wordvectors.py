"""Meanings of words beside their letters: the model behind the extra ``hypatia-mem[embed]``.

Half of a vector is the lexical one (``lexical``, which finds identifiers and typing errors), the
other half the sum of what WordLlama's 256-dimensional table knows of each of its tokens, words that
are everywhere counting a tenth. The table is part of the ``wordllama`` wheel: nothing is ever
downloaded. It is read where it lies (memory-mapped, with its tokenizer); the package itself is not
imported, because its import costs more than all the rest.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hypatia_mem.errors import ModelUnavailable
from hypatia_mem.memory.vectors.lexical import (
    BREVITY,
    Lexical,
    cosine,
    normalised,
    rounded,
    weigh_token,
)
from hypatia_mem.store.vectors import MAX_TEXT, Query

__all__ = ["EXTRA", "WordVectors", "is_installed"]

EXTRA = "hypatia-mem[embed]"
NAME = "words-1"
THRESHOLD = 0.2
LEXICAL_SHARE = 0.35
_TABLE = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_WIDTH = 256
_INSTALL = (
    f"Install it: pip install '{EXTRA}' (pipx inject hypatia-mem 'wordllama>=0.4,<0.5', "
    f"or uv tool install '{EXTRA}'). Without it: hypatia-mem config set embedding_model builtin"
)


def is_installed() -> bool:
    """Tell whether the extra is there; imports nothing."""
    return all(find_spec(name) is not None for name in ("wordllama", "tokenizers", "numpy"))


class WordVectors:
    """Turns texts into vectors, as the module's description says. Loads its table once."""

    threshold = THRESHOLD

    def __init__(self) -> None:
        """Open the table and the tokenizer. Raises ModelUnavailable when the extra is missing."""
        folder = _folder()
        from importlib.metadata import version

        import numpy
        from tokenizers import Tokenizer

        self._numpy = numpy
        self._lexical = Lexical(_WIDTH)
        self.dimension = 2 * _WIDTH
        self.model = f"{NAME}+wordllama-{version('wordllama')}/{self.dimension}"
        try:
            self._table = _mapped(numpy, folder / _TABLE)
            self._tokenizer: Any = Tokenizer.from_file(str(folder / _TOKENIZER))
        except Exception as error:  # the tokenizer raises plain Exception
            raise ModelUnavailable(
                f"the files of wordllama {version('wordllama')} are not what this version reads"
                f" ({type(error).__name__})",
                hint=_INSTALL,
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._weights: dict[int, float] = {}

    def documents(self, texts: Sequence[str]) -> list[list[int] | None]:
        """Return the vectors of texts to store; None for a text without a letter or digit."""
        return [self._stored(*parts) for parts in self._parts(texts)]

    def query(self, text: str) -> Query | None:
        """Return a text to look for, None when there is no letter or digit in it."""
        (letters, meaning) = self._parts([text])[0]
        stored = self._stored(letters, meaning)
        if stored is None:
            return None
        vector = (*_joined(letters, meaning), 0.0)
        return Query(self.model, vector, cosine(vector, stored))

    def _parts(self, texts: Sequence[str]) -> list[tuple[list[float], list[float]]]:
        texts = [text[:MAX_TEXT] for text in texts]
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [
            (self._lexical.features(text), self._meaning(one.ids, one.tokens))
            for text, one in zip(texts, encoded, strict=True)
        ]

    def _meaning(self, ids: list[int], tokens: list[str]) -> list[float]:
        weights = [self._weight(number, token) for number, token in zip(ids, tokens, strict=True)]
        if not any(weights):
            return [0.0] * _WIDTH
        rows = self._table[ids].astype(self._numpy.float32)
        total: list[float] = (self._numpy.array(weights, dtype=self._numpy.float32) @ rows).tolist()
        return total

    def _weight(self, number: int, token: str) -> float:
        weight = self._weights.get(number)
        if weight is None:
            weight = self._weights[number] = weigh_token(token.strip("▁").casefold())
        return weight

    def _stored(self, letters: list[float], meaning: list[float]) -> list[int] | None:
        if not any(letters):
            return None
        length = math.hypot(*letters)  # more of them, more words: what is not brief
        return rounded([length * value for value in _joined(letters, meaning)], BREVITY)


# ----------------------------------------------------------------------------------------------


def _folder() -> Path:
    found = find_spec("wordllama") if is_installed() else None
    if found is None or found.origin is None:
        raise ModelUnavailable("the model of word meanings is not installed here", hint=_INSTALL)
    return Path(found.origin).parent


def _mapped(numpy: Any, path: Path) -> Any:  # noqa: ANN401 - numpy is optional, so untyped here
    """Map the one table of a safetensors file: a length, a JSON header, the numbers."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    (table,) = (value for key, value in header.items() if key != "__metadata__")
    if table["dtype"] != "F16" or table["shape"][1] != _WIDTH:
        raise ValueError("another table than expected")
    return numpy.memmap(
        path,
        dtype=numpy.float16,
        mode="r",
        offset=8 + length + table["data_offsets"][0],
        shape=tuple(table["shape"]),
    )


def _joined(letters: Sequence[float], meaning: Sequence[float]) -> list[float]:
    one, other = math.sqrt(LEXICAL_SHARE), math.sqrt(1 - LEXICAL_SHARE)
    return [
        *(one * value for value in normalised(letters)),
        *(other * value for value in normalised(meaning)),
    ]
