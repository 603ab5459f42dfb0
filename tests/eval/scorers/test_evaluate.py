"""``evaluate(program, task)`` in Python: the program, metrics, functions and pyiqa's metrics, evaluated alike."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.stats import spearmanr

from agenticiqa.eval import evaluate
from agenticiqa.eval.cli import main
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.errors import ToolError, UserError
from agenticiqa.programs.images import load
from agenticiqa.programs.tools import brisque, gmsd

MakeLabels = Callable[..., Path]


def spread(image: np.ndarray) -> float:
    """Return the standard deviation of the gray values, a weak quality measure."""
    return float(image.mean(axis=2).std())


def difference(image: np.ndarray, reference: np.ndarray) -> float:
    return float(np.abs(image.astype(float) - reference).mean())


def srcc_of(summary: dict[str, Any]) -> float:
    value = summary["systems"][0]["srcc"]["value"]
    assert isinstance(value, float)
    return value


def test_a_function_on_real_images_has_the_correlation_that_scipy_gives(shared_data: Path) -> None:
    labels = read_labels(shared_data / "clive" / "labels.csv")[::90]
    rows, summary = evaluate(spread, labels)
    values = [spread(load(label.image).pixels) for label in labels]
    assert [row["quality_score"] for row in rows] == values
    assert summary["systems"][0]["name"] == f"{__name__}:spread"
    assert srcc_of(summary) == pytest.approx(spearmanr(values, [label.mos for label in labels]).statistic)
    assert summary["systems"][0]["srcc"]["low"] is not None
    assert summary["scored"] == len(labels)


def test_the_direction_of_a_function_can_be_declared(make_labels: MakeLabels) -> None:
    path = make_labels(references=True)
    rising, falling = evaluate(difference, path), evaluate(difference, path, lower_is_better=True)
    assert srcc_of(falling.summary) == -srcc_of(rising.summary) > 0.5
    assert [row["raw_score"] for row in falling.rows] == [row["raw_score"] for row in rising.rows]


def test_embedded_metrics_are_measured_by_name_in_their_own_direction(make_labels: MakeLabels) -> None:
    path = make_labels(references=True)
    labels = read_labels(path)
    alone, compared = evaluate("brisque", path), evaluate("GMSD", path, workers=2)
    pixels = [load(label.image).pixels for label in labels]
    assert [row["raw_score"] for row in alone.rows] == [brisque(image) for image in pixels]
    references = [load(label.reference or "").pixels for label in labels]
    assert [row["raw_score"] for row in compared.rows] == list(map(gmsd, pixels, references))
    assert srcc_of(compared.summary) > 0.8  # GMSD is lower for better images
    assert {row["reference"] for row in alone.rows} == {None}


def test_python_and_the_command_give_the_same_figures(make_labels: MakeLabels, tmp_path: Path) -> None:
    path = make_labels(scenes=1)
    rows, summary = evaluate(AgenticIQA.offline(), path, out=tmp_path / "run")
    assert main(["evaluate", str(path), "--out", str(tmp_path / "other"), "--workers", "1"]) == 0
    shown = json.loads((tmp_path / "other" / "report.json").read_text())
    assert shown["systems"] == summary["systems"]
    assert json.loads((tmp_path / "run" / "report.json").read_text())["systems"] == summary["systems"]
    assert evaluate(AgenticIQA.offline(), path, out=tmp_path / "run").rows == rows
    with pytest.raises(UserError, match=r"used program\.max_replan_iterations 2, not 0"):
        evaluate(changed(AgenticIQA.offline()), path, out=tmp_path / "run")


def changed(program: AgenticIQA) -> AgenticIQA:
    program.max_replan_iterations = 0
    return program


def test_a_run_in_a_folder_is_resumed_and_refuses_other_scorers(make_labels: MakeLabels, tmp_path: Path) -> None:
    path, seen = make_labels(references=True), list[tuple[int, ...]]()

    def counted(image: np.ndarray) -> float:
        seen.append(image.shape)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return spread(image)

    with pytest.raises(KeyboardInterrupt):
        evaluate(counted, path, out=tmp_path / "run")
    kept = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    before = len(seen)
    rows, _ = evaluate(counted, path, out=tmp_path / "run")
    assert len(kept) >= 2
    assert len(seen) - before == len(rows) - len(kept)
    assert [row["name"] for row in rows] == [label.name for label in read_labels(path)]
    assert (tmp_path / "run" / "results.jsonl").read_text().splitlines()[: len(kept)] == kept
    with pytest.raises(UserError, match="the earlier run used scorer"):
        evaluate("brisque", path, out=tmp_path / "run")


def test_images_that_failed_come_last_when_a_run_continues(make_labels: MakeLabels, tmp_path: Path) -> None:
    path, seen = make_labels(levels=(0, 2)), list[bytes]()

    def fails_at_the_first(image: np.ndarray) -> float:
        seen.append(image.tobytes())
        if len(seen) == 3:
            raise KeyboardInterrupt
        return 1 / 0 if image.tobytes() == seen[0] else spread(image)

    with pytest.raises(KeyboardInterrupt):
        evaluate(fails_at_the_first, path, out=tmp_path / "run", workers=1)
    evaluate(fails_at_the_first, path, out=tmp_path / "run", workers=1)
    assert seen[-1] == seen[0] not in seen[1:-1]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (lambda image: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda image: float("nan"), "expected a finite number, got nan"),
        (lambda image: "high", "expected a finite number, got 'high'"),
        (lambda image: None, "expected a finite number, got None"),
        (lambda image: image[0, :2, 0], "ValueError: can only convert an array of size 1"),
    ],
)
def test_a_failed_image_is_unscored_with_its_reason(
    make_labels: MakeLabels, broken: Callable[..., float], reason: str
) -> None:
    path = make_labels(levels=(0, 2))
    rows, summary = evaluate(broken, path)
    assert all(reason in row["error"] and "quality_score" not in row for row in rows)
    assert (summary["scored"], summary["unscored"]) == (0, 4)
    assert srcc_note(summary).startswith("too few images")


def test_an_error_of_the_callers_function_is_counted_by_its_type(make_labels: MakeLabels) -> None:
    _, summary = evaluate(lambda image: 1 / 0, make_labels(levels=(0, 2)))
    assert summary["unscored_reasons"] == {"ZeroDivisionError": 4}


def test_an_array_of_one_number_is_accepted_and_lower_better_is_used(make_labels: MakeLabels) -> None:
    def darkness(image: np.ndarray) -> np.ndarray:
        return np.array([255 - image.mean()])

    darkness.lower_better = True  # type: ignore[attr-defined]
    path = make_labels()
    rows, _ = evaluate(darkness, path)
    assert all(row["quality_score"] == -row["raw_score"] and row["raw_score"] > 0 for row in rows)
    with pytest.raises(UserError, match="lower is always better"):
        evaluate(darkness, path, lower_is_better=False)


def test_larger_images_are_downscaled_and_the_table_reports_the_size(
    make_labels: MakeLabels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[int, ...]] = []
    path = make_labels(levels=(0, 2))
    evaluate(lambda image: seen.append(image.shape) or 1.0, path, shorter_side=20)
    width, height = Image.open(path.parent / "scene0_0.png").size
    assert {min(shape[:2]) for shape in seen} == {20}
    assert seen[0][1] / seen[0][0] == pytest.approx(width / height, rel=0.05)
    command = ["evaluate", str(path), "--scorer", "BRISQUE", "--workers", "1", "--out", str(tmp_path / "run")]
    assert main([*command, "--shorter-side", "48"]) == 0
    assert "BRISQUE, shorter side 48" in capsys.readouterr().out
    assert main(command) == 2
    assert "used shorter_side 48, not null" in capsys.readouterr().err
    assert main(["evaluate", str(path), "--shorter-side", "48"]) == 2


def srcc_note(summary: dict[str, Any]) -> str:
    return str(summary["systems"][0]["srcc"]["note"])


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("NIQUE", "unknown tool 'NIQUE', did you mean NIQE"),
        ("no.such.module:f", "No module named 'no'"),
        ("math:nothing", "has no attribute 'nothing'"),
        ("math:pi", "is a float, not a function"),
        ("GMSD", "none of the 6 images has one"),
        (lambda a, b, c: 1.0, "needs 3 arguments"),
    ],
)
def test_unusable_scorers_are_refused_in_one_line(make_labels: MakeLabels, program: Any, reason: str) -> None:
    with pytest.raises(UserError, match=reason) as refused:
        evaluate(program, make_labels())
    assert "\n" not in str(refused.value)


def test_a_direction_against_the_declared_one_is_refused(make_labels: MakeLabels) -> None:
    with pytest.raises(UserError, match="for NIQE, lower is always better"):
        evaluate("NIQE", make_labels(), lower_is_better=False)
    with pytest.raises(UserError, match="are for scorers"):
        evaluate(AgenticIQA.offline(), [], lower_is_better=True)


class Tensor:
    """The parts of a torch tensor that are used."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def permute(self, *axes: int) -> "Tensor":
        return Tensor(self.array.transpose(axes))

    def __getitem__(self, key: Any) -> "Tensor":
        return Tensor(self.array[key])


