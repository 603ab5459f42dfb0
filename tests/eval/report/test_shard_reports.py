"""Results of assess, as shards and as JSON lines, read by report, compare and gate, as a user calls them."""

import json
from pathlib import Path

import pytest

from agenticiqa.eval.cli import main
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.scale.table import shard_rows
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


def test_report_counts_failures_and_lists_the_worst(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "a", "b", "--csv", "-"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("a,10,1,0,")
    assert lines[2].startswith("b,8,0,0,")
    assert main(["report", "a", "--markdown", "-"]) == 0
    text = capsys.readouterr().out
    assert text.index("first/0.png") < text.index("first/1.png")
    assert main(["report", "a", "--html", "page.html"]) == 2
    assert "--html is for runs of evaluate" in capsys.readouterr().err


def test_json_lines_are_read_as_the_same_rows_in_shards(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("policy.yaml").write_text("min_score: 3\n")
    for name in ("a", "b"):
        with ResultsFile(Path(f"{name}.jsonl")) as results:
            for row in shard_rows(name):
                results.append({**row, "quality_score": 1.0} if name == "a" and "error" not in row else row)
                results.append(row)  # which replaces the one before
    shown = {}
    for ending in ("", ".jsonl"):
        files = [f"a{ending}", f"b{ending}"]
        for command in (["report", *files], ["compare", *files], ["gate", files[0], "--policy", "policy.yaml"]):
            options = [] if command[0] == "gate" else ["--csv", "-", "--name", "a", "--name", "b"]
            assert main([*command, *options]) == (4 if command[0] == "gate" else 0)
            shown[command[0], ending] = capsys.readouterr().out
        assert all(shown[name, ending] == shown[name, ""] for name in ("report", "compare", "gate"))
    assert main(["compare", "a.jsonl"]) == 2
    assert "at least two" in capsys.readouterr().err


def test_an_unfinished_run_is_reported(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a/_SUCCESS").unlink()
    assert main(["report", "a"]) == 0
    assert "a: the run is not finished." in capsys.readouterr().out


def test_compare_matches_by_content_and_question(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "a", "b", "--csv", "-"]) == 0
    heading, line = capsys.readouterr().out.splitlines()[:2]
    found = dict(zip(heading.split(","), line.split(","), strict=True))
    assert (found["n"], found["scored by one only"]) == ("8", "1")
    assert next(float(value) for name, value in found.items() if name.startswith("SRCC")) == pytest.approx(1)
    assert main(["compare", "a"]) == 2
    assert "at least two" in capsys.readouterr().err


def test_gate_reads_kept_results(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("policy.yaml").write_text("min_score: 3\n")
    assert main(["gate", "a", "--policy", "policy.yaml"]) == 4
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[1] for line in lines if line[0] == "accepted"] == [f"first/{n}.png" for n in range(7, 9)]
    assert lines[-1][0] == "refused: undecodable"
    assert main(["gate", "b", "--policy", "policy.yaml", "--json"]) == 4
    assert [json.loads(line)["accepted"] for line in capsys.readouterr().out.splitlines()] == [False] * 6 + [True] * 2
    Path("policy.yaml").write_text("min_short_side: 9\n")
    assert main(["gate", "b", "--policy", "policy.yaml"]) == 4
    assert "8 x 8 pixels" in capsys.readouterr().out
    Path("second/1.png").unlink()
    assert main(["gate", "b", "--policy", "policy.yaml"]) == 2
    assert "the policy has conditions for the file" in capsys.readouterr().err
