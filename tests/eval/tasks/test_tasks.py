"""The reader of each data set, on a tiny archive with the official layout, and its error messages."""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from agenticiqa.eval.datasets import LabeledImage, MosScale
from agenticiqa.eval.tasks.catalog import TASKS
from agenticiqa.eval.tasks.labeled_set import labeled_images
from agenticiqa.eval.tasks.readers import Cells
from agenticiqa.eval.tasks.task import by_name, labels_sha256, missing_files, other_files, read_task
from agenticiqa.programs.errors import UserError
from support import archives

SEALS, TRIANGLES = "seals.bmp", "artwork with only triangles, anime style"
TID_ROWS = [
    ("distorted_images/i01_01_1.bmp", "reference_images/I01.BMP", 5.5, 0.13, "I01", "01", "1", None),
    ("distorted_images/I25_09_4.bmp", "reference_images/i25.bmp", 2.5, 0.15, "I25", "09", "4", None),
]


def read(name: str, root: Path) -> list[LabeledImage]:
    """Read a tiny archive, which is a part of the set."""
    return read_task(TASKS[name], root, partial=True)


def refused(name: str, root: Path) -> str:
    with pytest.raises(UserError) as caught:
        read(name, root)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_declared_scale_of_a_set_is_used(tmp_path: Path) -> None:
    archives.tid(tmp_path, "tid2013")
    assert labeled_images(Path("tid2013"), tmp_path, None, partial=True).any_scale() == MosScale(0, 9)


def test_live_r2_realigned(tmp_path: Path) -> None:
    folder = archives.live_r2(tmp_path)
    labels = read("live-r2", tmp_path)
    assert len(labels) == 982 - 246  # without the undamaged copies
    first = labels[0]
    assert (first.name, first.content, first.distortion) == ("jp2k/img2.bmp", "house.bmp", "jp2k")
    assert first.reference == folder / "refimgs/house.bmp"
    assert first.mos == pytest.approx(100 - 19.05)
    assert first.mos_std == 5.0
    assert next(label.name for label in labels if label.distortion == "jpeg") == "jpeg/img1.bmp"
    assert {label.content for label in labels} == {"bikes.bmp", "house.bmp", "ocean.bmp"}
    assert len(missing_files(labels)) == len(labels) + 3


def test_live_r2_original_is_the_other_table(tmp_path: Path) -> None:
    archives.live_r2(tmp_path)
    labels = read("live-r2-original", tmp_path)
    assert labels[0].mos == pytest.approx(100 - 20.05)
    assert labels[0].mos_std is None


