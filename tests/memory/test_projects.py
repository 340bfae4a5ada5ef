"""Which project a folder is, decided without a store."""

from __future__ import annotations

from datetime import datetime

import pytest

from hypatia_mem.errors import Conflict, NotFound, UsageError
from hypatia_mem.memory import curate, projects
from hypatia_mem.memory.projects import Identity, KnownRoot, decide, scope_name
from hypatia_mem.model import Author, Channel
from hypatia_mem.store.connection import open_store

AUTHOR = Author(Channel.CLI_PERSON)
NOW = datetime(2026, 11, 30, 12)
HERE = Identity("/code/app", "g-1", git_key="g-1", origin_key="o1", remote="r1")


def root(path="/code/app", scope="app", git_key="g-1", origin_key="o1", remote="r1"):
    return KnownRoot(path, scope, git_key, origin_key, remote)


@pytest.mark.parametrize(
    ("identity", "roots", "there", "scope"),
    [
        pytest.param(HERE, [], [], "app", id="first-time"),
        pytest.param(HERE, [root()], ["/code/app"], "app", id="known"),
        pytest.param(HERE, [root(path="/old/app")], [], "app", id="moved"),
        pytest.param(HERE, [root(path="/old/app", git_key="g-9")], [], "app", id="copied-and-gone"),
        pytest.param(
            HERE,
            [root(path="/old/app", git_key="g-9")],
            ["/old/app"],
            "app@code",
            id="copy-beside-the-original",
        ),
        pytest.param(
            HERE,
            [root(path="/clients/app", git_key="g-2", origin_key="o2", remote="r2")],
            ["/clients/app"],
            "app@code",
            id="other-repository-of-that-name",
        ),
        pytest.param(
            HERE,
            [root(git_key="g-2", origin_key="o2", remote="r1")],
            ["/code/app"],
            "app",
            id="cloned-again-at-the-same-path",
        ),
        pytest.param(
            HERE,
            [root(git_key="g-2", origin_key="o2", remote="r2")],
            ["/code/app"],
            "app@code",
            id="another-repository-at-the-same-path",
        ),
        pytest.param(
            Identity("/code/app", "g-1", git_key="g-1", origin_key="o1"),
            [root(git_key="g-2", origin_key="o2", remote="")],
            ["/code/app"],
            "app@code",
            id="another-repository-at-the-same-path-and-no-remotes",
        ),
        pytest.param(
            Identity("/code/app", "g-1", git_key="g-1"),
            [root(git_key="g-1", origin_key="", remote="")],
            ["/code/app"],
            "app",
            id="repository-before-its-first-commit",
        ),
        pytest.param(
            HERE,
            [root(git_key="", origin_key="", remote="")],
            ["/code/app"],
            "app",
            id="git-init-in-a-known-folder",
        ),
        pytest.param(
            Identity("/code/app", "p-1"),
            [root(path="/code/my-app", scope="my-app")],
            ["/code/my-app"],
            "app",
            id="app-is-not-my-app",
        ),
    ],
)
def test_decide(identity, roots, there, scope):
    """Every way a folder can be, with what is remembered of others."""
    decision = decide(identity, roots, {r.scope for r in roots}, lambda path: path in there)
    assert decision.scope == scope


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ("git@github.com:me/app.git", "https://github.com/me/app", True),
        ("https://github.com/me/app.git", "ssh://git@GitHub.com:22/me/app/", True),
        ("/srv/git/app.git", "file:///srv/git/app", True),
        ("git@github.com:me/app.git", "git@github.com:you/app.git", False),
        ("https://github.com/me/app", "https://gitlab.com/me/app", False),
        ("https://github.com/me/app", "", False),
        ("", "https://github.com/me/app", False),
    ],
)
def test_a_remote_is_one_however_it_is_reached(before, now, same):
    """A clone over ssh at the place of one over https is the same project."""
    here = Identity("/code/app", "g-1", git_key="g-1", origin_key="o1", remote=now)
    roots = [root(git_key="g-2", origin_key="o2", remote=before)]
    assert (decide(here, roots, {"app"}, lambda _: True).scope == "app") is same


def test_third_folder_of_a_name_is_numbered():
    """Names stay unique whatever the folders are called."""
    taken = {"app", "app@code"}
    assert decide(HERE, [], taken, lambda _: True).scope == "app@code-2"


@pytest.mark.parametrize(
    ("folder", "scope"),
    [("app", "app"), ("a,b", "a_b"), ("日本", "日本"), ("", "project"), ("x\ny", "x_y")],
)
def test_scope_of_any_folder_name_can_stand_in_a_list(folder, scope):
    """Scopes are listed with commas on the command line."""
    assert scope_name(folder) == scope


@pytest.fixture
def two(home, tmp_path):
    """Two projects, each with a rule."""
    for name in ("app", "other"):
        (tmp_path / name).mkdir()
        with curate.changing(home, AUTHOR, NOW) as (store, txn):
            projects.claim(store, txn, str(tmp_path / name))
        curate.remember(home, f"always {name}", kind="rule", scope=name, author=AUTHOR, now=NOW)
    return tmp_path


def rules(home, scope):
    with open_store(home, write=False) as store:
        return sorted(entry.content for entry in store.rules([scope]))


@pytest.mark.deep
def test_rename_takes_everything_along(home, two):
    """Nothing is left under the old name, and the folder is still known."""
    projects.rename(home, "app", "shop", author=AUTHOR, now=NOW)
    assert rules(home, "shop") == ["always app"]
    assert rules(home, "app") == []
    with open_store(home, write=False) as store:
        assert projects.resolve(store, str(two / "app")).scope == "shop"


def test_rename_to_a_taken_name_points_to_merge(home, two):
    """Two projects are put together on purpose only."""
    with pytest.raises(Conflict, match="project merge app other"):
        projects.rename(home, "app", "other", author=AUTHOR, now=NOW)
    assert rules(home, "app") == ["always app"]


def test_merge_joins_rules_and_folders(home, two):
    """Both folders are one project afterwards."""
    projects.merge(home, "app", "other", author=AUTHOR, now=NOW)
    assert rules(home, "other") == ["always app", "always other"]
    with open_store(home, write=False) as store:
        assert projects.resolve(store, str(two / "app")).scope == "other"


@pytest.mark.deep
def test_alias_lets_a_folder_belong(home, two):
    """What cannot be guessed is said once."""
    (two / "copy").mkdir()
    projects.alias(home, "app", str(two / "copy"), author=AUTHOR, now=NOW)
    with open_store(home, write=False) as store:
        assert projects.resolve(store, str(two / "copy")).scope == "app"
    with pytest.raises(Conflict, match="project merge"):
        projects.alias(home, "app", str(two / "other"), author=AUTHOR, now=NOW)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda home: projects.rename(home, "none", "x", author=AUTHOR, now=NOW), NotFound),
        (lambda home: projects.merge(home, "app", "none", author=AUTHOR, now=NOW), NotFound),
        (lambda home: projects.merge(home, "app", "app", author=AUTHOR, now=NOW), UsageError),
        (lambda home: projects.rename(home, "app", "a,b", author=AUTHOR, now=NOW), UsageError),
        (lambda home: projects.rename(home, "app", "", author=AUTHOR, now=NOW), UsageError),
        (lambda h: projects.set_excluded(h, "none", True, author=AUTHOR, now=NOW), NotFound),
    ],
)
def test_mistakes_change_nothing(home, two, act, error):
    """A wrong name is a sentence, not a change."""
    with pytest.raises(error):
        act(home)
    assert rules(home, "app") == ["always app"]
    assert rules(home, "other") == ["always other"]
