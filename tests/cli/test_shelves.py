"""Shelves: other memories, each in a folder, reached only by their name."""

from __future__ import annotations

import subprocess

import pytest

from hypatia_mem.cli.app import COMMANDS, NO_SHELF
from hypatia_mem.cli.group import load


@pytest.fixture
def work(cli, tmp_path):
    """A connected shelf called ``work``."""
    folder = tmp_path / "shelves" / "work"
    assert cli("connect", str(folder), "-n", "work").code == 0
    return folder


def test_the_life_of_a_shelf(cli, tmp_path):
    """With the published texts; the folder outlives its registration."""
    folder = tmp_path / "my shelf"

    assert cli("list").out == "No shelves registered.\n"
    assert cli("connect", str(folder)).out == "Shelf 'my shelf' connected and registered.\n"
    assert cli("list").out == f"  my shelf  {folder}  [connected]\n"
    assert cli("list", "--json").json == [
        {"name": "my shelf", "path": str(folder), "connected": True}
    ]
    cli("knowledge-create", "x", "-d", "kept", "-s", "my shelf")
    assert cli("disconnect", "my shelf").out == (
        "Shelf 'my shelf' disconnected and unregistered.\n"
    )
    assert cli("list").out == "No shelves registered.\n"

    assert cli("connect", str(folder), "--name", "again").code == 0
    assert cli("knowledge-get", "x", "-s", "again").json["content"]["data"] == "kept"


def test_names_are_aligned(cli, tmp_path):
    """As published: the columns begin under each other."""
    cli("connect", str(tmp_path / "a"))
    cli("connect", str(tmp_path / "longer"))

    assert cli("list").out.splitlines() == [
        f"  a       {tmp_path / 'a'}  [connected]",
        f"  longer  {tmp_path / 'longer'}  [connected]",
    ]


@pytest.mark.deep
def test_nothing_crosses_between_shelves(cli, work):
    """Each reads and writes its own memory alone; without a name it is the default one."""
    cli("knowledge-create", "x", "-d", "needle at home")
    cli("knowledge-create", "x", "-d", "needle at work", "--shelf", "work")
    cli("statement-create", "a", "knows", "b", "-s", "work")
    cli("remember", "never mock the database", "-s", "work")

    def data(*options):
        return cli("knowledge-get", "x", *options).json["content"]["data"]

    assert (data(), data("-s", "default"), data("-s", "work")) == (
        "needle at home",
        "needle at home",
        "needle at work",
    )
    assert [row["key"] for row in cli("search", "needle", "--json").json] == ["x"]
    assert len(cli("search", "mock", "-s", "work", "--json").json) == 1
    assert cli("search", "mock").out == "No results found.\n"
    assert cli("query", '["$statement"]').out == "No results found.\n"
    assert cli("query", '["$statement", ["$triple", "a", "$*", "$*"]]', "-s", "work").json
    assert cli("rules").out.startswith("Nothing is remembered")
    assert "never mock" in cli("rules", "-s", "work").out

    assert cli("knowledge-delete", "x", "-s", "work").code == 0
    assert data() == "needle at home"


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NO_SHELF])
def test_every_data_command_takes_a_shelf(name):
    """And no two options of a command share a letter."""

    def check(command):
        options = [word for param in command.params for word in param.opts if word[0] == "-"]
        assert len(options) == len(set(options)), command.name
        assert "--shelf" in options
        for sub in getattr(command, "commands", {}).values():
            check(sub)

    check(load(name, COMMANDS[name]))


def test_the_shelf_of_one_command_is_not_that_of_the_next(cli, work):
    """One process may run many command lines."""
    cli("knowledge-create", "there", "-s", "work")

    assert cli("knowledge-get", "there").out == "Knowledge 'there' not found.\n"
    assert cli("sessions", "-s", "work", "edit", "nobody", "--title", "x").code == 1


@pytest.mark.parametrize("command", [["search", "x"], ["knowledge-create", "x"], ["rules"]])
def test_a_shelf_that_cannot_be_opened_fails_loudly(cli, work, tmp_path, command):
    """What is gone must not look empty, nor be made anew."""
    unknown = cli(*command, "-s", "wrk")
    work.rename(tmp_path / "moved")
    gone = cli(*command, "-s", "work")
    work.mkdir()
    empty = cli(*command, "-s", "work")

    assert (unknown.code, gone.code, empty.code) == (1, 1, 1)
    assert unknown.err.startswith("Error: shelf error: there is no shelf 'wrk'")
    assert "its folder" in gone.err
    assert "memory.duckdb is missing" in empty.err
    assert cli("list").out == f"  work  {work}  [disconnected]\n"
    assert not any(work.iterdir())


