"""The repository is a plugin and a marketplace, and all its versions are one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import hypatia_mem
from hypatia_mem.install.interpreter import GUARD

ROOT = Path(__file__).parents[2]
EVENTS = {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"}


def manifest(name: str) -> dict:
    return json.loads((ROOT / ".claude-plugin" / name).read_text("utf-8"))


def test_every_manifest_has_the_packages_version():
    """A plugin whose version stands still is never updated by the client."""
    versions = {
        "plugin": manifest("plugin.json")["version"],
        "marketplace": manifest("marketplace.json")["plugins"][0]["version"],
    }
    assert versions == dict.fromkeys(versions, hypatia_mem.__version__)


def test_the_marketplace_offers_the_plugin_of_this_repository():
    offered = manifest("marketplace.json")["plugins"]
    assert [one["name"] for one in offered] == [manifest("plugin.json")["name"]]
    assert (ROOT / offered[0]["source"]).samefile(ROOT)
    for folder in manifest("plugin.json")["skills"]:
        assert list((ROOT / folder).glob("*/SKILL.md"))


def test_the_plugins_hooks_survive_a_missing_script_and_name_known_events():
    """Code 2 of a hook blocks the prompt, and Python leaves with 2 without its script."""
    hooks = json.loads((ROOT / "hooks/hooks.json").read_text())
    assert set(hooks) == {"hooks"}
    assert set(hooks["hooks"]) == EVENTS
    for groups in hooks["hooks"].values():
        handler = groups[0]["hooks"][0]
        assert handler["command"] == "python3"
        assert handler["args"] == ["-I", "-S", "-c", GUARD, "${CLAUDE_PLUGIN_ROOT}/hooks/hook.py"]
        gone = [*handler["args"][:-1], "/nowhere/hook.py"]
        done = subprocess.run(
            [sys.executable, *gone], capture_output=True, input=b"{}", check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_plugins_own_hook_captures_from_the_clone(tmp_path):
    """Installed from the marketplace, the launcher finds the package beside itself."""
    handler = json.loads((ROOT / "hooks/hooks.json").read_text())["hooks"]["Stop"][0]["hooks"][0]
    arguments = [one.replace("${CLAUDE_PLUGIN_ROOT}", str(ROOT)) for one in handler["args"]]
    payload = {"session_id": "abc", "cwd": "/", "hook_event_name": "Stop"}
    done = subprocess.run(
        [sys.executable, *arguments],
        input=json.dumps(payload).encode(),
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HYPATIA_MEM_HOME": str(tmp_path / "home")},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"abc" in b"".join(p.read_bytes() for p in (tmp_path / "home/spool").glob("*.jsonl"))


def test_the_skill_is_short_and_its_front_matter_plain():
    """Its description is in the context of every session, its text whenever it is used."""
    text = (ROOT / "skill/hypatia-memory/SKILL.md").read_text("utf-8")
    head, _ = text.removeprefix("---\n").split("\n---\n", 1)
    assert re.match(r"name: hypatia-memory\ndescription: >-\n  \S", head)
    description = " ".join(head.split(">-")[1].split())
    assert len(description) < 1024
    assert ": " not in description, "a colon would end a plain YAML value"
    assert len(text.splitlines()) < 200


@pytest.mark.parametrize(
    "taught",
    [
        *("TRIGGER:log", "TRIGGER:immediate", "TRIGGER:extract", "TRIGGER:session-end"),
        "[hypatia-memory] Stored: ",
        "[hypatia-memory] Removed 1 entry and 2 relationships.",
        "[hypatia-memory] Extracted 2 work units (1 one-shot, 1 correction-chain)",
        "[hypatia-memory] Work unit still in progress, nothing extracted.",
        *("$knowledge", "$statement", "$not-summaried", "$triple", "$search", "belongTo"),
        *("remember", "forget", "knowledge-create", "knowledge-update", "statement-create"),
    ],
)
def test_the_skill_teaches(taught):
    assert taught in (ROOT / "skill/hypatia-memory/SKILL.md").read_text("utf-8")


def test_every_command_the_skill_names_exists():
    """A skill that teaches a command that is not there makes the agent fail."""
    from hypatia_mem.cli.app import COMMANDS

    text = (ROOT / "skill/hypatia-memory/SKILL.md").read_text("utf-8")
    named = set(re.findall(r"hypatia-mem ([a-z][a-z-]+)", text))
    assert named
    assert named <= set(COMMANDS)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of a copy of the repository; the checkout stays as it is."""
    folder = tmp_path_factory.mktemp("wheel")
    ignore = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "dist", "results")
    shutil.copytree(ROOT, folder / "source", ignore=ignore)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(folder)]
    done = subprocess.run(
        [*command, str(folder / "source")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl"))


@pytest.mark.slow
def test_the_wheel_carries_hooks_and_skill(wheel):
    """pip install must be enough."""
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    for name in ("hooks/hook.py", "hooks/hooks.json", "skill/hypatia-memory/SKILL.md"):
        assert f"hypatia_mem/_bundle/{name}" in names
        assert archive.read(f"hypatia_mem/_bundle/{name}") == (ROOT / name).read_bytes()
    for name in ("page.html", "page.css", "page.js", "layout.js"):
        assert f"hypatia_mem/memory/graph/{name}" in names
    assert not [
        name for name in names if name.startswith(("tests", "benchmarks", "hooks", "skill"))
    ]


@pytest.mark.slow
def test_the_wheel_alone_installs_captures_and_goes(wheel, tmp_path):
    """In an environment of its own, started from elsewhere: install, demo, uninstall."""
    venv, config, home = tmp_path / "venv", tmp_path / "config", tmp_path / "home"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    scripts = venv / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", str(wheel)], check=True)
    environment = {
        "PATH": f"{scripts}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "HOME": str(tmp_path),
        "CLAUDE_CONFIG_DIR": str(config),
        "HYPATIA_MEM_HOME": str(home),
    }

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [scripts / arguments[0], *arguments[1:]],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "never mock the database" in run("hypatia-mem", "install", "--demo")
    assert (config / "skills/hypatia-memory/SKILL.md").exists()
    assert "hypatia-mem" in run("hypatia", "--version"), "the second name is there"
    assert "No shelves" in run("hypatia", "list")
    assert "Nothing to change" in run("hypatia-mem", "upgrade")
    run("hypatia-mem", "uninstall", "--purge")
    assert not config.exists()
    assert not home.exists()
    assert (scripts / "hypatia").exists(), "the package's own, which goes with the package"
