"""The outputs of a run as sinks: what each keeps if stdout, the disk or the run ends, and the status it calls for."""

import errno
import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.cli import main
from agenticiqa.programs.batch.find_jobs import FoundJobs, find_jobs
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.cli import sinks
from agenticiqa.programs.cli.arguments import AssessOptions
from agenticiqa.programs.cli.commands import COMMANDS
from agenticiqa.programs.cli.overview import Overview
from agenticiqa.programs.cli.parser import parse
from agenticiqa.programs.cli.ranking import Ranking
from agenticiqa.programs.cli.status import BELOW, OK, SOME_FAILED, UNSCORED, USAGE
from agenticiqa.programs.errors import ImageError, Unforeseen
from agenticiqa.programs.result import Assessment
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY
from support.files import json_lines
from support.images import album_of_squares

BROKEN = ImageError("it is damaged", "album/00.png")


class Full(io.StringIO):
    """A stream to a full disk."""

    def write(self, text: object) -> int:
        """Raise the error of the system."""
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FoundJobs:
    """Three images in a folder of the current one, and a name without an image."""
    monkeypatch.chdir(tmp_path)
    album_of_squares(tmp_path / "album", 3)
    return find_jobs(["album", "gone.png"], DEFAULT_QUERY)


def state_of(inputs: FoundJobs, results: ResultsFile | None = None) -> sinks.RunState:
    return sinks.RunState.of(Config(), inputs, 1, results)


def row_of(name: str, score: float | None = 3.0, **fields: Any) -> dict[str, Any]:
    return {"image": name, "quality_score": score, "query_type": "scoring", "query": "", **fields}


class Recorder(sinks.Sink):
    """Records the calls that it gets, and fails at one of them."""

    def __init__(self, calls: list[str], name: str, error: Exception | None = None, at: str = "close") -> None:
        self.calls, self.name, self.error, self.at = calls, name, error, at

    def _called(self, call: str) -> None:
        self.calls.append(f"{self.name} {call}")
        if self.error and self.at == call:
            raise self.error

    def open(self) -> None:
        self._called("open")

    def write(self, job: Any, row: Any) -> None:
        self._called("write")

    def fail(self, job: Any, error: Exception) -> None:
        self._called("fail" if job else "no image")

    def interrupt(self, error: BaseException) -> None:
        self._called("interrupt")

    def close(self) -> int:
        self._called("close")
        return UNSCORED


def test_each_sink_gets_every_result_and_failure_in_order(album: FoundJobs, capsys: pytest.CaptureFixture[str]) -> None:
    Path("album/01.png").write_text("no image")
    calls: list[str] = []
    state = state_of(album)
    outputs = [Recorder(calls, "a"), Recorder(calls, "b")]
    sinks.assess_into(outputs, state, Assessment.to_dict)
    assert calls[:4] == ["a open", "a no image", "b open", "b no image"]
    assert calls[4:] == ["a write", "b write", "a fail", "b fail", "a write", "b write"]
    assert (state.summary.images, state.summary.assessed, state.summary.not_assessed) == (4, 2, 0)
    assert capsys.readouterr().err.count("album/01.png: expected an image") == 1
    assert sinks.closed(outputs) == UNSCORED


def test_an_exception_interrupts_all_sinks_and_closes_none(album: FoundJobs) -> None:
    calls: list[str] = []
    failing = Recorder(calls, "a", OSError("stdout is closed"), "write")
    with pytest.raises(OSError, match="stdout is closed"):
        sinks.assess_into([failing, Recorder(calls, "b")], state_of(album), Assessment.to_dict)
    assert calls[-3:] == ["a write", "a interrupt", "b interrupt"]


def test_an_error_of_stdout_at_the_end_is_raised_when_all_sinks_are_closed() -> None:
    calls: list[str] = []
    first = Recorder(calls, "a", OSError("first"))
    with pytest.raises(OSError, match="first"):
        sinks.closed([first, Recorder(calls, "b", OSError("second")), Recorder(calls, "c")])
    assert calls == ["a close", "b close", "c close"]


def test_a_failing_stdout_ends_a_run_unless_it_has_other_outputs(
    album: FoundJobs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = sinks.Printed(sinks.print_json_line, with_failures=True, may_fail=True)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Full())
        with pytest.raises(OSError, match="No space left"):
            sinks.Printed(sinks.print_json_line).write(album.jobs[0], row_of("a.png"))
        output.write(album.jobs[0], row_of("a.png"))
    output.fail(album.jobs[0], BROKEN)
    assert capsys.readouterr().out == "", "nothing more is printed"
    with pytest.raises(OSError, match="No space left"):
        output.close()


