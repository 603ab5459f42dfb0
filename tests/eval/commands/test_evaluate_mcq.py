"""``agenticiqa evaluate`` of question benchmarks, with a server that gives known answers, so that figures are known."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.eval.cli import main
from agenticiqa.programs.cli.status import SOME_FAILED
from support import question_archives as archives
from support.fake_server import Server, bad_json, by_stage, fake_server, field_of
from support.files import report_of, rows_of
from support.loopback import Body, Reply

EVALUATE = ("evaluate", "--workers", "1")


def answers(chosen: Callable[[str, dict[str, str]], str]) -> Callable[[Body], Any]:
    """Script the answering stage: ``chosen`` gets the question and the options by letter."""

    def reply(request: Body) -> dict[str, str] | Reply:
        lines = field_of(request, "options").splitlines()
        options = dict(line.split(". ", 1) for line in lines)
        letter = chosen(field_of(request, "query"), options)
        return {"final_answer": letter, "quality_reasoning": "Seen."} if letter else bad_json()

    return reply


def config_for(server: Server, file: Path, stage: str = "summarizer") -> list[str]:
    file.write_text(f"{stage}: {{backend: vllm.ill, api_base: '{server.url}'}}\n")
    return ["--config", str(file)]


def scripted(query: str, options: dict[str, str]) -> str:
    """Answer right about lighting, door and wall, nothing usable about the sign, and otherwise "A"."""
    true = {"lighting": "High", "door": "Poor", "wall": "Yes"}
    for word, text in true.items():
        if word in query:
            return next(letter for letter, option in options.items() if option == text)
    return "" if "sign" in query else "A"


def test_an_answer_is_not_lost_to_a_worse_one(tmp_path: Path) -> None:
    """An answer without the analysis is requested once more; now the model gives no answer at all."""
    archives.qbench(tmp_path)
    run, config = tmp_path / "run", tmp_path / "c.yaml"
    script: dict[str, Any] = dict.fromkeys(("location", "detection", "analysis", "selection"), bad_json())
    script["answer"] = answers(lambda query, options: "A")
    with fake_server(lambda body: by_stage(script)(body)) as server:
        asking = [*config_for(server, config), "--no-cache"]
        config.write_text(config.read_text() + config.read_text().replace("summarizer", "executor"))
        command = [*EVALUATE, "qbench", "--root", str(tmp_path), "--out", str(run), *asking]
        main(command)
        before = {row["name"]: row["answer"] for row in rows_of(run)}
        incomplete = [row["name"] for row in rows_of(run) if row["executor_evidence"]["failures"]]
        assert incomplete
        script["answer"] = bad_json()
        for _ in range(2):
            main(command)
            assert {row["name"]: row["answer"] for row in rows_of(run)} == before
            assert [row["name"] for row in rows_of(run)[len(before) :]] == incomplete, "once more"
            assert report_of(run)["unparsed"] == 0


def test_vanilla_then_circular_accuracy_of_a_scripted_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archives.qbench(tmp_path)
    run = tmp_path / "run"
    with fake_server(by_stage({"answer": answers(scripted)})) as server:
        command = [*EVALUATE, "qbench", "--root", str(tmp_path), "--out", str(run)]
        command += config_for(server, tmp_path / "c.yaml")
        main(command)
        report = report_of(run)
        assert (report["questions"], report["unparsed"], report["vanilla"]["right"]) == (5, 1, 3)
        assert report["vanilla"]["accuracy"]["value"] == pytest.approx(3 / 5)
        assert report["vanilla"]["accuracy_of_answered"]["value"] == pytest.approx(3 / 4)
        assert report["vanilla"]["chance"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 4 + 1 / 3 + 1 / 2) / 5)
        assert report["by"]["type"]["how"]["vanilla"]["accuracy"]["value"] == 1
        assert report["by"]["type"]["yes-or-no"]["vanilla"]["accuracy"]["value"] == 0.5
        assert report["by"]["concern"]["in-context distortion"]["vanilla"]["unparsed"] == 1
        assert report["circular"] is None
        kept = rows_of(run)
        by_name = {row["name"]: row for row in kept}
        assert (by_name["0 00000.png"]["answer"], by_name["0 00000.png"]["truth"]) == ("A", "B")
        assert by_name["2 00002.png"]["unparsed"]
        assert by_name["2 00002.png"]["answer"] is None

        asked = len(server.requests)
        main([*command, "--circular"])  # in the same folder: only missing answers are requested
        report = report_of(run)
        assert report["vanilla"]["right"] == 3
        assert report["circular"]["right"] == 3  # "A" is right in one of two rotations only
        assert report["circular"]["accuracy"]["value"] == pytest.approx(3 / 5)
        assert report["circular"]["chance"] == pytest.approx((1 / 4 + 1 / 27 + 1 / 256 + 1 / 27 + 1 / 4) / 5)
        new = [row for row in rows_of(run)[len(kept) :] if not row["unparsed"]]
        assert len(new) == 1 + 2 + 2 + 1
        assert all(row["rotation"] > 0 for row in new)
        assert len(server.requests) == asked + len(new) + 4 * 3  # the unparsed ones in three attempts each
    out = capsys.readouterr().out
    assert "1 of 5 answers are unparsed" in out
    assert "circular" in (run / "report.md").read_text()


def test_a_refused_question_fails_alone_also_at_the_beginning_of_a_continued_run(tmp_path: Path) -> None:
    archives.qbench(tmp_path)
    blocked = Reply(status=403, raw_body=b'{"error": {"message": "flagged"}}')

    def reply(request: Body) -> Any:
        return blocked if len(server.requests) == 2 else answers(scripted)(request)

    with fake_server(by_stage({"answer": reply})) as server:
        command = [*EVALUATE, "qbench", "--root", str(tmp_path), "--out", str(tmp_path / "run")]
        command += config_for(server, tmp_path / "c.yaml")
        assert main([*command, "--limit", "1"]) == 0
        assert main(command) == SOME_FAILED
    rows = rows_of(tmp_path / "run")
    assert ["flagged" in row.get("error", "") for row in rows] == [False, True, False, False, False]


def test_an_unreadable_image_counts_as_wrong_and_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = archives.qbench(tmp_path)
    (folder / "images/00001.png").write_bytes(b"nothing")
    run = tmp_path / "run"
    assert main([*EVALUATE, "qbench", "--root", str(tmp_path), "--out", str(run)]) == SOME_FAILED
    report = report_of(run)
    assert report["unparsed_reasons"]["ImageError"] == 1
    assert report["questions"] == 5
    assert "00001.png" in capsys.readouterr().err


def test_a_question_for_a_tool_that_cannot_run_does_not_end_the_run(tmp_path: Path) -> None:
    named = {"question": "Compute SSIM. Is it over .5?", "candidates": ["Yes", "No"], "correct_ans": "Yes"}
    archives.qbench(tmp_path, rows=[{**named, "type": 0, "concern": 0}, *archives.QBENCH_ROWS[:2]])
    run = tmp_path / "run"
    assert main([*EVALUATE, "qbench", "--root", str(tmp_path), "--out", str(run)]) == SOME_FAILED
    assert (report_of(run)["questions"], report_of(run)["unparsed_reasons"]["ToolError"]) == (3, 1)
