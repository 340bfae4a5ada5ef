"""Writes ``skill/hypatia-memory/reference/`` from the code: one text, read by people and agents.

``python -m hypatia_mem.cli.reference`` writes the pages, ``--check`` only compares and exits 1 when
one of them is out of date. The pages are built from the command table, the operator table, the
settings and the error tree, never from formatted help, so they are the same under every Typer.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["main", "pages"]

_ROOT = Path(__file__).resolve().parents[2]
_FOLDER = _ROOT / "skill" / "hypatia-memory" / "reference"
_MADE = "<!-- Made by `python -m hypatia_mem.cli.reference`; do not edit. -->\n\n"


def pages() -> dict[str, str]:
    """Return every page by file name."""
    from hypatia_mem.cli.sql import schema_page

    return {
        "cli.md": _MADE + _cli_page(),
        "jse.md": _MADE + _jse_page(),
        "views.md": _MADE + schema_page(),
    }


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` compare them; 1 when one is out of date."""
    stale = []
    for name, text in pages().items():
        path = _FOLDER / name
        if path.is_file() and path.read_text("utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    if stale and "--check" in arguments:
        print(f"out of date: {', '.join(stale)}; run python -m hypatia_mem.cli.reference")
        return 1
    return 0


# --- commands -------------------------------------------------------------------------------------


def _cli_page() -> str:
    from hypatia_mem.cli.app import COMMANDS
    from hypatia_mem.cli.group import load

    blocks = [
        "# Commands\n\n"
        "Reads are scoped to the project of the current folder plus what is global; "
        "`--all-projects` and `--scope` look further. Every command takes `--json`; without it "
        "the text is for people. `-s NAME`, `--shelf NAME` lets any command about what is stored "
        "work on another memory, registered with `connect`. Data goes to standard output, errors "
        "to standard error as "
        '`Error: <kind>: <message>` (with `--json` as `{"error": {...}}`). A text that begins '
        "with a dash may stand as it is.\n"
    ]
    for name, row in COMMANDS.items():
        blocks.append(_command(name, load(name, row)))
    blocks += [_settings(), _exit_codes()]
    return "\n".join(blocks)


def _command(name: str, command: Any) -> str:  # noqa: ANN401 - vendored type
    lines = [f"## {name}\n", *_help(command.help or "")]
    subcommands: dict[str, Any] = getattr(command, "commands", {})
    lines += _usage(name, command, optional_command=bool(subcommands))
    for word, sub in subcommands.items():
        summary = (sub.help or "").strip().splitlines()[0]
        lines.append(f"### {name} {word}\n\n{summary}\n")
        lines += _usage(f"{name} {word}", sub)
    return "\n".join(lines)


def _help(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text, its examples as code."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            _, title, *code = paragraph.splitlines()
            yield f"{title}\n\n```bash\n{inspect.cleandoc(chr(10).join(code))}\n```\n"
        else:
            yield " ".join(paragraph.split()) + "\n"


def _usage(name: str, command: Any, optional_command: bool = False) -> Iterator[str]:  # noqa: ANN401
    params = [p for p in command.params if not getattr(p, "hidden", False)]
    arguments = [p for p in params if p.param_type_name == "argument"]
    if optional_command and not arguments and not params:
        return
    words = " ".join(_argument(p) for p in arguments)
    yield f"`{' '.join(f'hypatia-mem {name} {words}'.split())} [OPTIONS]`\n"
    rows = [f"- `{_argument(p)}`: {_sentence(p)}" for p in arguments if p.help]
    for param in params:
        if param.param_type_name == "option" and param.name not in ("as_json", "shelf"):
            rows.append(f"- `{_option(param)}`: {_sentence(param)}")
    if rows:
        yield "\n".join(rows) + "\n"


def _argument(param: Any) -> str:  # noqa: ANN401 - vendored type
    word = (param.metavar or param.name.rstrip("_")).upper()
    return word if param.required else f"[{word}]"


def _option(param: Any) -> str:  # noqa: ANN401 - vendored type
    names = ", ".join(param.opts)
    if param.is_flag:
        return "/".join([names, *param.secondary_opts])
    value = "N" if param.type.name.startswith("int") else "TEXT"
    return f"{names} {value}"


def _sentence(param: Any) -> str:  # noqa: ANN401 - vendored type
    text = " ".join((param.help or "").split())
    default = param.default
    if isinstance(default, int) and not isinstance(default, bool):
        text += f" Default: {default}."
    return text


def _settings() -> str:
    from hypatia_mem.config import SETTINGS

    lines = ["## Settings\n", "| Setting | Default | Allowed | What it does |", "|---|---|---|---|"]
    for key, row in SETTINGS.items():
        default = row.default
        if isinstance(default, bool):
            default = "on" if default else "off"
        allowed = row.allowed.replace("|", "\\|")
        lines.append(f"| `{key}` | {default} | {allowed} | {row.summary} |")
    return "\n".join(lines) + "\n"


def _exit_codes() -> str:
    from hypatia_mem import errors

    lines = ["## Exit codes\n", "| Code | Kind | Means |", "|---|---|---|", "| 0 | | Done. |"]
    found = []
    for name in errors.__all__:
        kind = getattr(errors, name)
        if not (isinstance(kind, type) and issubclass(kind, errors.HypatiaError)):
            continue
        if kind is not errors.HypatiaError:
            doc = " ".join((kind.__doc__ or "").split()).replace("``", "`")
            found.append((kind.exit_code, name, f"| {kind.exit_code} | {kind.kind} | {doc} |"))
    lines += [row for _, _, row in sorted(found)]
    lines += [
        "| 70 | internal error | A fault of the program; its place is in the program's log. |",
        "| 130 | | Interrupted from the keyboard. |",
        "| 141 | | The reader of the output went away. |",
    ]
    return "\n".join(lines) + "\n"


# --- the query language ---------------------------------------------------------------------------

_JSE_INTRO = """\
# JSE, the query language

`hypatia-mem query EXPRESSION` runs one expression over the knowledge graph and prints its rows as
JSON, newest first (`$not-summaried`: oldest first; with `$search`: best first, with a `score`).

- A call is `["$op", operand, ...]` or `{"$op": [operand, ...]}`; in the object form any other value
  is the only operand, and a nested call needs an array of its own.
- The top operator is `$knowledge`, `$statement` or `$not-summaried`. Its operands are conditions,
  all of which must hold. In the object form it takes options, which stand nowhere else.
- A field is a name or a path: `name`, `tags`, `tags[0]`, `meta.author`; a leading `$` is dropped. A
  name that is no field is looked up inside `data` when that is JSON; `data.x` says so expressly.
- List fields (`tags`, `scopes`, `synonyms`, `figures`) match by whole elements: `summary 1` is not
  `summary 10`, and `""` in `scopes` is the global scope, not a wildcard.
- Numbers compare with numbers, times with times (`"2025-01-31"`, `"2025-01-31T09:30:00Z"`; UTC
  without a zone), text with text. A value of the wrong type is an error. Null matches nothing.
- `$$x` is the text `$x`; `["$quote", value]` is the value as it is written.
- An expression with a condition on `scopes` anywhere says itself which scopes it reads. One
  without reads the current project and the global scope; `--scope` and `--all-projects` say
  otherwise. What is withheld (candidate, rejected, suppressed, expired) is never among the rows.
- Whatever is not understood is an error that shows the place, before anything is run.
"""


def _jse_page() -> str:
    from hypatia_mem.jse.fields import FIELDS
    from hypatia_mem.jse.operators import OPERATORS, OPTIONS

    lines = [_JSE_INTRO, "## Operators\n"]
    for row in OPERATORS.values():
        operands = [*row.operands]
        if row.repeats:
            operands[-1] += " ..."
        place = " (top operator)" if row.top else ""
        call = ", ".join([f'"{row.name}"', *operands])
        lines.append(f"**`[{call}]`**{place}: {row.summary}\n")
        lines.append(f"```json\n{row.example}\n```\n")
    lines.append("## Options of the top operator\n")
    lines += [f"- `{name}`: {text}." for name, text in OPTIONS.items()]
    lines.append(_ALIASES)
    lines.append("## Fields\n")
    for catalog, columns in FIELDS.items():
        kinds: dict[str, list[str]] = {}
        for name, column in columns.items():
            kind = {"list": "lists", "time": "times"}.get(column.kind, "text")
            kinds.setdefault(kind, []).append(f"`{name}`")
        words = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items())
        lines.append(f"- `${catalog}`: {words}.")
    lines.append(_ROWS)
    return "\n".join(lines)


_ALIASES = """
## Other names

`$triple` and `$k-hop` take a name for every name of the same thing: an entry's `synonyms` and its
name stand for each other, and a statement's own synonyms (`{"subject": [...], "object": [...]}`)
stand for that part of it. Names match whole; the names found are not looked up again.
"""

_ROWS = """
`head`, `relation` and `tail` are the same as `subject`, `predicate` and `object`. `triple` is the
three as one line of CSV. `tr_start` and `tr_end` say when something was true. A statement's
`synonyms` are those of all three parts, `synonyms.subject` those of one.

## Rows

```json
{"name": "...", "content": {"format": "markdown", "data": "...", "tags": [], "synonyms": null,
 "figures": null, "scopes": ["app"]}, "created_at": "2025-01-31 09:30:00.000000"}

{"triple": "Alice,knows,Bob", "subject": "Alice", "predicate": "knows", "object": "Bob",
 "content": {"format": "markdown", "data": "", "tags": [], "synonyms": null, "figures": null,
 "scopes": ["app"]}, "created_at": "2025-01-31 09:30:00.000000"}
```

Absent lists are null; `tr_start` and `tr_end` are there when they are set. Rows of `$search` and
`$similar` also carry a `score`, those of `$k-hop` a `hop`. Without rows the command prints
`No results found.`, with `--json` an empty list.
"""


if __name__ == "__main__":
    os.environ["TYPER_USE_RICH"] = "0"
    sys.exit(main(sys.argv[1:]))
