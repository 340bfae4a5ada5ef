"""``hook.conf``: what the hook needs of the settings, as lines it can read without TOML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from hypatia_mem.capture import paths
from hypatia_mem.config.file import write_text
from hypatia_mem.config.table import Settings
from hypatia_mem.errors import ConfigError

__all__ = ["write_hook_conf"]

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
        extract_every=str(_every(settings)),
        briefs=_switch(settings.briefs),
        capture=_switch(settings.capture),
    )
    kept.pop("worker_env", None)
    if settings.summary_by in _WORKER_ENV:
        kept["worker_env"] = ",".join(_WORKER_ENV[settings.summary_by])
    for key, value in kept.items():
        if "\n" in value or "\r" in value:
            raise ConfigError(f"{key} holds a line break and cannot stand in hook.conf")
    write_text(file, "".join(f"{key}={value}\n" for key, value in kept.items()))


def _every(settings: Settings) -> int:
    """Return how often the agent is asked to judge finished work: never where nobody, or a model,
    does it."""
    by_model = settings.extract_by == "summary" and settings.summary_by in _WORKER_ENV
    return 0 if by_model or settings.extract_by == "off" else settings.extract_every


def _switch(value: bool) -> str:
    return "on" if value else "off"
