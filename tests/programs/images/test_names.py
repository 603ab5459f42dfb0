"""Names of files are compared in any form of Unicode and any case; the closest one is taken, several are reported."""

from pathlib import Path
from unicodedata import normalize

import pytest

from agenticiqa.programs.errors import ImageError, ImageNotFound
from agenticiqa.programs.images.finding import search_images
from agenticiqa.programs.images.names import closest, expanded, paths_named
from agenticiqa.programs.images.sources import local_path

NFC, NFD = normalize("NFC", "Zürich.jpg"), normalize("NFD", "Zürich.jpg")


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        (NFC, [NFD], [NFD]),
        (NFC, [NFD, NFC], [NFC]),
        (NFC, [NFD, NFC.upper()], [NFD]),
        (NFD.upper(), [NFC], [NFC]),
        ("a.png", ["A.png", "a.PNG", "b.png"], ["A.png", "a.PNG"]),
        ("STRASSE.png", ["straße.png"], ["straße.png"]),
        ("i.png", ["İ.png", "j.png"], []),
    ],
)
def test_the_closest_names_are_taken(name: str, names: list[str], expected: list[str]) -> None:
    assert closest(name, names, str) == expected


def test_a_path_may_differ_in_each_of_its_folders(tmp_path: Path) -> None:
    file = tmp_path / normalize("NFD", "Läufe") / NFD
    file.parent.mkdir()
    file.touch()
    assert paths_named(str(tmp_path / "läufe" / NFC.upper())) == [str(file)]
    assert local_path(tmp_path / "LÄUFE" / NFC) == file
    (file.parent / "B.png").touch()
    (file.parent / "b.PNG").touch()
    with pytest.raises(ImageError, match="found 2 names that differ in case"):
        local_path(file.parent / "b.png")
    (file.parent / "link.png").symlink_to("gone.png")
    with pytest.raises(ImageNotFound, match="no such file"):
        local_path(file.parent / "link.png")


def test_a_pattern_is_expanded_unless_a_file_has_this_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b 1.png", "a [1].png", "a 1.png", f"deep/er/{NFD}"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    assert expanded("a [1].png") == ["a [1].png"]
    assert expanded("? [1].png") == ["a 1.png", "b 1.png"]
    assert expanded("**/Zü*.jpg") == [f"deep/er/{NFD}"]
    assert expanded("deep/**") == ["deep/", "deep/er", f"deep/er/{NFD}"]
    assert expanded("d*/") == ["deep"]
    search = search_images(["b*.png", "gone/*.png", "a [1].png"])
    assert search.images == [Path("b 1.png"), Path("a [1].png")]
    assert [str(problem) for problem in search.problems] == [
        "gone/*.png: no file matches this pattern; check the pattern"
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("shoot [1]/*.png", ["shoot [1]/b.png"]),
        ("shoot [2]/*.png", ["shoot 2/d.png"]),
        ("SHOOT [1]/?.png", ["shoot [1]/b.png"]),
        ("*/what? [a]/*.png", ["shoot [1]/what? [a]/c.png"]),
        ("**/what? [a]/*", ["shoot [1]/what? [a]/c.png"]),
    ],
)
def test_a_folder_with_the_name_is_no_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, expected: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("shoot 1/a.png", "shoot [1]/b.png", "shoot [1]/what? [a]/c.png", "shoot 2/d.png"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    Path("shoot 1/whatx a").mkdir()
    Path("shoot 1/whatx a/e.png").touch()
    assert expanded(pattern) == expected
