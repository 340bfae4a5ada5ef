"""Files kept with the memory: bytes in, the same bytes out, and no way around the archive."""

from __future__ import annotations

import json
import os
import stat

import pytest

from hypatia_mem.memory.sharing import archive

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.fixture
def picture(tmp_path):
    file = tmp_path / "fig.png"
    file.write_bytes(PNG)
    return file


def test_a_file_is_kept_described_and_found(cli, home, picture, tmp_path):
    """With the published texts, tags, statement and queries."""
    stored = cli("archive-store", str(picture), "-n", "euclid/fig1.png")
    lines = stored.out.splitlines()
    path = home / "archive" / "euclid" / "fig1.png"
    picture.unlink()

    assert lines == [
        "Stored: archive://euclid/fig1.png",
        "Knowledge: euclid/fig1.png",
        f"MIME: image/png, Size: {len(PNG)} bytes",
    ]
    assert cli("archive-list").out == "  archive://euclid/fig1.png\n  (1 file)\n"
    assert cli("archive-get", "euclid/fig1.png").out == f"{path}\n"
    assert cli("archive-get", "archive://euclid/fig1.png").out == f"{path}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    out = tmp_path / "out.png"
    assert cli("archive-get", "euclid/fig1.png", "-o", str(out)).out == f"Copied to: {out}\n"
    assert out.read_bytes() == PNG

    content = cli("knowledge-get", "euclid/fig1.png").json["content"]
    assert (content["format"], content["tags"]) == ("json", ["archive", "image", "png"])
    assert content["figures"] == ["archive://euclid/fig1.png"]
    assert json.loads(content["data"])["size_bytes"] == len(PNG)
    by_type = '["$knowledge", ["$content", {"mime_type": "image/png"}]]'
    assert [row["name"] for row in cli("query", by_type).json] == ["euclid/fig1.png"]
    [row] = cli("query", '["$statement", ["$triple", "$*", "is_a", "archive"]]').json
    assert row["subject"] == "euclid/fig1.png"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "tags"),
    [
        ("a.PDF", ["archive", "file", "pdf"]),
        ("a.mp3", ["archive", "audio", "mp3"]),
        ("a.tar.gz", ["archive", "file", "gz"]),
        ("Makefile", ["archive", "file"]),
    ],
)
def test_tags_by_the_ending(cli, picture, name, tags):
    """The kind of file and its ending, so that both can be asked for."""
    assert cli("archive-store", str(picture), "-n", name, "--json").json["name"] == name
    assert cli("knowledge-get", name).json["content"]["tags"] == tags


def test_what_is_not_there(cli, picture):
    """A sentence and exit 0 as published, an error with --json."""
    assert cli("archive-list").out == "No archive files in shelf 'default'.\n"
    assert cli("archive-list", "--json").json == {"total": 0, "files": []}
    missing = cli("archive-get", "x.png")
    assert (missing.code, missing.out) == (0, "Archive 'x.png' not found in shelf 'default'.\n")
    assert cli("archive-get", "x.png", "--json").code == 1


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../../x", "/etc/passwd", "a//b", ".hidden", "a/.b", "a\\..\\b", "a\nb", "~/../x",
     "x" * 501, "a/" * 20 + "x", "", "archive://../x", "archive:///etc/passwd"],
)  # fmt: skip
def test_no_name_leads_out_of_the_archive(cli, home, picture, name):
    """Neither in nor out; the twin above shows that a plain one works."""
    inside = {path for path in home.rglob("*") if path.is_file()}
    if name:
        stored = cli("archive-store", str(picture), f"--name={name}")
        assert (stored.code, stored.out) == (2, "")
        assert "cannot be the name of a kept file" in stored.err
    got = cli("archive-get", "--", name)
    assert (got.code, got.out) == (2, "")
    assert {path for path in home.rglob("*") if path.is_file()} == inside


def test_links_are_not_followed(cli, home, picture, tmp_path):
    """Not at the source, not in the archive, not the archive's own folder."""
    secret = tmp_path / "secret"
    secret.write_text("not yours")
    link = tmp_path / "link.txt"
    link.symlink_to(secret)
    cli("archive-store", str(picture))

    refused = cli("archive-store", str(link))
    assert refused.code == 2
    assert f"Name the file that it leads to: {secret}" in refused.err

    kept = home / "archive" / "fig.png"
    kept.unlink()
    kept.symlink_to(secret)
    assert cli("archive-get", "fig.png").code == 2
    assert cli("archive-get", "fig.png", "-o", str(tmp_path / "out")).code == 2
    assert not (tmp_path / "out").exists()
    assert "fig.png" not in cli("archive-list").out

    kept.unlink()
    (home / "archive" / "out").symlink_to(tmp_path)
    assert cli("archive-store", str(picture), "-n", "out/x.png").code == 2
    assert not (tmp_path / "x.png").exists()
    for path in (home / "archive").iterdir():
        path.unlink()
    (home / "archive").rmdir()
    (home / "archive").symlink_to(tmp_path)
    assert cli("archive-store", str(picture), "-n", "y.png").code == 2
    assert not (tmp_path / "y.png").exists()
    assert secret.read_text() == "not yours"


