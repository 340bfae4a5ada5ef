"""The product's main job on the real client: nothing lost, nothing felt, nothing leaked.

One run per client version lives through every scenario (``scenarios.py``, ``screens.py``) in its own namespaces;
the tests look at what it left: transcripts, memory, requests, screens, repositories.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hypatia_mem.capture.redact import redact_text
from tests.client import harness, oracle
from tests.client.scenarios import COMMANDS, SECRETS
from tests.client.screens import SCENARIOS, STRIPPED
from tests.client.stub import SUMMARY
from tests.system import product

HERE = Path(__file__).parent
VERSIONS = os.environ.get("HYPATIA_TEST_CLIENT_VERSIONS", "2.1.197 2.1.332").split()
# The client's own spinner may name the event for the blink of an eye that any hook of anyone takes.
SPINNER = re.compile(r"running (?:[\w/]+ )*hooks?[ \d/.…·s]*", re.IGNORECASE)
TABOO = "never sell the apples on a Friday"

pytestmark = [pytest.mark.client, pytest.mark.timeout(900)]


class Run:
    """What one client's run left behind."""

    def __init__(self, scratch: Path, result: dict[str, Any]) -> None:
        self.person = scratch / "dev"
        self.result = result
        self.memory = self.person / result["home"]

    def scene(self, name: str) -> dict[str, Any]:
        """Return a scenario's report; fails the test when it broke down."""
        found: dict[str, Any] = self.result["scenes"][name]
        assert "broken" not in found, found["broken"]
        return found

    def counted(self, name: str) -> dict[str, list[oracle.Said]]:
        """Return what a person would count in the scenario's transcripts."""
        paths = [self.person / path for path in self.scene(name)["transcripts"]]
        return oracle.conversations(paths, COMMANDS)

    def stored(self, session: str) -> list[list[Any]]:
        """Return the stored messages of a session: turn, role, text."""
        found: list[list[Any]] = self.result["stored"].get(session, {}).get("messages", [])
        return found


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fresh virtual environment with our wheel."""
    return product.build(tmp_path_factory.mktemp("product"))


@pytest.fixture(scope="session", params=VERSIONS)
def run(
    request: pytest.FixtureRequest, installed: Path, tmp_path_factory: pytest.TempPathFactory
) -> Run:
    """Live through every scenario with one version of the client."""
    if shutil.which("tmux") is None or os.getuid() != 0:
        pytest.fail("the client's tests need root, tmux, git and iproute2; see tests/client")
    got = subprocess.run(
        [str(HERE / "get_client.sh"), request.param], capture_output=True, text=True, check=False
    )
    assert got.returncode == 0, f"the client could not be installed: {got.stderr}"
    binary = Path(got.stdout.split(None, 1)[1].strip())
    scratch = tmp_path_factory.mktemp(f"client-{request.param}")
    return Run(scratch, harness.run(binary, installed, scratch))


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_turn_a_person_counts_is_stored_once_in_order(run: Run, name: str) -> None:
    """Stored messages equal the transcript's, and both equal what was typed and answered."""
    counted = run.counted(name)
    talks = run.scene(name)["talks"]
    assert len(counted) == len(talks)
    for (session, said), talk in zip(counted.items(), talks, strict=True):
        if talk is not None:
            assert said == [tuple(one) for one in talk]
        expected = [
            [turn, role, redact_text(text)] for turn, (role, text) in enumerate(said, start=1)
        ]
        assert run.stored(session) == expected


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_must_be_there_is_and_what_nobody_said_is_not(run: Run, name: str) -> None:
    """Sub-agents, pictures and the client's own words are no messages; what was said is."""
    notes = run.scene(name)["notes"]
    texts = [text for session in run.counted(name) for _, _, text in run.stored(session)]
    for said in notes.get("said", []):
        assert said in texts
    for absent in notes.get("unsaid", []):
        assert not any(absent in text for text in texts)


def test_no_session_is_stored_that_never_began(run: Run) -> None:
    """The client ends sessions that never were; every stored session has a transcript."""
    known = {path.stem for path in (run.person / ".claude" / "projects").glob("*/*.jsonl")}
    assert set(run.result["stored"]) <= known
    phantom = run.scene("fresh_continue_resume_fork")["notes"]["phantom"]
    assert phantom not in run.result["stored"]


def test_worktrees_and_subfolders_share_the_scope_of_their_repository(run: Run) -> None:
    """Whatever folder the client was started in, the project is the repository."""
    notes = run.scene("folders")["notes"]
    for folder, prompt in notes["others"].items():
        mine = [
            session
            for session in run.result["stored"].values()
            if any(text == prompt for _, _, text in session["messages"])
        ]
        assert [session["project"] for session in mine] == [notes["scope"]], folder


def test_a_folder_with_an_odd_name_is_its_own_scope(run: Run) -> None:
    """Blanks, brackets and other scripts in a folder's name arrive as they are."""
    [session] = run.counted("odd_folder_and_odd_text")
    expected = run.scene("odd_folder_and_odd_text")["notes"]["scope"]
    assert run.result["stored"][session]["project"] == expected


