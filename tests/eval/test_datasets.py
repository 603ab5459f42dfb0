"""The reader of labels.csv: a one-line message for each mistake, the scale of the scores, and the folds."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenticiqa.eval.datasets import MosScale, contents_doubt, folds_by_content, mos_scale
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.programs.errors import UserError

HEADER = "image,reference,mos,mos_std,distortion,level,split,source\n"


def labels_file(folder: Path, text: str, files: tuple[str, ...] = ("a.png", "b.png", "ref/r.png")) -> Path:
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"an image")
    path = folder / "labels.csv"
    path.write_text(text, encoding="utf-8")
    return path


def message_for(path: Path, split: str | None = None) -> str:
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


def test_a_column_without_a_name_is_ignored(tmp_path: Path) -> None:
    labels = read_labels(labels_file(tmp_path, "image,mos,\na.png,3.5,b.png\nb.png,4,note\n"))
    assert [(x.name, x.reference, x.mos_std, x.distortion, x.split) for x in labels] == [
        ("a.png", None, None, None, None),
        ("b.png", None, None, None, None),
    ]


def test_image_and_mos_are_enough(tmp_path: Path) -> None:
    labels = read_labels(labels_file(tmp_path, "image,mos\na.png,3\nb.png, 4.5 \n"))
    assert [label.mos for label in labels] == [3, 4.5]
    assert [label.content for label in labels] == ["a.png", "b.png"]
    assert {label.reference for label in labels} == {label.mos_std for label in labels} == {None}


@pytest.mark.parametrize("cell", ["good", "", "nan", "inf", "1,5,2"])
def test_a_mos_that_is_not_a_number_is_reported_with_its_line(tmp_path: Path, cell: str) -> None:
    message = message_for(labels_file(tmp_path, f'image,mos\na.png,3\nb.png,"{cell}"\n'))
    assert "line 3" in message
    assert "mos" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("image,liked\na.png,3\n", "no mos column found"),
        ("who,liked\na.png,3\n", "no image and no mos column found"),
        ("image,mos\n", "found none"),
        ("image,mos\n,3\n", "line 2"),
        ("image,mos\na.png,3\na.png,4\n", "line 3"),
        ("image,mos,mos_std\na.png,3,wide\n", "line 2: mos_std"),
    ],
)
def test_a_file_without_usable_rows_is_refused(tmp_path: Path, text: str, message: str) -> None:
    assert message in message_for(labels_file(tmp_path, text))


def test_missing_images_are_counted_and_the_first_ones_named(tmp_path: Path) -> None:
    rows = "".join(f"lost{number}.png,ref/r.png,{number}\n" for number in range(7))
    message = message_for(labels_file(tmp_path, "image,reference,mos\na.png,gone.png,1\n" + rows))
    assert "8 of 10 files are missing" in message
    assert "lost0.png" in message
    assert "5 more" in message


def test_only_the_files_of_the_split_must_exist(tmp_path: Path) -> None:
    path = labels_file(tmp_path, "image,mos,split\na.png,1,dev\nlost.png,2,train\n")
    assert len(read_labels(path, "dev")) == 1
    assert "1 of 2" in message_for(path)


def test_missing_and_binary_files_are_refused(tmp_path: Path) -> None:
    assert "cannot be read" in message_for(tmp_path / "nothing.csv")
    path = tmp_path / "labels.csv"
    path.write_bytes(b"\xff\xfe\x00image")
    assert "cannot be read" in message_for(path)


def test_the_content_is_given_or_the_name_of_the_reference_or_of_the_image(tmp_path: Path) -> None:
    labels = read_labels(labels_file(tmp_path, "image,mos,content\na.png,3,pier\nb.png,4,\n"))
    assert [label.content for label in labels] == ["pier", "b.png"]
    twice = labels_file(tmp_path, "image,reference,mos\na.png,ref/r.png,1\na.png,b.png,2\n")
    assert [label.content for label in read_labels(twice)] == ["r.png", "b.png"]


def test_mos_are_mapped_linearly_to_1_to_5_and_clipped() -> None:
    assert [MosScale(20, 60).to_1_5(mos) for mos in (20, 30, 40, 60, 0, 90)] == [1, 2, 3, 5, 1, 5]


@pytest.mark.parametrize(
    ("mos", "scale"), [([0.2, 0.9], (0, 1)), ([1, 5], (1, 5)), ([0.5, 45], (0, 100)), ([0, 100], (0, 100))]
)
def test_the_default_scale_is_the_first_usual_one_that_holds_all_scores(
    mos: list[float], scale: tuple[float, float]
) -> None:
    assert mos_scale(mos) == MosScale(*scale)
    assert mos_scale(mos, (-10, 200)) == MosScale(-10, 200)


@pytest.mark.parametrize(
    ("mos", "suggested"),
    [
        ([0.83, 9.55], "such as 0 10$"),
        ([1.2, 9.6], "such as 1 10 or 0 10$"),
        ([1.0, 7.0], "such as 1 7 or 1 9 or 1 10 or 0 10$"),
        ([0.2, 4.9], "such as 0 5 or 0 10$"),
        ([2.0, 24.0], "such as 0 100$"),
        ([3.1, 3.6], "such as 1 5$"),
        ([0.4, 0.5], "such as 0 1$"),
    ],
)
def test_scores_on_an_uncertain_scale_are_refused_with_suggestions(mos: list[float], suggested: str) -> None:
    with pytest.raises(UserError, match=f"less than a quarter of .* --mos-range, {suggested}"):
        mos_scale(mos)
    assert mos_scale(mos, (0, 100)) == MosScale(0, 100)


@pytest.mark.parametrize(
    ("mos", "ends", "message"),
    [
        ([3, 101], None, "--mos-range"),
        ([3], (5, 5), "give the lower end first"),
        ([3], (5, 1), "give the lower end first"),
    ],
)
def test_an_unknown_or_reversed_scale_is_refused(
    mos: list[float], ends: tuple[float, float] | None, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        mos_scale(mos, ends)


@settings(deadline=None)
@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=30), st.integers(1, 6), st.booleans())
def test_a_content_is_in_one_fold_and_folds_are_equal_in_size(contents: list[str], folds: int, dealt: bool) -> None:
    fold_of = folds_by_content(contents, folds, seed=3, dealt=dealt)
    by_content = {
        content: {int(f) for f, c in zip(fold_of, contents, strict=True) if c == content} for content in contents
    }
    assert all(len(found) == 1 for found in by_content.values())
    sizes = np.bincount([found.pop() for found in by_content.values()])
    assert len(sizes) == min(folds, len(by_content))
    assert sizes.max() - sizes.min() <= 1


def test_the_folds_of_published_figures_are_reproduced() -> None:
    contents = [f"{number}.png" for number in range(7)]
    place = np.random.default_rng(4).permutation(7)
    assert folds_by_content(contents, 3, seed=4).tolist() == (place % 3).tolist()
    shuffled = np.random.default_rng(4).permutation(contents)
    dealt = {content: number % 3 for number, content in enumerate(shuffled)}
    assert folds_by_content(contents, 3, seed=4, dealt=True).tolist() == [dealt[content] for content in contents]
    assert folds_by_content(contents, 3, seed=4).tolist() != folds_by_content(contents, 3, seed=5).tolist()


def test_file_names_used_as_scenes_are_reported(tmp_path: Path) -> None:
    def doubt(text: str) -> str:
        return contents_doubt(read_labels(labels_file(tmp_path, text, ("a.png", "b.png", "x/a.png")))) or ""

    assert "each of 2 distorted images" in doubt("image,mos,distortion\na.png,3,blur\nb.png,4,noise\n")
    assert "each of 2 distorted images" in doubt("image,mos,distortion,level\na.png,3,blur,1\nb.png,4,blur,2\n")
    assert not doubt("image,mos,distortion\na.png,3,authentic\nb.png,4,authentic\n")
    assert "are treated as one scene" in doubt("image,mos\na.png,3\nx/a.png,4\n")
    assert not doubt("image,mos\na.png,3\nb.png,4\n")
    assert not doubt("image,mos,distortion,content\na.png,3,blur,pier\nb.png,4,blur,pier\n")
    assert not doubt("image,mos,distortion,reference\na.png,3,blur,b.png\n")
