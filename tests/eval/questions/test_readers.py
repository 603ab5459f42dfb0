"""Each benchmark's reader, on a tiny archive in its true layout; and its errors."""

import json
import re
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.eval.questions.catalog import QUESTION_TASKS
from agenticiqa.eval.questions.qbench import type_names
from agenticiqa.eval.questions.task import Item, asked_of, index_of, items_sha256, read_items
from agenticiqa.programs.errors import UserError
from support import question_archives as archives


def read(name: str, root: Path, split: str | None = None) -> list[Item]:
    return read_items(QUESTION_TASKS[name], root, split).usable


def refused(name: str, root: Path, split: str | None = None) -> str:
    with pytest.raises(UserError) as caught:
        read_items(QUESTION_TASKS[name], root, split)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_qbench(tmp_path: Path) -> None:
    folder = archives.qbench(tmp_path)
    items = read("qbench", tmp_path)
    assert [item.correct for item in items] == [1, 0, 1, 1, 0]
    assert items[0].options == ("Yes", "No")
    assert items[0].image == folder / "images/00000.png"
    assert items[1].groups == {"type": "how", "concern": "other"}
    assert items[2].groups == {"type": "what", "concern": "in-context distortion"}
    assert items == read("qbench", folder)  # --root may be the archive's folder, too


def test_the_questions_determine_which_type_is_how() -> None:
    questions = ["Is it?", "How dark is it?", "What is it?"]
    assert type_names([0, 2, 1], questions) == {0: "yes-or-no", 1: "what", 2: "how"}
    assert type_names([0, 1, 2], questions) == {0: "yes-or-no", 1: "how", 2: "what"}


def test_a_split_without_published_answers_is_refused(tmp_path: Path) -> None:
    rows = [{**row, "correct_ans": ""} for row in archives.QBENCH_ROWS]
    archives.qbench(tmp_path, rows=rows, split="test")
    assert "not published" in refused("qbench", tmp_path, "test")
    assert "known splits: dev, test" in refused("qbench", tmp_path, "train")


def test_unusable_questions_are_skipped_and_reported(tmp_path: Path) -> None:
    twice = {**archives.QBENCH_ROWS[0], "candidates": ["Yes", "yes"], "correct_ans": "Yes"}
    secret = {**archives.QBENCH_ROWS[0], "correct_ans": ""}
    archives.qbench(tmp_path, rows=[twice, secret, *archives.QBENCH_ROWS])
    found = read_items(QUESTION_TASKS["qbench"], tmp_path)
    assert len(found.usable) == 5
    assert found.skipped == [
        "0 00000.png: two options have the same letter or text: give each only once",
        "1 00001.png: it has no true answer",
    ]


def test_qbench_of_the_hub(tmp_path: Path) -> None:
    row = {"question": "Is the image blurry?", "option0": "Yes", "option1": "No", "option2": "N/A", "option3": "N/A"}
    row |= {"id": "llvqa/1", "question_type": 0, "question_concern": 3, "correct_choice": "B"}
    folder = archives.hub(tmp_path, "Q-Bench-HF", [row])
    (item,) = read("qbench-hf", tmp_path)
    assert (item.options, item.correct) == (("Yes", "No"), 1)
    assert item.groups == {"type": "yes-or-no", "concern": "in-context other"}
    assert item.image.read_bytes() == (folder / "source/a.png").read_bytes()


def test_abench(tmp_path: Path) -> None:
    row = {"question": "How many cats?", "option0": "1", "option1": "2", "option2": "3", "option3": "4"}
    row |= {"id": "7", "category": "part1 -> bag_of_words -> attribute", "correct_choice": "C"}
    archives.hub(tmp_path, "A-Bench-HF", [row])
    (item,) = read("abench", tmp_path)
    assert (item.correct, item.groups) == (2, {"part": "part1", "category": "attribute"})


