"""The log of a run: each step is a record with its figures, on stderr and in a file, without secrets."""

import base64
import json
import logging
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import dspy
import pytest
from PIL import Image

from agenticiqa.configs import load_config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch import assess_many as judging
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli.logs import LOGGER, STANDARD, logging_to
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.events import event
from support.fake_server import by_stage, fake_server
from support.files import json_lines
from support.full_run import DOUBT, SCRIPT, configuration
from support.loopback import Reply
from support.scripted_answers import ANSWER, LOGS

RATE = "Rate the perceptual quality of this snapshot."  # unlike the default question, it is planned by the model


class Kept(logging.Handler):
    """Keeps the records."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def keep() -> Iterator[list[logging.LogRecord]]:
    kept, log = Kept(), logging.getLogger(LOGGER)
    level = log.level
    log.addHandler(kept)
    log.setLevel(logging.DEBUG)
    try:
        yield kept.records
    finally:
        log.removeHandler(kept)
        log.setLevel(level)


@pytest.fixture
def kept() -> Iterator[list[logging.LogRecord]]:
    """Every record of ours."""
    yield from keep()


@pytest.fixture(scope="module")
def full(
    tmp_path_factory: pytest.TempPathFactory, examples: Path
) -> Iterator[tuple[list[logging.LogRecord], dspy.Prediction]]:
    """The records of one image with all that may happen, and its result."""
    recording = keep()
    records = next(recording)
    with fake_server(by_stage(SCRIPT)) as server:
        known = {"structured_outputs": "json_schema", "logprobs": False}  # nothing is probed
        file = configuration(tmp_path_factory.mktemp("full"), server.url, **known)
        program = AgenticIQA.from_config(load_config(file))
        result = program(examples / "coffee.webp", RATE)
    yield [*records], result
    next(recording, None)


def fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in STANDARD}


def named(records: list[logging.LogRecord], event: str) -> list[dict[str, Any]]:
    return [fields(record) for record in records if vars(record).get("event") == event]


def test_a_run_is_logged_step_by_step(full: tuple[list[logging.LogRecord], dspy.Prediction]) -> None:
    events = [vars(record).get("event") for record in full[0] if record.levelno >= logging.INFO]
    beside = {
        "asked",
        "answered",
        "rejected",
        "analyzed",
        "selected",
        "measured",
        "retry",
        "schema_ignored",
    }  # side by side
    rounds = ["planned", "detected", "summarizing", "scored", "replan", "planned", "summarizing", "scored", "replan"]
    assert [event for event in events if event not in beside] == ["begun", *rounds, "done"]
    one = events[events.index("detected") : events.index("summarizing")]
    two = events[len(events) - events[::-1].index("planned") : len(events) - events[::-1].index("summarizing")]
    for told_in_round in (one, two):
        assert told_in_round.index("selected") < told_in_round.index("measured")
        assert told_in_round.count("analyzed") == 1
    assert events.index("asked") < events.index("retry") < events.index("answered") < events.index("planned")


def test_each_step_has_its_figures(full: tuple[list[logging.LogRecord], dspy.Prediction], examples: Path) -> None:
    records, result = full
    (begun,) = named(records, "begun")
    assert (begun["size"], begun["reference"], begun["query"]) == ([600, 400], None, RATE)
    assert begun["backend"] == "vllm.test"
    first, second = named(records, "planned")
    assert first["flags"] == dict.fromkeys(first["flags"], True)
    assert (first["query_type"], first["scope"], first["reference_mode"]) == ("IQA", ["Global"], "No-Reference")
    assert (second["distortions"], second["flags"]["distortion_detection"]) == ({"Global": ["Blurs", "Noise"]}, False)
    assert 0 < first["seconds"] < result.timings_ms["planner"] / 1000
    (detected,) = named(records, "detected")
    assert detected["distortions"] == {"Global": ["Blurs", "Noise"]}
    severities = [shown["analysis"]["Global"][0]["severity"] for shown in named(records, "analyzed")]
    assert severities == ["severe", "slight"]
    assert named(records, "analyzed")[0]["analysis"]["Global"][0]["explanation"] == "Blurs in Global."
    logged = [call.model_dump(exclude={"weight"}) for call in result.executor_evidence.tool_log]
    measured = [
        {key: shown[key] for key in logged[0]} for shown in named(records, "measured") if shown["iteration"] == 1
    ]
    new = [shown for shown in measured if shown["tool"] != "LEARNED-IQA"]
    assert {shown["tool"] for shown in new} == set(second["tools"])
    assert all(shown in logged for shown in new)
    for scored in named(records, "scored"):
        assert scored["probability_source"] == "quality_probs"
        assert sum(scored["probabilities"].values()) == pytest.approx(1)
        expectation = sum(int(level) * share for level, share in scored["probabilities"].items())
        assert scored["level_expectation"] == pytest.approx(expectation)
        assert scored["tool_mean"] == pytest.approx(result.executor_evidence.overall_mean)
    assert named(records, "scored")[-1]["score"] == result.quality_score
    early, late = named(records, "summarizing")
    assert (early["mode"], early["distortions"], early["tool_scores"]) == ("scoring", 2, 3)
    assert (late["distortions"], late["tool_scores"]) == (2, len(result.executor_evidence.scores))
    again, stands = named(records, "replan")
    assert (again["need_replan"], again["reason"], again["iteration"]) == (True, DOUBT, 0)
    assert (stands["need_replan"], stands["iteration"]) == (False, 1)
    assert all(shown["image"] == str(examples / "coffee.webp") for shown in [*named(records, "done"), begun, again])


def test_logged_calls_and_tokens_add_up(full: tuple[list[logging.LogRecord], dspy.Prediction]) -> None:
    records, result = full
    answered, (rejected,), (done,) = named(records, "answered"), named(records, "rejected"), named(records, "done")
    assert (rejected["stage"], rejected["attempt"]) == ("distortion_analysis", 1)
    assert "JSON" in rejected["reason"]
    assert [shown["attempt"] for shown in answered if shown["stage"] == "distortion_analysis"] == [2, 1]
    assert len(named(records, "asked")) == len(answered) + 1
    spent = result.usage_by_stage.values()
    for key in ("calls", "retries", "input_tokens", "output_tokens", "usd"):
        assert done[key] == pytest.approx(sum(stage[key] for stage in spent))
    assert done["retries"] == len(named(records, "retry")) == 1
    assert done["input_tokens"] == sum(shown["input_tokens"] for shown in answered) + 10  # of the rejected answer
    assert (done["score"], done["iterations"]) == (result.quality_score, 1)
    assert done["seconds"] > sum(shown["seconds"] for shown in answered) / 2  # two stages ran side by side


def test_an_event_without_a_row_is_refused() -> None:
    """A misspelled name would otherwise be shown, hidden or counted by chance."""
    with pytest.raises(KeyError, match="planed"):
        event("planed")


def test_prompts_are_logged_at_debug_steps_at_info_problems_as_warnings(
    full: tuple[list[logging.LogRecord], dspy.Prediction],
) -> None:
    levels = {vars(record).get("event"): record.levelname for record in full[0]}
    assert {name for name, level in levels.items() if level == "DEBUG"} == {"prompt", "reply"}
    assert {name for name, level in levels.items() if level == "WARNING"} == {"rejected", "retry", "schema_ignored"}
    assert "ERROR" not in levels.values()


def test_fields_are_plain_json_and_messages_are_sentences(
    full: tuple[list[logging.LogRecord], dspy.Prediction],
) -> None:
    assert len(full[0]) > 20
    for record in full[0]:
        assert json.loads(json.dumps(fields(record), allow_nan=False)).keys() == fields(record).keys()
        assert len(record.getMessage()) > 10


def test_neither_image_bytes_nor_pixels_are_in_any_record(
    full: tuple[list[logging.LogRecord], dspy.Prediction], examples: Path
) -> None:
    data = (examples / "coffee.webp").read_bytes()
    everything = "".join(f"{record.getMessage()}{fields(record)}" for record in full[0])
    for form in (base64.b64encode(data).decode()[:60], repr(data[:60])[2:-1], "array(", ";base64"):
        assert form not in everything


def test_a_repeated_run_says_that_its_answers_came_from_the_cache(
    tmp_path: Path, examples: Path, kept: list[logging.LogRecord]
) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        program = AgenticIQA.from_config(load_config(configuration(tmp_path, server.url)))
        program(examples / "coffee.webp", RATE)
        kept.clear()
        program(examples / "coffee.webp", RATE)
    assert {shown["cached"] for shown in named(kept, "answered")} == {True}
    (done,) = named(kept, "done")
    assert (done["calls"], done["input_tokens"], done["cached"]) == (0, 0, len(named(kept, "answered")))


def test_an_answer_in_words_is_logged_with_its_reason(
    tmp_path: Path, examples: Path, kept: list[logging.LogRecord]
) -> None:
    script = {**SCRIPT, "plan": {**SCRIPT["plan"][1], "query_type": "Other", "plan": dict.fromkeys(LOGS, False)}}
    script["plan"]["plan"] = dict.fromkeys(SCRIPT["plan"][1]["plan"], False)
    with fake_server(by_stage(script)) as server:
        program = AgenticIQA.from_config(load_config(configuration(tmp_path, server.url)))
        program(examples / "coffee.webp", "What is the mood of this picture?")
    (shown,) = named(kept, "concluded")
    assert (shown["answer"], shown["reasoning"]) == (ANSWER["final_answer"], ANSWER["quality_reasoning"])
    assert named(kept, "done")[0]["score"] is None


def test_an_outage_and_its_fallback_are_logged(
    tmp_path: Path, examples: Path, kept: list[logging.LogRecord], waits: list[float]
) -> None:
    down = Reply(status=503, raw_body=b'{"error": {"message": "away"}}')
    with fake_server(down) as first, fake_server(by_stage(SCRIPT)) as second:
        asking = configuration(
            tmp_path, first.url, fallback_backend="vllm.other", fallback_api_base=second.url, max_retries=1
        )
        AgenticIQA.from_config(load_config(asking))(examples / "coffee.webp", RATE)
    shown = named(kept, "fallback")[0]
    assert shown["stage"] == "planner"
    assert "away" in shown["reason"]
    assert named(kept, "done")


def test_a_failed_image_is_logged(tmp_path: Path, kept: list[logging.LogRecord]) -> None:
    gone = tmp_path / "gone.png"
    with pytest.raises(UserError):
        AgenticIQA.offline()(gone)
    (shown,) = named(kept, "failed")
    assert (shown["image"], shown["error"]) == (str(gone), "ImageNotFound")


@pytest.mark.parametrize("apart", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_record_names_its_image(
    tmp_path: Path, examples: Path, kept: list[logging.LogRecord], monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    """Side by side in threads, and in processes of their own."""
    monkeypatch.setattr(judging, "IMAGES_PER_PROCESS", 2)
    paths = [tmp_path / f"{number}.png" for number in range(4)]
    for path in paths:
        path.symlink_to(examples / "chelsea_noise.png")
    offline = AgenticIQA.offline()

    class Here(AgenticIQA):
        """Made in a test, so that no process can import it."""

    program = offline if apart else Here(offline.planner, offline.executor, offline.summarizer, offline.replan)
    assert len(list(assess_many(program, [Job(path, RATE) for path in paths], workers=2))) == 4
    steps = [fields(record) for record in kept if "event" in vars(record)]
    for path in paths:
        own = [step["event"] for step in steps if step["image"] == str(path)]
        assert (own[0], own[-1], len(own)) == ("begun", "done", len(steps) / 4)


def test_without_v_only_warnings_are_printed(
    tmp_path: Path, examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        asking = configuration(tmp_path, server.url)
        assert main(["assess", str(examples / "coffee.webp"), "--json", "--query", RATE, "--config", str(asking)]) == 0
    model, *printed = capsys.readouterr().err.splitlines()
    assert model.startswith("vllm.test at 127.0.0.1:")
    assert len(printed) == 3
    assert all(line.startswith(f"{examples / 'coffee.webp'}: ") for line in printed), "also with a single image"
    assert "429" in printed[0]
    assert "ignores the JSON schema of requests" in printed[1]
    assert ": distortion_analysis: attempt 1 of 3 rejected" in printed[2]


def test_an_image_too_thin_for_every_tool_has_no_second_plan_and_no_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strip = tmp_path / "strip.png"
    Image.linear_gradient("L").resize((600, 2)).save(strip)
    assert main(["assess", str(strip), "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["iteration_count"] == 0
    assert printed.err == ""


def test_a_warning_that_begins_with_its_image_does_not_repeat_it(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to():
        logging.getLogger(LOGGER).warning("a.png: judged", extra={"image": "a.png"})
        logging.getLogger(LOGGER).warning("of no image")
    assert capsys.readouterr().err.splitlines() == ["a.png: judged", "of no image"]


def test_the_log_file_has_one_json_object_for_each_record(
    tmp_path: Path, examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, command = tmp_path / "run.log", ["assess", str(examples / "coffee.webp"), "--query", RATE, "--json", "--log"]
    with fake_server(by_stage(SCRIPT)) as server:
        assert main([*command, str(log), "--config", str(configuration(tmp_path, server.url))]) == 0
    written = json_lines(log)
    assert len(capsys.readouterr().err.splitlines()) < len(written)
    for row in written:
        assert {"time", "level", "logger", "message"} <= row.keys()
        assert datetime.fromisoformat(row["time"]).utcoffset() is not None
        assert row["level"] in ("DEBUG", "INFO", "WARNING")
        assert row["logger"].startswith("agenticiqa.")
        assert len(row["message"]) < 2100
    steps = [row for row in written if "event" in row]
    assert {row["image"] for row in steps} == {str(examples / "coffee.webp")}
    (prompt, *_) = [row for row in steps if row["event"] == "prompt"]
    assert prompt["message"].startswith("planner: attempt 1 of 3")
    assert "characters left out" in prompt["message"]
    assert prompt["message"].endswith("}")
    assert [row["image"] for row in written if row.get("event") == "retry"] == [str(examples / "coffee.webp")]

    assert main([*command, str(log)]) == 0
    assert json_lines(log)[: len(written)] == written
    assert json_lines(log)[-1]["event"] == "done"


def test_logging_is_restored_afterwards() -> None:
    log = logging.getLogger(LOGGER)
    before = (list(log.handlers), log.propagate, log.level)
    with logging_to(2):
        assert log.level == logging.DEBUG
    assert (list(log.handlers), log.propagate, log.level) == before


def test_only_the_first_faults_are_printed_without_v(capsys: pytest.CaptureFixture[str]) -> None:
    for verbose, lines in ((0, 7), (1, 40)):
        with logging_to(verbose):
            for number in range(40):
                logging.getLogger("agenticiqa").warning("attempt %d failed", number, extra={"event": "rejected"})
        shown = capsys.readouterr().err.splitlines()
        assert len(shown) == lines
        assert shown[6].endswith("(further faults are not shown; -v shows all)") == (verbose == 0)