@pytest.mark.parametrize("end", [sinks.Printed.close, lambda printed: printed.interrupt(KeyboardInterrupt())])
def test_results_are_printed_in_the_order_of_the_jobs(album: FoundJobs, end: Any) -> None:
    lines: list[Any] = []
    first, second, third = album.jobs
    printed = sinks.Printed(lambda row: lines.append(row["image"]), jobs=album.jobs, with_failures=True)
    printed.fail(None, ImageError("there is no such file", "gone.png"))
    printed.write(second, row_of("second"))
    assert lines == ["gone.png"]
    printed.fail(first, BROKEN)
    assert lines == ["gone.png", "album/00.png", "second"], "nothing waits longer than for earlier jobs"
    lines.clear()
    printed = sinks.Printed(lambda row: lines.append(row["image"]), jobs=album.jobs)
    printed.write(third, row_of("third"))
    printed.write(second, row_of("second"))
    end(printed)
    assert lines == ["second", "third"], "the first job was not assessed"


def test_results_are_printed_once_their_file_cannot_be_written(
    album: FoundJobs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ResultsFile("rows.jsonl") as results:
        state = state_of(album, results)
        output = sinks.Appending(state, results)
        output.write(album.jobs[0], row_of("a.png"))
        assert output.close() == OK
        monkeypatch.setattr(results, "append", Full().write)
        for name in ("b.png", "c.png"):
            output.write(album.jobs[1], row_of(name))
    assert output.close() == SOME_FAILED
    shown = capsys.readouterr()
    assert [json.loads(line)["image"] for line in shown.out.splitlines()] == ["b.png", "c.png"]
    assert shown.err.count("results are printed to stdout from here on") == 1
    assert isinstance(state.rule.ended_by, sinks.CannotAppend)
    assert [row["image"] for row in json_lines(Path("rows.jsonl"))] == ["a.png"]


def test_a_full_disk_and_a_failing_stdout_lose_no_other_output(
    album: FoundJobs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Full())
        patch.setattr(ResultsFile, "append", Full.write)
        assert main(["assess", "album", "--jsonl", "rows.jsonl", "--csv", "t.csv", "--workers", "1"]) == SOME_FAILED
    assert len(Path("t.csv").read_text().splitlines()) == 2, "the image that was assessed before the run ended"
    assert capsys.readouterr().err.splitlines()[-1] == "agenticiqa: output: No space left on device"


def test_ctrl_c_saves_the_summary_and_prints_how_to_resume(
    album: FoundJobs, capsys: pytest.CaptureFixture[str]
) -> None:
    with ResultsFile("rows.jsonl") as results:
        state = state_of(album, results)
        state.summary.assessed = 1
        sinks.SavedResults(state, results).interrupt(KeyboardInterrupt())
        assert "1 of 4 images are assessed, 1 failed; run the same command with --resume" in capsys.readouterr().err
        assert json.loads(Path("rows.jsonl.summary.json").read_text())["not_assessed"] == 2
        sinks.SavedResults(state, results).interrupt(OSError())
    assert capsys.readouterr().err == ""


def test_a_results_file_that_was_deleted_and_cannot_be_made_again_is_reported(
    album: FoundJobs, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("out").mkdir()
    with ResultsFile("out/rows.jsonl") as results:
        state = state_of(album, results)
        shutil.rmtree("out")
        Path("out").write_text("a file")
        assert sinks.SavedResults(state, results).close() == SOME_FAILED
        assert state.kept_file is None
    assert "deleted during the run, and its results are lost" in capsys.readouterr().err


def test_rows_that_another_program_removed_are_counted(album: FoundJobs, capsys: pytest.CaptureFixture[str]) -> None:
    with ResultsFile("rows.jsonl") as results:
        sink = sinks.SavedResults(state_of(album, results), results)
        for job in album.jobs:
            sink.write(job, {"image": job.name, "query": job.query})
        Path("rows.jsonl").write_text("")
        assert sink.close() == SOME_FAILED
    assert "3 assessed, 1 failed, 3 rows lost, saved in rows.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize("end", ["close", "interrupt"])
def test_a_json_document_has_the_order_of_the_jobs_and_names_without_an_image_last(
    album: FoundJobs, capsys: pytest.CaptureFixture[str], end: str
) -> None:
    output = sinks.JsonDocument(state_of(album), single=False)
    output.fail(None, album.problems[0])
    output.interrupt(KeyboardInterrupt())
    assert capsys.readouterr().out == "", "no image was finished"
    output.write(album.jobs[2], row_of("c"))
    output.fail(album.jobs[0], BROKEN)
    output.close() if end == "close" else output.interrupt(KeyboardInterrupt())
    rows = json.loads(capsys.readouterr().out)
    assert [row["image"] for row in rows] == ["album/00.png", "c", "gone.png"]
    assert rows[0]["error"] == "it is damaged"


@pytest.mark.parametrize("end", ["close", "interrupt"])
def test_a_ranking_is_also_printed_after_an_interruption(
    album: FoundJobs, capsys: pytest.CaptureFixture[str], end: str
) -> None:
    output = Ranking(state_of(album))
    for job, score in zip(album.jobs, (3.0, 2.0, 4.0), strict=True):
        output.write(job, row_of(job.name, score, quality_level="Fair"))
    output.close() if end == "close" else output.interrupt(KeyboardInterrupt())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines[1:4]] == ["2.00", "3.00", "4.00"]
    assert lines[-1].startswith("3 assessed, 1 failed: median 3.00")


def test_an_interrupted_run_in_a_pipe_prints_its_counts(album: FoundJobs, capsys: pytest.CaptureFixture[str]) -> None:
    state = state_of(album)
    state.summary.assessed = 2
    sinks.Totals(state).interrupt(KeyboardInterrupt())
    assert capsys.readouterr().err.startswith("2 assessed")


def test_an_undrawn_picture_is_a_failure(album: FoundJobs, capsys: pytest.CaptureFixture[str]) -> None:
    output = sinks.Maps("maps")
    assert (output.close(), capsys.readouterr().err) == (OK, ""), "nothing was assessed"
    output.write(album.jobs[0], row_of("a", map="maps/a.png"))
    assert output.close() == OK
    output.write(album.jobs[1], row_of("b", map=None))
    assert output.close() == SOME_FAILED


@pytest.mark.parametrize(
    ("options", "scores", "status"),
    [
        (["--fail-under", "2"], (3.0, None), UNSCORED),
        (["--fail-under", "4"], (3.0, None), BELOW),
        (["--fail-under", "2"], (3.0, 4.0), OK),
        (["--csv", "/dev/full"], (3.0, 4.0), SOME_FAILED),
        (["--csv", "/dev/full", "--fail-under", "4"], (3.0, None), SOME_FAILED),
    ],
)
def test_the_status_of_an_overview(
    album: FoundJobs, capsys: pytest.CaptureFixture[str], options: list[str], scores: Any, status: int
) -> None:
    _, args = parse(["assess", "album", *options], COMMANDS)
    assert isinstance(args, AssessOptions)
    output = Overview(args, state_of(album))
    for job, score in zip(album.jobs, scores, strict=False):
        output.write(job, row_of(job.name, score))
    assert output.close() == status
    if "--csv" in options:
        assert capsys.readouterr().out.count("album/0") == 2, "the results are nowhere else"


def test_the_status_of_a_run_without_its_outputs(album: FoundJobs, capsys: pytest.CaptureFixture[str]) -> None:
    def status(assessed: int, unscored: int, *errors: Exception) -> int:
        state = state_of(FoundJobs(album.jobs))
        state.summary.assessed, state.summary.unscored = assessed, unscored
        state.summary.failed = [str(error) for error in errors]
        output = sinks.Totals(state)
        for error in errors:
            output.fail(album.jobs[0], error)
        return output.close()

    assert status(3, 0) == OK
    assert status(3, 1) == UNSCORED
    assert status(2, 1, BROKEN) == SOME_FAILED
    assert status(0, 0, BROKEN, BROKEN, BROKEN) == USAGE
    assert status(0, 0, BROKEN, BROKEN, Unforeseen("KeyError")) == SOME_FAILED
    assert "stopped" not in capsys.readouterr().err
    assert status(1, 0) == SOME_FAILED
    assert "stopped; 2 images were not assessed\n" in capsys.readouterr().err


@pytest.mark.parametrize("options", ["", "--json", "--jsonl -", "--csv t.csv --json", "--csv t.csv --worst 1"])
def test_a_failing_stdout_is_one_line_and_loses_no_other_output(
    album: FoundJobs, options: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Full())
        assert main(["assess", "album", *options.split()]) == SOME_FAILED
    assert "--csv" not in options or len(Path("t.csv").read_text().splitlines()) == 4
    assert capsys.readouterr().err.splitlines()[-1] == "agenticiqa: output: No space left on device"