class Darkness:
    """A metric with the attributes of the objects that ``pyiqa.create_metric`` returns."""

    metric_name, metric_mode, lower_better = "darkness", "NR", True

    def __call__(self, image: Tensor) -> float:
        assert image.array.shape[:2] == (1, 3)
        return 1 - float(image.array.mean())


def test_a_pyiqa_metric_is_called_with_tensors_in_its_own_direction(
    make_labels: MakeLabels, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = ModuleType("torch")
    torch.from_numpy = Tensor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    path = make_labels()
    rows, summary = evaluate(Darkness(), path)
    assert summary["systems"][0]["name"] == "pyiqa:darkness"
    brightness = [load(label.image).pixels.mean() / 255 for label in read_labels(path)]
    assert [row["quality_score"] + 1 for row in rows] == pytest.approx(brightness, abs=1e-6)


def test_pyiqa_is_used_or_its_installation_suggested(make_labels: MakeLabels) -> None:
    try:
        import pyiqa  # noqa: F401
    except ImportError:
        with pytest.raises(ToolError, match=r'pip install "agenticiqa\[pyiqa\]"'):
            evaluate("pyiqa:psnr", make_labels(references=True))
        return
    rows, _ = evaluate("pyiqa:psnr", make_labels(references=True))
    assert all(row["raw_score"] > 10 for row in rows)


def test_the_command_measures_a_scorer_on_several_tasks(
    make_labels: MakeLabels, shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = [str(make_labels()), str(shared_data / "clive" / "labels.csv")]
    out = tmp_path / "runs"
    assert main(["evaluate", *tasks, "--scorer", "BRISQUE", "--out", str(out), "--workers", "1", "--limit", "6"]) == 0
    whole = json.loads((out / "combined.json").read_text())
    reports = [json.loads((out / name / "report.json").read_text()) for name in ("data", "clive")]
    values = [srcc_of(each) for each in reports]
    assert [task["srcc"] for task in whole["tasks"]] == values
    assert whole["mean"]["srcc"] == pytest.approx(sum(values) / 2)
    assert "mean by images" in capsys.readouterr().out
    assert main(["evaluate", tasks[0], tasks[0], "--scorer", "BRISQUE"]) == 2
    assert main(["evaluate", tasks[0], "--scorer", "BRISQUE", "--mode", "fast"]) == 2
    errors = capsys.readouterr().err
    assert "several tasks have the name data" in errors
    assert "so --mode has no effect" in errors
