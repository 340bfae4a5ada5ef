"""Where things lie, and which project a folder belongs to, whatever stands around it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypatia_mem.capture import paths

GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "PATH": os.environ["PATH"]}
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    allow = ["-c", "protocol.file.allow=always"]
    subprocess.run(
        ["git", *identity, *allow, *arguments], cwd=folder, check=True, capture_output=True, env=GIT
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository ``app`` with one commit."""
    folder = tmp_path / "src" / "app"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("a")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-qm", "first")
    return folder


def root(path: Path) -> paths.Root:
    return paths.find_root(str(path))


# -- the home


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({"HYPATIA_MEM_HOME": "/m/home"}, "/m/home", id="named"),
        pytest.param({"HYPATIA_MEM_HOME": "/m//x/../home/"}, "/m/home", id="untidy"),
        pytest.param({"HYPATIA_MEM_HOME": "~/mem", "HOME": "/h"}, "/h/mem", id="tilde"),
        pytest.param({"HYPATIA_MEM_HOME": "mem", "HOME": "/h"}, "/h/mem", id="relative"),
        pytest.param({"HOME": "/h"}, "/h/.local/share/hypatia-mem", id="default"),
        pytest.param({"HOME": "/h", "XDG_DATA_HOME": "/x"}, "/x/hypatia-mem", id="xdg"),
        pytest.param(
            {"HOME": "/h", "XDG_DATA_HOME": "x"}, "/h/.local/share/hypatia-mem", id="xdg-relative"
        ),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="places of Linux")
def test_home_follows_the_environment(environ, expected):
    """The environment decides, and the current folder never does."""
    assert paths.home(environ) == expected


def test_home_without_an_environment_is_the_password_files(monkeypatch):
    """A service without HOME has the same memory as the person's shell."""
    pwd = pytest.importorskip("pwd")
    folder = pwd.getpwuid(os.getuid()).pw_dir
    assert paths.home({}).startswith(folder)


@pytest.mark.parametrize("xdg", ["", "/somewhere/data"])
def test_home_is_the_one_platformdirs_names(monkeypatch, xdg):
    """The hook reckons without the library what the library would say."""
    import platformdirs

    monkeypatch.delenv("HYPATIA_MEM_HOME")
    if xdg:
        monkeypatch.setenv("XDG_DATA_HOME", xdg)
    expected = platformdirs.user_data_dir("hypatia-mem", appauthor=False)
    assert Path(paths.home()) == Path(expected)


@posix_only
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_home_is_closed_to_others(tmp_path, umask):
    """Folders are 0700 and the README 0600 whatever the umask; a second time changes nothing."""
    home = tmp_path / "deep" / "down" / "home"
    before = os.umask(umask)
    try:
        paths.ensure_home(str(home))
        paths.ensure_home(str(home))
    finally:
        os.umask(before)
    for path in [home, *home.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert {p.name for p in home.iterdir()} >= {"spool", "briefs", "turns", "README"}
    assert (home / "spool" / "quarantine").is_dir()
    assert "hypatia-mem uninstall" in (home / "README").read_text()


@posix_only
def test_home_left_open_is_closed(tmp_path):
    """A home that somebody made with everyday modes is closed."""
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    paths.ensure_home(str(home))
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["", "spool", "turns"])
def test_home_with_a_file_in_the_way_is_an_error_that_names_it(tmp_path, name):
    """The message says which path is in the way."""
    home = tmp_path / "home"
    if name:
        paths.ensure_home(str(home))
        (home / name / "quarantine").rmdir() if name == "spool" else None
        (home / name).rmdir()
    (home / name if name else home).write_text("a file")
    with pytest.raises(OSError, match=name or "home") as caught:
        paths.ensure_home(str(home))
    assert str(home) in str(caught.value.filename)


# -- projects


def test_subfolder_is_its_repository(repository):
    """A deep folder, and one that does not exist any more, belong to the repository."""
    deep = repository / "a" / "b"
    deep.mkdir(parents=True)
    whole = root(repository)
    assert whole.path == str(repository)
    assert whole.git_dir == whole.common_dir == str(repository / ".git")
    assert whole.key.startswith("g-")
    assert root(deep) == whole
    assert root(repository / "gone" / "too") == whole


def test_worktree_is_its_main_repository(repository, tmp_path):
    """Beside, inside and pruned worktrees are the main repository."""
    beside = tmp_path / "elsewhere" / "feature"
    inside = repository / ".claude" / "worktrees" / "w"
    git(repository, "worktree", "add", "-q", str(beside))
    git(repository, "worktree", "add", "-q", str(inside))
    for folder in (beside, inside):
        found = root(folder)
        assert (found.path, found.key) == (str(repository), root(repository).key)
        assert found.git_dir != found.common_dir == str(repository / ".git")
    for record in (repository / ".git" / "worktrees").iterdir():
        for part in record.iterdir():
            part.unlink() if part.is_file() else None
        subprocess.run(["rm", "-rf", str(record)], check=True)
    assert root(beside).path == str(repository)


def test_submodule_is_a_project_of_its_own(repository, tmp_path):
    """A submodule shares neither path nor key with what it is part of."""
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "add", "-q", str(repository), "lib")
    found = root(outer / "lib")
    assert found.path == str(outer / "lib")
    assert found.key not in (root(outer).key, root(repository).key)
    assert root(outer).path == str(outer)


def test_separate_git_directory(tmp_path):
    """A repository whose git directory lies elsewhere is known by the folder people work in."""
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "store").mkdir()
    git(work, "init", "-q", "--separate-git-dir", str(tmp_path / "store" / "git"))
    assert root(work).path == str(work)
    assert root(work).git_dir == str(tmp_path / "store" / "git")


