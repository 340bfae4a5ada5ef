"""Settings: defaults, then ``config.toml``, then ``HYPATIA_MEM_<KEY>`` in the environment.

Reading never fails over what a file says: a value that cannot be used counts as its default and is
listed as a problem, because the worker must drain turns whatever somebody typed. Writing is strict
and touches one line: comments and keys of other versions stay.

The hook cannot afford TOML. It reads ``hook.conf``, a few ``key=value`` lines rendered from the
settings by ``write_hook_conf`` whenever they change; the environment does not enter it.

What costs money, or says where a person's words and key are sent, counts only from ``config.toml``:
an environment can be set by whatever project a session happens to run in.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from hypatia_mem.capture import paths
from hypatia_mem.errors import ConfigError

__all__ = [
    "SETTINGS",
    "Loaded",
    "Setting",
    "Settings",
    "load_settings",
    "lookup",
    "read_settings",
    "read_table",
    "set_value",
    "unset_value",
    "write_hook_conf",
    "write_table",
]

_Value: TypeAlias = str | int | bool
_Kind: TypeAlias = Literal["choice", "whole", "switch", "text"]
_ON = ("on", "true", "yes", "1")
_OFF = ("off", "false", "no", "0")
_ENV = "HYPATIA_MEM_"
# What the worker is handed of the environment beside the little it always is, where the user has
# chosen a model: how it is reached, and the key. Addresses are not among it, see above.
_NETWORK = ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR")
_WORKER_ENV: Mapping[str, tuple[str, ...]] = {
    "anthropic": (*_NETWORK, "ANTHROPIC_API_KEY"),
    "claude-cli": (
        *_NETWORK,
        "NODE_EXTRA_CA_CERTS",
        "ANTHROPIC_API_KEY",
        "CLAUDE_CODE_OAUTH_TOKEN",
    ),
}


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
    extract_by: str = "extractive"
    summary_by: str = "extractive"
    summary_words: int = 600
    summary_window: int = 0
    summary_floor: int = 30
    summary_model: str = ""
    summary_stand_in: bool = True
    anthropic_key_file: str = ""
    anthropic_url: str = ""
    claude_command: str = "claude"
    model_timeout_seconds: int = 180
    model_calls_per_minute: int = 10
    model_day_calls: int = 200
    model_day_cents: int = 100
    model_call_cents: int = 25
    cascade_max_tokens: int = 0
    cascade_percent: int = 90
    cascade_batch: int = 16
    cascade_keep_last: int = 3
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
    def default(self) -> _Value:
        """Return the default value."""
        value: _Value = getattr(Settings(), self.key)
        return value

    def parse(self, value: object) -> _Value:
        """Return the value in its type; raises ConfigError with what is allowed."""
        parsed = _PARSERS[self.kind](self, value)
        if parsed is None:
            raise ConfigError(
                f"{self.key} cannot be {_brief(value)}", hint=f"Allowed: {self.allowed}."
            )
        return parsed


def _parse_choice(setting: Setting, value: object) -> _Value | None:
    return value if isinstance(value, str) and value in setting.choices else None


def _parse_switch(_: Setting, value: object) -> _Value | None:
    if isinstance(value, bool):
        return value
    text = value.strip().lower() if isinstance(value, str) else ""
    return True if text in _ON else False if text in _OFF else None


def _parse_whole(setting: Setting, value: object) -> _Value | None:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if setting.least <= value <= setting.most else None


def _parse_text(setting: Setting, value: object) -> _Value | None:
    """Return a line that stands in TOML between quotation marks as it is."""
    if not isinstance(value, str) or len(value) > 4000 or not (value.isprintable() or not value):
        return None
    return value if '"' not in value and "\\" not in value else None


_PARSERS: Mapping[_Kind, Callable[[Setting, object], _Value | None]] = {
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
            "Who looks for finished work in what was said and keeps its lessons: the worker, by "
            "sentences it chooses (extractive), or nobody (off).",
            choices=("extractive", "off"),
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


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force, where each came from (``default``, ``file``, ``env``), and what was
    found that cannot be used.
    """

    settings: Settings
    sources: Mapping[str, str]
    problems: tuple[str, ...] = field(default=())


