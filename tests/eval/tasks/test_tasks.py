"""Each data set's reader, on a tiny archive in its true layout; what is refused, and what is said."""

from pathlib import Path

import pytest

from agenticiqa.eval.tasks.catalog import TASKS, find_task
from agenticiqa.eval.tasks.task import labels_sha256, missing_files, read_task
from agenticiqa.programs.errors import UserError
from support import archives


def refused(name: str, root: Path, split: str | None = None) -> str:
    with pytest.raises(UserError) as caught:
        read_task(TASKS[name], root, split)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_kadid10k(tmp_path: Path) -> None:
    folder = archives.kadid10k(tmp_path)
    labels = read_task(TASKS["kadid10k"], tmp_path)
    assert [label.mos for label in labels] == [4.57, 4.33, 1.5, 1.2]
    assert [label.content for label in labels] == ["I01", "I02", "I01", "I02"]
    first = labels[0]
    assert (first.name, first.image) == ("images/I01_01_01.png", folder / "images/I01_01_01.png")
    assert (first.reference, first.mos_std) == (folder / "images/I01.png", 0.5)  # the column holds the variance, 0.25
    assert (first.distortion, first.level) == ("01", "1")
    assert not missing_files(labels)
    assert labels == read_task(TASKS["kadid10k"], folder)  # --root may be the archive's folder, too


def test_live_r2_realigned(tmp_path: Path) -> None:
    folder = archives.live_r2(tmp_path)
    labels = read_task(TASKS["live-r2"], tmp_path)
    assert len(labels) == 982 - 246  # undamaged copies are left out
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
    labels = read_task(TASKS["live-r2-original"], tmp_path)
    assert labels[0].mos == pytest.approx(100 - 20.05)
    assert labels[0].mos_std is None


def test_labels_that_run_the_other_way_are_refused(tmp_path: Path) -> None:
    archives.live_r2(tmp_path, mirrored=True)
    assert "what is undamaged has" in refused("live-r2", tmp_path)
    archives.kadid10k(tmp_path, scores=(1.2, 1.5, 4.33, 4.57))
    assert "the least damage has 1.35" in refused("kadid10k", tmp_path)


@pytest.mark.parametrize("score", [0.2, 5.1, float("nan")])
def test_labels_beyond_the_scale_are_refused(tmp_path: Path, score: float) -> None:
    archives.kadid10k(tmp_path, scores=(4.57, score, 1.5, 1.2))
    assert f"such as {score:g}" in refused("kadid10k", tmp_path)


def test_a_table_of_another_form_is_refused(tmp_path: Path) -> None:
    (archives.kadid10k(tmp_path) / "dmos.csv").write_text("dist_img,score\nI01_01_01.png,4\n")
    assert "KeyError: 'dmos'" in refused("kadid10k", tmp_path)


def test_a_split_that_the_set_does_not_have_is_refused(tmp_path: Path) -> None:
    archives.kadid10k(tmp_path)
    assert "splits in it: none" in refused("kadid10k", tmp_path, "test")


@pytest.mark.parametrize("name", TASKS)
def test_a_missing_set_says_what_to_get_from_whom_and_where_to_put_it(name: str, tmp_path: Path) -> None:
    message = refused(name, tmp_path)
    assert TASKS[name].source in message
    assert str(tmp_path / TASKS[name].folder) in message


def test_the_hash_follows_the_labels_and_not_the_place(tmp_path: Path) -> None:
    for place, scores in {"a": (4.5, 4.3, 1.5, 1.2), "b": (4.5, 4.3, 1.5, 1.2), "c": (4.5, 4.3, 1.5, 1.3)}.items():
        archives.kadid10k(tmp_path / place, scores=scores)
    first, same, other = (labels_sha256(read_task(TASKS["kadid10k"], tmp_path / place)) for place in "abc")
    assert first == same != other


def test_an_unknown_name_is_answered_with_all_names() -> None:
    with pytest.raises(UserError, match="kadid10k"):
        find_task("kadid")
