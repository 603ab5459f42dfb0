"""``agenticiqa report``: what its page and tables say, that nothing foreign comes in, and how a browser shows it."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.eval.cli import main
from agenticiqa.eval.page import sections
from agenticiqa.eval.page.run import read_run
from agenticiqa.eval.page.sections import command, compared, fit, probabilities
from agenticiqa.programs.cli.status import OK, USAGE
from support.chromium import needs_chromium, visit
from support.html_tags import from_elsewhere, read
from support.run_folder import made_row, pictures, write_run

HOSTILE = "<img src=x onerror=alert(1)> & {{ 7*7 }}.png"
CLOSING = '</script><script>document.title = "stolen"</script>'
IMAGES = 30


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 30 images on 1..5, one of them without a score, with hostile names and reasoning."""
    folder = tmp_path_factory.mktemp("made")
    images = pictures(folder / "images", [HOSTILE, *(f"{number}.png" for number in range(1, IMAGES))])
    rows = []
    for number, image in enumerate(images):
        mos = 1 + 4 * number / IMAGES
        rows.append(made_row(image, number, None if number == 5 else min(5.0, mos + 0.3 * (number % 3)), mos))
    rows[0] |= {"name": HOSTILE, "quality_reasoning": CLOSING, "mos": 4.9}
    rows[1]["name"] = CLOSING
    return write_run(folder / "run", rows)


@pytest.fixture(scope="module")
def page(run_folder: Path) -> Path:
    """Its page, of which few images are shown large, as each is measured for its map."""
    path = run_folder.parent / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "WORST", 2)
        patch.setattr(sections, "BEST", 1)
        assert main(["report", str(run_folder), "--html", str(path)]) == OK
    return path


def test_the_page_has_every_section_and_loads_nothing(page: Path) -> None:
    text = page.read_text()
    assert from_elsewhere(text) == []
    for words in ("PLCC fitted", "Expected calibration error", "by distortion", "Worst predicted", "Seconds per image"):
        assert words in text
    assert "Without a score: 1" in text
    assert page.stat().st_size < 1_500_000
    assert len([*page.with_name("report_files").glob("*.webp")]) >= IMAGES - 1


def test_hostile_names_and_reasoning_stay_text(page: Path) -> None:
    found = read(page.read_text())
    assert found.handlers == []
    assert found.tags.count("script") == 4, "the library, two charts, our own"
    assert CLOSING not in page.read_text()
    assert "{{ 7*7 }}" in page.read_text()


def test_residuals_are_from_the_curve_and_the_largest_comes_first(run_folder: Path) -> None:
    found = fit(read_run(run_folder).scored)
    assert found is not None
    away, point = found.residuals[0]
    assert (point.name, away > 2) == (HOSTILE, True), "its opinion was set far off"
    sizes = [abs(away) for away, _ in found.residuals]
    assert sizes == sorted(sizes, reverse=True)
    assert [y for _, y in found.curve] == sorted(y for _, y in found.curve)


def test_probabilities_need_a_scale_and_say_so(run_folder: Path) -> None:
    run = read_run(run_folder)
    assert probabilities(run)["n"] == IMAGES
    assert probabilities(run)["scale"] == "1 to 5"
    assert probabilities(run, (0, 100))["scale"] == "0 to 100"
    run.figures["scale"] = None
    assert "give them with --mos-range" in probabilities(run)["why"]


def turned(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"quality_score": 6 - (row["quality_score"] or 3)}


def test_runs_are_compared_on_the_images_of_both(run_folder: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (run_folder / "results.jsonl").read_text().splitlines()]
    rows[3] |= {"mos": 1.0}  # another label
    worse = write_run(
        tmp_path / "worse", [row | {"quality_score": 6 - (row["quality_score"] or 3)} for row in rows], "b.c"
    )
    table = compared([read_run(run_folder), read_run(worse)])
    assert table is not None
    assert table.lines[0][:2] == ["labels.csv, b.c", str(IMAGES - 2)]
    assert table.lines[0][2].startswith("-1.")
    assert compared([read_run(run_folder)]) is None


def test_the_command_repeats_the_run(run_folder: Path) -> None:
    run = read_run(run_folder)
    assert command(run).startswith("agenticiqa evaluate labels.csv --split dev --out")
    run.made_with["config"]["planner"]["backend"] = run.made_with["config"]["executor"]["backend"] = "openai.gpt-4o"
    assert "--config" in command(run)
    for stage in run.made_with["config"].values():
        stage["backend"] = "openai.gpt-4o"
    assert "--backend openai.gpt-4o --out" in command(run)


