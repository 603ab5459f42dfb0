"""``agenticiqa report``: its pages and tables, that they load no foreign content, and their look in a browser."""

import base64
import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.eval.cli import main
from agenticiqa.eval.intervals import Interval
from agenticiqa.eval.report.page import sections
from agenticiqa.eval.report.page.kept_run import KeptRun, read_run
from agenticiqa.eval.report.page.samples import packed, steps_of
from agenticiqa.eval.report.page.sections import (
    bars,
    calibration_error,
    command,
    compared,
    folded,
    probabilities,
    reliability,
    residual_fit,
)
from agenticiqa.eval.report.questions import choice_figures, question_report
from agenticiqa.eval.report.run_differences import compare_report
from agenticiqa.eval.report.run_scores import read_scores
from agenticiqa.eval.runs import about_run
from agenticiqa.programs.cli.status import OK, USAGE
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.page.table import table_of
from support.chromium import needs_chromium, visit
from support.files import rows_of
from support.html_tags import from_elsewhere, read
from support.run_folder import made_row, pictures, write_run

HOSTILE = "<img src=x onerror=alert(1)> & {{ 7*7 }}.png"
CLOSING = '</script><script>document.title = "stolen"</script>'
IMAGES = 30
MakeLabels = Callable[..., Path]
QUESTION = "Is it <script>document.title = 'stolen'</script> or {{ 7*7 }}?"
OPTIONS = {"A": "Blur & noise", "B": "Nothing", "C": "Rain"}


def turned(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"quality_score": 6 - (row["quality_score"] or 3)}


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
    headings = ("PLCC fitted", "Expected calibration error", "by distortion", "Worst predicted", "Seconds per image")
    for words in (*headings, "offline rules only: the quality level"):
        assert words in text
    assert "Images without a score: 1" in text
    assert read(text).tags.count("h1") == 1
    assert "<h2 id=" not in text, "a single run has one heading"
    assert page.stat().st_size < 150_000
    assert len([*page.with_name("report_files").glob("*.webp")]) >= IMAGES - 1


def test_hostile_names_and_reasoning_stay_text(page: Path) -> None:
    found = read(page.read_text())
    assert found.handlers == []
    assert found.tags.count("script") == 2, "the list of images, our own"
    assert CLOSING not in page.read_text()
    assert "{{ 7*7 }}" in page.read_text()


def test_no_digest_of_a_row_is_a_path(run_folder: Path, tmp_path: Path) -> None:
    rows = rows_of(run_folder)[10:14]
    digests = ["../../x", f"{tmp_path}/away", "../" * 3 + "ABC", "\0"]
    write_run(
        tmp_path / "a" / "run", [row | {"image_sha256": digest} for row, digest in zip(rows, digests, strict=True)]
    )
    made = tmp_path / "a" / "pages" / "report.html"
    assert main(["report", str(tmp_path / "a" / "run"), "--html", str(made)]) == OK
    pictures = [*made.with_name("report_files").iterdir()]
    assert sum("_map" not in each.name for each in pictures) == 4
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {
        *("report.html", "results.jsonl", "report.json", "run.json"),
        *(each.name for each in pictures),
    }


def test_residuals_are_from_the_curve_and_the_largest_comes_first(run_folder: Path) -> None:
    found = residual_fit(read_run(run_folder).scored)
    assert found is not None
    away, point = found.residuals[0]
    assert (point.name, away > 2) == (HOSTILE, True), "its MOS was set far from the curve"
    sizes = [abs(away) for away, _ in found.residuals]
    assert sizes == sorted(sizes, reverse=True)
    assert [y for _, y in found.curve] == sorted(y for _, y in found.curve)


def test_probabilities_without_a_scale_give_a_reason(run_folder: Path) -> None:
    run = read_run(run_folder)
    assert probabilities(run)["n"] == IMAGES
    assert probabilities(run)["scale"] == "1 to 5"
    assert probabilities(run, (0, 100))["scale"] == "0 to 100"
    run.figures["scale"] = None
    assert "give it with --mos-range" in probabilities(run)["why"]


def test_runs_are_compared_by_the_same_tables_as_by_compare(run_folder: Path, tmp_path: Path) -> None:
    rows = rows_of(run_folder)
    worse = write_run(tmp_path / "worse", [turned(row) for row in rows], "b.c")
    report, why = compared([read_run(run_folder), read_run(worse, "turned")])
    assert report is not None
    assert report.tables == compare_report([read_scores(run_folder), read_scores(worse, "turned")]).tables
    assert [line[1] for line in report.tables[0].lines] == ["run", "turned"]
    assert why == ""
    assert compared([read_run(run_folder)]) == (None, "")
    rows[3] |= {"mos": 1.0}  # another label
    other = write_run(tmp_path / "other", rows)
    none, why = compared([read_run(run_folder), read_run(other)])
    assert none is None
    assert "run and other have different labels" in why


