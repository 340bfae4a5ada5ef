"""Every mutation goes through one door (I4): where SQL that writes may stand, and where not.

What is looked at is the text of the program itself: each string constant, f-strings put together,
but for docstrings. A new place that writes has to be written down here, with what it writes.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from hypatia_mem.store.gateway import Transaction

PACKAGE = Path(__file__).parents[2] / "hypatia_mem"
# The transaction's own rooms: they note what they write in the ledger.
GATEWAY = {
    f"store/{name}.py"
    for name in (
        "entries", "erasing", "forgetting", "gateway", "merging", "messages", "tombstones", "trust",
        "undoing", "upkeep", "versions", "writing",
    )
}  # fmt: skip
# Everybody else who may write, and exactly what. {} stands for what is put in at run time.
ALLOWED = {
    # handed an open transaction, for which they note every row and keep every earlier state
    "store/withdrawing.py": {"delete entry", "delete statement", "delete {}", "update session"},
    "store/followers.py": {"update message", "delete session"},
    "store/moving.py": {"update {}", "update session"},
    "store/inserting.py": {"insert {}", "update {}"},
    # handed an open transaction; only what leaves no state behind, or is derived
    "store/summaries.py": {"delete meta"},
    "store/jobs.py": {"insert job", "delete job", "insert spend", "delete spend"},
    "store/vectors.py": {"insert embedding", "delete embedding", "insert meta", "delete meta"},
    # before there is a transaction, or in a copy that nobody has open
    "store/connection.py": {"insert meta", "copy from database"},
    "store/migrations.py": {
        "create", "alter entry", "alter statement", "alter version", "update entry",
        "update statement", "insert version", "insert meta", "insert migration", "drop version_m001",
        "delete meta", "alter tombstone", "delete touched", "alter session", "update session",
        "insert cursor",
    },
    # in the reader's own memory, after the store was let go
    "store/reading.py": {"create", "copy memory", "insert {}"},
    "store/views.py": {"create"},
}  # fmt: skip
_WRITES = re.compile(
    r"\b(?:(insert)\s+(?:or\s+\w+\s+)?into\s+([\w{}]+)"
    r"|(update)\s+([\w{}]+)\s+set\b"
    r"|(delete)\s+from\s+([\w{}]+)"
    r"|(merge)\s+into\s+([\w{}]+)"
    r"|(alter|drop)\s+(?:table|view|macro|index|schema|sequence)\s+(?:if\s+exists\s+)?([\w{}]+)"
    r"|(truncate)\s+(?:table\s+)?([\w{}]+)"
    r"|(copy\s+from\s+database)"
    r"|(copy)\s+([\w{}]+)[\w.{}\s]*\s(?:to|from)\s+['?$(]"
    r"|(create)\s+(?:or\s+replace\s+)?(?:temp\w*\s+)?(?:table|view|macro|index|schema|sequence)\s)",
    re.IGNORECASE,
)


def _docstrings(tree: ast.AST) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            found.add(id(body[0].value))
    return found


def _text(node: ast.AST) -> str | None:
    """Return a string as it stands in the program; what is put in at run time becomes {}."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left), _text(node.right)
        return None if left is None and right is None else f"{left or '{}'}{right or '{}'}"
    return None


def writes(source: str) -> set[str]:
    """Return what the SQL in a program writes: ``delete entry`` and the like."""
    tree = ast.parse(source)
    skipped = _docstrings(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        text = None if id(node) in skipped else _text(node)
        for match in _WRITES.finditer(text or ""):
            words = [word for word in match.groups() if word]
            found.add(" ".join(" ".join(words).lower().split()))
    return found


def modules() -> dict[str, str]:
    return {
        path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def test_only_the_gateway_and_those_named_here_write():
    found = {name: writes(source) for name, source in modules().items() if name not in GATEWAY}
    assert {name: wrote for name, wrote in found.items() if wrote} == ALLOWED


def test_the_gateway_is_the_transaction_and_nothing_else():
    rooms = {
        cls.__module__.removeprefix("hypatia_mem.").replace(".", "/") + ".py"
        for cls in Transaction.__mro__
        if cls is not object
    }
    assert rooms == GATEWAY


def test_no_other_room_reaches_into_a_transaction():
    """The parts that write without asking or noting are the store's own."""
    inner = {"_bulk", "_note", "_append", "_retire", "_purge", "_bury", "_bury_digests", "_refusal"}
    found = [
        f"{name}:{node.lineno} {node.attr}"
        for name, source in modules().items()
        if not name.startswith("store/")
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and node.attr in inner
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]
    assert found == []


@pytest.mark.deep
def test_a_transaction_is_made_in_one_place():
    made = [
        name
        for name, source in modules().items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Transaction"
    ]
    assert made == ["store/opened.py"]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('store.execute("DELETE FROM entry")', {"delete entry"}),
        ('store.execute("delete  from\\n entry WHERE x")', {"delete entry"}),
        ("run(f'UPDATE {table} SET x = 1')", {"update {}"}),
        ('run("INSERT OR REPLACE INTO tombstone VALUES (?)")', {"insert tombstone"}),
        ('run("INSERT INTO " + table)', {"insert {}"}),
        ('run("ALTER TABLE entry ADD x INT; DROP VIEW live")', {"alter entry", "drop live"}),
        ("run(\"COPY entry FROM 'f.csv'\")", {"copy entry"}),
        ('run("COPY FROM DATABASE a TO b")', {"copy from database"}),
        ('run("CREATE TEMP TABLE x (a INT)")', {"create"}),
        ('def f():\n    "Say DELETE FROM entry."\n', set()),
        ('say("To delete an entry: hypatia-mem knowledge-delete")', set()),
        ('run("SELECT * FROM entry -- no update")', set()),
    ],
)
def test_the_search_finds_what_it_should(source, found):
    assert writes(source) == found


def test_no_chain_is_walked_by_a_recursive_query():
    """DuckDB 1.5.6 loses rows of those; the query language's walk has a form that it does not."""
    found = [
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        if "WITH RECURSIVE" in path.read_text(encoding="utf-8")
    ]
    assert found == ["jse/compiler.py"]