ARCHIVES = {
    "kadid10k": archives.kadid10k,
    "live-md": archives.live_md,
    "csiq": archives.csiq,
    "tid2008": partial(archives.tid, name="tid2008"),
    "tid2013": partial(archives.tid, name="tid2013"),
    "pipal": archives.pipal,
    "clive": archives.clive,
    "koniq10k": archives.koniq10k,
    "spaq": archives.spaq,
    "bid": archives.bid,
    "biq2021": archives.biq2021,
    "agiqa3k": archives.agiqa3k,
    "avt-ai": archives.avt_ai,
}
EXPECTED = {  # of each tiny archive: name, reference, MOS, its deviation, content, distortion, level, split
    "kadid10k": [  # the column `var` holds standard deviations
        (f"images/{scene}_01_{level}.png", f"images/{scene}.png", mos, 0.25, scene, "01", level[1:], None)
        for scene, level, mos in (("I01", "01", 4.57), ("I02", "01", 4.33), ("I01", "05", 1.5), ("I02", "05", 1.2))
    ],
    "live-md": [
        row
        for part, other in (("Part 1/blurjpeg", "jpeg"), ("Part 2/blurnoise", "noise"))
        for row in (
            (f"{part}/seals_blur1_{other}2.bmp", f"{part}/{SEALS}", 55.6, None, SEALS, f"blur+{other}", "3", None),
            (f"{part}/seals_{other}1.bmp", f"{part}/{SEALS}", 94.2, None, SEALS, other, "1", None),
            (f"{part}/cows_blur3.bmp", f"{part}/cows.bmp", 27.6, None, "cows.bmp", "blur", "3", None),
        )
    ],
    "csiq": [
        ("dst_imgs/awgn/1600.AWGN.1.png", "src_imgs/1600.png", 0.94, 0.05, "1600", "awgn", "1", None),
        ("dst_imgs/jpeg2000/turtle.jpeg2000.5.png", "src_imgs/turtle.png", 0.1, 0.1, "turtle", "jpeg2000", "5", None),
    ],
    "tid2008": TID_ROWS,
    "tid2013": TID_ROWS,
    "pipal": [
        ("Distortion_1/A0001_00_00.bmp", "Train_Ref/A0001.bmp", 1520.0648, None, "A0001", "00", None, "train"),
        ("Distortion_4/A0185_06_03.bmp", "Train_Ref/A0185.bmp", 1037.5, None, "A0185", "06", None, "train"),
    ],
    "clive": [
        ("Images/3.bmp", None, 21.7, 15.1, "3.bmp", None, None, None),  # t1 to t7 were used to train the raters
        ("Images/1159.JPG", None, 87.1, 14.6, "1159.JPG", None, None, None),
    ],
    "koniq10k": [
        ("1024x768/10004473376.jpg", None, 77.4, None, "10004473376.jpg", None, None, "training"),
        ("1024x768/10319713194.jpg", None, 8.0, None, "10319713194.jpg", None, None, "test"),
        ("1024x768/10043785683.jpg", None, 71.2, None, "10043785683.jpg", None, None, "validation"),
    ],
    "spaq": [
        ("TestImage/00001.jpg", None, 33.5, None, "00001.jpg", None, None, None),
        ("TestImage/00002.jpg", None, 81, None, "00002.jpg", None, None, None),
    ],
    "bid": [
        ("ImageDatabase/DatabaseImage0001.JPG", None, 1.25, 0.8, "DatabaseImage0001.JPG", None, None, None),
        ("ImageDatabase/DatabaseImage0586.JPG", None, 4.5, 0.4, "DatabaseImage0586.JPG", None, None, None),
    ],
    "biq2021": [
        ("Images/ss03 (2898).jpg", None, 0.8089, None, "ss03 (2898).jpg", None, None, "train"),
        ("Images/ss01 (512).jpg", None, 0.1995, None, "ss01 (512).jpg", None, None, "test"),
    ],
    "agiqa3k": [
        ("AttnGAN_normal_000.jpg", None, 0.965602553, 0.22, "statue of a man", None, None, None),
        ("sd1.5_lowstep_000.jpg", None, 3.2, 0.4, "statue of a man", None, None, None),
        ("sd1.5_lowstep_060.jpg", None, 2.1, 0.7, TRIANGLES, None, None, None),
    ],
    "avt-ai": [
        ("images/craiyon/p19.png", None, 2.76, 0.97, "Apollo 9 command module", None, None, None),
        ("images/own/p19.png", None, 3.84, 1.14, "Apollo 9 command module", None, None, None),
    ],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_row_is_read_and_every_file_found(name: str, tmp_path: Path) -> None:
    folder = ARCHIVES[name](tmp_path)
    labels = read(name, tmp_path)
    for x, expected in zip(labels, EXPECTED[name], strict=True):
        reference = x.reference and x.reference.relative_to(folder).as_posix()
        found = (x.name, reference, x.mos, x.mos_std, x.content, x.distortion, x.level, x.split)
        assert found == (*expected[:2], pytest.approx(expected[2]), *expected[3:])
    assert [label.image for label in labels] == [folder / label.name for label in labels]
    assert not missing_files(labels)
    assert labels == read(name, folder)  # --root may also be the folder of the archive


def test_every_set_has_a_tiny_archive_here() -> None:
    assert {*ARCHIVES, "live-r2", "live-r2-original"} == {*TASKS}


def test_two_sets_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two rows have one name, bid and B-ID; rename one of them"):
        by_name(TASKS["bid"], replace(TASKS["spaq"], name="B-ID"))


def test_a_name_that_the_set_does_not_have_is_refused(tmp_path: Path) -> None:
    folder = archives.kadid10k(tmp_path)
    with (folder / "dmos.csv").open("a") as file:
        file.write("I01_01.png,I01.png,4.57,0.25\n")
    assert "images/I01_01.png is not a name of this data set" in refused("kadid10k", tmp_path)


def test_scores_that_fall_with_quality_are_refused(tmp_path: Path) -> None:
    archives.kadid10k(tmp_path, scores=(1.2, 1.5, 4.33, 4.57))
    assert "the least damaged images have a mean of 1.35" in refused("kadid10k", tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("live-r2", "the undamaged images have a mean of"),
        ("live-md", "the least damaged images have a mean of 94.2"),
        ("csiq", "the least damaged images have a mean of 0.94"),
        ("tid2008", "the least damaged images have a mean of 2.5"),
        ("tid2013", "the least damaged images have a mean of 2.5"),
        ("koniq10k", "MOS does not follow the mean of the votes"),
    ],
)
def test_a_mirrored_table_is_refused_if_the_archive_shows_the_direction(
    name: str, message: str, tmp_path: Path
) -> None:
    {"live-r2": archives.live_r2, **ARCHIVES}[name](tmp_path, mirrored=True)
    assert message in refused(name, tmp_path)


