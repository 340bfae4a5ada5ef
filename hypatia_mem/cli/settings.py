"""``config``: list, read and change settings."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.group import Leaf
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import columns, emit, print_json, say, warn

__all__ = ["config"]

config = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="""List, read and change settings.

    They are kept in config.toml in the memory's home; HYPATIA_MEM_<KEY> in the environment
    overrides one for a single command, not for the hooks.

    \b
    Example:
      hypatia-mem config set triggers literal
    """,
)
_Key = Annotated[str, typer.Argument(help="A setting's name.", show_default=False)]


@config.command("list", cls=Leaf)
def list_(as_json: AsJson = False) -> None:
    """List every setting: value, where it comes from, what is allowed, what it does."""
    from hypatia_mem.config import SETTINGS, read_settings

    loaded = read_settings(context.home())
    for problem in loaded.problems:
        warn(f"Note: {problem}")
    if as_json:
        print_json(
            {
                key: {
                    "value": getattr(loaded.settings, key),
                    "source": loaded.sources[key],
                    "default": row.default,
                    "allowed": row.allowed,
                    "summary": row.summary,
                }
                for key, row in SETTINGS.items()
            }
        )
        return
    rows = [
        (key, _shown(getattr(loaded.settings, key)), loaded.sources[key], f"({row.allowed})")
        for key, row in SETTINGS.items()
    ]
    say(columns(rows))


@config.command(cls=Leaf)
def get(key: _Key, as_json: AsJson = False) -> None:
    """Print the value of one setting."""
    from hypatia_mem.config import lookup, read_settings

    lookup(key)
    loaded = read_settings(context.home())
    value = getattr(loaded.settings, key)
    emit({"key": key, "value": value, "source": loaded.sources[key]}, _shown(value), as_json)


@config.command("set", cls=Leaf)
def set_(
    key: _Key,
    value: Annotated[str, typer.Argument(help="The new value.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Change one setting; the hooks follow at once. An agent cannot do it."""
    context.refuse_client("change a setting: what is kept, what it costs, and who is asked")
    from hypatia_mem.config import set_value

    new = set_value(context.home(), key, value)
    emit({"key": key, "value": new}, f"{key} = {_shown(new)}", as_json)


@config.command(cls=Leaf)
def unset(key: _Key, as_json: AsJson = False) -> None:
    """Go back to the default of one setting. An agent cannot do it."""
    context.refuse_client("change a setting: what is kept, what it costs, and who is asked")
    from hypatia_mem.config import SETTINGS, unset_value

    was_there = unset_value(context.home(), key)
    default = SETTINGS[key].default
    text = f"{key} = {_shown(default)} (default)"
    emit({"key": key, "value": default, "changed": was_there}, text, as_json)


def _shown(value: Any) -> str:  # noqa: ANN401 - any setting's value
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
