"""A labels.csv: what is read from it, and the one line that is said of each mistake in it."""

from pathlib import Path

import pytest

from agenticiqa.eval.datasets import read_labels
from agenticiqa.programs.errors import UserError

HEADER = "image,reference,mos,mos_std,distortion,level,split,source\n"


def labels_file(folder: Path, text: str, files: tuple[str, ...] = ("a.png", "b.png", "ref/r.png")) -> Path:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"an image")
    path = folder / "labels.csv"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(path: Path, split: str | None = None) -> str:
    with pytest.raises(UserError) as caught:
        read_labels(path, split)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_every_column_is_read_and_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    path = labels_file(tmp_path, HEADER + "a.png,ref/r.png,71.5,2.1,gaussian-blur,2,dev,gblur/img7.bmp\n")
    (label,) = read_labels(path)
    assert label.image == tmp_path / "a.png"
    assert label.reference == tmp_path / "ref/r.png"
    assert (label.mos, label.mos_std, label.distortion, label.level) == (71.5, 2.1, "gaussian-blur", "2")
    assert (label.split, label.source, label.content, label.name) == ("dev", "gblur/img7.bmp", "r.png", "a.png")


def test_image_and_mos_are_enough(tmp_path: Path) -> None:
    labels = read_labels(labels_file(tmp_path, "image,mos\na.png,3\nb.png, 4.5 \n"))
    assert [label.mos for label in labels] == [3, 4.5]
    assert [label.content for label in labels] == ["a.png", "b.png"]
    assert {label.reference for label in labels} == {label.mos_std for label in labels} == {None}


def test_a_split_is_part_of_the_rows_in_their_order(tmp_path: Path) -> None:
    text = "image,mos,split\na.png,1,dev\nb.png,2,train\nref/r.png,3,dev\n"
    path = labels_file(tmp_path, text)
    assert [label.mos for label in read_labels(path, "dev")] == [1, 3]
    assert len(read_labels(path)) == 3
    assert "dev, train" in complaint(path, "test")


def test_a_byte_order_mark_and_unknown_columns_do_no_harm(tmp_path: Path) -> None:
    path = labels_file(tmp_path, "\ufeffimage,mos,photographer\na.png,1,x\n")
    assert len(read_labels(path)) == 1


@pytest.mark.parametrize("cell", ["good", "", "nan", "inf", "1,5"])
def test_a_mos_that_is_no_number_is_named_with_its_line(tmp_path: Path, cell: str) -> None:
    message = complaint(labels_file(tmp_path, f'image,mos\na.png,3\nb.png,"{cell}"\n'))
    assert "line 3" in message
    assert "mos" in message


def test_a_mos_std_that_is_no_number_is_named_too(tmp_path: Path) -> None:
    message = complaint(labels_file(tmp_path, "image,mos,mos_std\na.png,3,wide\n"))
    assert "line 2" in message
    assert "mos_std" in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty file"),
        ("image,score\na.png,3\n", "add mos"),
        ("file,score\na.png,3\n", "add image and mos"),
        ("image,mos\n", "header"),
        ("image,mos\n,3\n", "line 2"),
        ("image,mos\na.png,3\na.png,4\n", "line 3"),
    ],
)
def test_a_file_without_usable_rows_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in complaint(labels_file(tmp_path, text))


def test_missing_images_are_counted_and_the_first_ones_named(tmp_path: Path) -> None:
    rows = "".join(f"lost{number}.png,ref/r.png,{number}\n" for number in range(7))
    message = complaint(labels_file(tmp_path, "image,reference,mos\na.png,gone.png,1\n" + rows))
    assert "8 of 10 files are missing" in message
    assert "lost0.png" in message
    assert "5 more" in message


def test_only_the_files_of_the_split_have_to_be_there(tmp_path: Path) -> None:
    path = labels_file(tmp_path, "image,mos,split\na.png,1,dev\nlost.png,2,train\n")
    assert len(read_labels(path, "dev")) == 1
    assert "1 of 2" in complaint(path)


def test_a_missing_file_and_one_that_is_no_text_are_refused(tmp_path: Path) -> None:
    assert "cannot be read" in complaint(tmp_path / "nothing.csv")
    path = tmp_path / "labels.csv"
    path.write_bytes(b"\xff\xfe\x00image")
    assert "cannot be read" in complaint(path)


def test_an_image_may_stand_twice_with_two_references(tmp_path: Path) -> None:
    path = labels_file(tmp_path, "image,reference,mos\na.png,ref/r.png,1\na.png,b.png,2\n")
    assert [label.content for label in read_labels(path)] == ["r.png", "b.png"]


def test_the_labelled_sets_are_read_whole(shared_data: Path) -> None:
    live, clive = (read_labels(shared_data / name / "labels.csv") for name in ("live_r2", "clive"))
    assert len(live) == 72
    assert len({label.content for label in live}) == 4
    assert all(label.reference for label in live)
    assert len(clive) == 550
    assert len(read_labels(shared_data / "clive" / "labels.csv", "dev")) == 250
