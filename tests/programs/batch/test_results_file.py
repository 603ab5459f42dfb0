"""The file of finished rows: the traces of an interruption are repaired, and no row is lost."""

import itertools
import json
import logging
import os
import resource
from contextlib import ExitStack
from pathlib import Path

import pytest

from agenticiqa.programs.batch.results_file import (
    INCOMPLETE,
    UNSCORED,
    Identity,
    ResultsFile,
    Row,
    better,
    kept_rows,
    latest_rows,
    resume,
)
from agenticiqa.programs.errors import UserError
from agenticiqa.signatures.types import PARSING_FAILED


def rows_in(path: Path) -> list[dict[str, object]]:
    return [row for _, row in kept_rows(path)]


def rows_of(path: Path) -> list[dict[str, object]]:
    with ResultsFile(path):
        return rows_in(path)


def test_appended_rows_are_read_again_in_order(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.jsonl"
    rows: list[dict[str, object]] = [{"image": "été.png", "score": 3.25}, {"image": "b\nc", "score": None}]
    with ResultsFile(path) as journal:
        assert journal.length == 0
        for row in rows:
            journal.append(row)
    assert rows_of(path) == rows
    assert len(path.read_bytes().splitlines()) == 2


def test_a_row_is_on_disk_before_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with ResultsFile(path) as journal:
        journal.append({"n": 1})
        assert json.loads(path.read_text()) == {"n": 1}


WHOLE = b'{"n": 0}\n{"n": 1}\n'


@pytest.mark.parametrize("cut", [b"{", b'{"n": 2', b'{"n": 2, "x": "\xc3', b"\x00\x00"])
def test_a_truncated_last_line_is_dropped_and_reported(
    tmp_path: Path, cut: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(WHOLE + cut)
    with caplog.at_level(logging.WARNING), ResultsFile(path) as journal:
        assert [row for _, row in kept_rows(path)] == [{"n": 0}, {"n": 1}]
        journal.append({"n": 3})
    assert path.read_bytes() == WHOLE + b'{"n": 3}\n'
    assert "cut short" in caplog.text


def test_a_complete_last_line_without_a_line_feed_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(WHOLE + b'{"n": 2}')
    with ResultsFile(path) as journal:
        assert path.read_bytes() == WHOLE + b'{"n": 2}\n'
        journal.append({"n": 3})
    assert path.read_bytes() == WHOLE + b'{"n": 2}\n{"n": 3}\n'


@pytest.mark.parametrize("cut", [b'{"image": "a.png", "sc', b'{"name": "a', b'{"tool": "SSIM", "ma'])
def test_a_file_with_one_truncated_line_is_emptied(cut: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(cut)
    assert rows_of(path) == []
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    ("content", "line"),
    [(b'{"n": 0}\nnonsense\n{"n": 2}\n', 2), (b"image,mos\na.png,3\n", 1), (b'{"n": 0}\n[1]\n', 2), (b"3\n", 1)],
)
def test_other_files_are_refused_in_one_line_and_not_changed(tmp_path: Path, content: bytes, line: int) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"line {line} is not a JSON object") as caught:
        ResultsFile(path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


FOREIGN = [
    b'[{"image": "a.png"}, {"im',
    b'{"type": "FeatureCollection", "features": [',
    b"image,mos",
    b"\x89PNG\0\0",
    b'{"a": 1} {',
]


@pytest.mark.parametrize("end", FOREIGN)
@pytest.mark.parametrize("rows", [b"", b'{"image": "a.png"}\n', WHOLE])
def test_a_foreign_last_line_is_refused_and_not_changed(tmp_path: Path, rows: bytes, end: bytes) -> None:
    path = tmp_path / "foreign.json"
    path.write_bytes(rows + end)
    with pytest.raises(UserError, match=f"line {rows.count(10) + 1} is not a row of results; move or rename the file"):
        ResultsFile(path)
    assert path.read_bytes() == rows + end


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_number_that_json_lacks_is_refused_without_a_partial_row(tmp_path: Path, bad: float) -> None:
    path = tmp_path / "run.jsonl"
    with ResultsFile(path) as journal:
        with pytest.raises(ValueError, match="JSON"):
            journal.append({"score": bad})
        journal.append({"score": 1.0})
    assert rows_of(path) == [{"score": 1.0}]


# --- where no results can be written --------------------------------------------------------------------------------


def test_a_path_that_cannot_be_written_has_a_printable_message(tmp_path: Path) -> None:
    path = Path(os.fsdecode(bytes(tmp_path) + b"/\xff"))
    path.mkdir()
    with pytest.raises(UserError, match=r"\\xff: expected a file"):
        ResultsFile(path)


def test_a_full_disk_is_an_error_and_leaves_complete_lines(tmp_path: Path) -> None:
    """A limit on the size of a file ends a write after a part of it, as a full disk does."""
    path = tmp_path / "run.jsonl"
    row: dict[str, object] = {"text": "x" * 700}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ResultsFile(path) as journal:
        journal.append(row)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            with pytest.raises(OSError, match="large"):
                journal.append(row)
            journal.append({"n": 1})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert rows_of(path) == [row, {"n": 1}]


# --- which rows still hold ------------------------------------------------------------------------------------------

A = Identity("/album/a.png", "a1", None, None, "Sharp?", "settings")


def row_of(identity: Identity, **more: object) -> Row:
    return {**identity._asdict(), **more}


def identify(row: Row) -> Identity:
    return Identity(*(row.get(name) for name in Identity._fields))


def test_the_last_of_several_rows_of_a_job_counts() -> None:
    rows = [row_of(A, score=1), row_of(A, score=2), row_of(A, error="broken")]
    assert resume(enumerate(rows), {"job": A}, identify).finished["job"] == 1


NO_SCORE: Row = {"query_type": "scoring", "quality_score": None}
SCORE: Row = {"query_type": "scoring", "quality_score": 3.0, "probability_source": "quality_probs"}
GAP: Row = {**SCORE, "executor_evidence": {"failures": {"distortion_analysis": "no usable answer"}}}
BROKEN_TOOL: Row = {**SCORE, "executor_evidence": {"failures": {}, "tool_log": [{"error": "too small"}]}}


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        ([NO_SCORE], UNSCORED),
        ([NO_SCORE, NO_SCORE, NO_SCORE], UNSCORED),
        ([{"query_type": "mcq", "quality_reasoning": PARSING_FAILED}], UNSCORED),
        ([SCORE, NO_SCORE], UNSCORED),
        ([NO_SCORE, SCORE], None),
        ([GAP], INCOMPLETE),
        ([{**SCORE, "probability_source": "salvaged_level"}], INCOMPLETE),
        ([NO_SCORE, GAP], INCOMPLETE),
        ([GAP, GAP], None),
        ([BROKEN_TOOL], None),
        ([{"query_type": "mcq", "quality_score": None, "quality_reasoning": "It is soft."}], None),
    ],
)
def test_a_row_incomplete_after_unusable_answers_is_assessed_again(results: list[Row], reason: str | None) -> None:
    resumed = resume(enumerate(row_of(A, **result) for result in results), {"job": A}, identify)
    assert resumed.again == ({reason: 1} if reason else {})
    assert resumed.finished == ({} if reason else {"job": len(results) - 1})


