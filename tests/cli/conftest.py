"""Drives the command line in this process, in a project folder of its own."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from typing import Any, NamedTuple

import pytest

from hypatia_mem.cli import context
from hypatia_mem.cli.app import run

# As for a program whose output is no terminal; Typer decides when it is first imported.
os.environ["TYPER_USE_RICH"] = "0"


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def project(tmp_path_factory, monkeypatch):
    """The folder the commands run in: a project called ``app``, at the same place in every test."""
    source = tmp_path_factory.getbasetemp() / "src"
    shutil.rmtree(source, ignore_errors=True)
    folder = source / "app"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def cli(project, home, capsys, monkeypatch):
    """Run a command line: ``cli("search", "words")``; ``stdin`` is what it may read."""
    monkeypatch.setattr(context, "_shelf", None)  # whatever an earlier test in this process chose

    def call(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        capsys.readouterr()
        code = run(arguments)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return call


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def person(project, home, capsys, monkeypatch):
    """Run a command line as one typed at a terminal; ``answer`` is what is typed when asked."""

    def call(*arguments: str, answer: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", _Terminal(io.BytesIO(answer), "utf-8"))
        capsys.readouterr()
        code = run(arguments)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return call


@pytest.fixture
def no_other_worker(monkeypatch):
    """Nobody but the command drains: what it finds, it has stored itself."""
    monkeypatch.setattr("hypatia_mem.election.kick", lambda _home: False)
    monkeypatch.setattr("hypatia_mem.worker.kick", lambda _home: False)  # another name of it
