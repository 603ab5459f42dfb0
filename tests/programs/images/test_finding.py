"""Which of the named files and folders are assessed, and how the others are reported."""

import logging
import os
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.programs.errors import ImageError, ImageNotFound
from agenticiqa.programs.images import extra_formats, find_images, load, search_images
from agenticiqa.programs.images.finding import skipped_text


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


@pytest.fixture(params=[True, False], ids=["with pillow-heif", "without"])
def with_heif(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(extra_formats, "find_spec", lambda package: request.param or None)
    return bool(request.param)


def test_given_files_are_kept_and_folders_are_searched_in_order(tmp_path: Path) -> None:
    touch(tmp_path, "b.JPG", "a.png", "deep/er/c.webp", "notes.txt", ".hidden.png", ".thumbs/d.png", "deep/e.tiff")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "link.png").symlink_to("a.png")
    found = find_images([tmp_path / "notes.txt", str(tmp_path), tmp_path / ".hidden.png", tmp_path / "a.png"])
    names = [path.relative_to(tmp_path).as_posix() for path in found]
    assert names == ["notes.txt", "a.png", "b.JPG", "deep/e.tiff", "deep/er/c.webp", "link.png", ".hidden.png"]
    assert find_images([tmp_path / ".thumbs"]) == [tmp_path / ".thumbs" / "d.png"], "it is named"


def test_all_or_nothing_raises_the_first_problem(tmp_path: Path) -> None:
    with pytest.raises(ImageNotFound, match="gone"):
        find_images([tmp_path / "gone"])
    with pytest.raises(ImageNotFound):
        find_images([""])
    with pytest.raises(ImageError, match="found none"):
        find_images([tmp_path])
    with pytest.raises(ImageError, match="address"):
        find_images(["https://x.org/a.png"])
    assert find_images([]) == []


def test_a_missing_file_is_a_problem_and_the_others_are_found(tmp_path: Path) -> None:
    touch(tmp_path, "a.png", "album/b.png")
    (tmp_path / "empty").mkdir()
    names = ["gone.png", "a.png", "empty", "http://x.org/a.png", "album"]
    found = search_images([name if "//" in name else tmp_path / name for name in names])
    assert [path.name for path in found.images] == ["a.png", "b.png"]
    touch(tmp_path, "raw/a.cr2", "raw/b.cr2")
    (raw,) = search_images([tmp_path / "raw"]).problems
    assert str(raw).endswith("raw: expected images in this folder, found none that can be assessed: 2 .cr2")
    assert [type(problem) for problem in found.problems] == [ImageNotFound, ImageError, ImageError]
    assert all("\n" not in str(problem) for problem in found.problems)


def test_unsupported_files_in_a_folder_are_counted(tmp_path: Path, with_heif: bool) -> None:
    touch(tmp_path, "a.png", *(f"{n}.HEIC" for n in range(5)), "x.heif", *(f"r/{n}.CR2" for n in range(3)), "x.nef")
    touch(tmp_path, "notes.txt", "clip.mov", ".hidden.cr2")
    for name in ("gone.jpg", "gone.cr2", "gone.txt"):
        (tmp_path / name).symlink_to("nowhere")
    touch(tmp_path.parent / "elsewhere", "b.png")
    (tmp_path / "linked").symlink_to(tmp_path.parent / "elsewhere")
    os.mkfifo(tmp_path / "pipe.png")
    found = search_images([tmp_path])
    assert len(found.images) == (7 if with_heif else 1)
    raw = "3 .cr2, 2 broken links"
    heif = () if with_heif else ("1 .heif (pip install 'agenticiqa[heic]')",)
    rest = {"1 .nef", "1 linked folder", "1 device or pipe", *heif}
    shown = skipped_text(found.skipped)
    if not with_heif:
        assert shown.startswith("5 .heic (pip install 'agenticiqa[heic]'), ")
        shown = shown.partition("), ")[2]
    assert shown.startswith(f"{raw}, ")
    assert set(shown.removeprefix(f"{raw}, ").split(", ")) == rest


