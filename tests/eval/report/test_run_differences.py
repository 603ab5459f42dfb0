"""``agenticiqa compare``: paired differences, exact tests, corrections, and what cannot be compared."""

import csv
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest
from scipy.stats import binom

from agenticiqa.eval.cli import main
from agenticiqa.eval.intervals import difference_interval
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.report.model import probability
from agenticiqa.eval.report.run_differences import differences, holm, mcnemar
from agenticiqa.eval.report.run_scores import RunScores, names_of, rating_scores, read_scores
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.page.forms import latex
from agenticiqa.programs.page.table import table_of


def rating(name: str, noise: float, seed: int, n: int = 120) -> RunScores:
    mos = np.random.default_rng(0).normal(50, 15, n)
    scores = mos + np.random.default_rng(seed).normal(0, noise, n)
    items = [f"{number}.png" for number in range(n)]
    run = RunScores(name, "rating")
    run.values, run.mos = dict(zip(items, scores, strict=True)), dict(zip(items, mos, strict=True))
    run.contents = {item: f"scene {number // 3}" for number, item in enumerate(items)}
    return run


def choices(name: str, right: list[bool]) -> RunScores:
    items = [str(number) for number in range(len(right))]
    return RunScores(
        name,
        "choice",
        values=dict(zip(items, map(float, right), strict=True)),
        contents={item: item for item in items},
    )


