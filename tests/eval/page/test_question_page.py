"""``agenticiqa report`` of runs of questions: what the page and the tables say, and that nothing foreign comes in."""

import json
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.eval.cli import main
from agenticiqa.eval.mcq import report
from agenticiqa.eval.mcq.figures import choice_figures, plan_figures
from agenticiqa.programs.cli.status import OK, USAGE
from agenticiqa.programs.images.files import sha256_of
from support.chromium import needs_chromium, visit
from support.html_tags import from_elsewhere
from support.run_folder import made_row, pictures, write_run

HOSTILE = "Is it <script>document.title = 'stolen'</script> or {{ 7*7 }}?"
OPTIONS = {"A": "Blur & noise", "B": "Nothing", "C": "Rain"}


def rows_of(images: list[Path], **fields: Any) -> list[dict[str, Any]]:
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
            "query": HOSTILE,
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
    report.write({"kind": kind, "data": "qbench", "backend": "offline", "left_out": 0, **figures}, folder)
    return folder


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    return pictures(tmp_path / "images", [f"{number}.png" for number in range(4)])


@pytest.fixture
def choices(tmp_path: Path, images: list[Path]) -> Path:
    rows = rows_of(images)
    return kept(tmp_path / "choices", "choice", rows, choice_figures(rows))


def test_the_page_shows_what_was_wrong_with_its_image_and_loads_nothing(choices: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(choices), "--html", str(page)]) == OK
    text = page.read_text()
    assert from_elsewhere(text) == []
    assert "<script" not in text
    assert "3 of 4 questions." in text
    assert text.index("Rain <b>(the answer)</b>") < text.index("no usable answer"), "unparsed answers come last"
    assert text.count("Blur &amp; noise <b>(right)</b>") == 3
    assert "agenticiqa evaluate qbench --root DIR --split dev" in text
    assert len([*(tmp_path / "page_files").glob("*.webp")]) == 3


def test_plans_name_the_fields_that_are_wrong(images: list[Path], tmp_path: Path) -> None:
    fields = {"query_scope": False, "query_type": True}
    changes = {"fields": fields, "true_plan": {}, "correct": False, "unparsed": False, "options": {}}
    changes |= {"final_answer": None, "groups": {}}
    rows = [{**row, "true_plan": {"query_scope": "mast", "query_type": "IQA"}} for row in rows_of(images, **changes)]
    run, page = kept(tmp_path / "plans", "planning", rows, plan_figures(rows)), tmp_path / "page.html"
    assert main(["report", str(run), "--html", str(page)]) == OK
    text = page.read_text()
    assert "Not as the true plan: query_scope</p>" in text
    assert "no usable answer" not in text


def test_tables_in_three_formats(choices: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.csv"
    assert main(["report", str(choices), "--csv", str(table)]) == OK
    assert table.read_text().splitlines()[0].startswith("questions,n,accuracy")
    capsys.readouterr()
    assert main(["report", str(choices)]) == OK
    assert "qbench, offline\n\n| questions | n | accuracy |" in capsys.readouterr().out


def test_runs_of_both_kinds_are_refused_together(
    choices: Path, images: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rated = write_run(tmp_path / "rated", [made_row(images[0], 0, 3.0, 3.0)])
    assert main(["report", str(choices), str(rated)]) == USAGE
    error = capsys.readouterr().err
    assert "choices asked questions and" in error
    assert error.count("\n") == 1


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("width", [375, 1200])
def test_a_browser_shows_it_without_an_error(choices: Path, tmp_path: Path, width: int) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(choices), "--html", str(page)]) == OK
    wide = "document.documentElement.scrollWidth <= window.innerWidth"
    loaded = "[...document.images].every(each => each.loading == 'lazy' || each.naturalWidth > 0)"
    seen = visit(page, wide, loaded, "document.title", width=width, picture=tmp_path / "seen.png")
    assert seen.errors == []
    assert all(address.startswith(("file:", "data:")) for address in seen.requests)
    assert seen.values == [True, True, "Report: qbench, offline"]
