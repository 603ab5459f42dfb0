"""The questions are many, divided by photo and by wording, and their answers follow from how the image was made."""

import csv
from pathlib import Path

import numpy as np
import pytest

from agenticiqa.eval.research import DATA
from agenticiqa.eval.research.questions import MAKERS, Question, questions
from agenticiqa.eval.research.recipes import PLACES, Content, Recipe, box_of, photos_of, pixels_of, read_contents
from agenticiqa.eval.research.wordings import SPLITS, read_wordings, wordings_file
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.tools.distort import distort

HERE = [split for split in SPLITS if wordings_file(split).exists()]


def made(split: str) -> list[Question]:
    return questions(read_wordings(wordings_file(split)), photos_of(split, read_contents().values()))


@pytest.mark.parametrize("split", HERE)
def test_each_split_asks_every_kind_of_question(split: str) -> None:
    asked = made(split)
    assert {question.kind for question in asked} == set(MAKERS)
    assert len(asked) >= 500
    assert asked == made(split)


def test_no_wording_and_no_photo_is_in_both_splits() -> None:
    texts = [{wording.text for wording in read_wordings(wordings_file(split))} for split in HERE]
    assert len(set.union(*texts)) == sum(map(len, texts))
    assert len({(each.file, each.split) for each in read_contents().values()}) == len(read_contents())


def test_the_detector_was_not_trained_on_the_photos() -> None:
    with (DATA / "pristine.csv").open(encoding="utf-8", newline="") as file:
        trained = {row["file"] for row in csv.DictReader(file)}
    assert not trained & {each.file for each in read_contents().values()}


@pytest.mark.parametrize("split", HERE)
def test_yes_and_no_are_both_true_often(split: str) -> None:
    true = [question.accepted[0] for question in made(split) if question.form == "yes_no"]
    assert 0.4 < true.count("yes") / len(true) < 0.6


def test_a_distortion_in_one_place_leaves_the_rest_untouched() -> None:
    photo = np.random.default_rng(0).integers(0, 256, (90, 120, 3), np.uint8)
    for place in PLACES:
        damaged = pixels_of(Recipe("photo", "darken", 5, place), photo)
        inside = np.zeros(photo.shape[:2], bool)
        left, top, right, bottom = box_of(place, photo)
        inside[top:bottom, left:right] = True
        assert (damaged[~inside] == photo[~inside]).all()
        assert (damaged[inside] == distort(photo, "darken", 5)[inside]).all()


def wording_file(tmp_path: Path, *rows: str) -> Path:
    file = tmp_path / "wordings.csv"
    file.write_text("\n".join(("kind,style,about,truth,text", *rows)) + "\n")
    return file


PHOTO = Content("photo", "photo.png", "none", "dev", True, True, ("sky",))


def test_what_makes_an_option_true_is_taken_out_of_the_text(tmp_path: Path) -> None:
    rows = ("degree,plain,noise,-,How noisy? A. Not{0} B. A little{1-2} C. Very{3-5}",)
    asked = questions(read_wordings(wording_file(tmp_path, *rows)), [PHOTO])
    assert {question.text for question in asked} == {"How noisy? A. Not B. A little C. Very"}
    assert {(str(question.image), *question.accepted) for question in asked} == {
        ("photo", "A"),
        ("photo/white_noise-3", "C"),
        ("photo/white_noise-4", "C"),
        ("photo/white_noise-5", "C"),
    }


def test_a_template_is_filled_in_for_each_concept_with_a_noun(tmp_path: Path) -> None:
    rows = ("noun,plain,blur,,blur", "noun,plain,noise,,grain", "presence,plain,*,yes,Is there {noun}?")
    assert [wording.text for wording in read_wordings(wording_file(tmp_path, *rows))] == [
        "Is there blur?",
        "Is there grain?",
    ]


def test_the_reference_is_asked_about_with_the_two_swapped_as_well(tmp_path: Path) -> None:
    file = wording_file(tmp_path, "reference,plain,blur,yes,Is the reference blurry?")
    for question in questions(read_wordings(file), [PHOTO]):
        assert question.reference is not None
        assert question.accepted == ("yes" if question.reference.kind else "no",)


@pytest.mark.parametrize(
    ("rows", "part"),
    [(("presence,plain,blur,yes",), "expected kind"), (("presence,plain,*,yes,Is it blurry?",), "noun")],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, rows: tuple[str, ...], part: str) -> None:
    with pytest.raises(UserError, match=rf"wordings\.csv:2: .*{part}"):
        read_wordings(wording_file(tmp_path, *rows))