def test_a_run_shows_the_command_that_made_it_without_folders_of_the_disk_and_passwords(
    make_labels: MakeLabels, tmp_path: Path
) -> None:
    labels, run = make_labels(), tmp_path / "run"
    words = ["evaluate", str(labels), "--out", str(run), "--limit", "4", "--split", "train", "--workers", "1"]
    assert main([*words, "--scorer", "BRISQUE", "--lower-is-better"]) == OK
    message = command(read_run(run))
    expected = "--out run --limit 4 --split train --workers 1 --scorer BRISQUE --lower-is-better"
    assert message.startswith(f"agenticiqa evaluate data/labels.csv {expected}  # version ")
    page = tmp_path / "page.html"
    assert main(["report", str(run), "--html", str(page)]) == OK
    text = page.read_text()
    assert str(tmp_path) not in text
    assert "data/labels.csv (split train), BRISQUE, 20" in text, "with its date"
    address = "http://ann:se@cret@localhost:1/v1?api-version=1&api%2Dkey=secret"
    assert about_run([f"--api-base={address}"], run / "results.jsonl")["command"].endswith(
        "'--api-base=http://localhost:1/v1?api-version=1'"
    )
    assert "not kept" not in command(read_run(run))


def test_a_run_without_a_recorded_command_is_reported(run_folder: Path) -> None:
    assert command(read_run(run_folder)).startswith(
        "# command unknown: the run was started from Python, or by an older version"
    )


@pytest.mark.parametrize(
    ("made_with", "end"),
    [
        ({"version": "1.2"}, "  # version 1.2"),
        ({"made_of": {"agenticiqa": "1.2"}}, "  # version 1.2"),
        ({"made_of": {"pyiqa": "0.1"}}, "  # pyiqa 0.1"),
        ({"made_of": {"source_sha256": "ab"}}, "niqe"),
    ],
)
def test_the_version_of_a_run_comes_from_where_it_was_kept(made_with: dict[str, Any], end: str) -> None:
    run = KeptRun(Path("run"), {"command": "agenticiqa evaluate labels.csv --scorer niqe"}, made_with)
    assert command(run).endswith(end)
    assert "unknown" not in command(run)


def test_equal_lines_and_bars_are_merged() -> None:
    table = table_of("t", [{"": name, "n": n} for name, n in (("a", "1"), ("b", "2"), ("c", "1"))])
    assert folded(table).lines == [["a = c", "1"], ["b", "2"]]
    high, low = Interval(0.8, 0.6, 0.9, 9), Interval(0.1, -0.5, 0.3, 9)
    (first, second), ticks = bars([("a", high), ("b", low), ("c", high), ("none", Interval(None, None, None, 0))])
    assert (first.name, first.text) == ("a = c", "0.800 [0.600, 0.900]")
    assert ticks == ["-0.50", "0.00", "0.50", "1.00"]
    assert (first.low, first.value, second.low) == pytest.approx((100 * 1.1 / 1.5, 100 * 1.3 / 1.5, 0)), (
        "from -0.5 to 1"
    )
    (close,), ticks = bars([("a", Interval(0.96, 0.91, 0.98, 9))])
    assert ticks == ["0.80", "0.85", "0.90", "0.95", "1.00"], "the scale uses the width"
    assert close.low == pytest.approx(55)


def test_the_list_of_images_has_all_with_their_steps_packed(run_folder: Path) -> None:
    points = read_run(run_folder).points
    steps = dict(points[3].steps)
    assert steps["tools"].startswith("NIQE ")
    assert steps["distortions"] == "severe Blurs: It is measured as 3."
    assert "(learned)" in steps["levels"]
    assert points[3].group == "blurs"
    text = packed({"name": [point.name for point in points], "steps": [point.steps for point in points]})
    assert "<" not in text
    assert json.loads(gzip.decompress(base64.b64decode(text)))["name"][1] == CLOSING
    error = steps_of({"error": "ImageError: gone", "quality_reasoning": "x" * 900})
    assert [name for name, _ in error] == ["reason", "error"]
    assert len(error[0][1]) < 500