def test_a_row_that_is_assessed_again_because_it_is_incomplete_is_known() -> None:
    """Only an incomplete row can be better than the new one."""
    for result, known in ((GAP, {"job": 0}), (NO_SCORE, {}), (SCORE, {})):
        assert resume(enumerate([row_of(A, **result)]), {"job": A}, identify).incomplete == known


WORST_FIRST: list[Row] = [
    NO_SCORE,
    *({**SCORE, "probability_source": source} for source in ("uniform", "reasoning", "salvaged_level")),
    {**GAP, "probability_source": "salvaged_probs"},
    {**SCORE, "probability_source": "salvaged_probs"},
    {**SCORE, "executor_evidence": {"failures": {"distortion_detection": "", "distortion_analysis": ""}}},
    GAP,
    {**SCORE, "probability_source": "logprobs"},
]
UNANSWERED: Row = {"query_type": "mcq", "final_answer": "Unable to determine", "quality_reasoning": PARSING_FAILED}
ANSWERED: Row = {"query_type": "mcq", "final_answer": "B", "quality_reasoning": "It is soft."}


@pytest.mark.parametrize(("worse", "good"), [*itertools.pairwise(WORST_FIRST), (UNANSWERED, ANSWERED)])
def test_the_better_of_two_results_stays(worse: Row, good: Row) -> None:
    assert better(worse, good) is good
    assert better(good, worse) == good


