"""Scores that one already has: columns, tables and values in memory, joined by image and compared in one report."""

import csv
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from agenticiqa.eval import evaluate
from agenticiqa.eval.cli import main
from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.scorers.given import Named, joined
from agenticiqa.eval.scorers.scorer import ScorerFault
from agenticiqa.programs.errors import UserError
from support.files import report_of, rows_of

MakeLabels = Callable[..., Path]
MINE = [0.9, 0.4, 0.1, 0.8, 0.5, 0.2]


@pytest.fixture
def scored(make_labels: MakeLabels) -> Path:
    """Labels with two columns of scores; ``error`` is lower for better images and lacks the first one."""
    path = make_labels()
    rows = list(csv.DictReader(path.open()))
    for row, mine in zip(rows, MINE, strict=True):
        row |= {"mine": mine, "error": 1 - mine}
    rows[0]["error"] = "nan"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    return path


def scores_of(result: Any) -> list[float | None]:
    return [row.get("quality_score") for row in result.rows]


def test_a_column_of_the_labels_is_a_scorer_in_either_direction(scored: Path) -> None:
    assert scores_of(evaluate("column:mine", scored)) == MINE
    mirrored = evaluate("column:-error", scored)
    assert scores_of(mirrored) == [None, *(-(1 - score) for score in MINE[1:])]
    assert mirrored.summary["unscored_reasons"] == {"NoScore": 1}
    frame = pandas.read_csv(scored)
    assert scores_of(evaluate("column:mine", frame, root=scored.parent)) == MINE
    with pytest.raises(UserError, match=r"no column 'yours' found \(columns: .*error\); correct the name"):
        evaluate("column:yours", scored)
    with pytest.raises(UserError, match="line 2: split is 'train', expected a number"):
        evaluate("column:split", scored)


@pytest.mark.parametrize(
    ("header", "named", "title"),
    [
        (["filename", "musiq"], "", "theirs"),
        (["image", "quality_score", "width"], "", "theirs"),  # results of assess
        (["image", "musiq", "-x"], ":musiq", "theirs:musiq"),
    ],
)
def test_a_table_is_joined_by_image(header: list[str], named: str, title: str, scored: Path, tmp_path: Path) -> None:
    rows = [[f"/elsewhere/data/{label.name}", score, 1] for label, score in zip(read_labels(scored), MINE, strict=True)]
    table = tmp_path / "theirs.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([header, *(row[: len(header)] for row in [*rows[::-1], ["other.png", 7, 1]])])
    result = evaluate(f"file:{table}{named}", scored)
    assert scores_of(result) == MINE
    assert result.summary["backend"] == title
    if named:
        with pytest.raises(UserError, match="several columns of numbers: musiq, -x; name the one to use, as in file:"):
            evaluate(f"file:{table}", scored)


def labels_named(*names: str) -> list[LabeledImage]:
    return [LabeledImage.of(name, 3.0) for name in names]


def test_names_of_other_folders_do_not_fit(caplog: pytest.LogCaptureFixture) -> None:
    def found(*names: str, labels: tuple[str, ...]) -> list[float | None]:
        return joined("t", [Named(name, float(place)) for place, name in enumerate(names)], labels_named(*labels))

    assert found("b/x.png", "a/x.png", labels=("a/x.png", "b/x.png")) == [1, 0]
    assert found("train/x.png", labels=("test/x.png",)) == [None]
    assert found(r"C:\data\a\X.png", labels=("a/x.png",)) == [0]
    assert found("/mnt/a/x.png", "/mnt/b/x.png", labels=("/home/b/x.png",)) == [1]
    caplog.clear()
    assert found("img/x.png", labels=("x.png",)) == [0]
    assert "names are compared by their ends: img/x.png is taken for x.png" in caplog.text
    with pytest.raises(UserError, match=r"x.png fits several images, a/x.png and b/x.png"):
        found("x.png", labels=("a/x.png", "b/x.png"))
    with pytest.raises(UserError, match=r"x.png has several scores, 0 and 1"):
        found("x.png", "x.png", labels=("x.png",))


def test_scores_in_memory_are_by_image_or_in_order(scored: Path) -> None:
    names = [label.name for label in read_labels(scored)]
    by_name = dict(zip(names, MINE, strict=True))
    for given in (by_name, pandas.Series(by_name), pandas.Series(MINE), np.array(MINE), MINE):
        assert scores_of(evaluate(given, scored)) == MINE
    named = evaluate(scored, {"mine": pandas.Series(MINE, name="other")})
    assert named.summary["systems"][0]["name"] == "mine"
    assert evaluate(pandas.Series(MINE, name="other"), scored).summary["systems"][0]["name"] == "other"
    assert scores_of(evaluate(by_name | {names[0]: float("nan")}, scored))[0] is None
    with pytest.raises(UserError, match="scores: 5 scores for 6 labeled images"):
        evaluate(MINE[:5], scored)
    with pytest.raises(UserError, match=r"none of the 6 images has a score, such as scene0_0.png"):
        evaluate({"x.png": 1.0}, scored)
    with pytest.raises(UserError, match="reads no pixels"):
        evaluate(MINE, scored, shorter_side=64)


