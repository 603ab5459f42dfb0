"""Self-made sets: read as written, the same every time, with wordings outside the offline reader's training."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.questions.catalog import QUESTION_TASKS
from agenticiqa.eval.questions.make import MAKERS, QUARTERS, main, make_set
from agenticiqa.eval.questions.task import items_sha256, read_items
from agenticiqa.eval.questions.wordings import WORDINGS
from agenticiqa.eval.research.wordings import wordings_file
from support.distortion_levels import scene


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    photos = []
    for number in range(6):
        photos.append(root / f"photo{number}.png")
        Image.fromarray(scene(96, 128, seed=number)).save(photos[-1])
    make_set(photos, root / "own")
    return root


def rows(root: Path, name: str) -> list[dict[str, Any]]:
    return json.loads((root / "own" / name).read_text())


def test_the_written_set_can_be_read(made: Path) -> None:
    counts = {"own-mcq": 6 * len(MAKERS)}
    for name, count in counts.items():
        found = read_items(QUESTION_TASKS[name], made)
        assert (len(found.usable), found.skipped) == (count, [])
        assert len({item.content for item in found.usable}) == 6


def test_all_tracks_and_several_true_letters_are_there(made: Path) -> None:
    found = rows(made, "own_mcq.json")
    assert {row["task_type"] for row in found} == {"planner", "executor_distortion", "executor_tool", "summarizer"}
    assert len(Counter(row["answer"] for row in found)) >= 4
    assert all(row["answer"] in row["options"] for row in found)


def test_the_distortion_is_in_the_region_of_the_answer(made: Path) -> None:
    clean = {row["content"]: row["image_path"] for row in rows(made, "own_mcq.json") if row["kind"] == "metric"}
    for row in rows(made, "own_mcq.json"):
        if row["kind"] != "region":
            continue
        pristine, damaged = (
            np.asarray(Image.open(made / "own" / path), float) for path in (clean[row["content"]], row["image_path"])
        )
        changed = np.abs(pristine - damaged).sum(axis=2) > 0
        height, width = changed.shape
        true = row["options"][row["answer"]]
        name = true.lower()
        top, left = "lower" not in name, "right" not in name
        vertical = slice(None, height // 2) if top else slice(height // 2, None)
        horizontal = slice(None, width // 2) if left else slice(width // 2, None)
        inside = changed[
            vertical if "upper" in name or "lower" in name else slice(None),
            horizontal if "left" in name or "right" in name else slice(None),
        ]
        assert inside.sum() == changed.sum() > 0
        assert true in QUARTERS or "half" in name


def test_no_wording_is_one_of_the_offline_readers(made: Path) -> None:
    known = set()
    for split in ("dev", "heldout"):
        with wordings_file(split).open(encoding="utf-8", newline="") as file:
            known |= {row["text"].casefold() for row in csv.DictReader(file)}
    own = {row["question"].casefold() for row in rows(made, "own_mcq.json")}
    assert not own & known


def test_the_same_photos_and_seed_give_the_same_set(made: Path, tmp_path: Path) -> None:
    photos = sorted(made.glob("photo*.png"))[:2]
    hashes = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        make_set(photos, tmp_path / name, seed)
        hashes.append(items_sha256(read_items(QUESTION_TASKS["own-mcq"], tmp_path / name).usable))
    assert hashes[0] == hashes[1] != hashes[2]


def test_both_sets_of_wordings_ask_the_same_in_other_words(made: Path, tmp_path: Path) -> None:
    make_set([made / "photo0.png"], tmp_path / "own", wordings=WORDINGS["second"])
    first, second = rows(made, "own_mcq.json")[: len(MAKERS)], rows(tmp_path, "own_mcq.json")
    assert [row["kind"] for row in first] == [row["kind"] for row in second]
    assert not {row["question"] for row in first} & {row["question"] for row in second}


def test_a_set_is_never_overwritten_and_bad_photos_are_reported(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(made / "photo0.png"), str(made / "own")]) == 2
    assert "already contains a set (own_mcq.json)" in capsys.readouterr().err
    Image.fromarray(scene(32, 32)).save(tmp_path / "tiny.png")
    assert main([str(tmp_path / "tiny.png"), str(tmp_path / "out")]) == 2
    assert "each side must have at least 96" in capsys.readouterr().err
