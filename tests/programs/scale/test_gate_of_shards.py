"""Results of assess, as shards and as JSON lines, read by gate, as a user calls it."""

import json
import os
from pathlib import Path

import pytest

from agenticiqa.eval.cli import main
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.scale.table import ShardFolder
from support.shards import png, run_of


@pytest.fixture
def two_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs over 9 images and a broken one; the second lacks an image, and has another one brighter."""
    monkeypatch.chdir(tmp_path)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        for number in range(9):
            (tmp_path / name / f"{number}.png").write_bytes(png(20 * number))
    (tmp_path / "first" / "broken.png").write_bytes(b"none")
    (tmp_path / "second" / "0.png").unlink()
    run_of(["first"], "a")
    run_of(["second"], "b")
    return tmp_path


def test_json_lines_are_read_as_the_same_rows_in_shards(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("policy.yaml").write_text("min_score: 3\n")
    with ResultsFile(Path("a.jsonl")) as results:
        for row in ShardFolder("a").rows():
            results.append({**row, "quality_score": 1.0} if "error" not in row else row)
            results.append(row)  # which replaces the one before
    shown = []
    for kept in ("a", "a.jsonl"):
        assert main(["gate", kept, "--policy", "policy.yaml"]) == 4
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_an_image_with_several_questions_is_checked_once(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its row with a score, wherever it is."""
    Path("policy.yaml").write_text("min_score: 3\n")
    with ResultsFile(Path("two.jsonl")) as results:
        for number, row in enumerate(ShardFolder("b").rows()):
            asked = {**row, "query": "Noisy?", "quality_score": None, "final_answer": "no"}
            for each in (row, asked) if number % 2 else (asked, row):
                results.append(each)
    for kept in ("b", "two.jsonl"):
        assert main(["gate", kept, "--policy", "policy.yaml", "--json"]) == 4
        shown = capsys.readouterr()
        assert [json.loads(line)["accepted"] for line in shown.out.splitlines()] == [False] * 6 + [True] * 2
        assert ("8 rows of other questions are left out" in shown.err) is (kept == "two.jsonl")


def test_gate_reads_kept_results(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("policy.yaml").write_text("min_score: 3\n")
    assert main(["gate", "a", "--policy", "policy.yaml"]) == 4
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[1] for line in lines if line[0] == "accepted"] == [f"first/{n}.png" for n in range(7, 9)]
    assert lines[-1][0] == "refused: undecodable"
    assert main(["gate", "b", "--policy", "policy.yaml", "--json"]) == 4
    assert [json.loads(line)["accepted"] for line in capsys.readouterr().out.splitlines()] == [False] * 6 + [True] * 2
    assert main(["gate", "a", "--policy", "policy.yaml", "--csv", "-", "--html", "a.html"]) == 4
    rows = capsys.readouterr().out.splitlines()[1:]
    assert [row.split(",")[1] for row in rows] == ["false"] * 8 + ["true"] * 2
    assert "Accepted photos: 2 of 10" in Path("a.html").read_text()
    assert main(["gate", "a", "--policy", "policy.yaml", "--markdown", "-"]) == 4
    assert capsys.readouterr().out.startswith("| verdict | image | why |")
    Path("policy.yaml").write_text("min_short_side: 9\n")
    assert main(["gate", "b", "--policy", "policy.yaml"]) == 4
    assert "8 x 8 pixels" in capsys.readouterr().out


def test_the_gate_of_results_needs_no_files(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in Path("first").iterdir():
        path.unlink()
    assert main(["gate", "a", "--csv", "-"]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "image,accepted,reasons,why,width,height,jpeg_quality,effective_side,score"
    assert lines[1].endswith(",8,8,,,1.0")


@pytest.mark.parametrize(
    ("field", "policy", "other"),
    [
        ("width", "aspect: [1, 2]", "distortions: {blur: severe}"),
        ("executor_evidence", "distortions: {blur: severe}", "min_jpeg_quality: 3"),
    ],
)
def test_a_field_that_results_lack_is_named_first(
    field: str, policy: str, other: str, two_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if only the last row lacks it."""
    rows = [row for row in ShardFolder("a").rows() if "error" not in row]
    rows[-1][field] = None
    with ResultsFile(Path("a.jsonl")) as results:
        for row in rows:
            results.append(row)
    Path("policy.yaml").write_text(policy)
    assert main(["gate", "a.jsonl", "--policy", "policy.yaml"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"a.jsonl: the row of first/8.png has no {field}, which the policy needs: assess the images" in shown.err
    Path("other.yaml").write_text(other)
    assert main(["gate", "a.jsonl", "--policy", "other.yaml"]) == 0


def test_report_writes_the_page_of_kept_results(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page is that of assess --html, also if the files are below the folder of the results."""
    with ResultsFile(Path("a.jsonl")) as results:
        for row in ShardFolder("a").rows():
            results.append(row)
    Path("elsewhere").mkdir()
    os.chdir("elsewhere")
    assert main(["report", "../a.jsonl", "--html", "a.html"]) == 0
    page = Path("a.html").read_text()
    assert "Image quality: 9 images" in page
    assert 'href="./../first/3.png"' in page
    assert page.count("<img ") == 9
    assert "Not assessed: 1" in page
    capsys.readouterr()
    assert main(["report", "../b", "--csv", "-"]) == 0
    assert capsys.readouterr().out.count("second/") == 8
    for words in (["--mos-range", "1", "5"], ["--name", "A"], ["../first"]):
        assert main(["report", "../a.jsonl", *words]) == 2
        assert "results of assess have no MOS" in capsys.readouterr().err
    assert main(["report", "../a.jsonl", "--html", "../a.jsonl"]) == 2
    assert "would overwrite" in capsys.readouterr().err
