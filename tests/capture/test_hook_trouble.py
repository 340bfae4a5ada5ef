"""The hook never hurts, whatever is wrong around it: files, disks, streams, its own package (I1)."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hypatia_mem.capture import paths, spool
from tests.capture.hook_kit import (
    BRIEF,
    REPOSITORY,
    SESSION,
    event,
    fire,
    passes,
    records,
    run,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes and modes of POSIX")


# -- what can go wrong around it


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Give the test a temporary folder of its own; return what ``doctor`` would be told."""
    folder = tmp_path / "tmp"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(folder))
    return lambda: str(spool.last_failure())


def test_home_that_is_a_file(tmp_path, told):
    """The prompt passes; the failure names the path."""
    (tmp_path / "memory-home").write_text("not a folder")
    passes(run(event()))
    assert "ENOTDIR" in told()
    assert str(tmp_path / "memory-home") in told()


def test_spool_that_is_a_file(home, told):
    """A part of the home is in the way: the log can still say it."""
    (home / "spool" / "quarantine").rmdir()
    (home / "spool").rmdir()
    (home / "spool").write_text("")
    passes(run(event()))
    assert "ENOTDIR" in told()
    assert "ERROR hook a record was not kept" in (home / "hypatia-mem.log").read_text()


class Stranger:
    """A user without a name or a home, who can start Python and read the package."""

    uid = 61234

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        self.python = python

    def run(self, **environ: str) -> subprocess.CompletedProcess[bytes]:
        return run(
            event(),
            script=self.folder / "hooks" / "hook.py",
            python=self.python,
            user=self.uid,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "TMPDIR": str(self.folder / "tmp"), **environ},
        )

    @property
    def marker(self) -> str:
        return (self.folder / "tmp" / f"hypatia-mem-{self.uid}" / "hook-failure").read_text()


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    """Return another user; root only, for whom modes are no obstacle."""
    python = Path("/usr/bin/python3")
    if os.getuid() != 0 or not python.exists():
        pytest.skip("needs root and a Python that every user can start")
    probe = [str(python), "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    if subprocess.run(probe, user=Stranger.uid, cwd="/").returncode:
        pytest.skip("the system's Python is too old for the hook")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("hooks", "hypatia_mem"):
            shutil.copytree(REPOSITORY / part, folder / part)
        subprocess.run(["chmod", "-R", "a+rX", name], check=True)
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o777)
        yield Stranger(folder, str(python))


def test_no_home_at_all(stranger):
    """No HOME, and a user the system does not know."""
    passes(stranger.run())
    assert "no home folder is known" in stranger.marker


def test_home_of_somebody_else(stranger):
    """A home that this user may not even look into."""
    folder = stranger.folder / "theirs"
    paths.ensure_home(str(folder))
    passes(stranger.run(HYPATIA_MEM_HOME=str(folder)))
    assert "EACCES" in stranger.marker
    assert str(folder) in stranger.marker


def test_permission_denied(home, told):
    """The spool cannot be written; everything else can."""
    if os.getuid() == 0:
        pytest.skip("root may write everywhere: see the other users and file systems here")
    (home / "spool").chmod(0o500)
    passes(run(event()))
    assert "EACCES" in told()


MOUNT = """
set -e
mount -t tmpfs -o {options} tmpfs "$1"
cp -r "$2/." "$1/" 2>/dev/null || true
{after}
shift 2
exec "$@"
"""


def in_mount(home: Path, options: str, after: str, command: list[str], data: bytes):
    """Run a command in a mount namespace of its own in which the home is a small file system."""
    if os.getuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs root, to mount a file system")
    script = MOUNT.format(options=options, after=after)
    copy = home.with_name("copy")
    shutil.copytree(home, copy, dirs_exist_ok=True)
    shell = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh"]
    done = subprocess.run(
        [*shell, str(home), str(copy), *command], input=data, capture_output=True, timeout=60
    )
    if b"mount:" in done.stderr:
        pytest.skip("mounting is not allowed here")
    return done


def hook_command() -> list[str]:
    return [sys.executable, "-I", "-S", str(REPOSITORY / "hooks" / "hook.py")]


def test_read_only_home(home, told):
    """A home on a read-only disk: the prompt passes, the marker says it."""
    after = 'mount -o remount,ro "$1"'
    passes(in_mount(home, "size=1m", after, hook_command(), event()))
    assert "EROFS" in told()


def test_full_disk(home, told):
    """No room for the record: the prompt passes and what was there before is whole."""
    fire(event(prompt="before"))
    big = event(prompt="after " + "x" * 50_000)
    after = 'dd if=/dev/zero of="$1/filler" bs=1k count=4096 2>/dev/null || true'
    command = ["sh", "-c", f'"$@"; echo "rc=$?"; cp -r "{home}/spool" "{home}-seen"', "sh"]
    done = in_mount(home, "size=256k", after, [*command, *hook_command()], big)
    assert done.stdout == b"rc=0\n"
    assert done.stderr == b""
    assert "ENOSPC" in told()
    seen = Path(f"{home}-seen")
    items = list(spool.iter_records(str(seen / f"{SESSION}.jsonl")))
    assert [i.event["prompt"] for i in items if isinstance(i, spool.Record)] == ["before"]


def test_brief_is_printed_though_nothing_can_be_kept(home, app, told):
    """A full or read-only disk does not take the rules away."""
    after = 'mount -o remount,ro "$1"'
    done = in_mount(home, "size=1m", after, hook_command(), event("SessionStart", cwd=str(app)))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == BRIEF % b"rules of app"


