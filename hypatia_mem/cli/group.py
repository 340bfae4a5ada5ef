"""A command group that knows its commands by a table and loads only the one that runs."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from hypatia_mem.errors import UsageError

if TYPE_CHECKING:
    from hypatia_mem.cli.app import Row

__all__ = ["LazyGroup", "Leaf", "load", "usage_errors"]

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_HELP = """\
The memory of your coding agent: every turn kept, every session briefed.

Reads are scoped to the project of the current folder plus what is global; --all-projects and
--scope look further. Every command takes --json.
"""
_EPILOG = """\
\b
Examples:
  hypatia-mem status
  hypatia-mem search "connection pool"
  hypatia-mem remember "never mock the database"
  hypatia-mem query '["$knowledge", ["$contains", "tags", "rule"]]'
"""
# Commands of the published Hypatia that this program has under another name, or has no need of.
_ELSEWHERE = {
    "init": "To set it all up: hypatia-mem install. To make a shelf: hypatia-mem connect FOLDER",
    "skill": "The skill comes with the hooks: hypatia-mem install. Whether it is there: doctor",
    "mcp": "There is no server to run: an agent calls these commands; the skill says how.",
}


class Leaf(TyperCommand):
    """A command whose free text may begin with a dash: ``remember "- never mock it"``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - vendored type
        """Parse, with every word that cannot be an option kept as a value."""
        return super().parse_args(ctx, _shielded(args, self._takes_value()))

    def _takes_value(self) -> set[str]:
        return {
            name
            for param in self.params
            if isinstance(param, TyperOption) and not param.is_flag
            for name in (*param.opts, *param.secondary_opts)
        }


class LazyGroup(TyperGroup):
    """The top command: its help comes from the table, a command's module only when it runs."""

    def __init__(self, table: Mapping[str, Row]) -> None:
        """Take the table; nothing it names is imported."""
        super().__init__(
            name="hypatia-mem",
            help=_HELP,
            epilog=_EPILOG,
            no_args_is_help=True,
            context_settings=dict(_CONTEXT),
            params=[_version_option()],
        )
        self.table = table

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - vendored type
        """Return the names in the table's order, which is the order of use."""
        return list(self.table)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - vendored type
        """Return a stand-in with the summary: enough for help and completion of names."""
        row = self.table.get(cmd_name)
        if row is None:
            return None
        return TyperCommand(cmd_name, help=row.summary, short_help=row.summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - vendored type
        """Load the command that is about to run."""
        name = args[0]
        row = self.table.get(name)
        if row is None:
            near = difflib.get_close_matches(name, self.table, 3, 0.5)
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            raise UsageError(
                f"there is no command {name[:80]!a}.{meant if name not in _ELSEWHERE else ''}",
                hint=_ELSEWHERE.get(name, "See: hypatia-mem --help"),
            )
        return name, load(name, row), args[1:]


def load(name: str, row: Row) -> Any:  # noqa: ANN401 - vendored type
    """Import a command's module and return its command object."""
    target = getattr(importlib.import_module(row.module), row.function)
    if isinstance(target, typer.Typer):
        command = typer.main.get_command(target)
    else:
        app = typer.Typer(add_completion=False)
        app.command(name, cls=Leaf, context_settings=dict(_CONTEXT))(target)
        command = typer.main.get_command(app)
    command.name = name
    from hypatia_mem.cli.app import NO_SHELF

    if name not in NO_SHELF:
        _offer_shelf(command)
    return command


def _offer_shelf(command: Any) -> None:  # noqa: ANN401 - vendored type
    """Give a command, and those below it, the option that names the shelf it works on."""
    taken = {name for param in command.params for name in param.opts}
    command.params.append(
        TyperOption(
            param_decls=[name for name in ("-s", "--shelf") if name not in taken],
            expose_value=False,
            callback=_choose_shelf,
            autocompletion=_shelf_names,
            metavar="NAME",
            help="Work on this shelf instead of the default one.",
        )
    )
    for sub in getattr(command, "commands", {}).values():
        _offer_shelf(sub)


def _choose_shelf(ctx: Any, _param: Any, value: str | None) -> None:  # noqa: ANN401 - vendored types
    if value is not None and not ctx.resilient_parsing:
        from hypatia_mem.cli import context

        context.choose_shelf(value)


def _shelf_names(_ctx: Any, _args: Any, incomplete: str) -> list[str]:  # noqa: ANN401 - vendored
    from hypatia_mem.cli.shelves import names

    return names(incomplete)


def usage_errors() -> tuple[tuple[type[Exception], ...], type[Any]]:
    """Return Typer's ways out: (leave with a code), (the command line is wrong)."""
    from typer._click.exceptions import ClickException

    return (typer.Exit, typer.Abort), ClickException


def _version_option() -> TyperOption:
    def show(ctx: Any, _param: Any, value: bool) -> None:  # noqa: ANN401 - vendored types
        if value and not ctx.resilient_parsing:
            from hypatia_mem import __version__

            print(f"hypatia-mem {__version__}")
            ctx.exit()

    return TyperOption(
        param_decls=["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Print the version and exit.",
    )


def _shielded(args: list[str], takes_value: set[str]) -> list[str]:
    """Move positional words behind ``--`` when one of them begins with a dash but holds a blank.

    ``- never do it`` cannot be an option; without this the parser would refuse it as one.
    """
    options: list[str] = []
    words: list[str] = []
    shield = False
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            words += rest
        elif arg in takes_value:
            options += [arg, *([value] if (value := next(rest, None)) is not None else [])]
        elif arg[:1] == "-" and arg != "-":
            name = arg.split("=", 1)[0]
            if any(char.isspace() for char in name):
                shield = True
                words.append(arg)
            else:
                options.append(arg)
        else:
            words.append(arg)
    return [*options, "--", *words] if shield else args