def test_tables_in_three_formats(run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / f"table.{suffix}" for suffix in ("md", "tex", "csv")]
    options = [word for pair in zip(("--markdown", "--latex", "--csv"), map(str, files), strict=True) for word in pair]
    assert main(["report", str(run_folder), *options]) == OK
    assert "| AgenticIQA | 29 of 30 |" in files[0].read_text()
    assert r"\toprule" in files[1].read_text()
    with open(files[2], newline="") as file:
        first = next(csv.DictReader(file))
    srcc = json.loads((run_folder / "report.json").read_text())["systems"][0]["srcc"]
    read_back = [float(first[key]) for key in ("srcc", "srcc_low", "srcc_high")]
    assert read_back == [srcc[end] for end in ("value", "low", "high")]
    capsys.readouterr()
    assert main(["report", str(run_folder)]) == OK
    assert capsys.readouterr().out == files[0].read_text()


def test_a_later_row_replaces_and_a_line_cut_short_is_left_out(run_folder: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (run_folder / "results.jsonl").read_text().splitlines()]
    folder = write_run(tmp_path / "run", [*rows, rows[5] | {"quality_score": 2.0}])
    with open(folder / "results.jsonl", "a") as file:
        file.write('{"name": "cut')
    run = read_run(folder)
    assert (len(run.points), len(run.scored)) == (IMAGES, IMAGES)
    assert run.row(run.points[5])["quality_score"] == 2.0


def test_what_is_no_finished_run_is_said_in_one_line(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path)]) == USAGE
    assert "found no results.jsonl" in capsys.readouterr().err
    (tmp_path / "results.jsonl").write_text("{}\n")
    assert main(["report", str(tmp_path)]) == USAGE
    assert "has no report.json yet; the same `agenticiqa evaluate` command finishes it" in capsys.readouterr().err
    for file in ("report.json", "run.json"):
        (tmp_path / file).write_bytes((run_folder / file).read_bytes())
    assert main(["report", str(tmp_path)]) == USAGE
    assert "a row is none of a rating run" in capsys.readouterr().err


@pytest.mark.slow
def test_a_page_of_two_runs_has_both_and_their_difference(run_folder: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (run_folder / "results.jsonl").read_text().splitlines()]
    other = write_run(tmp_path / "other", [turned(row) for row in rows], "b.c")
    assert main(["report", str(run_folder), str(other), "--html", str(tmp_path / "both.html")]) == OK
    text = (tmp_path / "both.html").read_text()
    assert "Report of 2 runs" in text
    assert 'href="#run1"' in text
    assert "SRCC of each run minus that of labels.csv, offline" in text


@needs_chromium
@pytest.mark.slow
def test_the_page_in_a_browser(page: Path) -> None:
    """From disk: no error, nothing from elsewhere, both charts drawn, no sideways scrolling, a chosen point as text."""
    choose = (
        "Bokeh.documents[0].roots()[0].renderers[0].data_source.selected.indices = [1];"
        "[document.getElementById('chosen0').innerText, document.querySelectorAll('#chosen0 script').length,"
        " document.title.includes('stolen'), document.querySelector('#chosen0 img').naturalWidth > 0]"
    )
    wait = "new Promise(done => setTimeout(() => done(0), 300))"
    canvases = "document.querySelectorAll('[data-root-id], .chart > div').length"
    overflow = "document.documentElement.scrollWidth - innerWidth"
    seen = visit(page, canvases, overflow, choose, wait, choose, width=390, height=844)
    assert seen.errors == []
    assert all(address.startswith(("file:", "data:", "blob:")) for address in seen.requests)
    assert seen.values[0] >= 2
    assert seen.values[1] == 0
    text, scripts, stolen, drawn = seen.values[4]
    assert CLOSING in text
    assert (scripts, stolen, drawn) == (0, False, True)
    ink = (
        "Bokeh.documents[0].roots()[0].below[0].axis_label_text_color.value"
        " ?? Bokeh.documents[0].roots()[0].below[0].axis_label_text_color"
    )
    assert visit(page, ink, dark=True).values == ["#e4e7eb"]
    assert visit(page, ink).values == ["#1d2126"]
