"""Models by the Messages API, through its official package.

The key is the user's own: from a file that ``config.toml`` names, else ``ANTHROPIC_API_KEY`` of the
environment; never one that stands in the files of a project (``keys``). Where the API is comes from
``config.toml`` alone, and so do no headers from anywhere: an environment can be set by whatever
project a session runs in.

The package is asked to try once: what is tried again, and when, is the cascade's own affair, so
that every call is counted.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hypatia_mem.memory.summarise.prompted import Question, Reply, Usage
from hypatia_mem.memory.summarise.protocol import FailureKind, SummaryFailed

if TYPE_CHECKING:
    from anthropic import Anthropic
    from anthropic.types import Message

__all__ = ["DEFAULT_MODEL", "MessagesApi"]

DEFAULT_MODEL = "claude-haiku-5-5"
ADDRESS = "https://api.anthropic.com"
_STOPS = {
    "max_tokens": FailureKind.TRUNCATED,
    "model_context_window_exceeded": FailureKind.TRUNCATED,
    "refusal": FailureKind.REFUSAL,
}
_KEY_HINT = (
    "Set ANTHROPIC_API_KEY in your own environment, or name the file that holds the key: "
    "hypatia-mem config set anthropic_key_file PATH"
)


class MessagesApi:
    """The API with one model. The package is imported with the first question."""

    name = "anthropic"

    def __init__(self, key: str, model: str = "", url: str = "", timeout: float = 180.0) -> None:
        """Keep what is needed for a connection; ``timeout`` in seconds. Nothing is sent."""
        self.model = model or DEFAULT_MODEL
        self._key = key
        self._url = url or ADDRESS
        self._timeout = timeout
        self._client: Anthropic | None = None
        self._lock = threading.Lock()

    def ask(self, question: Question) -> Reply:
        """Return the answer; raises SummaryFailed when none came."""
        with self._asking():
            return reply_of(self._connected().messages.create(**self.parameters(question)))

    def count(self, question: Question) -> int | None:
        """Ask the API how many tokens a question has: free, but not without a connection."""
        parameters = self.parameters(question)
        del parameters["max_tokens"]
        try:
            with self._asking():
                return int(self._connected().messages.count_tokens(**parameters).input_tokens)
        except SummaryFailed:
            return None

    def cancel(self) -> None:
        """Close the connection, which ends what waits for it."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close()

    def parameters(self, question: Question) -> dict[str, Any]:
        """Return a question as the API takes it; the rules, which come again, may be cached."""
        system = {
            "type": "text",
            "text": question.system,
            "cache_control": {"type": "ephemeral"},
        }
        return {
            "model": self.model,
            "max_tokens": question.max_tokens,
            "system": [system],
            "messages": [{"role": "user", "content": question.text}],
        }

    # -- many at once, at half the price, within a day -------------------------------------------

    def send(self, questions: Mapping[str, Question]) -> str:
        """Hand in many questions under ids of our own; the parcel's id. Raises SummaryFailed."""
        requests: list[Any] = [
            {"custom_id": key, "params": self.parameters(one)} for key, one in questions.items()
        ]
        with self._asking():
            return str(self._connected().messages.batches.create(requests=requests).id)

    def fetch(self, parcel: str) -> dict[str, Reply | SummaryFailed] | None:
        """Return the answers by their ids, None while they are not ready. Raises SummaryFailed."""
        with self._asking():
            batches = self._connected().messages.batches
            if batches.retrieve(parcel).processing_status != "ended":
                return None
            return {one.custom_id: _result(one.result) for one in batches.results(parcel)}

    def recall(self, parcel: str) -> None:
        """Ask for a parcel not to be worked on any more. Raises SummaryFailed."""
        with self._asking():
            self._connected().messages.batches.cancel(parcel)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Hold a connection for one thing that is asked; questions are too rare to keep it."""
        try:
            with _told_apart(self._timeout):
                yield
        finally:
            self.cancel()

    def _connected(self) -> Anthropic:
        with self._lock:
            if self._client is None:
                if not self._key:
                    raise SummaryFailed(
                        FailureKind.AUTH, "there is no key for the Messages API", hint=_KEY_HINT
                    )
                self._client = _client(self._key, self._url, self._timeout)
            return self._client


def _client(key: str, url: str, timeout: float) -> Anthropic:
    # The package reads headers of its own from the environment; see above why not here.
    kept = os.environ.pop("ANTHROPIC_CUSTOM_HEADERS", None)
    try:
        from anthropic import Anthropic

        return Anthropic(api_key=key, base_url=url, timeout=timeout, max_retries=0)
    finally:
        if kept is not None:
            os.environ["ANTHROPIC_CUSTOM_HEADERS"] = kept


def reply_of(message: Message) -> Reply:
    """Return an answer as the program knows it: its text without reasoning, and what it took."""
    used = message.usage
    usage = Usage(
        input_tokens=used.input_tokens or 0,
        output_tokens=used.output_tokens or 0,
        cache_read=used.cache_read_input_tokens or 0,
        cache_write=used.cache_creation_input_tokens or 0,
    )
    blocks: Sequence[Any] = message.content or ()
    text = "\n".join(str(block.text) for block in blocks if block.type == "text")
    return Reply(text, usage, _STOPS.get(str(message.stop_reason)))


def _result(result: Any) -> Reply | SummaryFailed:  # noqa: ANN401 - a union of the package
    if result.type == "succeeded":
        return reply_of(result.message)
    if result.type == "errored":
        kind = getattr(getattr(result.error, "error", None), "type", "")
        failure = (
            FailureKind.TOO_LONG if kind == "invalid_request_error" else FailureKind.UNAVAILABLE
        )
        return SummaryFailed(failure, f"the API could not answer ({str(kind)[:60]})")
    return SummaryFailed(FailureKind.UNAVAILABLE, f"the API did not answer ({result.type})")


@contextmanager
def _told_apart(timeout: float) -> Iterator[None]:
    """Turn what the package raises into the failures that the cascade tells apart."""
    import anthropic

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of models that will be retired
            yield
    except anthropic.APITimeoutError as error:
        raise SummaryFailed(
            FailureKind.TIMEOUT, f"the API did not answer within {timeout:g} seconds"
        ) from error
    except anthropic.APIConnectionError as error:
        raise SummaryFailed(
            FailureKind.UNREACHABLE, "the API could not be reached", hint="Is there a connection?"
        ) from error
    except anthropic.APIStatusError as error:
        raise _of_status(error.status_code, error.response.headers, error.message) from error
    except anthropic.AnthropicError as error:
        raise SummaryFailed(
            FailureKind.UNAVAILABLE, f"the API's answer made no sense ({type(error).__name__})"
        ) from error
    except (ValueError, TypeError, AttributeError) as error:
        raise SummaryFailed(
            FailureKind.UNAVAILABLE, f"the API's answer made no sense ({type(error).__name__})"
        ) from error


def _of_status(status: int, headers: Mapping[str, str], message: str) -> SummaryFailed:
    """Return the failure an HTTP status stands for; what the other side says is not repeated."""
    said = message.lower()
    if status in (401, 402, 403) or "credit balance" in said:
        return SummaryFailed(
            FailureKind.AUTH, f"the API did not accept the key ({status})", hint=_KEY_HINT
        )
    if status == 404:
        return SummaryFailed(
            FailureKind.SETTINGS,
            "the API does not know this model or address (404)",
            hint="Name another: hypatia-mem config set summary_model MODEL",
        )
    if status == 429:
        return SummaryFailed(
            FailureKind.RATE, "the API asks to wait (429)", retry_after=_seconds(headers)
        )
    if status == 413 or (status == 400 and ("too long" in said or "too large" in said)):
        return SummaryFailed(
            FailureKind.TOO_LONG, f"these sources are more than the model takes ({status})"
        )
    if status < 500 and status != 408:  # may be the model's name, may be this very question
        return SummaryFailed(
            FailureKind.UNAVAILABLE,
            f"the API does not take the question ({status})",
            hint="Is summary_model one that the Messages API has?",
        )
    return SummaryFailed(
        FailureKind.UNAVAILABLE,
        f"the API has a fault ({status})",
        retry_after=_seconds(headers),
    )


def _seconds(headers: Mapping[str, str]) -> float:
    """Return how long the other side asked to wait, at most a day."""
    try:
        return min(86400.0, max(0.0, float(headers.get("retry-after", "0"))))
    except ValueError:
        return 0.0
