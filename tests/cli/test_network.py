"""``graph`` from the command line: its texts, its JSON, its exit codes, what it imports."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys

import networkx as nx
import pytest

from hypatia_mem.memory import curate
from hypatia_mem.model import Entry
from hypatia_mem.store.connection import open_store
from tests.memory.graphs import fill


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A memory with a small graph, made once; each test gets a copy."""
    home = tmp_path_factory.mktemp("made") / "memory-home"
    entries = [
        Entry("PostgreSQL", "A database.", synonyms=("pg", "postgres"), scopes=("app",)),
        Entry("retry queue", "Keeps failed jobs.", tags=("jobs",), scopes=("app",)),
        Entry("rule:no-mocks", "Never mock it.", tags=("rule",), kind="rule", scopes=("app",)),
    ]
    triples = [
        ("retry queue", "uses", "PostgreSQL"), ("api", "uses", "retry queue"), ("api", "uses", "Redis"),
        ("PostgreSQL", "runs_on", "Linux"), ("Redis", "runsOn", "Linux"),
        ("rule:no-mocks", "about", "PostgreSQL"), ("rule:no-mocks", "is_a", "rule"),
    ]  # fmt: skip
    fill(home, triples, entries)
    with open_store(home, write=True) as store:  # as an early version spelt it
        store.execute(
            "UPDATE statement SET predicate = 'runsOn', triple = 'Redis,runsOn,Linux'"
            " WHERE triple = 'Redis,runs_on,Linux'"
        )
    curate.refresh(home)
    return home


@pytest.fixture
def told(made, home, cli):
    """Run a command on that memory."""
    shutil.copytree(made, home, dirs_exist_ok=True)
    return cli


# --- neighbours and paths -------------------------------------------------------------------------


def test_neighbours_are_listed_nearest_first(told):
    """Each with the statement that leads to it."""
    done = told("graph", "neighbors", "PostgreSQL", "--depth", "2")
    hops = [line.split()[0] for line in done.out.splitlines()]
    assert hops == sorted(hops)
    assert "1  Linux" in done.out
    assert "(PostgreSQL, runs_on, Linux)" in done.out
    assert "2  Redis" in done.out
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--direction", "out"], ["Linux"]),
        (["--direction", "in"], ["retry queue", "rule:no-mocks"]),
        (["--predicate", "runs_on"], ["Linux"]),
        (["--predicate", "runs-on", "--depth", "2"], ["Linux", "Redis"]),
        (["--except", "uses", "--except", "about"], ["Linux"]),
        (["--limit", "1"], ["retry queue"]),
    ],
)
def test_neighbours_are_narrowed_by_options(told, options, names):
    """And come as JSON, with their statements."""
    found = told("graph", "neighbors", "PostgreSQL", "--json", *options).json
    assert sorted(one["name"] for one in found["neighbors"]) == names
    for one in found["neighbors"]:
        assert {"subject", "predicate", "object"} <= set(one["via"][0])


def test_a_synonym_is_said_to_be_one(told):
    """On standard error, so that the answer can be piped."""
    done = told("graph", "neighbors", "pg", "--direction", "out")
    assert done.err == "pg is PostgreSQL.\n"
    assert done.out.startswith("1  Linux")


def test_a_path_comes_with_its_proof(told):
    """Arrows show which way each statement reads."""
    done = told("graph", "path", "Redis", "pg")
    assert done.out == (
        "2 steps: Redis --runsOn--> Linux <--runs_on-- PostgreSQL\n"
        "  (Redis, runsOn, Linux)\n"
        "  (PostgreSQL, runs_on, Linux)\n"
    )
    assert done.code == 0


def test_several_paths_come_shortest_first(told):
    """Up to so many; as JSON with every statement."""
    found = told("graph", "path", "Redis", "PostgreSQL", "--all", "5", "--json").json
    assert [one["length"] for one in found["paths"]] == [2, 3]
    assert found["paths"][1]["names"] == ["Redis", "api", "retry queue", "PostgreSQL"]
    assert found["paths"][1]["steps"][0]["statements"][0]["triple"] == "api,uses,Redis"
    assert len(told("graph", "path", "Redis", "pg", "--all", "1", "--json").json["paths"]) == 1