def test_one_folder_has_one_name(cli, work, tmp_path, home):
    """By whatever path it is reached; connecting it again under its name changes nothing."""
    (tmp_path / "link").symlink_to(work)

    assert cli("connect", str(work), "-n", "work").code == 0
    for folder, name in (
        (work, "other"),
        (tmp_path / "link", "other"),
        (tmp_path / "elsewhere", "work"),
        (home, "other"),
        (home / "inside", "other"),
    ):
        done = cli("connect", str(folder), "-n", name)
        assert (done.code, done.err[:19]) == (1, "Error: shelf error:"), folder
    assert [row["name"] for row in cli("list", "--json").json] == ["work"]
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["default", "a/b", "-x", ".x", " x", "x\n", "x" * 65])
def test_names_that_a_shelf_cannot_have(cli, tmp_path, name):
    """Each with a sentence, and nothing is made."""
    done = cli("connect", str(tmp_path / "folder"), f"--name={name}")

    assert (done.code, done.err[:19]) == (1, "Error: shelf error:")
    assert not (tmp_path / "folder").exists()


def test_a_folder_of_other_things_is_not_turned_into_a_memory(cli, tmp_path):
    """Nobody wants a database among his sources; an empty folder will do."""
    (tmp_path / "src2").mkdir()
    (tmp_path / "src2" / "main.c").write_text("int main;")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")

    assert "holds files that are no memory" in cli("connect", str(tmp_path / "src2")).err
    assert [path.name for path in (tmp_path / "src2").iterdir()] == ["main.c"]
    assert "is not a folder" in cli("connect", str(tmp_path / "file")).err
    assert cli("connect", str(tmp_path / "empty")).code == 0


def test_a_repository_never_commits_a_shelf_in_it(cli, project):
    """``connect work`` makes a folder here; in a repository it would go out with the next push."""
    done = cli("connect", "notes")
    assert done.out == "Shelf 'notes' connected and registered.\n"
    assert done.err == ""
    assert str(project / "notes") in cli("list").out
    assert not (project / "notes" / ".gitignore").exists()

    subprocess.run(["git", "init", "-q", str(project)], check=True)
    done = cli("connect", "work", "--json")
    assert done.json["path"] == str(project / "work")
    assert f"lies in the repository {project}" in done.err
    cli("remember", "never push it", "-s", "work")
    status = subprocess.run(
        ["git", "-C", str(project), "status", "--porcelain", "-uall"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "work/" not in status.stdout
    assert "notes/memory.duckdb" in status.stdout  # the twin that was there before
    assert cli("connect", "notes").code == 0
    assert (project / "notes" / ".gitignore").read_text() == "*\n"
    assert cli("connect", "notes").code == 0


def test_a_damaged_store_is_refused_when_it_is_connected(cli, tmp_path):
    """With the store's own exit code, and nothing registered."""
    folder = tmp_path / "damaged"
    folder.mkdir()
    (folder / "memory.duckdb").write_bytes(b"\0" * 8192)

    done = cli("connect", str(folder))

    assert done.code == 6
    assert "shelf 'damaged' cannot be opened" in done.err
    assert cli("list").out == "No shelves registered.\n"


def test_the_default_shelf_cannot_be_disconnected(cli):
    """It is this memory itself."""
    assert cli("disconnect", "default").code == 1
    assert cli("disconnect", "nobody").err.startswith("Error: shelf error: there is no shelf")


def test_registering_keeps_the_rest_of_the_settings_file(cli, home, tmp_path):
    """Comments, settings and tables of other programs; and the settings keep the shelves."""
    file = home / "config.toml"
    file.write_text('# mine\ntriggers = "off"  # quiet\n\n[other]\nx = 1\n')

    cli("connect", str(tmp_path / 'a "quoted" folder'), "-n", "q")
    cli("config", "set", "extract_every", "7")
    cli("connect", str(tmp_path / "b"))
    text = file.read_text()

    assert text.startswith('# mine\ntriggers = "off"  # quiet\n')
    assert "[other]\nx = 1\n" in text
    assert "extract_every = 7" in text
    assert [row["name"] for row in cli("list", "--json").json] == ["b", "q"]
    assert cli("config", "get", "triggers").out.strip() == "off"
    cli("disconnect", "q")
    cli("disconnect", "b")
    assert "shelves" not in file.read_text()


def test_a_settings_file_that_is_no_toml_is_not_taken_for_an_empty_list(cli, home, tmp_path):
    """Writing would lose what it says."""
    (home / "config.toml").write_text("[shelves\n")

    assert cli("list").code == 1
    assert cli("connect", str(tmp_path / "x")).code == 1
    assert (home / "config.toml").read_text() == "[shelves\n"
