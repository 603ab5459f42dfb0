"""A distortion that is really there makes the image better when it is taken away; another one does not."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.research import faithfulness, planted_pairs
from agenticiqa.eval.research.faithfulness import Gain, beside_others, named_first, restored, undone
from agenticiqa.eval.research.planted_pairs import ORDER, Pair, chosen, pairs, read_pairs
from agenticiqa.eval.research.restoration import restore
from agenticiqa.programs.tools import gmsd
from agenticiqa.programs.tools.distort import distort
from agenticiqa.programs.tools.planted import CORRECT
from agenticiqa.signatures.vocabulary import DETECTABLE

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PAIR = Pair("images/0000.png", "scene", "gaussian_blur", 3, "white_noise", 2, 0, 2.0, 0.75, 0.25)


@pytest.fixture(scope="module")
def photo() -> np.ndarray[Any, Any]:
    return np.asarray(Image.open(EXAMPLES / "coffee.webp").convert("RGB").resize((256, 192)))


@pytest.mark.parametrize(
    ("kind", "category"),
    [
        ("white_noise", "Noise"),
        ("darken", "Brightness change"),
        ("low_contrast", "Contrast"),
        ("gaussian_blur", "Blurs"),
    ],
)
def test_the_inverse_of_what_was_planted_comes_nearer_to_the_photo_than_the_other_six(
    photo: Any, kind: str, category: Any
) -> None:
    gains = restored(distort(photo, kind, 4), lambda pixels: -gmsd(pixels, photo))
    assert gains[category] > np.mean([gain for name, gain in gains.items() if name != category])


@pytest.mark.parametrize("category", DETECTABLE)
def test_an_inverse_returns_an_image_of_the_same_shape_and_type(photo: Any, category: Any) -> None:
    result = restore(photo, category)
    assert result.shape == photo.shape
    assert result.dtype == np.uint8


def test_taking_away_what_was_not_planted_gains_nothing() -> None:
    assert undone(PAIR, "Blurs").named == 0.75
    assert undone(PAIR, "Noise").named == 0.25
    assert undone(PAIR, "Contrast").named == 0
    assert undone(PAIR, "Contrast").others == pytest.approx(1 / 7)
    assert undone(PAIR, "Noise").best == 0.75


def test_an_inverse_is_compared_with_the_same_inverse_where_another_category_was_named() -> None:
    none = dict.fromkeys(DETECTABLE, 0.0)
    gains: Any = [{**none, "Noise": 0.5}, {**none, "Noise": -0.5, "Blurs": 0.25}, {**none, "Noise": 0.1}]
    found = beside_others(["a", "b", "c"], ["Noise", "Blurs", None], gains)
    assert found["Noise"] == [Gain("a", 0.5, pytest.approx(-0.2), 0.5)]
    assert found["Blurs"] == [Gain("b", 0.25, 0.0, 0.25)]
    assert beside_others(["a"], ["Noise"], gains[:1]) == {}  # nothing to compare with


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


def test_the_command_reads_the_kept_rows_of_a_run(
    tmp_path: Path, photo: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, rows = ["image,mos,content"], []
    for number in range(4):
        Image.fromarray(distort(photo, "white_noise", number + 2)).save(tmp_path / f"{number}.png")
        lines.append(f"{number}.png,{5 - number},scene{number}")
        analysis = {"Global": [{"type": "Noise", "severity": "severe"}] if number else []}
        rows.append(
            {
                "name": f"{number}.png",
                "content": f"scene{number}",
                "image": f"{number}.png",
                "reference": None,
                "query": "Rate it.",
                "quality_score": 4.5 - number,
                "executor_evidence": {"distortion_analysis": analysis},
            }
        )
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = [str(tmp_path / "labels.csv"), str(tmp_path / "run"), "--metrics", "SSIM"]
    assert faithfulness.main(arguments) == 2
    assert "SSIM cannot judge here" in capsys.readouterr().err
    arguments[-1] = "NOISE-SIGMA"
    assert faithfulness.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "4 images, 3 of them with a named distortion\nSRCC of the score 1.000 (n=4)\n" in printed
    assert "| inverse applied, NOISE-SIGMA | 3 | +" in printed
    assert "| inverse applied, NOISE-SIGMA: Noise | 3 | +" in printed


def test_a_folder_with_labels_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "labels.csv").write_text("kept")
    assert planted_pairs.main([str(tmp_path / "labels.csv"), "--out", str(tmp_path)]) == 2
    assert "name another folder" in capsys.readouterr().err
    assert (tmp_path / "labels.csv").read_text() == "kept"


def test_a_run_that_is_not_there_is_told_and_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert faithfulness.main([str(tmp_path / "labels.csv"), str(tmp_path / "run")]) == 2
    assert "there is no results.jsonl" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