def test_no_path_is_an_answer_with_exit_code_1(told):
    """A sentence for people, an empty list for programs."""
    done = told("graph", "path", "Linux", "api", "--direction", "out")
    assert (done.code, done.err) == (1, "")
    assert "No path leads from 'Linux' to 'api'" in done.out
    done = told("graph", "path", "Linux", "api", "--direction", "out", "--json")
    assert (done.code, done.json["paths"]) == (1, [])


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["neighbors", "nobody"], 1, "not found: nothing called 'nobody'"),
        (["neighbors", "PostgreSLQ"], 1, "did you mean 'PostgreSQL'?"),
        (["path", "pg", "postgres"], 2, "the same thing"),
        (["neighbors", "pg", "--direction", "up"], 2, "--direction is out, in or both"),
        (["neighbors", "pg", "--predicate", "eats"], 1, "no statement here has the predicate 'eats'"),
        (["central", "--max-nodes", "2"], 1, "at most 2 are taken at once"),
        (["around"], 2, "either an expression or --search"),
        (["around", '["$knowledge"]', "--search", "x"], 2, "either an expression or --search"),
        (["around", "[nonsense"], 1, "JSE parse error"),
        (["export", "--format", "png"], 2, "--format is json, graphml, dot, mermaid or html"),
        (["central", "--scope", "app", "--all-projects"], 2, "contradict"),
        (["merge", "pg", "postgres"], 2, "the same thing already"),
        (["neighbors", "pg", "--depth", "0"], 2, "--depth"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_a_sentence(told, arguments, code, words):
    """On standard error, with the exit code of its kind, and nothing on standard output."""
    done = told("graph", *arguments)
    assert (done.code, done.out) == (code, "")
    assert words in done.err


def test_an_empty_memory_has_answers(cli):
    """No store yet: nothing is there, and nothing fails."""
    assert "no statements" in cli("graph", "central").out
    assert "nothing here that hangs together" in cli("graph", "communities").out
    assert cli("graph", "check").out == "The graph is whole.\n"
    assert cli("graph", "export", "--json").json["nodes"] == []
    assert cli("graph", "around", "--search", "x").out == "No results found.\n"


# --- what part is meant ---------------------------------------------------------------------------


def names_of(found):
    return sorted(node["id"] for node in found["nodes"])


@pytest.mark.deep
@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--near", "pg"], ["Linux", "PostgreSQL", "retry queue", "rule:no-mocks"]),
        (["--near", "pg", "--depth", "0"], ["PostgreSQL"]),
        (["--near", "api", "--near", "Linux", "--predicate", "uses"], ["Linux", "Redis", "api", "retry queue"]),
        (["--query", '["$knowledge", ["$contains", "tags", "jobs"]]'], ["PostgreSQL", "api", "retry queue"]),
        (["--query", '["$statement", ["$triple", "Redis", "$*", "$*"]]', "--depth", "0"], ["Linux", "Redis"]),
        (["--search", "failed jobs", "--depth", "0"], ["retry queue"]),
        (["--predicate", "runs_on"], ["Linux", "PostgreSQL", "Redis"]),
        (["--except", "uses"], ["Linux", "PostgreSQL", "Redis", "retry queue", "rule:no-mocks"]),
    ],
)  # fmt: skip
def test_a_part_is_chosen_by_name_query_search_and_predicate(told, options, names):
    """The same options for every command that takes a part."""
    assert names_of(told("graph", "export", "--json", *options).json) == names
    assert told("graph", "central", *options).code == 0
    assert told("graph", "communities", *options).code == 0