def load_settings(home: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings in force; never raises over their content."""
    return read_settings(home, environ).settings


def read_settings(home: Path, environ: Mapping[str, str] | None = None) -> Loaded:
    """Return the settings with sources and problems; ``environ`` defaults to the process's."""
    sources = dict.fromkeys(SETTINGS, "default")
    problems: list[str] = []
    values: dict[str, Any] = {}
    written, problem = _read_toml(home)
    if problem:
        problems.append(problem)
    for key, value in written.items():
        if key in SETTINGS:
            _take(key, value, "file", values, sources, problems)
        elif not isinstance(value, dict):
            problems.append(f"config.toml: {_unknown(key).message}")
    for key in SETTINGS:
        text = (os.environ if environ is None else environ).get(_ENV + key.upper())
        row = SETTINGS[key]
        if text is not None and (row.file_only or text in row.costly):
            problems.append(
                f"{_ENV}{key.upper()} is not taken from the environment, because it can cost money "
                f"or send your words elsewhere; set it with: hypatia-mem config set {key}"
            )
        elif text is not None:
            _take(key, text, "env", values, sources, problems)
    return Loaded(replace(Settings(), **values), sources, tuple(problems))


def set_value(home: Path, key: str, text: str) -> _Value:
    """Write one setting into ``config.toml`` and render ``hook.conf``; returns the value.

    Raises:
        ConfigError: the key is unknown, the value not allowed, or the file is not TOML.
    """
    setting = lookup(key)
    value = setting.parse(text)
    _rewrite(home, key, value)
    return value


def unset_value(home: Path, key: str) -> bool:
    """Take one setting out of ``config.toml``; False when it was not there. Raises ConfigError."""
    lookup(key)
    return _rewrite(home, key, None)


def read_table(home: Path, table: str) -> dict[str, str]:
    """Return the texts of one table of ``config.toml``; nothing where there is no such table.

    Raises:
        ConfigError: the file is not TOML: an unreadable table must not look like an empty one.
    """
    written, problem = _read_toml(home)
    if problem:
        raise ConfigError(problem, hint=f"Correct it by hand: {home / 'config.toml'}")
    found = written.get(table)
    pairs = found.items() if isinstance(found, dict) else ()
    return {key: str(value) for key, value in pairs if type(value) in (str, int)}


def write_table(home: Path, table: str, values: Mapping[str, str]) -> None:
    """Put one table of texts at the end of ``config.toml``, in place of the one that is there.

    Everything else in the file stays as it is, comments and all.

    Raises:
        ConfigError: the file is not TOML, or holds the table in a form this cannot rewrite.
    """
    paths.ensure_home(str(home))
    file = home / "config.toml"
    before, problem = _read_toml(home)
    if problem:
        raise ConfigError(f"{problem}; nothing was changed", hint=f"Correct it by hand: {file}")
    text = file.read_text("utf-8-sig") if file.exists() else ""
    kept: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        head = line.split("#")[0].strip()
        if head.startswith("["):
            inside = head == f"[{table}]"
        if not inside:
            kept.append(line)
    rest = "".join(kept).rstrip()
    lines = [f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in values.items()]
    block = "".join([f"[{table}]\n", *lines]) if values else ""
    changed = "\n\n".join(part for part in (rest, block) if part)
    if changed and not changed.endswith("\n"):
        changed += "\n"
    wanted = {key: value for key, value in before.items() if key != table}
    if values:
        wanted[table] = dict(values)
    try:
        proof = tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        proof = {}
    if proof != wanted:
        raise ConfigError(
            f"[{table}] stands in config.toml in a form this cannot rewrite; nothing was changed",
            hint=f"Correct it by hand: {file}",
        )
    _write(file, changed)


def write_hook_conf(
    home: Path,
    settings: Settings,
    *,
    python: str | None = None,
    worker_path: str | None = None,
    excluded: Iterable[str] | None = None,
) -> None:
    """Render ``hook.conf`` for the hook.

    ``python`` (the worker's interpreter), ``worker_path`` (a site directory to add) and
    ``excluded`` (folders whose sessions are not kept) keep what the file says when None; lines of
    other versions stay. Raises OSError.
    """
    paths.ensure_home(str(home))
    file = home / "hook.conf"
    try:
        old = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        old = []
    kept = dict(line.split("=", 1) for line in old if "=" in line)
    if python is not None:
        kept["python"] = python
    if worker_path is not None:
        kept["worker_path"] = worker_path
    if excluded is not None:
        kept["excluded"] = "\t".join(sorted(f for f in set(excluded) if "\n" not in f))
    kept.update(
        triggers=settings.triggers,
        extract_every=str(settings.extract_every),
        briefs=_switch(settings.briefs),
        capture=_switch(settings.capture),
    )
    kept.pop("worker_env", None)
    if settings.summary_by in _WORKER_ENV:
        kept["worker_env"] = ",".join(_WORKER_ENV[settings.summary_by])
    for key, value in kept.items():
        if "\n" in value or "\r" in value:
            raise ConfigError(f"{key} holds a line break and cannot stand in hook.conf")
    _write(file, "".join(f"{key}={value}\n" for key, value in kept.items()))


# --------------------------------------------------------------------------------------------------


def lookup(key: str) -> Setting:
    """Return a row of the settings table; ConfigError with the nearest names when there is none."""
    setting = SETTINGS.get(key)
    if setting is None:
        raise _unknown(key)
    return setting


def _unknown(key: str) -> ConfigError:
    near = difflib.get_close_matches(key.lower().replace("-", "_"), SETTINGS, 3, 0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Settings: {', '.join(SETTINGS)}."
    return ConfigError(f"there is no setting {key[:80]!a}", hint=hint)


def _take(
    key: str,
    value: object,
    source: str,
    values: dict[str, Any],
    sources: dict[str, str],
    problems: list[str],
) -> None:
    try:
        values[key] = SETTINGS[key].parse(value)
    except ConfigError as error:
        where = "config.toml" if source == "file" else _ENV + key.upper()
        problems.append(f"{where}: {error.message}, so it counts as not set. {error.hint}")
    else:
        sources[key] = source


def _read_toml(home: Path) -> tuple[dict[str, Any], str]:
    file = home / "config.toml"
    try:
        return tomllib.loads(file.read_text("utf-8-sig")), ""
    except FileNotFoundError:
        return {}, ""
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return {}, f"config.toml cannot be read ({_sentence(error)}), so defaults hold"


def _rewrite(home: Path, key: str, value: _Value | None) -> bool:
    """Replace, add or (None) remove the line of ``key``; True when the file changed."""
    paths.ensure_home(str(home))
    file = home / "config.toml"
    before, problem = _read_toml(home)
    if problem:
        raise ConfigError(f"{problem}; nothing was changed", hint=f"Correct it by hand: {file}")
    text = file.read_text("utf-8-sig") if file.exists() else ""
    changed = _edited(text, key, value)
    wanted = {k: v for k, v in before.items() if k != key}
    if value is not None:
        wanted[key] = value
    try:
        proof = tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        proof = {}
    if proof != wanted:
        # A key written in a way one line cannot replace (quoted, in a multi-line string's shadow).
        raise ConfigError(
            f"{key} stands in config.toml in a form this cannot rewrite; nothing was changed",
            hint=f"Correct it by hand: {file}",
        )
    if changed != text:
        _write(file, changed)
    write_hook_conf(home, read_settings(home, {}).settings)
    return changed != text


def _edited(text: str, key: str, value: _Value | None) -> str:
    lines = text.splitlines(keepends=True)
    line_of_key = re.compile(rf"\s*{re.escape(key)}\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^#\s]*)")
    top = next((i for i, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    for index, line in enumerate(lines[:top]):
        found = line_of_key.match(line)
        if found is None:
            continue
        if value is None:
            del lines[index]
        else:
            lines[index] = f"{key} = {_toml(value)}{line[found.end() :]}"
        return "".join(lines)
    if value is None:
        return text
    if top and not lines[top - 1].endswith("\n"):
        lines[top - 1] += "\n"
    lines.insert(top, f"{key} = {_toml(value)}\n")
    return "".join(lines)


def _toml(value: _Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else f'"{value}"'


def _switch(value: bool) -> str:
    return "on" if value else "off"


def _write(file: Path, text: str) -> None:
    target = Path(os.path.realpath(file))  # a link into somebody's dotfiles stays a link
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as out:  # noqa: PTH123 - a descriptor
            out.write(text)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _brief(value: object) -> str:
    text = repr(value) if not isinstance(value, str) else ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)