def test_worktrees_of_a_bare_repository_share_a_key(repository, tmp_path):
    """Without a main folder the worktrees still are one project."""
    git(tmp_path, "clone", "-q", "--bare", str(repository), str(tmp_path / "app.git"))
    git(tmp_path / "app.git", "worktree", "add", "-q", str(tmp_path / "one"), "-b", "one")
    git(tmp_path / "app.git", "worktree", "add", "-q", str(tmp_path / "two"), "-b", "two")
    assert root(tmp_path / "one").key == root(tmp_path / "two").key


@posix_only
def test_link_is_what_it_leads_to(repository, tmp_path):
    """A link to a repository or to a folder in it is that repository."""
    (repository / "sub").mkdir()
    (tmp_path / "link").symlink_to(repository)
    (tmp_path / "deep").symlink_to(repository / "sub")
    assert root(tmp_path / "link") == root(tmp_path / "deep") == root(repository)


def test_key_survives_a_move_and_not_a_new_clone(repository, tmp_path):
    """The same repository elsewhere keeps its key; another one at the same path has its own."""
    key = root(repository).key
    moved = tmp_path / "moved"
    repository.rename(moved)
    assert root(moved).key == key
    assert root(moved).path == str(moved)
    git(tmp_path, "clone", "-q", str(moved), str(repository))
    assert root(repository).key not in ("", key)


def test_same_basename_is_not_the_same_project(tmp_path):
    """Two repositories and two plain folders called ``app`` are four projects."""
    keys = set()
    for number in range(4):
        folder = tmp_path / str(number) / "app"
        folder.mkdir(parents=True)
        if number < 2:
            git(folder, "init", "-q")
        keys.add(root(folder).key)
    assert len(keys) == 4


def test_folder_without_git_is_itself(tmp_path):
    """No repository: the folder, with a key of its path that is the same on every machine."""
    folder = tmp_path / "plain"
    folder.mkdir()
    found = root(folder)
    assert (found.path, found.git_dir, found.common_dir) == (str(folder), "", "")
    assert found.key == paths.path_key(str(folder))
    assert paths.path_key("/home/dev/app") == "p-55d1cf871d2fe12b60cfef83"


def test_repository_without_description_is_known_by_path(repository):
    """A template without ``description`` costs the git identity, not the memory."""
    (repository / ".git" / "description").unlink()
    assert root(repository).key == paths.path_key(str(repository))


@pytest.mark.parametrize("content", [None, "", "nonsense", "gitdir: /nowhere/at/all"])
def test_what_is_no_repository_is_passed_over(tmp_path, content):
    """An empty ``.git`` folder, or a file that leads nowhere, is no project's root."""
    git(tmp_path, "init", "-q")
    inner = tmp_path / "inner"
    inner.mkdir()
    if content is None:
        (inner / ".git").mkdir()
    else:
        (inner / ".git").write_text(content)
    assert root(inner).path == str(tmp_path)


@pytest.mark.parametrize(
    "path", ["", "/", ".", "a\0b", "\ud800", "/nowhere", "x" * 5000, "//a//b/"]
)
def test_any_path_has_a_root(path):
    """Nothing that can come in raises."""
    found = paths.find_root(path)
    assert found.path
    assert found.key


@posix_only
@settings(max_examples=150, deadline=None)
@given(
    links=st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["..", ".", "a", "b/c", "/", "c/../d"])),
        max_size=6,
    ),
    path=st.lists(st.sampled_from(["a", "b", "c", "d", "..", ".", "", "x"]), max_size=7),
)
def test_real_path_agrees_with_the_library(tmp_path_factory, links, path):
    """Links, circles and dots: the same answer as os.path.realpath."""
    base = tmp_path_factory.mktemp("links")
    (base / "b").mkdir()
    for name, target in links:
        if not (base / name).is_symlink() and not (base / name).exists():
            (base / name).symlink_to(target if target != "/" else str(base / "b"))
    given_path = f"{base}/{'/'.join(path)}"
    try:
        expected = os.path.realpath(given_path, strict=True)
    except OSError:
        paths.real_path(given_path)  # a circle, or not there: any answer, no exception
        return
    assert paths.real_path(given_path) == expected


# -- the log


def test_log_is_one_line_each_and_bounded(home):
    """Line breaks become spaces; at the limit the file turns over and one old one is kept."""
    paths.log_line(str(home), "ERROR", "hook", "two\nlines \ud800 here")
    line = (home / "hypatia-mem.log").read_text()
    when, level, component, sentence = line.rstrip("\n").split(" ", 3)
    assert when.endswith("Z")
    assert (level, component, sentence) == ("ERROR", "hook", "two lines \\ud800 here")
    for _ in range(3):
        (home / "hypatia-mem.log").write_bytes(b"x" * (paths.LOG_BYTES + 1))
        paths.log_line(str(home), "INFO", "hook", "next")
    logs = sorted(p.name for p in home.glob("hypatia-mem.log*"))
    assert logs == ["hypatia-mem.log.1"]


@posix_only
def test_lock_is_the_descriptors(home):
    """One holder at a time, shared ones together, and closing lets go."""
    first = os.open(home / "worker.lock", os.O_RDWR | os.O_CREAT, 0o600)
    second = os.open(home / "worker.lock", os.O_RDWR)
    assert paths.try_lock(first)
    assert not paths.try_lock(second)
    assert not paths.try_lock(second, shared=True)
    os.close(first)
    assert paths.try_lock(second, shared=True)
    third = os.open(home / "worker.lock", os.O_RDWR)
    assert paths.try_lock(third, shared=True)
    os.close(second)
    os.close(third)
