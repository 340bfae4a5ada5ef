"""Completion by the scripts that the program prints, run by a real shell where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

REPOSITORY = os.getcwd()


@pytest.fixture
def programs(tmp_path, project, home):
    """``hypatia-mem`` and ``hypatia`` on a PATH of their own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("hypatia-mem", "hypatia"):
        path = folder / name
        path.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {REPOSITORY!r})\n"
            "from hypatia_mem.cli.app import main\nmain()\n"
        )
        path.chmod(0o755)
    (home / "config.toml").write_text('[shelves]\n"work" = "/w"\n"my notes" = "/n"\n')
    return folder


def environment(programs):
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "TYPER_USE_RICH": "0"}


def script(programs, shell, name="hypatia-mem"):
    done = subprocess.run(
        [programs / name, "completion", shell],
        capture_output=True,
        text=True,
        env=environment(programs),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


CASES = [
    pytest.param("hypatia-mem knowledge-", "knowledge-create", "search", id="commands"),
    pytest.param("hypatia-mem search --sh", "--shelf", "--limit", id="options"),
    pytest.param("hypatia-mem search x -s ", "work", "search", id="shelves"),
    pytest.param("hypatia-mem tag list --shelf w", "work", "default", id="shelves of a subcommand"),
    pytest.param("hypatia-mem disconnect wo", "work", "default", id="a shelf's name"),
    pytest.param("hypatia-mem scope ", "exists", "search", id="subcommands"),
    pytest.param("hypatia-mem scope list --c", "--count", "--json", id="options of a subcommand"),
]


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(("line", "there", "absent"), CASES)
def test_bash(programs, tmp_path, line, there, absent):
    """Sourced and asked as bash asks: the function it names, COMP_WORDS in, COMPREPLY out."""
    (tmp_path / "script.bash").write_text(script(programs, "bash"))
    asked = f"""
        source {tmp_path}/script.bash
        line={line!r}
        COMP_WORDS=($line); [[ $line == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); COMP_LINE=$line; COMP_POINT=${{#line}}
        spec=$(complete -p hypatia-mem); function=${{spec##*-F }}; function=${{function%% *}}
        $function hypatia-mem "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", asked],
        capture_output=True,
        text=True,
        env=environment(programs),
        timeout=60,
        check=False,
    )

    assert done.stderr == ""
    found = done.stdout.split("\n")
    assert there in found
    assert absent not in found


@pytest.mark.deep
@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.parametrize(("line", "there", "absent"), CASES)
def test_zsh_and_fish(programs, shell, line, there, absent):
    """Asked as their scripts ask: the line in the environment, words out."""
    action = {} if shell == "zsh" else {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run(
        [programs / "hypatia-mem"],
        capture_output=True,
        text=True,
        env={
            **environment(programs),
            **action,
            "_HYPATIA_MEM_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_ARGS": line,
        },
        timeout=60,
        check=False,
    )

    assert done.stderr == ""
    words = done.stdout.replace('"', " ").replace("\t", " ").split()
    assert there in words
    assert absent not in words


@pytest.mark.deep
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_for_the_name_it_was_asked_by(programs, shell):
    """Both names complete; the variable in the script is the one the program listens to."""
    for name in ("hypatia-mem", "hypatia"):
        text = script(programs, shell, name)
        assert f"_{name.replace('-', '_').upper()}_COMPLETE=complete_{shell}" in text
        assert f" {name}" in text


@pytest.mark.parametrize("name", ["hypatia-mem", "hypatia"])
def test_both_names_listen(programs, name):
    """To the variable of their own script."""
    done = subprocess.run(
        [programs / name],
        capture_output=True,
        text=True,
        env={
            **environment(programs),
            f"_{name.replace('-', '_').upper()}_COMPLETE": "complete_zsh",
            "_TYPER_COMPLETE_ARGS": f"{name} disc",
        },
        timeout=60,
        check=False,
    )

    assert '"disconnect"' in done.stdout
    assert done.stderr == ""


def test_a_broken_settings_file_does_not_break_the_line(programs, home):
    """Nobody wants an error in the middle of typing."""
    (home / "config.toml").write_text("[shelves\n")
    done = subprocess.run(
        [programs / "hypatia-mem"],
        capture_output=True,
        text=True,
        env={
            **environment(programs),
            "_HYPATIA_MEM_COMPLETE": "complete_zsh",
            "_TYPER_COMPLETE_ARGS": "hypatia-mem search -s ",
        },
        timeout=60,
        check=False,
    )

    assert "default" in done.stdout
    assert done.stderr == ""