KINDS = {
    "MPO": ["photo.mpo"],
    "JPEG2000": ["photo.j2k", "photo.J2C", "photo.jpf", "code"],
    "SGI": ["photo.sgi", "photo.rgb"],
    "DDS": ["photo.dds"],
    "PCX": ["photo.pcx"],
    "AVIF": ["photo.avif", "small"],
    "JPEG": ["IMG_0001"],
    "PNG": ["scan.0001"],
    "WEBP": ["2024.06.01"],
    "TIFF": ["plain"],
    "GIF": ["moving"],
}
READABLE = {name: kind for kind, names in KINDS.items() for name in names}


def test_files_that_pillow_reads_are_found_and_the_others_counted(tmp_path: Path) -> None:
    photo = Image.effect_noise((48, 40), 60).convert("RGB")
    for name, kind in READABLE.items():
        photo.save(tmp_path / name, kind)
    for name, kind in (("favicon.ico", "ICO"), ("app.icns", "ICNS"), ("paper.pdf", "PDF"), ("photo.jpg.bak", "JPEG")):
        photo.save(tmp_path / name, kind)
    touch(tmp_path, "stars.fits", "drawing.svg", "print.eps", "notes.txt", "Makefile", "data.1", "photo.xmp")
    (tmp_path / "README").write_text("RIFFs and GIFs")
    found = search_images([tmp_path])
    assert {path.name for path in found.images} == set(READABLE)
    assert found.skipped == dict.fromkeys([".ico", ".icns", ".pdf", ".bak", ".fits", ".svg", ".eps"], 1)
    for path in found.images:
        assert load(path).size == (48, 40), path.name


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every folder")
def test_a_folder_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    touch(tmp_path, "a.png", "locked/b.png")
    (tmp_path / "locked").chmod(0)
    try:
        assert skipped_text(search_images([tmp_path]).skipped) == "1 unreadable folder"
    finally:
        (tmp_path / "locked").chmod(0o700)


def test_names_that_are_not_utf_8_are_found(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.png"))
    path.touch()
    assert find_images([tmp_path]) == [path]


def test_find_images_logs_the_skipped_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    touch(tmp_path, "a.png", "b.dng")
    with caplog.at_level(logging.WARNING):
        assert find_images([tmp_path]) == [tmp_path / "a.png"]
    assert "skipped 1 .dng" in caplog.text


SYSTEM = ["@eaDir/a.jpg/XL.jpg", "#recycle/b.jpg", "$RECYCLE.BIN/S-1/c.png", "__MACOSX/d.png", "sub/.Trash-1000/e.png"]
SYSTEM += [".thumbnails/f.png", "Catalog Previews.lrdata/0/g.jpg", "P.photoslibrary/resources/derivatives/h.jpeg"]
SYSTEM += ["~snapshot/daily.0/l.png", "Network Trash Folder/m.png", "Recycle Bin/n.png", "PRIVATE/M4ROOT/THMBNL/o.png"]
SYSTEM += ["iPhoto Library/Thumbnails/p.png", "appdata_oc1/preview/1/q.png", "Catalog.lrcat-data/r.png"]
PHOTOS = [
    "a.jpg",
    "iPhoto Library/Masters/s.png",
    "P.photoslibrary/originals/0/h.heic.jpg",
    "Resources/i.png",
    "recycling/j.png",
    "previews/k.png",
]


def test_images_in_system_folders_are_counted_unless_asked_for_or_named(tmp_path: Path) -> None:
    touch(tmp_path, *SYSTEM, *PHOTOS, ".hidden/l.png", "#recycle/old.tar")
    found = search_images([tmp_path])
    assert [*found.images] == sorted(tmp_path / name for name in PHOTOS)
    assert skipped_text(found.skipped) == "15 images in system folders (--system-folders assesses them)"
    assert {*find_images([tmp_path], system_folders=True)} == {tmp_path / name for name in SYSTEM + PHOTOS}
    (library,) = find_images([tmp_path / "P.photoslibrary"])
    assert library.name == "h.heic.jpg"
    named = [tmp_path / "#recycle", tmp_path / "P.photoslibrary" / "resources" / "derivatives"]
    assert [path.name for path in find_images(named)] == ["b.jpg", "h.jpeg"]
    matching = search_images([tmp_path / "**" / "*.jp*g"])
    assert {path.name for path in matching.images} == {"a.jpg", "h.heic.jpg"}
    assert sum(matching.skipped.values()) == 5
    assert [path.name for path in find_images([tmp_path / "#recycle" / "*.jpg"])] == ["b.jpg"]