@pytest.mark.parametrize("result", [*WORST_FIRST, UNANSWERED, ANSWERED])
def test_of_two_equally_good_results_the_new_one_stays(result: Row) -> None:
    new = {**result}
    assert better(result, new) is new


def test_a_better_earlier_row_is_appended_again_with_the_cost_of_the_new_attempt(tmp_path: Path) -> None:
    """The last row of a job is the valid one for every reader, and the usage of all rows is what the attempts cost."""
    earlier = row_of(A, **GAP, usage_by_stage={"scoring": {"calls": 1}})
    new = row_of(A, **NO_SCORE, usage_by_stage={"scoring": {"calls": 3}})
    with ResultsFile(tmp_path / "run.jsonl") as results:
        first = results.append(earlier)
        assert results.append_better({**earlier, "error": "no answer within 25 s"}, first) == first
        last = results.append_better(new, first)
        assert next(results.rows([last])) == {**earlier, "usage_by_stage": {"scoring": {"calls": 3}}}
        resumed = resume(results.outlines(), {"job": A}, identify)
        assert resumed.finished == {"job": last}, "it was assessed again once"
        assert results.drop_replaced() == 0
        assert results.append_better(new, None) > last


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        (["a first", "b", "a second"], ["b", "a second"]),
        (["a", "b"], ["a", "b"]),
        (["a failed", "a", "a failed again"], ["a"]),
        (["a failed", "a failed again"], ["a failed again"]),
    ],
)
def test_readers_get_the_last_row_of_each_job_and_a_warning(
    rows: list[str], kept: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure does not replace a result, but a result replaces a failure."""
    path = tmp_path / "run.jsonl"
    with ResultsFile(path) as results:
        for text in rows:
            results.append({"image": text[0], "query": "?", ("error" if "failed" in text else "answer"): text})
    with caplog.at_level(logging.WARNING):
        assert [row.get("answer") or row["error"] for row in latest_rows(path)] == kept
    left_out = len(rows) - len(kept)
    assert (f"{left_out} of {len(rows)} rows are skipped" in caplog.text) == bool(left_out)


def test_the_file_is_rewritten_atomically_without_replaced_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def row(image: str, sha256: str, settings: str = "s", **more: object) -> Row:
        return {"image": image, "image_sha256": sha256, "query": "q", "run_fingerprint": settings, **more}

    gap = {"executor_evidence": {"failures": {"detection": "no answer"}}}
    written = [
        row("a", "1"),
        row("b", "1", **gap),
        row("a", "1", settings="other"),
        row("<stdin>", "1"),
        {"image": 7},  # no row of results
        row("a", "2"),
        row("a", "2", error="it failed later"),
        row("b", "1", **gap),
        row("<stdin>", "2"),
        row("c", "1", **gap),
        row("c", "1"),
    ]
    path, link = tmp_path / "run.jsonl", tmp_path / "link.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in written))
    before = path.read_bytes()
    link.symlink_to(path)
    with ResultsFile(link) as results:
        with monkeypatch.context() as full:
            full.setattr("agenticiqa.programs.batch.results_file.write_atomically", _full_disk)
            with pytest.raises(OSError, match="full"):
                results.drop_replaced()
        assert path.read_bytes() == before, "a crash half-way changes nothing"
        assert [results.drop_replaced(), results.drop_replaced()] == [2, 0]
        with pytest.raises(UserError, match="is writing to it"):
            ResultsFile(path)
        results.append(row("d", "1"))
        kept = [*written[1:9], written[10], row("d", "1")]
        wanted = {each["image"]: identify(each) for each in kept if "query" in each}
        assert set(resume(results.outlines(), wanted, identify).finished) == {"a", "b", "c", "d", "<stdin>"}
        assert (results.length, results.replaced) == (10, 4)
    assert link.is_symlink()
    assert rows_of(path) == kept
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link.jsonl", "run.jsonl"]


def _full_disk(*arguments: object, **options: object) -> None:
    raise OSError("the disk is full")


# --- other programs write the file during a run -----------------------------------------------------------------------

SHARPNESS = [row_of(A, image=f"/album/{n}.png", **SCORE) for n in range(6)]


def replaced_by(path: Path, text: str) -> None:
    new = path.with_name("new")
    new.write_text(text)
    new.replace(path)


@pytest.mark.parametrize("copied", [0, 1, 2, 3])
def test_a_run_continues_in_the_file_that_replaced_its_own(
    copied: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An editor read the file when it had some of the rows, added one of its own, and replaced the file later."""
    path = tmp_path / "run.jsonl"
    with ResultsFile(path) as results:
        numbers = [results.append(row) for row in SHARPNESS[:3]]
        lines = path.read_text().splitlines(keepends=True)[:copied]
        replaced_by(path, "".join([json.dumps(SHARPNESS[5]) + "\n", *lines]))
        numbers += [results.append(row) for row in SHARPNESS[3:5]]
        assert [*results.rows(numbers)] == SHARPNESS[:5]
        assert [row["image"] for _, row in results.outlines()] == [row["image"] for row in rows_in(path)]
    assert rows_in(path) == [SHARPNESS[5], *SHARPNESS[:5]]
    again = f"; rows written again: {3 - copied}" if copied < 3 else ""
    assert [record.message for record in caplog.records] == [
        f"{path}: another program replaced the file during the run{again}"
    ]


@pytest.mark.parametrize("kind", ["a table", "a file of another run", "lines that are added"])
def test_a_run_continues_beside_a_file_that_it_cannot_use(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, beside = tmp_path / "run.jsonl", tmp_path / "run-2.jsonl"
    with ExitStack() as others, ResultsFile(path) as results:
        numbers = [results.append(row) for row in SHARPNESS[:2]]
        if kind == "a table":
            replaced_by(path, "image,score\n")
        elif kind == "lines that are added":
            path.open("a").write("done\n")
        else:
            path.unlink()
            others.enter_context(ResultsFile(path)).append(SHARPNESS[5])
        kept = path.read_bytes()
        numbers.append(results.append(SHARPNESS[2]))
        assert [*results.rows(numbers)] == rows_in(beside) == SHARPNESS[:3]
        assert path.read_bytes() == kept
    assert f"; results continue in {beside}; rows written again: 2" in caplog.text


def test_rows_that_another_program_removed_from_the_file_are_lost_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.jsonl"
    with ResultsFile(path) as results:
        numbers = [results.append(row) for row in SHARPNESS[:3]]
        path.write_text(path.read_text().splitlines(keepends=True)[1])
        numbers.append(results.append(SHARPNESS[3]))
        assert [*results.rows(numbers[i] for i in (1, 3))] == rows_in(path) == [SHARPNESS[1], SHARPNESS[3]]
        assert results.better(SHARPNESS[0], numbers[0]) is SHARPNESS[0]
        with pytest.raises(UserError, match=r"run\.jsonl: another program removed rows during the run"):
            results.rows(numbers)
    assert f"{path}: another program changed the file during the run; rows lost: 2" in caplog.text
    assert results.lost == 2


def test_a_file_that_is_replaced_after_the_last_row_has_all_rows_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with ResultsFile(path) as results:
        for row in SHARPNESS:
            results.append(row)
        replaced_by(path, "")
        assert results.drop_replaced() == 0
        assert rows_in(path) == SHARPNESS
        path.unlink()
    assert rows_in(path) == SHARPNESS


def test_another_process_can_lock_the_file_while_it_is_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(results: ResultsFile) -> None:
        raise UserError("another process is writing to it")

    with ResultsFile(tmp_path / "run.jsonl") as results:
        for row in SHARPNESS[:1] * 2:
            results.append(row)
        monkeypatch.setattr(ResultsFile, "_locked", locked)
        with pytest.raises(UserError, match="is writing to it"):
            results.drop_replaced()


def test_a_full_disk_loses_no_row_of_a_file_that_was_replaced(tmp_path: Path) -> None:
    path, limits = tmp_path / "run.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    with ResultsFile(path) as results:
        for row in SHARPNESS[:3]:
            results.append(row)
        replaced_by(path, "")
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(json.dumps(SHARPNESS[0])) + 20, limits[1]))
        try:
            with pytest.raises(OSError, match="large"):
                results.append(SHARPNESS[3])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        results.append(SHARPNESS[3])
    assert rows_in(path) == SHARPNESS[:4]