def test_around_shows_the_neighbourhood_of_a_querys_rows(told):
    """From an expression, from standard input, from a search."""
    expression = '["$knowledge", ["$eq", "name", "retry queue"]]'
    for done in (
        told("graph", "around", expression),
        told("graph", "around", "-", stdin=expression.encode()),
        told("graph", "around", "--search", "failed jobs"),
    ):
        assert done.out == (
            "1 found; with what is around: 3 names, 2 statements\n"
            "  (retry queue, uses, PostgreSQL)\n  (api, uses, retry queue)\n"
        )
    data = told("graph", "around", expression, "--json").json
    assert data["seeds"] == ["retry queue"]
    assert len(nx.node_link_graph(data, edges="edges").edges) == 2


def test_other_projects_are_seen_only_when_asked_for(told, project, monkeypatch):
    """A query that names another project's entries tells how many it hides."""
    other = project.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert "Linux" not in told("graph", "export").out
    plain = '["$knowledge", ["$eq", "name", "PostgreSQL"]]'
    scoped = '["$knowledge", ["$contains", "scopes", "app"], ["$eq", "name", "PostgreSQL"]]'
    assert told("graph", "around", plain).out == "No results found.\n"
    done = told("graph", "around", scoped)
    assert done.out == "No results found.\n"
    assert "1 of the names found cannot be seen from these scopes" in done.err
    assert "1 found" in told("graph", "around", plain, "--scope", "app").out
    assert "1 found" in told("graph", "around", scoped, "--all-projects").out
    for options in (["--all-projects"], ["--scope", "app"]):
        assert "Linux" in told("graph", "export", *options).out


def test_what_is_central_and_what_belongs_together(told):
    """As a table and as JSON."""
    assert told("graph", "central", "--limit", "1").out.split("  ")[1] == "Linux"
    rows = told("graph", "central", "--json").json
    assert sum(row["rank"] for row in rows) == pytest.approx(1, abs=1e-6)
    assert [row["rank"] for row in rows] == sorted((row["rank"] for row in rows), reverse=True)
    found = told("graph", "communities", "--json").json
    members = sorted(one["name"] for group in found["communities"] for one in group["members"])
    assert members == ["Linux", "PostgreSQL", "Redis", "api", "retry queue", "rule:no-mocks"]
    assert all(group["title"] for group in found["communities"])


# --- check, export, merge -------------------------------------------------------------------------


def test_check_ends_with_1_only_when_something_is_wrong(told):
    """Two spellings are odd; a work unit from nowhere is wrong. Each says what to do."""
    odd = told("graph", "check")
    assert odd.code == 0
    assert "odd: one predicate is spelt in 2 ways: runsOn (1) and runs_on (1)." in odd.out
    told("knowledge-create", "wu-2026-05-10-x", "--tags", "memory,work-unit")
    wrong = told("graph", "check")
    assert wrong.code == 1
    assert "wrong: the work unit 'wu-2026-05-10-x' is derived from nothing" in wrong.out
    assert "  hypatia-mem statement-create wu-2026-05-10-x derivedFrom" in wrong.out
    machine = told("graph", "check", "--json")
    assert (machine.code, machine.json["ok"]) == (1, False)
    assert [one["kind"] for one in machine.json["findings"]] == ["sourceless", "spelling"]
    assert told("graph", "check", "--scope", "elsewhere").out == "The graph is whole.\n"


@pytest.mark.parametrize("name", ["g.json", "g.graphml", "g.gv", "g.mmd", "g.html"])
def test_export_writes_a_file_in_the_format_of_its_name(told, project, name):
    """For its owner's eyes; an existing one is made anew."""
    (project / name).write_text("before")
    done = told("graph", "export", "-o", name)
    assert done.out == f"Wrote {name}: 6 names, 6 statements.\n"
    text = (project / name).read_text("utf-8")
    assert "retry queue" in text
    assert [one.name for one in project.iterdir()] == [name]
    if os.name == "posix":
        assert (project / name).stat().st_mode & 0o077 == 0
    if name == "g.graphml":
        assert len(nx.read_graphml(project / name)) == 6