def write_run(folder: Path, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def rows(scores: list[float | None], **changes: Any) -> list[dict[str, Any]]:
    return [
        {"name": f"{n}.png", "content": f"{n}", "mos": float(n), "quality_score": score, "scorer": "offline"} | changes
        for n, score in enumerate(scores)
    ]


def test_the_difference_is_paired_over_common_contents_and_p_is_small_if_the_interval_excludes_zero() -> None:
    first, second = rating("a", 5, 1), rating("b", 12, 2)
    found = differences([first, second])[0]
    a, b, mos = ([*each.values()] for each in (first.values, second.values, first.mos))
    assert found.interval == difference_interval(srcc, a, b, mos, [*first.contents.values()])
    assert (found.contents, found.interval.n) == (40, 120)
    for each in (found, *(differences([rating("a", 10, n), rating("b", 11, n + 50)])[0] for n in range(6))):
        low, high = each.interval.low, each.interval.high
        assert None not in (low, high, each.p)
        assert (each.p < 0.05) == (low > 0 or high < 0)


def test_composed_and_decomposed_names_are_the_same_item() -> None:
    row = {"content": "a", "mos": 3, "quality_score": 2}
    forms = [rating_scores([{**row, "name": normalize(form, "Zürich.png")}], form) for form in ("NFC", "NFD")]
    assert forms[0].values == forms[1].values == {"Zürich.png": 2}


def test_items_without_a_value_in_one_run_are_excluded() -> None:
    first, second = rating("a", 5, 1), rating("b", 5, 2)
    for item in [*second.values][:30]:
        del second.values[item]
    assert second.unscored == 30
    assert differences([first, second])[0].interval.n == 90


def test_ten_times_the_contents_detect_a_third_of_the_difference() -> None:
    few = differences([rating("a", 8, 1, 90), rating("b", 9, 2, 90)])[0]
    many = differences([rating("a", 8, 1, 900), rating("b", 9, 2, 900)])[0]
    assert few.contents_needed is not None
    assert many.contents_needed == pytest.approx(few.contents_needed, rel=0.6), "it is a property of the data"
    assert few.items_needed == pytest.approx(3 * few.contents_needed, abs=3)


def test_equal_runs_do_not_say_how_many_scenes_are_needed() -> None:
    same = differences([rating("a", 5, 1), rating("b", 5, 1)])[0]
    assert (same.interval.value, same.contents_needed, same.items_needed) == (0, None, None)


def test_holm_multiplies_the_smallest_most() -> None:
    """The example of Holm's procedure: p of .01, .04, .03, .005 for four claims."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, None, 0.8]) == [pytest.approx(1.0), None, pytest.approx(1.0)]


def test_mcnemar_counts_items_that_only_one_run_answered_correctly() -> None:
    first = np.array([1.0] * 8 + [0.0] * 2 + [1.0] * 5)
    second = np.array([0.0] * 8 + [1.0] * 2 + [1.0] * 5)
    assert mcnemar(first, second) == pytest.approx(2 * binom.cdf(2, 10, 0.5))
    assert mcnemar(first, first) == 1.0


def test_answers_are_compared_by_accuracy() -> None:
    found = differences([choices("a", [True] * 30 + [False] * 10), choices("b", [True] * 18 + [False] * 22)])[0]
    assert found.figure == "accuracy"
    assert found.interval.value == pytest.approx(0.3)
    assert found.p == pytest.approx(mcnemar(np.repeat([1.0, 1.0, 0.0], [18, 12, 10]), np.repeat([1.0, 0.0], [18, 22])))


def rotated(name: str, right: list[bool], **changes: Any) -> list[dict[str, Any]]:
    """The rows of a question with two options, one for each rotation that it was asked in."""
    options = {"A": "Blur", "B": "Noise"}
    return [
        {"name": name, "rotation": n, "content": name, "options": options, "truth": "A", "correct": each} | changes
        for n, each in enumerate(right)
    ]


def asked(**questions: list[bool]) -> list[dict[str, Any]]:
    return [row for name, right in questions.items() for row in rotated(name, right)]


def test_a_question_counts_once_and_is_right_if_all_rotations_are_right(tmp_path: Path) -> None:
    both, half, none = [True, True], [True, False], [False, False]
    first = read_scores(write_run(tmp_path / "a", asked(q=both, r=half, s=both, t=both, u=none)))
    assert (first.values, first.figure) == ({"q": 1, "r": 0, "s": 1, "t": 1, "u": 0}, "circular accuracy")
    second = read_scores(write_run(tmp_path / "b", asked(q=half, r=half, s=half, t=half, u=none)))
    (found,) = differences([first, second])
    assert (found.figure, found.interval.n, found.interval.value) == ("circular accuracy", 5, pytest.approx(3 / 5))
    assert found.p == pytest.approx(2 * binom.pmf(0, 3, 0.5))  # three questions, whatever the number of rotations


def test_all_runs_are_compared_without_rotations_if_one_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = {name: [True, number > 2] for number, name in enumerate("qrstu")}
    circular = write_run(tmp_path / "circular", asked(**questions))
    vanilla = write_run(tmp_path / "vanilla", asked(**{name: [name != "q"] for name in questions}))
    assert main(["compare", str(circular), str(vanilla)]) == 0
    out = capsys.readouterr().out
    assert "Only circular asked all rotations, so all runs are compared without rotations." in out
    assert "│ circular - vanilla │ 5 │ +0.200" in out
    assert main(["compare", str(circular), str(circular)]) == 0
    assert "Circular accuracy: a question is right if it is answered correctly" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("named", "options", "message"),
    [
        (["a", "a"], ["--reference", "r.png"], "--reference is for images, but these are runs"),
        (["a", "a"], ["--save-maps", "maps"], "--save-maps is for images, but these are runs"),
        (["a.png"], ["--name", "x"], "--name is for runs, but these are images"),
    ],
)
def test_options_of_the_other_comparison_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], named: list[str], options: list[str], message: str
) -> None:
    write_run(tmp_path / "a", rows([1.0, 2.0]))
    assert main(["compare", *(str(tmp_path / name) for name in named), *options]) == 2
    assert message in capsys.readouterr().err


def test_three_runs_are_corrected_for_three_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    for name, noise in (("good", 1), ("fair", 4), ("poor", 20)):
        write_run(tmp_path / name, rows([float(n + rng.normal(0, noise)) for n in range(30)]))
    assert main(["compare", *(str(tmp_path / name) for name in ("fair", "poor", "good"))]) == 0
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if "offline" in line]
    assert [line.split()[3] for line in lines] == ["good", "fair", "poor"], "sorted by SRCC"
    assert out.count(" - ") >= 6


def test_the_tables_are_written_in_other_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = write_run(tmp_path / "a_1", rows([float(n % 7) for n in range(20)]))
    second = write_run(tmp_path / "b", rows([float(n) for n in range(19)] + [None]))
    table = tmp_path / "table.csv"
    assert main(["compare", str(first), str(second), "--csv", str(table), "--latex", "-"]) == 0
    cells = [*csv.reader(table.read_text("utf-8-sig").splitlines())]
    assert len({len(line) for line in cells}) == 1, "one table"
    assert cells[0][:8] == ["", "run", "assessed by", "n", "n unscored", "SRCC", "SRCC low", "SRCC high"]
    assert cells[1][:5] == ["1", "b", "offline", "19", "1"]
    assert all(float(cell) <= 1 for cell in cells[2][5:])
    beside = tmp_path / "table-paired-differences.csv"
    differences = [*csv.DictReader(beside.read_text("utf-8-sig").splitlines())]
    assert [row["figure"] for row in differences] == ["SRCC", "PLCC fitted", "KRCC", "PLCC raw"]
    out, err = capsys.readouterr()
    assert beside.name in err
    assert "┃" not in out
    assert r"\begin{tabular}{lllrrrrr}" in out, "texts to the left, numbers to the right"
    assert r"1 & b & offline & 19 of 20 & \textbf{1.000}" in out
    assert r"2 & a\_1 & offline & 20 & 0" in out
    capsys.readouterr()
    assert main(["compare", str(first), str(second), "--csv", "-"]) == 0
    out, err = capsys.readouterr()
    assert out == table.read_bytes().decode("utf-8-sig")
    assert "Paired differences" in err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mos": 3.5}, "different labels: the MOS of 0.png is 0 in one and 3.5 in the other"),
        ({"name": "other.png"}, "no item in common"),
        ({"truth": "A", "correct": True}, "a has ratings and b has choices"),
    ],
)
def test_runs_that_cannot_be_compared_give_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], message: str
) -> None:
    write_run(tmp_path / "a", rows([1.0, 2.0, 3.0]))
    write_run(tmp_path / "b", rows([1.0, 2.0, 3.0], **change))
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_folder_without_results_and_a_single_run_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "a", rows([1.0]))
    assert main(["compare", str(run)]) == 2
    assert "at least two runs" in capsys.readouterr().err
    assert main(["compare", str(run), str(tmp_path)]) == 2
    assert "no results.jsonl found" in capsys.readouterr().err


def test_a_folder_of_images_reports_what_a_comparison_of_images_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my album"
    folder.mkdir()
    for path in (folder / "b.JPG", folder / "a.png", folder / "notes.txt", tmp_path / "a.png"):
        path.write_bytes(b"")
    assert main(["compare", "my album/", "."]) == 2
    err = capsys.readouterr().err
    assert "my album: this folder has images, not a run" in err
    assert "agenticiqa compare 'my album/a.png' 'my album/b.JPG'. To rate all" in err
    assert err.count("\n") == 1


def test_the_last_row_of_an_item_counts_and_an_error_replaces_nothing(tmp_path: Path) -> None:
    scored, failed = rows([2.0])[0], {"name": "0.png", "content": "0", "mos": 0.0, "error": "ImageError: gone"}
    run = read_scores(write_run(tmp_path / "a", [scored | {"quality_score": 1.0}, scored, failed]))
    assert run.values == {"0.png": 2.0}
    only_failed = read_scores(write_run(tmp_path / "b", [failed]))
    assert (only_failed.values, only_failed.unscored) == ({}, 1)


def test_an_invalid_line_is_reported_and_a_truncated_last_line_is_not(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", rows([1.0, 2.0]))
    with (run / "results.jsonl").open("a") as file:
        file.write('{"name": "2.p')
    assert len(read_scores(run).values) == 2
    (run / "results.jsonl").write_text('{"image": "a.png"}\n')
    with pytest.raises(UserError, match="line 1 is not a row of results: the key 'name' is missing"):
        read_scores(run)


def test_the_fitted_difference_uses_each_runs_own_curve() -> None:
    """A run with a curved relation to MOS is not worse than one with a linear relation."""
    straight, bent = rating("a", 3, 1), rating("b", 3, 1)
    bent.values = {item: float(np.exp(score / 10)) for item, score in straight.values.items()}
    found = {each.figure: each.interval.value for each in differences([straight, bent])}
    assert found["PLCC raw"] > 0.1
    assert abs(found["PLCC fitted"]) < found["PLCC raw"] / 3
    assert found["SRCC"] == 0


def test_runs_over_several_sets_are_a_leaderboard_of_runs_by_sets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    for name, noise in (("good", 1), ("poor", 20)):
        (tmp_path / name).mkdir()
        for title in ("clive", "live_r2"):
            write_run(tmp_path / name / title, rows([float(n + rng.normal(0, noise)) for n in range(30)]))
    write_run(tmp_path / "poor" / "spaq", rows([float(n % 3) for n in range(30)]))
    table = tmp_path / "table.csv"
    assert main(["compare", str(tmp_path / "poor"), str(tmp_path / "good"), "--csv", str(table)]) == 0
    lines = [*csv.reader(table.read_text("utf-8-sig").splitlines())]
    assert lines[0][:6] == ["", "run", "clive", "clive low", "clive high", "live_r2"]
    assert [line[1] for line in lines[1:3]] == ["poor", "good"], "of more sets first"
    assert float(lines[2][-1]) == pytest.approx(np.mean([float(lines[2][2]), float(lines[2][5])]))
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "poor"), str(tmp_path / "good")]) == 0
    out = capsys.readouterr().out
    assert "SRCC by set" in out
    assert "PLCC fitted by set" in out
    assert "Paired differences, live_r2" in out
    assert "(of 2)" in out
    assert main(["compare", str(tmp_path / "good")]) == 0, "one folder of several sets is a table, too"


def test_runs_have_the_given_names_or_their_shortest_unique_paths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert names_of([tmp_path / "a" / "run", tmp_path / "b" / "run"]) == ["a/run", "b/run"]
    assert names_of([tmp_path / "a", tmp_path / "a" / "baseline-NIQE"]) == ["a", "a/baseline-NIQE"]
    runs = [str(write_run(tmp_path / name, rows([float(n % 7) for n in range(20)]))) for name in ("a", "b")]
    assert main(["compare", *runs, "--name", "first one", "--name", "second"]) == 0
    assert "first one - second" in capsys.readouterr().out
    assert main(["compare", *runs, "--name", "first"]) == 2
    assert "2 runs have 1 names: give --name once for each run" in capsys.readouterr().err


def test_the_part_of_a_run_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / name, rows([float(n % 7) for n in range(20)]))
    (tmp_path / "a" / "report.json").write_text(json.dumps({"part": "first 20 of 866"}))
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "first 20 of 866" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex: apt-get install texlive-latex-base")
def test_latex_compiles(tmp_path: Path) -> None:
    table = table_of("50 % of a_b", [{"a_b & c": '<x> {|} ~ ^ \\ # "q"', "p": probability(0.0001)}])
    text = "\\documentclass{article}\\begin{document}\n" + latex([table]) + "\\end{document}\n"
    (tmp_path / "table.tex").write_text(text)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    assert "$<$0.001" in text
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
