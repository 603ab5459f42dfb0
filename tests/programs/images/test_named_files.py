"""The files that a table names: beside it, by a unique name below its folder, and by paths of other systems."""

from pathlib import Path

import pytest

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.named_files import NamedFiles

FILES = ("set/dist/a.png", "set/ref/a.png", "set/dist/b.png", "set/dist/Zu\u0308rich.png", ".hidden/d.png")


@pytest.fixture
def files(tmp_path: Path) -> NamedFiles:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return NamedFiles("t.csv", tmp_path)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("set/dist/a.png", "set/dist/a.png"),
        (r"set\dist\a.png", "set/dist/a.png"),
        (r"C:\Users\me\set\dist\a.png", "set/dist/a.png"),
        (r"\\server\share\ref\a.png", "set/ref/a.png"),
        ("/home/me/dist/a.png", "set/dist/a.png"),
        ("dist/a.png", "set/dist/a.png"),
        ("b.png", "set/dist/b.png"),
        ("other/b.png", "other/b.png"),  # of another folder, so it is missing
        ("d.png", "d.png"),
        ("SET/Dist/B.PNG", "set/dist/b.png"),
        ("Dist/A.png", "set/dist/a.png"),
        ("Zürich.png", "set/dist/Zu\u0308rich.png"),
    ],
)
def test_a_name_leads_to_one_file(files: NamedFiles, name: str, found: str) -> None:
    assert files.find(name) == files.folder / found


@pytest.mark.parametrize("name", ["a.png", r"D:\other\a.png"])
def test_an_ambiguous_name_is_refused(files: NamedFiles, name: str) -> None:
    with pytest.raises(UserError, match=r"2 files of this name are in its subfolders, such as .*--root"):
        files.find(name)


def test_two_names_of_one_file_are_refused_where_one_was_searched(files: NamedFiles) -> None:
    files.find("set/dist/b.png")
    with pytest.raises(UserError, match="both lead to"):
        files.find("b.png")
