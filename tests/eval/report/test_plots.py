"""Figures for papers: their formats and sizes, what they show, and equal files for equal runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.eval import evaluate
from agenticiqa.eval.cli import main
from agenticiqa.eval.intervals import Interval
from agenticiqa.eval.report.plots import FORMATS, file_of, interval_plot

MakeLabels = Callable[..., Path]


@pytest.fixture
def runs(make_labels: MakeLabels, tmp_path: Path) -> Path:
    """A folder with the runs of two scorers."""
    scores = {"mine": [*range(12)][::-1], "other": [1, 2, 0] * 4}
    evaluate(scores, make_labels(scenes=4), out=tmp_path / "runs")
    return tmp_path / "runs"


@pytest.mark.slow
def test_plots_have_the_widths_of_journals(runs: Path, tmp_path: Path) -> None:
    one, both, intervals = (tmp_path / name for name in ("one.pdf", "both.png", "intervals.svg"))
    assert main(["report", str(runs / "mine"), "--plot", str(one)]) == 0
    assert main(["report", str(runs), "--plot", str(both), "--plot-intervals", str(intervals)]) == 0
    assert b"/MediaBox [ 0 0 252 " in one.read_bytes()  # 3.5 inches
    assert b"/Subtype /Type0" in one.read_bytes()  # an embedded font, no Type 3
    assert Image.open(both).width == pytest.approx(7.16 * 600, abs=1)
    assert "<!-- other -->" in intervals.read_text()


def test_equal_figures_are_equal_files_and_no_text_is_a_formula() -> None:
    figures = [("a_$x^2$", Interval(0.5, 0.2, 0.8, 9)), ("no interval", Interval(0.1, None, None, 9))]
    first, second = (interval_plot([*figures, ("absent", Interval(None, None, None, 0))], "SRCC") for _ in range(2))
    for suffix in FORMATS:
        assert file_of(first, suffix) == file_of(second, suffix)
    text = file_of(first, ".SVG").decode()
    assert all(name in text for name in ("<!-- a_$x^2$ -->", "<!-- no interval -->"))
    assert "absent" not in text


def test_a_plot_needs_a_known_format_and_runs_of_ratings(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(runs), "--plot", str(tmp_path / "plot.jpg")]) == 2
    assert "a plot is written as .pdf, .svg, .png" in capsys.readouterr().err
    assert main(["report", str(runs), "--plot-intervals", "-"]) == 2
    (tmp_path / "s.jsonl").write_text('{"image": "a.png", "query": "q", "quality_score": 3}\n')
    assert main(["report", str(tmp_path / "s.jsonl"), "--plot", str(tmp_path / "plot.pdf")]) == 2
    assert "results of assess have no MOS" in capsys.readouterr().err
