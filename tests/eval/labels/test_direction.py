"""Labels in which lower is better are detected from levels, rated references or SSIM to references."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.cli import main
from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.labels.direction import evidence_of_reversed_scores
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.report import rating_report, summarize
from support.distortion_levels import jpeg, scene

MakeLabels = Callable[..., Path]


def mirrored(labels: list[LabeledImage]) -> list[LabeledImage]:
    return [replace(label, mos=100 - label.mos) for label in labels]


def test_levels_show_the_direction(make_labels: MakeLabels) -> None:
    labels = read_labels(make_labels())
    scenes = [replace(label, content=label.name[:6]) for label in labels]
    for known, pairs in ((scenes, 6), (labels, 12)):  # grouped by content, and with every image as a separate content
        assert evidence_of_reversed_scores(known) is None
        shown = evidence_of_reversed_scores(mirrored(known)) or ""
        assert f"in {pairs} of {pairs} pairs the more damaged image has the higher score, such as scene0_2.png" in shown
    assert evidence_of_reversed_scores(mirrored([replace(label, level=None) for label in labels])) is None


def test_rated_references_show_the_direction(make_labels: MakeLabels) -> None:
    labels = [replace(label, level=None) for label in read_labels(make_labels(references=True))]
    rated = [replace(label, image=label.reference, mos=95.0) for label in labels[::3] if label.reference]
    assert evidence_of_reversed_scores([*labels, *rated]) is None
    assert "pairs the more damaged" in (evidence_of_reversed_scores(mirrored([*labels, *rated])) or "")


def test_ssim_to_references_shows_the_direction(tmp_path: Path) -> None:
    labels = []
    for number in range(20):
        pristine = scene(48, 48, seed=number % 4)
        files = [tmp_path / f"{name}{number}.png" for name in ("image", "reference")]
        for file, pixels in zip(files, (jpeg(number % 5, pristine), pristine), strict=True):
            Image.fromarray(pixels).save(file)
        mos = 90.0 - 15 * (number % 5)
        labels.append(LabeledImage(f"{number}", *files, mos, None, None, None, None, None, str(number)))
    assert evidence_of_reversed_scores(labels) is None
    assert "SRCC between the scores and SSIM (image to reference) is -" in (
        evidence_of_reversed_scores(mirrored(labels)) or ""
    )
    assert evidence_of_reversed_scores(mirrored(labels[:19])) is None  # too few images


@pytest.mark.parametrize("name", ["live_r2", "clive", "biq2021", "avt_ai"])
def test_real_labels_have_the_right_direction(shared_data: Path, name: str) -> None:
    labels = read_labels(shared_data / name / "labels.csv")
    assert evidence_of_reversed_scores(labels) is None
    if name == "live_r2":
        assert evidence_of_reversed_scores(mirrored(labels))


def test_evaluate_refuses_reversed_scores_unless_the_direction_is_declared(
    make_labels: MakeLabels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = make_labels(scenes=1, levels=(0, 2, 4))
    labels.write_text(labels.read_text().replace("90.0", "best").replace("10.0", "90.0").replace("best", "10.0"))
    command = ["evaluate", str(labels), "--workers", "1", "--out", str(tmp_path / "run")]
    assert main(command) == 2
    assert "add --lower-is-better if" in capsys.readouterr().err
    assert main([*command, "--no-lower-is-better"]) == 0
    assert "the declared direction of the scores may be wrong: in" in capsys.readouterr().err
    assert main([*command, "--lower-is-better"]) == 2  # other labels in the same folder
    assert "the earlier run used labels" in capsys.readouterr().err


@pytest.mark.parametrize(("sign", "shown"), [(-1, True), (1, False)])
def test_the_report_mentions_a_negative_srcc(sign: int, shown: bool) -> None:
    noise, error = np.random.default_rng(0).normal(size=(2, 40))
    rows = [
        {
            "quality_score": 3 + noise[n] / 9,
            "mos": sign * noise[n] + error[n],
            "content": str(n),
            "quality_reasoning": "",
        }
        | {"name": str(n), "timings_ms": {}, "rejected_answers": {}, "probability_source": None, "iteration_count": 0}
        | {"executor_evidence": {"tool_log": []}}
        for n in range(40)
    ]
    text = " ".join(rating_report(summarize(rows) | {"data": "x", "backend": "offline"}).sentences)
    assert ("add --lower-is-better" in text) is shown