def test_the_client_really_compacted_by_itself(run: Run) -> None:
    """Guards the scenario: both compactions took place, or it shows nothing."""
    assert run.scene("automatic_compaction")["notes"]["compactions"] >= 2


def test_what_was_asked_to_be_remembered_is_confirmed_and_told_to_the_next_session(
    run: Run,
) -> None:
    """The confirmation is in the prompt's own request, the taboo in the next session's first."""
    notes = run.scene("remembered")["notes"]
    assert "[hypatia-memory] Stored:" in notes["told"]
    assert TABOO in notes["briefs"]["here"]
    assert "Small talk." in notes["briefs"]["here"]  # where the last session stopped


def test_another_projects_session_is_not_told(run: Run) -> None:
    """The twin of the brief: the neighbour knows neither the taboo nor the conversation."""
    told = run.scene("remembered")["notes"]["briefs"]["there"]
    assert TABOO not in told
    assert "Small talk." not in told


def test_what_was_asked_to_be_forgotten_is_not_told_again(run: Run) -> None:
    """Forgetting holds in the very next session."""
    assert TABOO not in run.scene("remembered")["notes"]["forgotten"]


def test_nothing_of_ours_is_on_the_screen(run: Run) -> None:
    """No word of the memory, no word of a hook, at any moment that was looked at."""
    assert set(run.result["screens"]) >= {"day", "queue", "interrupt", "killed"}
    for name, screens in run.result["screens"].items():
        for screen in screens:
            if not _is_menu(screen):
                shown = SPINNER.sub("", screen)
                assert not re.search(r"hypatia|hook", shown, re.IGNORECASE), f"{name}:\n{screen}"


def test_the_client_has_nothing_to_complain_about(run: Run) -> None:
    """Nothing on the client's stderr but what the scenario asked for."""
    spoken = [text.strip() for text in run.result["stderr"] if text.strip()]
    assert [text for text in spoken if "No conversation found" not in text] == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_written_into_the_persons_repository(run: Run, name: str) -> None:
    """``git status --ignored`` is clean afterwards."""
    assert run.scene(name)["status"] == ""


def test_no_settings_file_names_us(run: Run) -> None:
    """The skill's directory is all that the installation needs (the client writes its own)."""
    assert "hooks" not in json.loads(run.result["settings"])
    assert "hypatia" not in run.result["settings"]


def test_no_secret_reaches_any_byte_of_the_memory(run: Run) -> None:
    """Not spool, store, log, brief, index or snapshot, nor elsewhere in the home of the person."""
    run.scene("secrets")
    client = run.person / ".claude"
    held = [(path, path.read_bytes()) for path in _files(run.memory)]
    assert any(b"REDACTED" in data for _, data in held)  # the turn with the secrets did arrive
    others = [(path, path.read_bytes()) for path in _files(run.person, without=client)]
    for kind, secret in SECRETS.items():
        shapes = {secret.encode(), base64.b64encode(secret.encode()), secret[::-1].encode()}
        for path, data in held + others:
            assert not any(shape in data for shape in shapes), f"{kind} is in {path}"


def test_pictures_leave_no_bytes_in_the_memory(run: Run) -> None:
    """A picture is kept as its digest and size."""
    for absent in run.scene("images")["notes"]["absent"]:
        for path in _files(run.memory):
            assert absent.encode() not in path.read_bytes(), path


def test_a_compactions_summary_becomes_the_sessions_entry(run: Run) -> None:
    """The client's real summary, and nothing made up, is the text of ``session-<ID>``."""
    session = next(iter(run.counted("compact_and_clear")))
    assert SUMMARY in run.result["stored"][session]["summary"]


@pytest.mark.parametrize("case", STRIPPED)
def test_the_memorys_own_questions_are_no_sessions_projects_or_messages(
    run: Run, case: str
) -> None:
    """The client condensed for us, our hooks installed, and nothing of that run was kept (I6)."""
    found = run.scene("own_questions")["notes"]["cases"][case]
    assert found["failed"] == []
    assert found["made"] == found["asked"] >= 1, "the real client was asked and answered"
    assert found["after"] == found["before"]
    marker = b"hypatia-mem:" + b"internal"
    held = [path for path in _files(run.memory / "spool") if marker in path.read_bytes()]
    assert held == []


def test_the_worker_goes_by_itself_and_leaves_nothing_undone(run: Run) -> None:
    """At rest: nothing waits, no error was logged, no worker runs, the index is up to date."""
    status = run.result["status"]
    assert status["waiting"] == 0
    assert status["last_error"] == "none"
    assert not status["worker"].startswith("running")
    assert status["index"] == "0 changes behind"


def _is_menu(screen: str) -> bool:
    """Tell the client's list of slash commands, which rightly names our skill and its own hooks."""
    lines = [line for line in screen.splitlines() if line.strip()]
    return any(re.match(r"❯\s/", line) for line in lines[-12:])


def _files(folder: Path, without: Path | None = None) -> list[Path]:
    return [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not path.is_symlink()
        and not (without is not None and path.is_relative_to(without))
    ]