def test_export_prints_without_a_file(told):
    """JSON by itself; with --json every format inside JSON."""
    data = json.loads(told("graph", "export").out)
    assert len(nx.node_link_graph(data, edges="edges")) == 6
    assert told("graph", "export", "--json").json == data
    graph = nx.read_graphml(io.BytesIO(told("graph", "export", "--format", "graphml").out.encode()))
    assert "PostgreSQL" in graph
    machine = told("graph", "export", "--format", "dot", "--json").json
    assert (machine["format"], machine["nodes"], machine["edges"]) == ("dot", 6, 6)
    assert machine["text"].startswith("digraph")


def test_export_into_a_folder_that_is_not_there_is_a_sentence(told, project):
    """And leaves nothing behind."""
    done = told("graph", "export", "-o", "missing/g.html")
    assert (done.code, done.out) == (1, "")
    assert "No such file or directory" in done.err
    assert list(project.iterdir()) == []


@pytest.mark.deep
def test_merge_shows_its_blast_radius_and_can_be_taken_back(told):
    """Nothing on a dry run; afterwards the line that undoes it, which does."""
    told("statement-create", "psql", "runs_on", "Linux")
    told("statement-create", "psql", "part_of", "PostgreSQL")
    before = told("graph", "export").out
    dry = told("graph", "merge", "pg", "psql", "--dry-run")
    assert dry.out.startswith("Would merge 'psql' into 'PostgreSQL'.\n")
    assert "1 statement joined with one that is there\n    psql,runs_on,Linux" in dry.out
    assert (
        "1 statement dropped, for it would lead to itself\n    psql,part_of,PostgreSQL" in dry.out
    )
    assert "PostgreSQL gains the synonyms psql" in dry.out
    assert told("graph", "export").out == before

    done = told("graph", "merge", "pg", "psql", "--json").json
    assert (done["keep"], done["other"], done["dropped"]) == (
        "PostgreSQL", "psql", ["psql,part_of,PostgreSQL"],
    )  # fmt: skip
    assert told("graph", "neighbors", "psql", "--json").json["name"] == "PostgreSQL"
    assert told("undo", done["op_id"]).code == 0
    assert told("graph", "export").out == before
    text = told("graph", "merge", "pg", "psql").out
    assert text.splitlines()[-1].startswith("To take it back: hypatia-mem undo ")


def test_merge_of_what_differs_needs_force(told):
    """The refusal names the reason."""
    done = told("graph", "merge", "PostgreSQL", "rule:no-mocks")
    assert (done.code, done.out) == (1, "")
    assert "one is a knowledge, the other a rule" in done.err
    assert told("graph", "merge", "PostgreSQL", "rule:no-mocks", "--force").code == 0


# --- cost -----------------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "loads"),
    [
        (["graph", "--help"], set()),
        (["graph", "path", "--help"], set()),
        (["--help"], set()),
        (["search", "x", "--scope", "app"], set()),
        (["graph", "neighbors", "pg"], {"duckdb"}),
        (["graph", "merge", "pg", "Redis", "--dry-run"], {"duckdb"}),
        (["graph", "export", "--format", "html"], {"duckdb"}),
        (["graph", "path", "pg", "api"], {"duckdb", "networkx"}),
        (["graph", "communities"], {"duckdb", "networkx"}),
    ],
)
def test_networkx_is_imported_by_what_uses_it_alone(told, arguments, loads):
    """Its import costs fifteen starts of a bare interpreter; numpy and scipy are not needed."""
    code = (
        "import sys\nfrom hypatia_mem.cli.app import run\n"
        f"run({arguments!r})\n"
        "print(chr(10) + ' '.join({name.split('.')[0] for name in sys.modules}))"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": root, "HYPATIA_MEM_HOME": os.environ["HYPATIA_MEM_HOME"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    found = set(done.stdout.decode().splitlines()[-1].split())
    assert found & {"duckdb", "networkx", "numpy", "scipy", "pydantic"} == loads


def test_every_command_of_the_group_has_an_example(cli):
    """In its help, beginning with the program's name."""
    for name in (
        "neighbors",
        "path",
        "communities",
        "central",
        "around",
        "check",
        "export",
        "merge",
    ):
        text = cli("graph", name, "--help").out
        assert f"hypatia-mem graph {name}" in text.split("Example")[1], name
        assert "--json" in text