def test_a_function_may_take_the_path(scored: Path) -> None:
    by_name = dict(zip([label.name for label in read_labels(scored)], MINE, strict=True))
    assert scores_of(evaluate(lambda path: by_name[path.name], scored)) == MINE
    assert scores_of(evaluate(lambda image, path: image.shape[1] + by_name[path.name], scored))[0] == 80 + MINE[0]
    with pytest.raises(UserError, match="takes path before the image"):
        evaluate(lambda path, image: 1.0, scored)


def test_several_scorers_are_one_result_with_paired_differences(scored: Path, tmp_path: Path) -> None:
    scorers = {"mine": MINE, "theirs": "column:-error", "BRISQUE": "BRISQUE"}
    both = evaluate(scored, scorers, out=tmp_path / "run")
    assert [system["name"] for system in both.summary["systems"]] == [*scorers]
    assert [system["n"] for system in both.summary["systems"]] == [6, 5, 6]
    tested = [(pair["first"], pair["second"]) for pair in both.summary["differences"] if pair["figure"] == "SRCC"]
    assert tested == [("mine", "theirs"), ("mine", "BRISQUE"), ("theirs", "BRISQUE")]
    frame = both.to_frame().pivot(index="name", columns="scorer", values="quality_score")
    assert frame["mine"].tolist() == MINE
    assert "p (Holm)" in repr(both)
    assert "p (Holm)" in both._repr_html_()
    assert report_of(tmp_path / "run") == json.loads(json.dumps(both.summary))
    assert evaluate(MINE, scored).compare(both).to_frame(1)["p (Holm)"].tolist() != []
    with pytest.raises(UserError, match="the earlier run used made_of"):
        evaluate(scored, scorers | {"mine": MINE[::-1]}, out=tmp_path / "run")
    with pytest.raises(UserError, match="the dict of scorers is empty"):
        evaluate(scored, {})


def test_the_command_compares_several_scorers_in_one_report(
    scored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", str(scored), "--scorer", "column:mine", "--scorer", "column:-error", "--workers", "1"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 1
    printed = capsys.readouterr()
    assert "error has no score for 1 of 6 images" in printed.out
    assert "mine - error" in printed.out
    assert f"Saved in {tmp_path / 'run'}: mine, error, report.json, report.md" in printed.out
    assert printed.err.count("error has no score for this image") == 1
    assert [row["quality_score"] for row in rows_of(tmp_path / "run" / "mine")] == MINE
    assert len(report_of(tmp_path / "run")["differences"]) == 4
    assert main(["compare", str(tmp_path / "run")]) == 0
    assert "error - mine" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "run"), "--csv", "-"]) == 0
    assert capsys.readouterr().out.count(",mine,") == 1
    assert main([*command, "--scorer", "column:mine", "--out", str(tmp_path / "two")]) == 2
    assert "several scorers have the name mine" in capsys.readouterr().err
    assert main([*command, "--baselines"]) == 2


def broken(image: np.ndarray) -> float:
    return float(image.no_such_attribute)


def test_a_fault_in_a_scorer_ends_the_run_and_names_the_line(
    make_labels: MakeLabels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = make_labels(scenes=5)
    place = rf"\(test_given.py, line {broken.__code__.co_firstlineno + 1}\)"
    with pytest.raises(UserError, match=rf"the first 5 images failed in the same way: AttributeError: .* {place}"):
        evaluate(broken, path)
    calls = []

    def later(image: np.ndarray) -> float:
        calls.append(image)
        return 1.0 if len(calls) == 1 else 1 / 0

    assert evaluate(later, path).summary["unscored_reasons"] == {"ZeroDivisionError": 14}
    (tmp_path / "own_later.py").write_text("def first(path):\n    return 1 if path.name == 'scene0_0.png' else 1 / 0\n")
    assert main(["evaluate", str(path), "--scorer", "own_later:first", "--out", str(tmp_path / "run")]) == 1
    errors = capsys.readouterr().err
    assert errors.count("(own_later.py, line 2)") == 10
    assert "4 more failed; each row of the results has its reason" in errors


def test_a_fault_can_come_from_another_process() -> None:
    fault = pickle.loads(pickle.dumps(ScorerFault("f failed: KeyError: 1", "a.png", "KeyError: 1", ("KeyError", ""))))
    assert (str(fault), fault.fault, fault.kind) == ("a.png: f failed: KeyError: 1", "KeyError: 1", ("KeyError", ""))


@pytest.mark.parametrize("name", ["own.score", "own.py", "own"])
def test_a_function_in_another_spelling_is_suggested(
    name: str, make_labels: MakeLabels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text("def score(image): return 1\n")
    with pytest.raises(UserError, match=f"write --scorer own:{'score' if name == 'own.score' else 'FUNCTION'}"):
        evaluate(name, make_labels())
