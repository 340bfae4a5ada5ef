"""The table of settings: what there is, what is allowed, what each does, its default."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hypatia_mem.errors import ConfigError

__all__ = ["SETTINGS", "Setting", "Settings", "Value", "lookup", "unknown"]

Value: TypeAlias = str | int | bool
_Kind: TypeAlias = Literal["choice", "whole", "switch", "text"]
_ON = ("on", "true", "yes", "1")
_OFF = ("off", "false", "no", "0")


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default; ``SETTINGS`` says what each means."""

    triggers: str = "combined"
    extract_every: int = 5
    briefs: bool = True
    capture: bool = True
    worker_idle_seconds: int = 10
    snapshot_every_hours: int = 24
    spool_keep_days: int = 7
    brief_max_units: int = 9500
    extract_by: str = "summary"
    tidy_every_hours: int = 12
    episodes_by: str = "summary"
    episode_turns: int = 10
    episode_idle_seconds: int = 30
    summary_by: str = "extractive"
    summary_words: int = 600
    summary_window: int = 0
    summary_floor: int = 30
    summary_skip_user: bool = False
    summary_model: str = ""
    summary_stand_in: bool = True
    anthropic_key_file: str = ""
    anthropic_url: str = ""
    claude_command: str = "claude"
    model_timeout_seconds: int = 180
    model_calls_per_minute: int = 10
    model_calls_at_once: int = 0
    model_fail_fast: bool = False
    model_day_calls: int = 200
    model_day_cents: int = 100
    model_call_cents: int = 25
    cascade_max_tokens: int = 0
    cascade_percent: int = 90
    cascade_batch: int = 16
    cascade_keep_last: int = 3
    cascade_headroom: int = 0
    cascade_max_messages: int = 0
    pressure_tools: int = 70
    pressure_condense: int = 85
    pressure_persist: int = 95
    pressure_small_window: int = 32_000
    pressure_small_condense: int = 60
    pressure_small_persist: int = 80
    retention_sessions: int = 30
    retention_days: int = 90
    preserve_orphans: bool = False
    cascade_max_level: int = 8
    embedding_model: str = "auto"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the settings table: what is allowed and what it does."""

    key: str
    kind: _Kind
    summary: str
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    file_only: bool = False  # not from the environment
    costly: tuple[str, ...] = ()  # of the choices, those that are not taken from the environment

    @property
    def allowed(self) -> str:
        """Return the allowed values in words."""
        if self.kind == "choice":
            return " | ".join(self.choices)
        if self.kind == "switch":
            return "on | off"
        if self.kind == "text":
            return "one line of text"
        return f"{self.least} to {self.most}"

    @property
    def default(self) -> Value:
        """Return the default value."""
        value: Value = getattr(Settings(), self.key)
        return value

    def parse(self, value: object) -> Value:
        """Return the value in its type; raises ConfigError with what is allowed."""
        parsed = _PARSERS[self.kind](self, value)
        if parsed is None:
            raise ConfigError(
                f"{self.key} cannot be {_brief(value)}", hint=f"Allowed: {self.allowed}."
            )
        return parsed


def _parse_choice(setting: Setting, value: object) -> Value | None:
    return value if isinstance(value, str) and value in setting.choices else None


def _parse_switch(_: Setting, value: object) -> Value | None:
    if isinstance(value, bool):
        return value
    text = value.strip().lower() if isinstance(value, str) else ""
    return True if text in _ON else False if text in _OFF else None


def _parse_whole(setting: Setting, value: object) -> Value | None:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if setting.least <= value <= setting.most else None


def _parse_text(setting: Setting, value: object) -> Value | None:
    """Return a line that stands in TOML between quotation marks as it is."""
    if not isinstance(value, str) or len(value) > 4000 or not (value.isprintable() or not value):
        return None
    return value if '"' not in value and "\\" not in value else None


_PARSERS: Mapping[_Kind, Callable[[Setting, object], Value | None]] = {
    "choice": _parse_choice,
    "switch": _parse_switch,
    "whole": _parse_whole,
    "text": _parse_text,
}

SETTINGS: Mapping[str, Setting] = {
    row.key: row
    for row in (
        Setting(
            "triggers",
            "choice",
            "What the hook prints beside a prompt: one short block when there is something to do "
            "(combined), one TRIGGER:log line per message as the Hypatia skill has it (literal), "
            "or nothing (off).",
            choices=("combined", "literal", "off"),
        ),
        Setting(
            "extract_every",
            "whole",
            "Ask for an extraction every so many prompts of a session; 0 never asks.",
            least=0,
            most=1000,
        ),
        Setting("briefs", "switch", "Tell a new session the project's rules and last exchange."),
        Setting("capture", "switch", "Keep the turns of every session."),
        Setting(
            "worker_idle_seconds",
            "whole",
            "How long the worker waits for more before it exits.",
            least=0,
            most=3600,
        ),
        Setting(
            "snapshot_every_hours",
            "whole",
            "How old the newest verified snapshot may get; 0 makes one after every drain.",
            least=0,
            most=8760,
        ),
        Setting(
            "spool_keep_days",
            "whole",
            "How long a drained spool segment is kept after a verified snapshot holds it.",
            least=0,
            most=3650,
        ),
        Setting(
            "brief_max_units",
            "whole",
            "Length of a session brief in UTF-16 units; Claude Code cuts at 10000.",
            least=500,
            most=10000,
        ),
        Setting(
            "extract_by",
            "choice",
            "Who judges finished work and keeps its lessons: the model that summary_by names, or, "
            "where it names none, the worker by sentences it chooses, which the session's agent is "
            "asked to better (summary); the worker alone (extractive); or nobody (off).",
            choices=("summary", "extractive", "off"),
        ),
        Setting(
            "tidy_every_hours",
            "whole",
            "Tie what was learnt lately to what was known before, every so many hours; 0 never.",
            least=0,
            most=8760,
        ),
        Setting(
            "episodes_by",
            "choice",
            "Who tells in two or three sentences what a stretch of a session was about: whoever "
            "summary_by names, where that is a model (summary), sentences chosen by the program "
            "itself (extractive), or nobody (off).",
            choices=("summary", "extractive", "off"),
        ),
        Setting(
            "episode_turns",
            "whole",
            "Tell of a session every so many exchanges.",
            least=1,
            most=1000,
        ),
        Setting(
            "episode_idle_seconds",
            "whole",
            "And of what is left when nothing was said for so many seconds.",
            least=1,
            most=86_400,
        ),
        Setting(
            "summary_by",
            "choice",
            "Who condenses old messages: sentences chosen by the program itself, without a model "
            "(extractive), the session's own agent when it is asked to (agent), a model by its API "
            "with your key (anthropic), your own claude -p (claude-cli), or nobody (off).",
            choices=("extractive", "agent", "anthropic", "claude-cli", "off"),
            costly=("anthropic", "claude-cli"),
        ),
        Setting(
            "summary_words",
            "whole",
            "Length of a summary in words; one of little text is shorter.",
            least=20,
            most=5000,
        ),
        Setting(
            "summary_window",
            "whole",
            "Tokens that are condensed into one summary; 0 is what the summariser can take.",
            least=0,
            most=10_000_000,
        ),
        Setting(
            "summary_floor",
            "whole",
            "Percent of names, paths, numbers and commands that a summary should keep; below it "
            "the most frequent ones are listed at its end.",
            least=0,
            most=100,
        ),
        Setting(
            "summary_skip_user",
            "switch",
            "Leave what you wrote out of the text of summaries; they cover it all the same.",
        ),
        Setting(
            "summary_model",
            "text",
            "The model that anthropic or claude-cli is asked for; empty is a small, cheap one.",
            file_only=True,
        ),
        Setting(
            "summary_stand_in",
            "switch",
            "Let extractive make, marked as such, what a model has failed to condense for good.",
        ),
        Setting(
            "anthropic_key_file",
            "text",
            "The file that holds your API key; empty is ANTHROPIC_API_KEY of your environment. One "
            "that stands in a project's own files is never used.",
            file_only=True,
        ),
        Setting(
            "anthropic_url",
            "text",
            "Where the Messages API is; empty is Anthropic's own address.",
            file_only=True,
        ),
        Setting(
            "claude_command",
            "text",
            "The claude that claude-cli runs: a name on your PATH, or a path.",
            file_only=True,
        ),
        Setting(
            "model_timeout_seconds",
            "whole",
            "How long one answer of a model is waited for.",
            least=1,
            most=3600,
        ),
        Setting(
            "model_calls_per_minute",
            "whole",
            "So many calls of a model a minute at most.",
            least=1,
            most=1000,
            file_only=True,
        ),
        Setting(
            "model_calls_at_once",
            "whole",
            "So many calls of a model at once at most, of all processes; not more than a minute "
            "may have. 0: no limit of its own.",
            least=0,
            most=1000,
            file_only=True,
        ),
        Setting(
            "model_fail_fast",
            "switch",
            "Put work off at once where a call would have to wait for the two limits above.",
        ),
        Setting(
            "model_day_calls",
            "whole",
            "So many calls of a model a day (UTC) at most; what is over waits.",
            least=0,
            most=1_000_000,
            file_only=True,
        ),
        Setting(
            "model_day_cents",
            "whole",
            "So many US cents a day (UTC) for models at most; what is over waits.",
            least=0,
            most=10_000_000,
            file_only=True,
        ),
        Setting(
            "model_call_cents",
            "whole",
            "So many US cents for one call at most; larger batches are split.",
            least=1,
            most=1_000_000,
            file_only=True,
        ),
        Setting(
            "cascade_max_tokens",
            "whole",
            "Tokens of the model's window; 0 looks the model up in the table of windows.",
            least=0,
            most=100_000_000,
        ),
        Setting(
            "cascade_percent",
            "whole",
            "Percent of the window at which unsummarised messages are condensed.",
            least=1,
            most=100,
        ),
        Setting(
            "cascade_batch",
            "whole",
            "So many summaries of a level make one of the next.",
            least=2,
            most=1000,
        ),
        Setting(
            "cascade_keep_last",
            "whole",
            "So many of a project's newest messages are left as they are.",
            least=0,
            most=1000,
        ),
        Setting(
            "cascade_headroom",
            "whole",
            "Percent of the window that is to be free again once messages are condensed; 0 "
            "condenses whole batches only.",
            least=0,
            most=90,
        ),
        Setting(
            "cascade_max_messages",
            "whole",
            "So many messages in one summary at most; 0 is as many as the summariser can take.",
            least=0,
            most=100_000,
        ),
        Setting(
            "pressure_tools",
            "whole",
            "Above this percent of a context older results of tools are told in short; 0 never.",
            least=0,
            most=100,
        ),
        Setting(
            "pressure_condense",
            "whole",
            "Above this percent all but a session's last ten messages are condensed; 0 never.",
            least=0,
            most=100,
        ),
        Setting(
            "pressure_persist",
            "whole",
            "Above this percent a session is told to begin anew, which loses nothing; 0 never.",
            least=0,
            most=100,
        ),
        Setting(
            "pressure_small_window",
            "whole",
            "Windows of so many tokens and fewer are small: the next two hold for them.",
            least=0,
            most=10_000_000,
        ),
        Setting(
            "pressure_small_condense",
            "whole",
            "What pressure_condense is for small windows; results are told in short then too.",
            least=0,
            most=100,
        ),
        Setting(
            "pressure_small_persist",
            "whole",
            "What pressure_persist is for small windows.",
            least=0,
            most=100,
        ),
        Setting(
            "retention_sessions",
            "whole",
            "So many of a project's newest sessions retention leaves whole.",
            least=0,
            most=1_000_000,
        ),
        Setting(
            "retention_days",
            "whole",
            "And every session younger than so many days.",
            least=1,
            most=36_500,
        ),
        Setting(
            "preserve_orphans",
            "switch",
            "Keep summaries that lost a source, marked orphaned and withheld, instead of"
            " taking them out.",
        ),
        Setting(
            "cascade_max_level",
            "whole",
            "The highest level of summaries of summaries.",
            least=1,
            most=50,
        ),
        Setting(
            "embedding_model",
            "choice",
            "What similar compares by: letters (builtin), meanings of words too (wordllama, of the "
            "extra hypatia-mem[embed]), the latter where it is installed (auto); off makes no "
            "vectors.",
            choices=("auto", "builtin", "wordllama", "off"),
        ),
    )
}


def lookup(key: str) -> Setting:
    """Return a row of the settings table; ConfigError with the nearest names when there is none."""
    setting = SETTINGS.get(key)
    if setting is None:
        raise unknown(key)
    return setting


def unknown(key: str) -> ConfigError:
    """Return the error for a name that no setting has."""
    near = difflib.get_close_matches(key.lower().replace("-", "_"), SETTINGS, 3, 0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Settings: {', '.join(SETTINGS)}."
    return ConfigError(f"there is no setting {key[:80]!a}", hint=hint)


def _brief(value: object) -> str:
    text = repr(value) if not isinstance(value, str) else ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
