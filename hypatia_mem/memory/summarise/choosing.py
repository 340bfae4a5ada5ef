"""Who condenses, as the settings say: five summarisers behind one protocol.

``extractive`` works here and costs nothing. ``anthropic`` and ``claude-cli`` ask a model, which
only the user's own ``config.toml`` can switch on. ``agent`` and ``off`` do nothing by themselves:
the session's own model fetches a batch and submits it, or nobody does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.memory.summarise import claude_cli, keys, messages_api, windows
from hypatia_mem.memory.summarise.claude_cli import ClaudeCli
from hypatia_mem.memory.summarise.extractive import Extractive
from hypatia_mem.memory.summarise.messages_api import MessagesApi
from hypatia_mem.memory.summarise.prompted import MAX_TOKENS, Backend, Prompted
from hypatia_mem.memory.summarise.prompts import Prompts
from hypatia_mem.memory.summarise.protocol import (
    Draft,
    FailureKind,
    Request,
    Summariser,
    SummaryFailed,
    prompt_digest,
)

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.memory.spend import Meter
    from hypatia_mem.model import Author

__all__ = [
    "AGENT_WINDOW",
    "MODELS",
    "Idle",
    "backend_of",
    "choose",
    "meter_of",
    "model_of",
    "planned_window",
    "window_of",
]

MODELS = frozenset({"anthropic", "claude-cli"})  # what calls a model, and may cost money
AGENT_WINDOW = 20_000  # tokens: what a session can be handed without filling its own window
LARGEST = 90_000  # tokens of sources in one question: more gets dearer and is read less closely
LEAST = 500


@dataclass(frozen=True, slots=True)
class Idle:
    """A summariser that makes nothing by itself: ``agent`` waits for the session's, ``off`` never.

    What is due stays due, so that whoever is switched to finds all of it.
    """

    producer: str
    window: int = AGENT_WINDOW

    @property
    def digest(self) -> str:
        """Return the digest of nothing but its name."""
        return prompt_digest(self.producer)

    def summarise(self, request: Request) -> Draft:
        """Raise SummaryFailed: it is not asked."""
        del request
        raise SummaryFailed(
            FailureKind.NOT_ASKED,
            f"summaries are made by {self.producer}, which condenses nothing by itself",
        )


def choose(
    home: Path,
    settings: Settings,
    *,
    roots: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
    tick: Callable[[], None] = lambda: None,
    stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], datetime] | None = None,
    author: Author | None = None,
) -> Summariser:
    """Return the summariser in force; nothing is asked yet.

    ``roots`` are the folders of known projects, whose keys are not used. For the rest see
    ``spend.Meter``. Raises SummaryFailed when it cannot be made, ConfigError for a bad price.
    """
    if settings.summary_by == "extractive":
        return Extractive()
    if settings.summary_by not in MODELS:
        return Idle(settings.summary_by)
    backend = backend_of(home, settings, roots, os.environ if environ is None else environ)
    meter = meter_of(home, settings, backend, tick=tick, stop=stop, clock=clock, author=author)
    return Prompted(backend, Prompts.of(home), window_of(home, settings, meter), meter.ask)


def backend_of(
    home: Path, settings: Settings, roots: Iterable[str], environ: Mapping[str, str]
) -> Backend:
    """Return who is asked. Raises SummaryFailed when the only key there is is a project's."""
    if settings.summary_by == "claude-cli":
        return ClaudeCli(
            home,
            settings.claude_command,
            settings.summary_model,
            timeout=settings.model_timeout_seconds,
            call_cents=settings.model_call_cents,
            environ=environ,
            project_keys=keys.project_keys(roots),
        )
    return MessagesApi(
        keys.own_key(home, settings.anthropic_key_file, environ, list(roots)),
        settings.summary_model,
        keys.safe_url(settings.anthropic_url),
        settings.model_timeout_seconds,
    )


def meter_of(
    home: Path,
    settings: Settings,
    backend: Backend,
    *,
    tick: Callable[[], None] = lambda: None,
    stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], datetime] | None = None,
    author: Author | None = None,
) -> Meter:
    """Return what watches over a model's calls. Raises ConfigError."""
    from hypatia_mem.memory.spend import Meter

    return Meter(home, settings, backend, tick=tick, stop=stop, clock=clock, author=author)


def window_of(home: Path, settings: Settings, meter: Meter) -> int:
    """Return how many tokens of sources one question takes: by the model, the caps, the setting."""
    model = windows.window_of(meter.backend.model, windows.own(home))
    most = min(LARGEST, (model - MAX_TOKENS) * 4 // 5, meter.room())
    if settings.summary_window:
        most = min(most, settings.summary_window)
    return max(LEAST, most)


def model_of(settings: Settings) -> str:
    """Return the model that is asked, ``""`` where none is."""
    defaults = {"anthropic": messages_api.DEFAULT_MODEL, "claude-cli": claude_cli.DEFAULT_MODEL}
    default = defaults.get(settings.summary_by, "")
    return settings.summary_model or default if default else ""


def planned_window(home: Path, settings: Settings) -> int:
    """Return how many tokens of sources become one summary, without asking anybody.

    Raises ConfigError when a price in ``config.toml`` cannot be read.
    """
    if settings.summary_by in MODELS:
        backend: Backend = MessagesApi("", settings.summary_model)
        if settings.summary_by == "claude-cli":
            backend = ClaudeCli(home, "", settings.summary_model, environ={})
        return window_of(home, settings, meter_of(home, settings, backend))
    if settings.summary_window:
        return settings.summary_window
    return AGENT_WINDOW if settings.summary_by == "agent" else Extractive().window