def test_only_regular_files_of_a_bounded_size(cli, home, tmp_path, monkeypatch):
    """A pipe would never end; the bound is said; the memory's own files are no content."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    big = tmp_path / "big.bin"
    big.write_bytes(b"x" * 3 * 1024 * 1024)
    monkeypatch.setattr(archive, "MAX_BYTES", 2 * 1024 * 1024)
    cli("knowledge-create", "x")

    assert "is not a regular file" in cli("archive-store", str(fifo)).err
    assert "is not a regular file" in cli("archive-store", str(tmp_path)).err
    assert "larger than 2 MiB" in cli("archive-store", str(big)).err
    assert "cannot be read: No such file" in cli("archive-store", str(tmp_path / "no")).err
    assert "is a file of this memory itself" in cli("archive-store", str(home / "key")).err
    assert not list((home / "archive").iterdir())


def test_nothing_is_overwritten(cli, picture, tmp_path):
    """A taken name is an error on the way in, an existing file on the way out."""
    other = tmp_path / "other.png"
    other.write_bytes(b"other")
    cli("archive-store", str(picture))

    assert cli("archive-store", str(other), "-n", "fig.png").code == 1
    assert cli("archive-get", "fig.png", "-o", str(other)).code == 1
    assert other.read_bytes() == b"other"
    assert cli("archive-store", str(other), "-n", "fig.png/x").code == 1
    folder = tmp_path / "folder"
    folder.mkdir()
    cli("archive-get", "fig.png", "-o", str(folder))
    assert (folder / "fig.png").read_bytes() == PNG


@pytest.mark.deep
def test_forgetting_the_entry_takes_the_file_along(cli, home, picture):
    """And an agent cannot bring it back; other files stay."""
    cli("archive-store", str(picture))
    cli("archive-store", str(picture), "-n", "deep/er/kept.png")
    cli("archive-store", str(picture), "-n", "deep/gone.png")

    assert cli("forget", "--id", "fig.png", "--id", "deep/gone.png").code == 0

    assert archive.file_names(home) == ["deep/er/kept.png"]
    again = cli("archive-store", str(picture))
    assert again.code == 1
    assert "was not stored" in again.err
    assert archive.file_names(home) == ["deep/er/kept.png"]
    cli("forget", "--id", "deep/er/kept.png")
    assert not list((home / "archive").iterdir())


@pytest.mark.deep
def test_deleting_the_entry_leaves_the_file_to_undo(cli, home, picture):
    """It is listed no more, and found again when the deletion is taken back."""
    cli("archive-store", str(picture))
    cli("knowledge-create", "shows", "-f", "archive://fig.png")

    cli("knowledge-delete", "fig.png")
    assert cli("archive-list").out == "  archive://fig.png\n  (1 file)\n"
    cli("knowledge-delete", "shows")

    assert cli("archive-list").out == "No archive files in shelf 'default'.\n"
    assert "not found" in cli("archive-get", "fig.png").out

    operations = [
        row["op_id"] for row in cli("log", "--json").json if row["verb"] == "delete knowledge"
    ]
    assert cli("undo", operations[-1]).code == 0
    assert cli("archive-get", "fig.png").out.strip().endswith("archive/fig.png")


def test_files_are_seen_in_their_scopes(cli, picture):
    """As every list: this project and the global scope, unless others are asked for (I5)."""
    for name, scopes in (("a.png", "app"), ("b.png", ""), ("c.png", "other")):
        assert cli("archive-store", str(picture), "-n", name, "--scopes", scopes).code == 0

    def files(*options):
        return [link[10:] for link in cli("archive-list", "--json", *options).json["files"]]

    assert files() == ["a.png", "b.png"]
    assert files("--scope", "other") == ["c.png"]
    assert files("--all-projects") == ["a.png", "b.png", "c.png"]
    assert files("--all-projects", "--limit", "2", "--offset", "1") == ["b.png", "c.png"]


def test_each_shelf_has_its_own_files(cli, home, picture, tmp_path):
    """Neither sees the other's."""
    cli("connect", str(tmp_path / "work"))
    cli("archive-store", str(picture), "-s", "work")

    assert cli("archive-list").out == "No archive files in shelf 'default'.\n"
    assert (tmp_path / "work" / "archive" / "fig.png").exists()
    missing = cli("archive-get", "no.png", "-s", "work").out
    assert missing == "Archive 'no.png' not found in shelf 'work'.\n"


def test_a_copy_that_was_cut_short_is_cleared_away(cli, home, picture):
    """Once it is old: a young one may be another process at work."""
    cli("archive-store", str(picture))
    old, young = (home / "archive" / f".new-{name}" for name in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))

    cli("knowledge-create", "anything")

    assert (old.exists(), young.exists()) == (False, True)
    assert archive.file_names(home) == ["fig.png"]