def test_tables_in_three_formats(run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / f"table.{suffix}" for suffix in ("md", "tex", "csv")]
    options = [word for pair in zip(("--markdown", "--latex", "--csv"), map(str, files), strict=True) for word in pair]
    assert main(["report", str(run_folder), *options]) == OK
    assert "| AgenticIQA | 29 of 30 |" in files[0].read_text()
    assert r"\toprule" in files[1].read_text()
    with open(files[2], encoding="utf-8-sig", newline="") as file:
        first = next(csv.DictReader(file))
    srcc = json.loads((run_folder / "report.json").read_text())["systems"][0]["srcc"]
    read_back = [float(first[key]) for key in ("srcc", "srcc_low", "srcc_high")]
    assert read_back == [srcc[end] for end in ("value", "low", "high")]
    capsys.readouterr()
    assert main(["report", str(run_folder)]) == OK
    assert capsys.readouterr().out == files[0].read_text()


def test_a_later_row_replaces_an_earlier_one_and_a_truncated_line_is_ignored(run_folder: Path, tmp_path: Path) -> None:
    rows = rows_of(run_folder)
    folder = write_run(tmp_path / "run", [*rows, rows[5] | {"quality_score": 2.0}])
    with open(folder / "results.jsonl", "a") as file:
        file.write('{"name": "cut')
    run = read_run(folder)
    assert (len(run.points), len(run.scored)) == (IMAGES, IMAGES)
    assert run.row(run.points[5])["quality_score"] == 2.0


def test_an_unfinished_run_is_a_one_line_error(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path)]) == USAGE
    assert "no results.jsonl found" in capsys.readouterr().err
    (tmp_path / "results.jsonl").write_text("{}\n")
    assert main(["report", str(tmp_path)]) == USAGE
    assert "has no report.json yet; run the same `agenticiqa evaluate` command again" in capsys.readouterr().err
    for file in ("report.json", "run.json"):
        (tmp_path / file).write_bytes((run_folder / file).read_bytes())
    assert main(["report", str(tmp_path)]) == USAGE
    assert (
        "line 1 is not a row of results: the key 'name' is missing; expected a run of images" in capsys.readouterr().err
    )


@pytest.mark.slow
def test_a_page_of_two_runs_has_both_and_their_difference(run_folder: Path, tmp_path: Path) -> None:
    """The second is of a scorer, which gives no evidence and no reason."""
    numbers = ("name", "image", "image_sha256", "content", "mos", "quality_score", "timings_ms")
    scored = [{key: turned(row)[key] for key in numbers} | {"scorer": "NIQE"} for row in rows_of(run_folder)]
    other = write_run(tmp_path / "other", scored, "NIQE")
    assert main(["report", str(run_folder), str(other), "--html", str(tmp_path / "both.html")]) == OK
    text = (tmp_path / "both.html").read_text()
    assert "<h1>run, other</h1>" in text
    assert 'href="#run1"' in text
    assert "run - other" in text


def test_the_calibration_error_is_the_weighted_distance_of_confidence_and_share() -> None:
    confidence, right = [0.95, 0.95, 0.95, 0.95, 0.55], [1, 1, 1, 0, 0]
    assert calibration_error(confidence, right) == pytest.approx(0.8 * abs(0.75 - 0.95) + 0.2 * abs(0 - 0.55))
    assert calibration_error([], []) is None
    assert calibration_error([1.0, 1.0], [1, 1]) == 0
    low, high = reliability([0.95] * 8 + [0.31, 0.39], [1] * 8 + [0, 1])
    assert (low.n, low.confidence, low.right) == (2, pytest.approx(0.35), 0.5)
    assert (high.n, high.right, high.high) == (8, 1.0, 1.0)
    assert 0.6 < high.low < 0.7, "8 of 8: 0.676 by Wilson's formula"


@needs_chromium
@pytest.mark.slow
def test_the_page_in_a_browser(page: Path) -> None:
    """From disk: no error, nothing from elsewhere, both charts drawn, no sideways scrolling, a chosen point as text."""
    choose = (
        "document.querySelector('#chart0 a[*|href=\"#1\"] use')"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}));"
        "[document.getElementById('chosen0').innerText, document.querySelectorAll('#chosen0 script').length,"
        " document.title.includes('stolen'), document.querySelector('#chosen0 img').naturalWidth > 0]"
    )
    wait = "new Promise(done => setTimeout(() => done(0), 300))"
    canvases = "document.querySelectorAll('.chart svg').length"
    overflow = "document.documentElement.scrollWidth - innerWidth"
    seen = visit(page, canvases, overflow, choose, wait, choose, width=390, height=844)
    assert seen.errors == []
    assert all(address.startswith(("file:", "data:", "blob:")) for address in seen.requests)
    assert seen.values[0] >= 2
    assert seen.values[1] == 0
    text, scripts, stolen, drawn = seen.values[4]
    assert CLOSING in text
    assert (scripts, stolen, drawn) == (0, False, True)
    search = (
        "(async () => {const find = (name) => document.querySelector('.samples ' + name);"
        " find('.controls input').value = '7.png'; find('.controls input').dispatchEvent(new Event('input'));"
        " find('.row').click();"
        " return [document.querySelectorAll('.row').length, find('h4').textContent, find('dd').textContent,"
        " find('.count').textContent]})()"
    )
    listed, chosen, step, count = visit(page, search).values[0]
    assert (listed, chosen) == (3, "7.png"), "7, 17, 27"
    assert step.startswith("severe Noise")
    assert count.startswith("3 of 30")
    ink = "getComputedStyle(document.querySelector('.chart text')).fill"
    assert visit(page, ink, dark=True).values == ["rgb(228, 231, 235)"]
    assert visit(page, ink).values == ["rgb(29, 33, 38)"]