def test_agenticiqa_eval(tmp_path: Path) -> None:
    folder = archives.agenticiqa_eval(tmp_path)
    items = {item.groups["track"]: item for item in read("agenticiqa-eval", tmp_path)}
    assert sorted(items) == ["distortion", "planner", "summarizer", "tool"]
    assert items["distortion"].options == ("None", "Mild", "Moderate", "Severe")
    assert (items["tool"].options, items["tool"].correct) == (("Yes", "No"), 1)
    assert items["summarizer"].reference == folder / "images/2_ref.png"
    assert items["summarizer"].groups["reference"] == "FR"


@pytest.mark.parametrize("name", QUESTION_TASKS)
def test_a_missing_set_reports_what_to_get_and_where_to_put_it(name: str, tmp_path: Path) -> None:
    task = QUESTION_TASKS[name]
    shown = refused(name, tmp_path)
    assert task.source in shown
    assert str(tmp_path / task.folder) in shown
    assert "--root" in shown


def test_missing_images_and_an_unexpected_format_are_reported(tmp_path: Path) -> None:
    folder = archives.qbench(tmp_path)
    (folder / "images/00001.png").unlink()
    assert "1 images are missing" in refused("qbench", tmp_path)
    (folder / "llvisionqa_dev.json").write_text(json.dumps([{"img": "a"}]))
    assert "do not have the expected format" in refused("qbench", tmp_path)


def test_the_true_answer_is_read_as_text_or_letter() -> None:
    assert index_of("Blur", ("Noise", "Blur")) == 1
    assert index_of("A", ("B", "A")) == 1  # the text of an option goes before its letter
    assert index_of("b.", ("Noise", "Blur")) == 1
    assert index_of("", ("Noise", "Blur")) is None
    with pytest.raises(ValueError, match="not among the options"):
        index_of("C", ("Noise", "Blur"))


def test_rotations_keep_the_true_option(tmp_path: Path) -> None:
    archives.qbench(tmp_path)
    items = read("qbench", tmp_path)
    asked = list(asked_of(items, circular=True))
    assert len(asked) == 2 + 3 + 4 + 3 + 2
    for each in asked:
        assert each.options[each.truth] == each.item.options[each.item.correct or 0]
    assert len({(each.item.name, each.truth) for each in asked}) == len(asked)  # once at every letter


def test_the_hash_depends_on_the_questions_and_not_on_the_folder(tmp_path: Path) -> None:
    archives.qbench(tmp_path / "a")
    archives.qbench(tmp_path / "b")
    archives.qbench(tmp_path / "c", rows=archives.QBENCH_ROWS[:-1])
    first, second, third = (items_sha256(read("qbench", tmp_path / name)) for name in "abc")
    assert first == second != third


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"task_type": None}, "question 1: the key 'task_type' is missing"),
        ({"reference_mode": None}, "question 1: the key 'reference_mode' is missing"),
        ({"task_type": "detail"}, "question 1: task_type 'detail' is none of planner, executor_distortion"),
        ({"reference_mode": "FR"}, "question 1: expected reference_mode FR with a reference_path"),
    ],
)
def test_a_question_of_your_own_is_refused_with_its_number_and_the_key(
    change: dict[str, str | None], why: str, tmp_path: Path
) -> None:
    write_own_questions(tmp_path, {}, change)
    with pytest.raises(UserError, match=re.escape(why)):
        read_items(QUESTION_TASKS["agenticiqa-eval"], tmp_path)


def test_a_question_of_your_own_without_an_answer_is_skipped(tmp_path: Path) -> None:
    write_own_questions(tmp_path, {}, {"answer": None}, {"answer": ""})
    items = read_items(QUESTION_TASKS["agenticiqa-eval"], tmp_path)
    assert (len(items.usable), len(items.skipped)) == (1, 2)


def write_own_questions(folder: Path, *changes: dict[str, str | None]) -> None:
    """Write one question for each change of a valid one; a value of ``None`` removes the key."""
    Image.new("RGB", (40, 40)).save(folder / "a.png")
    question = {"question": "How strong is the noise?", "options": {"A": "None", "B": "Strong"}, "answer": "B"}
    question |= {"task_type": "executor_distortion", "reference_mode": "NR", "image_path": "a.png"}
    rows = [{key: value for key, value in (question | change).items() if value is not None} for change in changes]
    (folder / "mine.json").write_text(json.dumps(rows))
