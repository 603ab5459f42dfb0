"""A distortion that is really there makes the image better when it is taken away; another one does not."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.research.faithfulness import (
    ORDER,
    PlantedPair,
    chosen,
    gains_of,
    main,
    named_first,
    pairs,
    read_pairs,
)
from agenticiqa.programs.tools.planted import CORRECT

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PAIR = PlantedPair("images/0000.png", "scene", "gaussian_blur", 3, "white_noise", 2, 0, 2.0, 0.75, 0.25)


def test_taking_away_what_was_not_planted_gains_nothing() -> None:
    assert gains_of(PAIR, "Blurs") == (0.75, pytest.approx(1 / 7), 0.75)
    assert gains_of(PAIR, "Noise") == (0.25, pytest.approx(1 / 7), 0.75)
    assert gains_of(PAIR, "Contrast")[0] == 0


def test_the_first_named_is_the_most_severe_of_the_whole_image() -> None:
    whole = [{"type": "Noise", "severity": "slight"}, {"type": "Blurs", "severity": "severe"}]
    analysis = {"car": [{"type": "Contrast", "severity": "extreme"}], "Global": whole}
    assert named_first({"executor_evidence": {"distortion_analysis": analysis}}) == "Blurs"
    assert named_first({"executor_evidence": {"distortion_analysis": {"car": analysis["car"]}}}) == "Contrast"
    assert named_first({"executor_evidence": {"distortion_analysis": {"Global": []}}}) is None
    assert named_first({"executor_evidence": {"distortion_analysis": None}}) is None


def test_two_planted_kinds_share_no_category_and_come_in_the_order_of_a_camera() -> None:
    for number in range(50):
        first, _, second, _, _ = chosen(number, "scene")
        assert not set(CORRECT[first]) & set(CORRECT[second])
        assert ORDER.index(CORRECT[first][0]) <= ORDER.index(CORRECT[second][0])


def test_pairs_are_read_back_as_they_were_made(tmp_path: Path) -> None:
    saved: dict[str, Any] = {}
    made = list(pairs([EXAMPLES / "coffee.webp"], 1, lambda name, pixels: saved.update({name: pixels})))
    assert list(saved) == [made[0].image]
    assert 1 <= made[0].score <= 5
    with (tmp_path / "planted.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, vars(made[0]).keys())
        writer.writeheader()
        writer.writerow(vars(made[0]))
    assert read_pairs(tmp_path / "planted.csv") == {made[0].image: made[0]}


def test_the_commands_make_a_set_once_and_read_the_kept_rows_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.open(EXAMPLES / "coffee.webp").convert("RGB").resize((256, 192)).save(tmp_path / "coffee.png")
    (tmp_path / "labels.csv").write_text("image,mos\ncoffee.png,3\n")
    planting = ["plant", str(tmp_path / "labels.csv"), "--out", str(tmp_path / "set"), "--count", "2"]
    assert main(planting) == 0
    assert main(planting) == 2
    assert "name another folder" in capsys.readouterr().err
    measuring = ["measure", str(tmp_path / "set"), str(tmp_path / "run")]
    assert main(measuring) == 2
    assert "there is no results.jsonl" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    made = read_pairs(tmp_path / "set" / "planted.csv")
    rows = []
    for number, pair in enumerate(made.values()):
        found = [{"type": CORRECT[pair.first][0], "severity": "severe"}]
        analysis = {"executor_evidence": {"distortion_analysis": {"Global": found}}}
        rows.append({"name": pair.image, "image": pair.image, "query": "?", "quality_score": 3.0 + number, **analysis})
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(measuring) == 0
    printed = capsys.readouterr().out
    assert "2 images, 2 of them with a named distortion" in printed
    gain = np.mean([pair.gain_without_first for pair in made.values()])
    assert f"| 2 | {gain:+.3f}" in printed