def question_rows(images: list[Path], **fields: Any) -> list[dict[str, Any]]:
    """A question about each image: the first is answered rightly, the last not at all."""
    answers = ["A", "B", "C", None]
    return [
        {
            "name": f"q{number}",
            "rotation": 0,
            "groups": {"type": "what"},
            "content": image.name,
            "image": str(image),
            "image_sha256": sha256_of(image),
            "query": QUESTION,
            "options": OPTIONS,
            "truth": "A",
            "answer": answers[number],
            "correct": answers[number] == "A",
            "unparsed": answers[number] is None,
            "final_answer": answers[number],
            "quality_reasoning": "Grain is seen.",
            "timings_ms": {"planner": 10.0},
            **fields,
        }
        for number, image in enumerate(images)
    ]


def kept(folder: Path, kind: str, rows: list[dict[str, Any]], figures: dict[str, Any]) -> Path:
    folder.mkdir()
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "run.json").write_text(json.dumps({"version": "1", "split": "dev"}))
    about = {"kind": kind, "data": "qbench", "backend": "offline", "left_out": 0}
    question_report(about | figures).write(folder)
    return folder


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    return pictures(tmp_path / "images", [f"{number}.png" for number in range(4)])


@pytest.fixture
def choices(tmp_path: Path, images: list[Path]) -> Path:
    rows = question_rows(images)
    return kept(tmp_path / "choices", "choice", rows, choice_figures(rows))


def test_the_page_of_questions_shows_wrong_answers_and_loads_nothing(choices: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(choices), "--html", str(page)]) == OK
    text = page.read_text()
    assert from_elsewhere(text) == []
    assert "<script" not in text
    assert "3 of 4 questions." in text
    assert text.index("Rain <b>(answered)</b>") < text.index("no usable answer"), "unparsed answers come last"
    assert text.count("Blur &amp; noise <b>(correct)</b>") == 3
    assert "25.0 [" in text, "the headline"
    assert len([*(tmp_path / "page_files").glob("*.webp")]) == 3


def test_tables_of_questions(choices: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.csv"
    assert main(["report", str(choices), "--csv", str(table)]) == OK
    assert (
        table.read_text("utf-8-sig").splitlines()[0].startswith("run,questions,n,accuracy,accuracy low,accuracy high,")
    )
    capsys.readouterr()
    assert main(["report", str(choices)]) == OK
    assert "choices: qbench, offline\n\n| questions | n | accuracy |" in capsys.readouterr().out


def test_the_page_of_two_runs_of_questions_compares_them(choices: Path, images: list[Path], tmp_path: Path) -> None:
    rows = [row | {"correct": True, "answer": "A", "unparsed": False} for row in question_rows(images)]
    other, page = kept(tmp_path / "other", "choice", rows, choice_figures(rows)), tmp_path / "page.html"
    assert main(["report", str(choices), str(other), "--html", str(page), "--name", "ours", "--name", "theirs"]) == OK
    text = page.read_text()
    assert "ours - theirs" in text
    assert "<h1>ours, theirs</h1>" in text
    assert "Accuracy with its 95 % interval" in text


def test_runs_of_both_kinds_are_refused_together(
    choices: Path, images: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rated = write_run(tmp_path / "rated", [made_row(images[0], 0, 3.0, 3.0)])
    assert main(["report", str(choices), str(rated)]) == USAGE
    error = capsys.readouterr().err
    assert "choices has answers to questions, but" in error
    assert error.count("\n") == 1


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("width", [375, 1200])
def test_a_browser_shows_the_page_of_questions_without_an_error(choices: Path, tmp_path: Path, width: int) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(choices), "--html", str(page)]) == OK
    wide = "document.documentElement.scrollWidth <= window.innerWidth"
    loaded = "[...document.images].every(each => each.loading == 'lazy' || each.naturalWidth > 0)"
    seen = visit(page, wide, loaded, "document.title", width=width)
    assert seen.errors == []
    assert all(address.startswith(("file:", "data:")) for address in seen.requests)
    assert seen.values == [True, True, "choices: report"]