def test_failed_capture_confirms_nothing(home, app, told):
    """What was not kept is not called stored; its twin that was is."""
    asked = event(prompt="remember: never mock the database", cwd=str(app))
    assert b"Stored" in run(asked).stdout
    shutil.rmtree(home / "spool")
    (home / "spool").write_text("")
    passes(run(asked))


def test_streams_that_are_closed_or_broken(home, app):
    """No stdin, no stdout, a reader that has gone: exit 0, and the record is kept."""
    command = " ".join(f"'{part}'" for part in hook_command())
    start = event("SessionStart", cwd=str(app))
    for shape in ("{} <&-", "{} >&-", "{} | true", "{} >/dev/full", "{} 2>&-", "{} <&- >&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", shape.format(command)], input=start, capture_output=True, timeout=30
        )
        assert (done.returncode, done.stderr) == (0, b""), shape
    assert len(records(home)) == 4


def test_long_brief_goes_out_whole_to_a_slow_reader(home, app):
    """A pipe that takes a part at a time, and does not block."""
    brief = BRIEF % (b"x" * 200_000)
    for file in (home / "briefs").glob("*.json"):
        file.write_bytes(brief)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = subprocess.Popen(hook_command(), stdin=subprocess.PIPE, stdout=writer)
    os.close(writer)
    process.stdin.write(event("SessionStart", cwd=str(app)))
    process.stdin.close()
    time.sleep(0.2)
    with os.fdopen(reader, "rb") as file:
        assert file.read() == brief
    assert process.wait(30) == 0


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1", "ja_JP.eucJP", "xx"])
def test_any_locale(home, tmp_path, locale):
    """Bytes in, bytes kept: no locale has a say."""
    folder = tmp_path / "größe 日本"
    folder.mkdir()
    environ = {**os.environ, "LC_ALL": locale, "PYTHONIOENCODING": "cp932", "PYTHONUTF8": "0"}
    done = run(
        event(prompt="größe 日本 👍", cwd=str(folder)),
        env={**environ, "CLAUDE_PROJECT_DIR": str(folder)},
    )
    passes(done)
    (record,) = records(home)
    assert record.event["prompt"] == "größe 日本 👍"


def test_umask_does_not_open_or_lock_the_files(home):
    """0600 under a lax umask and under one that takes everything."""
    for umask in (0o000, 0o777):
        passes(run(event(session_id=f"u{umask}"), umask=umask))
    assert len(records(home)) == 2
    for path in (home / "spool").glob("*.jsonl"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_sigterm_does_not_cut_a_record_off(home):
    """The client interrupts hooks with SIGTERM: what has been read in is kept."""
    code = (
        "import os, signal, sys; sys.path.append(sys.argv[1])\n"
        "from hypatia_mem.capture import hook, spool\n"
        "keep = spool.append\n"
        "def interrupted(*a, **k):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    keep(*a, **k)\n"
        "spool.append = interrupted\n"
        "hook.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(REPOSITORY)], input=event(), capture_output=True
    )
    passes(done)
    assert len(records(home)) == 1


# -- the launcher


def test_launcher_without_its_package_is_silent(tmp_path):
    """The package was removed, a session still runs the hook: nothing happens, nothing is said."""
    (tmp_path / "hooks").mkdir()
    script = shutil.copy(REPOSITORY / "hooks" / "hook.py", tmp_path / "hooks" / "hook.py")
    passes(run(event(), script=Path(script)))


@pytest.mark.parametrize(
    "damage",
    [
        "def broken(:",
        "raise SystemExit(2)",
        "import nothing_of_that_name",
        "raise KeyboardInterrupt",
    ],
)
def test_launcher_with_a_broken_package_is_silent(package, damage):
    """An upgrade that stopped half way never blocks a prompt."""
    (package / "hypatia_mem" / "capture" / "hook.py").write_text(damage)
    passes(run(event(), script=package / "hooks" / "hook.py"))


def test_launcher_goes_where_its_line_says(home, package, tmp_path):
    """The installer's copy names the package's folder."""
    text = (package / "hooks" / "hook.py").read_text()
    line = next(line for line in text.splitlines() if line.startswith("PACKAGE = "))
    assert line == 'PACKAGE = ""'
    script = tmp_path / "hook.py"
    script.write_text(text.replace(line, f"PACKAGE = {str(package)!a}"))
    passes(run(event(), script=script, cwd="/"))
    assert len(records(home)) == 1


def test_launcher_cannot_be_led_astray_by_what_lies_beside_the_package(home, package, tmp_path):
    """Neither the package's folder nor the current one shadows the standard library."""
    for folder in (package, tmp_path):
        for name in ("json", "posix", "time", "binascii", "fcntl", "sys"):
            (folder / f"{name}.py").write_text("raise SystemExit(2)")
    passes(run(event(), script=package / "hooks" / "hook.py", cwd=tmp_path))
    assert len(records(home)) == 1


def old_pythons() -> list[str]:
    names = ["2.7", *(f"3.{minor}" for minor in range(6, 11))]
    folders = [*Path.home().glob(".pyenv/versions/*/bin"), Path("/usr/bin")]
    found = {n: f / f"python{n}" for f in folders for n in names if (f / f"python{n}").exists()}
    return [str(path) for _, path in sorted(found.items())]


@pytest.mark.parametrize("python", old_pythons() or [pytest.param("", marks=pytest.mark.skip)])
def test_launcher_under_a_python_that_is_too_old(python):
    """Exit 0 and silence, whatever `python3` happens to be."""
    done = subprocess.run(
        [python, "-S", str(REPOSITORY / "hooks" / "hook.py")], input=event(), capture_output=True
    )
    passes(done)