def test_a_table_on_a_smaller_scale_is_refused(tmp_path: Path) -> None:
    folder = archives.biq2021(tmp_path)
    archives.spaq(tmp_path)
    archives.sheet(
        tmp_path / "SPAQ/Annotations/MOS and Image attribute scores.xlsx",
        [("Image name", "MOS"), ("00001.jpg", 1.3), ("00002.jpg", 4.8)],
    )
    assert "spans only 1.3 to 4.8 of its scale from 0 to 100" in refused("spaq", tmp_path)
    (folder / "Test (Images and MOS).csv").write_text("Image Name,MOS,,\nss01 (512).jpg,19.95,,\n")
    assert "such as 19.95" in refused("biq2021", tmp_path)


def test_files_of_other_formats_are_refused(tmp_path: Path) -> None:
    archives.clive(tmp_path, training="x")
    assert "expected t1 to t7 as the first images" in refused("clive", tmp_path)
    (tmp_path / "ChallengeDB_release/Data/AllMOS_release.mat").write_bytes(b"MATLAB 7.3")
    assert "is not a MATLAB file" in refused("clive", tmp_path)
    sheet = archives.bid(tmp_path) / "DatabaseGrades.xlsx"
    archives.sheet(sheet, [("number", "grade"), (1, 2.5)])
    assert "no line has the columns Image Number" in refused("bid", tmp_path)
    sheet.write_bytes(b"an .xls file")
    assert "is not an .xlsx file" in refused("bid", tmp_path)
    folder = archives.live_md(tmp_path)
    savemat(folder / "Part 2/Scores.mat", {"DMOSscores": np.array([[44.4, 5.8]])})
    assert "zip() argument" in refused("live-md", tmp_path)
    archives.avt_ai(tmp_path, place="elsewhere")
    assert "found neither quality_evaluation/quality.csv" in refused("avt-ai", tmp_path)


def test_ratings_of_avt_ai_are_found_under_their_other_name(tmp_path: Path) -> None:
    archives.avt_ai(tmp_path, place="evaluation_quality_appeal")
    assert len(read("avt-ai", tmp_path)) == 2


def test_a_sheet_needs_openpyxl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archives.bid(tmp_path)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert "pip install 'agenticiqa[xlsx]'" in refused("bid", tmp_path)


@pytest.mark.parametrize("score", [0.2, 5.1, float("nan")])
def test_labels_beyond_the_scale_are_refused(tmp_path: Path, score: float) -> None:
    archives.kadid10k(tmp_path, scores=(4.57, score, 1.5, 1.2))
    assert f"such as {score:g}" in refused("kadid10k", tmp_path)


def test_an_unknown_split_and_a_table_of_another_format_are_refused(tmp_path: Path) -> None:
    folder = archives.kadid10k(tmp_path)
    with pytest.raises(UserError, match="no row has split 'test'; splits found: none"):
        labeled_images(Path("kadid10k"), tmp_path, "test", partial=True)
    (folder / "dmos.csv").write_text("dist_img,score\nI01_01_01.png,4\n")
    assert "KeyError: 'dmos'" in refused("kadid10k", tmp_path)


@pytest.mark.parametrize("name", TASKS)
def test_a_missing_set_reports_its_source_and_folder(name: str, tmp_path: Path) -> None:
    message = refused(name, tmp_path)
    assert TASKS[name].source in message
    assert str(tmp_path / TASKS[name].folder) in message


