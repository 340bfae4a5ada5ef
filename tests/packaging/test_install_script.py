"""``install.sh`` on machines that lack something: a sentence, a code, and nothing left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("sh", "dirname", "mkdir", "ln")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a shell script")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Return a folder for PATH that holds the script's own tools and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        (folder / tool).symlink_to(shutil.which(tool))
    return folder


def put(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def run(bare: Path, home: Path, **environment: str) -> subprocess.CompletedProcess:
    home.mkdir(exist_ok=True)
    return subprocess.run(
        ["/bin/sh", str(ROOT / "install.sh")],
        capture_output=True,
        text=True,
        env={"PATH": str(bare), "HOME": str(home), **environment},
        cwd=home,
        check=False,
    )


def test_without_python_it_says_which_is_needed(bare, tmp_path):
    done = run(bare, tmp_path / "home")
    assert done.returncode == 1
    assert "Python 3.11 to 3.14" in done.stderr
    assert list((tmp_path / "home").iterdir()) == []


def test_an_old_python_is_passed_over(bare, tmp_path):
    """A machine may have python3 3.9 and nothing newer; the version test is what says no."""
    put(bare, "python3", "exit 1")
    done = run(bare, tmp_path / "home")
    assert done.returncode == 1
    assert "Python 3.11 to 3.14" in done.stderr


def test_debian_without_venv_says_what_to_install(bare, tmp_path):
    put(
        bare,
        "python3.11",
        'case "$1 $2" in *ensurepip*) exit 1;; --version*) echo Python 3.11.2;; esac\nexit 0',
    )
    done = run(bare, tmp_path / "home")
    assert done.returncode == 1
    assert "apt install python3-venv" in done.stderr
    assert list((tmp_path / "home").iterdir()) == []


def test_a_failed_step_is_a_failed_installation(bare, tmp_path):
    """An installer that ends well over a step that failed hides it for weeks."""
    put(bare, "python3.11", '[ "$1" = -m ] && exit 3\nexit 0')
    done = run(bare, tmp_path / "home")
    assert done.returncode == 1
    assert "cannot be made" in done.stderr
    assert not (tmp_path / "home/.local/bin").exists()


def test_the_script_is_clean_for_shellcheck():
    program = shutil.which("shellcheck") or shutil.which(
        "shellcheck", path=str(Path(sys.prefix, "bin"))
    )
    if program is None:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run([program, str(ROOT / "install.sh")], capture_output=True, text=True)
    assert done.stdout == ""


@pytest.mark.slow
def test_from_a_clone_to_a_running_memory_in_one_command(tmp_path):
    """The README's first command, in a home that has nothing, in a folder with a blank."""
    clone, home = tmp_path / "my clone", tmp_path / "home"
    ignore = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, clone, ignore=ignore)
    home.mkdir()
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home)}
    environment["HYPATIA_MEM_PYTHON"] = sys.executable
    for _ in range(2):  # a second time is an upgrade
        done = subprocess.run(
            [str(clone / "install.sh")], capture_output=True, text=True, env=environment, cwd=home
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "never mock the database" in done.stdout
        assert "not on your PATH" in done.stdout
    assert (home / ".claude/skills/hypatia-memory/SKILL.md").exists()
    removed = subprocess.run(
        [str(home / ".local/bin/hypatia-mem"), "uninstall", "--purge"], env=environment, cwd=home
    )
    assert removed.returncode == 0
    assert not (home / ".claude").exists()
    assert [path.name for path in (home / ".local/share").iterdir()] == ["hypatia-mem-venv"]
