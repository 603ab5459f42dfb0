"""The file hash, the atomic write, and names that are not UTF-8."""

import hashlib
import os
import stat
import threading
from pathlib import Path

import pytest

from agenticiqa.programs.images.files import one_line, printable_path, sha256_of, write_atomically


def test_the_hash_is_that_of_the_bytes(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(bytes(range(256)) * 5000)
    assert sha256_of(file) == sha256_of(str(file)) == hashlib.sha256(file.read_bytes()).hexdigest()
    with pytest.raises(FileNotFoundError):
        sha256_of(tmp_path / "gone")


def test_text_and_bytes_are_written_as_they_are_and_folders_are_made(tmp_path: Path) -> None:
    write_atomically(tmp_path / "new" / "deep" / "a.txt", "été\r\n")
    assert (tmp_path / "new" / "deep" / "a.txt").read_bytes() == "été\r\n".encode()
    write_atomically(str(tmp_path / "b"), b"\x00\xff")
    assert (tmp_path / "b").read_bytes() == b"\x00\xff"


@pytest.mark.parametrize("name", ["scores.json", "x" * 255], ids=["short", "longest"])
def test_an_old_file_is_replaced_without_leftovers(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text("old and longer")
    write_atomically(file, "new")
    assert file.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")

    def full(draft: Path, target: Path) -> None:
        assert draft.read_text() == "new"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*/a\.txt'"):
        write_atomically(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_permissions_are_those_of_the_old_file_or_of_any_new_one(tmp_path: Path) -> None:
    old, new, plain = (tmp_path / name for name in ("old", "new", "plain"))
    old.write_text("old")
    old.chmod(0o640)
    write_atomically(old, "new")
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    plain.write_text("as open does it")
    write_atomically(new, "new")
    assert new.stat().st_mode == plain.stat().st_mode
    write_atomically(tmp_path / "private", "new", private=True)
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "a.txt", tmp_path / "link"
    link.symlink_to(file.name)
    write_atomically(link, "through")
    assert link.is_symlink()
    assert file.read_text() == "through"


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_atomically(pipe, "to the reader")
    reader.join(10)
    assert read == ["to the reader"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_folder_is_not_written_over(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, "x")


@pytest.mark.parametrize(
    ("name", "shown"),
    [(b"plain.png", "plain.png"), ("été ☃.png".encode(), "été ☃.png"), (b"caf\xe9/\xff.png", r"caf\xe9/\xff.png")],
)
def test_bytes_of_a_name_that_are_not_utf_8_are_escaped(name: bytes, shown: str) -> None:
    path = Path(os.fsdecode(name))
    assert printable_path(path) == printable_path(str(path)) == shown
    shown.encode()


def test_a_message_is_one_printable_line() -> None:
    assert one_line("a\n\tb  \x1b[31m \udcff\ud800 é") == r"a b ?[31m \xff\ud800 é"