def test_the_hash_depends_on_the_labels_but_not_on_the_folder(tmp_path: Path) -> None:
    for place, scores in {"a": (4.57, 4.3, 1.5, 1.2), "b": (4.57, 4.3, 1.5, 1.2), "c": (4.57, 4.3, 1.5, 1.3)}.items():
        archives.kadid10k(tmp_path / place, scores=scores)
    first, same, other = (labels_sha256(read("kadid10k", tmp_path / place)) for place in "abc")
    assert first == same != other


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_wrong_number_of_images_is_refused(name: str, tmp_path: Path) -> None:
    """The table is incomplete or belongs to another set, such as TID2008 instead of TID2013."""
    ARCHIVES[name](tmp_path)
    with pytest.raises(UserError, match=rf"^{name}: .* or add --partial to use these images$"):
        labeled_images(Path(name), tmp_path, None)
    found = labeled_images(Path(name), tmp_path, None, partial=True)
    assert found.part == f"{len(found.labels)} of {TASKS[name].count:,}"


def test_rows_with_missing_files_are_skipped_in_a_partial_copy(tmp_path: Path) -> None:
    folder = archives.kadid10k(tmp_path)
    (folder / "images/I02_01_05.png").unlink()
    found = labeled_images(Path("kadid10k"), tmp_path, None, partial=True)
    assert (len(found.labels), found.part) == (3, "3 of 10,125")
    for file in (folder / "images").iterdir():
        file.unlink()
    with pytest.raises(UserError, match=r"^kadid10k: the files of all 4 listed images are missing, .*; download kad"):
        labeled_images(Path("kadid10k"), tmp_path, None, partial=True)
    with pytest.raises(UserError, match="--partial applies only to public data sets"):
        labeled_images(tmp_path / "labels.csv", None, None, partial=True)


def test_a_repeated_image_is_refused(tmp_path: Path) -> None:
    folder = archives.kadid10k(tmp_path)
    with (folder / "dmos.csv").open("a") as file:
        file.write("I01_01_01.png,I01.png,4.57,0.25\n")
    assert (
        refused("kadid10k", tmp_path)
        == "kadid10k: 1 images are listed twice in dmos.csv, such as images/I01_01_01.png; use the official file"
    )


@pytest.mark.parametrize("name", ["pipal", "agiqa3k", "biq2021"])
def test_a_mirrored_table_is_refused_by_a_known_score(name: str, tmp_path: Path) -> None:
    """The archives of these sets do not show the direction."""
    ARCHIVES[name](tmp_path)
    task = TASKS[name]
    low, high = task.scale

    def mirrored(folder: Path, files: Sequence[str]) -> Iterator[Cells]:
        for cells in task.read(folder, files):
            yield {**cells, task.column: low + high - float(cells[task.column])}

    with pytest.raises(UserError, match="in the official table"):
        read_task(replace(task, read=mirrored), tmp_path, partial=True)


def test_an_unofficial_label_file_is_reported(tmp_path: Path) -> None:
    folder = archives.agiqa3k(tmp_path)
    shown = other_files(TASKS["agiqa3k"], tmp_path)
    assert shown is not None
    assert shown.startswith("data.csv of agiqa3k differs from the official file (SHA-256 ")
    lines = (folder / "data.csv").read_bytes().replace(b"\r\n", b"\n")
    official = replace(TASKS["agiqa3k"], sha256={"data.csv": hashlib.sha256(lines).hexdigest()})
    (folder / "data.csv").write_bytes(lines.replace(b"\n", b"\r\n"))  # as git writes it on Windows
    assert other_files(official, tmp_path) is None
    assert other_files(TASKS["kadid10k"], archives.kadid10k(tmp_path / "other")) is None, "it has no known hash"


def test_generators_are_not_distortions(tmp_path: Path) -> None:
    archives.agiqa3k(tmp_path)
    archives.avt_ai(tmp_path)
    assert [label.generator for label in read("agiqa3k", tmp_path)] == ["AttnGAN_normal", *["sd1.5_lowstep"] * 2]
    assert {label.generator for label in read("avt-ai", tmp_path)} == {"craiyon", "own"}
