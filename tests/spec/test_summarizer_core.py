"""The scenarios of the document summarizer-core."""

import inspect
import logging
import math
from pathlib import Path
from typing import get_type_hints

import pytest
import yaml

from agenticiqa.configs import load_config
from agenticiqa.programs import graph
from agenticiqa.programs.fusion.equations import softmax
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.graph import executor_node, planner_node, summarizer_node
from agenticiqa.signatures.summarizer import AnswerQuestion
from agenticiqa.signatures.types import PARSING_FAILED, UNABLE, ExecutorOutput, SummarizerOutput
from support.fake_server import Answer, bad_json, by_stage, fake_server, field_of, images_of, stage_of, text_of
from support.nodes import RATE, WHY, WORST, configured, evidence, plan, scripted, sections, state
from support.scripted_answers import analyse, select
from support.specification import ANSWER, ASSESSMENT, LOG_PROBS

SAID: dict[str, Answer | list[Answer]] = {"answer": ANSWER, "assessment": ASSESSMENT}


def test_use_explanation_qa_prompt_template(photo: Path) -> None:
    """The prompt for other questions than ratings has the four steps of a decision in order, and two fields."""
    steps = (
        "which visual information",
        "analysis or the tool scores already hold it",
        "answer from them",
        "look at the image itself",
    )
    for query in (WHY, WORST):
        config, engine = scripted(SAID)
        summarizer_node(state(photo, query, plan("Other"), evidence()), config)
        (body,) = engine.bodies
        assert stage_of(body) == "answer"
        reported = " ".join(text_of(body["messages"][0]).split())
        places = [reported.index(step) for step in steps]
        assert places == sorted(places)
        assert all(
            part in reported for part in ("distortions (their severity", "tool scores (1 to 5", "letter of exactly one")
        )
        assert "final_answer" in reported
        assert "quality_reasoning" in reported


def test_format_evidence_for_explanation_qa_mode(photo: Path, reference: Path) -> None:
    """The request for an answer has analysis and scores as JSON, the question, its options and both images."""
    config, engine = scripted(SAID)
    summarizer_node(state(photo, WORST, plan("Other"), evidence(), reference), config)
    (body,) = engine.bodies
    assert sections(body)["Distortion analysis"]["Global"][0]["type"] == "Blurs"
    assert sections(body)["Tool scores"] == {"Global": {"Blurs": ["SSIM", 2.6]}}
    assert field_of(body, "query") == WORST
    assert field_of(body, "options") == "A. Noise\nB. Blur\nC. Compression"
    assert [data for _, data in images_of(body)] == [reference.read_bytes(), photo.read_bytes()]


def test_use_scoring_prompt_template(photo: Path) -> None:
    """The request for a rating has five levels by number and name, and no letters."""
    config, engine = scripted(SAID)
    result = summarizer_node(state(photo, RATE, plan("IQA"), evidence()), config)["summarizer_result"]
    (body,) = engine.bodies
    assert stage_of(body) == "assessment"
    reported = text_of(body["messages"][0])
    for number, name in enumerate(("Bad", "Poor", "Fair", "Good", "Excellent"), 1):
        assert f"{number}, {name}" in reported
    assert not any(
        f"{letter}. {name}" in text_of(body)
        for letter, name in zip("ABCDE", ("Excellent", "Good", "Fair", "Poor", "Bad"), strict=True)
    )
    assert "final_answer" not in text_of(body)
    assert isinstance(result.final_answer, float)


def test_summarizer_core_apply_score_fusion_in_scoring_mode(photo: Path) -> None:
    """A rating fuses tool scores, which the model also receives, with its levels; the reasoning has the computation."""
    config, engine = scripted(SAID)
    result = summarizer_node(state(photo, found=evidence(score=3.8)), config)["summarizer_result"]
    expected = ScoreFusion().fuse_scores([3.8], softmax({int(level): log for level, log in LOG_PROBS.items()}))
    assert math.isclose(result.final_answer, expected)
    assert sections(engine.bodies[0])["Tool score mean"] == 3.8
    for part in (ASSESSMENT["quality_reasoning"], f"{expected:.2f}", "3.80"):
        assert part in result.quality_reasoning


@pytest.mark.parametrize("query", [RATE, WHY])
def test_format_distortion_analysis_for_vlm(photo: Path, query: str) -> None:
    """The user message has the analysis as JSON: by region, records of type, severity and explanation."""
    config, engine = scripted(SAID)
    found = evidence(region="vehicle")
    summarizer_node(state(photo, query, plan(scope=["vehicle"]), found), config)
    (body,) = engine.bodies
    row = {"type": "Blurs", "severity": "moderate", "explanation": "Edges appear soft."}
    assert body["messages"][-1]["role"] == "user"
    assert sections(body)["Distortion analysis"] == {"vehicle": [row]}
    assert list(sections(body)["Distortion analysis"]["vehicle"][0]) == list(row)

    asked = plan(scope=["vehicle"], distortions={"vehicle": ["Blurs", "Noise"]}, analyse=True)
    config, engine = scripted({**SAID, "analysis": analyse("severe")})
    found = executor_node(state(photo, query, asked), config)["executor_evidence"]
    summarizer_node(state(photo, query, asked, found), config)
    rows = sections(next(body for body in engine.bodies if stage_of(body) in SAID))
    assert [(row["type"], row["severity"]) for row in rows["Distortion analysis"]["vehicle"]] == [
        ("Blurs", "severe"),
        ("Noise", "severe"),
    ]


@pytest.mark.parametrize("query", [RATE, WHY])
def test_format_quality_scores_for_vlm(photo: Path, query: str) -> None:
    """The user message has the scores as JSON: by region and distortion, the pair of tool and score."""
    config, engine = scripted(SAID)
    summarizer_node(state(photo, query, plan(scope=["vehicle"]), evidence(region="vehicle")), config)
    (body,) = engine.bodies
    assert body["messages"][-1]["role"] == "user"
    assert sections(body)["Tool scores"] == {"vehicle": {"Blurs": ["SSIM", 2.6]}}

    asked = plan(distortions={"Global": ["Blurs", "Noise"]}, analyse=True, measure=True)
    config, engine = scripted({**SAID, "analysis": analyse("moderate"), "selection": select})
    found = executor_node(state(photo, query, asked), config)["executor_evidence"]
    summarizer_node(state(photo, query, asked, found), config)
    shown = sections(engine.bodies[-1])
    in_mean, others = (shown.get(title, {}).get("Global", {}) for title in ("Tool scores", "Other measurements"))
    assert {**in_mean, **others} == {
        name: [tool, round(score, 4)] for name, (tool, score) in found.quality_scores["Global"].items()
    }
    assert others == {} or query == RATE, "only a rating has a mean, and scores that are no part of it"


@pytest.mark.parametrize("found", [None, ExecutorOutput(), ExecutorOutput(distortion_analysis={}, quality_scores={})])
@pytest.mark.parametrize("query", [RATE, WHY])
def test_handle_missing_executor_evidence(photo: Path, query: str, found: ExecutorOutput | None) -> None:
    """Without evidence the request has the image and no evidence section, and the reasoning says so."""
    config, engine = scripted(SAID)
    result = summarizer_node(state(photo, query, found=found), config)["summarizer_result"]
    (body,) = engine.bodies
    assert sections(body) == {}
    assert [data for _, data in images_of(body)] == [photo.read_bytes()]
    assert "The evidence has no distortion analysis and no tool scores" in result.quality_reasoning


def test_detect_insufficient_evidence(photo: Path) -> None:
    """A region without analysis, a distortion without a score and a contradiction are gaps."""
    yes = {"need_replan": True, "replan_reason": "Contradictory evidence: severe blur but high scores"}
    asked = plan(distortions={"Global": ["Blurs"]}, analyse=True, measure=True)
    wider = plan(scope=["sky", "sea"], analyse=True)
    noise = plan(distortions={"Global": ["Blurs", "Noise"]}, analyse=True, measure=True)
    for planned, found, again in [
        (asked, evidence(), False),
        (wider, evidence(region="sky"), True),
        (noise, evidence(), True),
        (asked, evidence().model_copy(update={"quality_scores": None}), True),
        (asked, evidence("severe", 4.5), True),
    ]:
        config, _ = scripted({**SAID, "decision": yes})
        result = summarizer_node(state(photo, RATE, planned, found), config)["summarizer_result"]
        assert result.need_replan is again


def test_provide_replan_reason(photo: Path) -> None:
    """The reason names each gap: regions without analysis, and distortions of regions without a score."""
    config, _ = scripted(SAID)
    planned = plan(scope=["vehicle", "road"], distortions={"vehicle": ["Noise"]}, analyse=True, measure=True)
    reason = summarizer_node(state(photo, RATE, planned, evidence(region="vehicle")), config)[
        "summarizer_result"
    ].replan_reason
    assert "Distortion analysis does not cover road" in reason
    assert "Missing tool scores for vehicle: Noise" in reason
    assert "Missing tool scores for road" in reason


@pytest.mark.parametrize(("limit", "count", "again"), [(None, 1, True), (None, 2, False), (1, 1, False), (0, 0, False)])
def test_respect_max_iterations(
    photo: Path, limit: int | None, count: int, again: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """At the limit of iterations (two by default) a gap leads to a warning, not to a new plan."""
    config, _ = scripted(SAID)
    given = state(photo, RATE, plan(analyse=True))
    given["iteration_count"] = count
    if limit is not None:
        given["max_replan_iterations"] = limit
    update = summarizer_node(given, config)
    assert update["summarizer_result"].need_replan is again
    assert update["iteration_count"] == count + again
    warned = [record for record in caplog.records if "limit" in record.getMessage()]
    assert bool(warned) is not again
    assert all(record.levelno == logging.WARNING for record in warned)


def test_load_vlm_client_from_config(photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node uses the model, temperature and length of the section in the file; the shipped file has both."""
    shipped = load_config("model_backends").summarizer
    assert (shipped.temperature, shipped.max_tokens) == (0.0, 512)
    monkeypatch.setenv("SERVER_KEY", "sk-test")
    with fake_server(by_stage(SAID)) as server:
        section = yaml.safe_load("{backend: openai.gpt-4o, temperature: 0.0, max_tokens: 512}")
        config = configured(tmp_path, {"summarizer": {**section, "api_base": server.url, "api_key_env": "SERVER_KEY"}})
        assert summarizer_node(state(photo, found=evidence()), config)["summarizer_result"].quality_score
        body = server.requests[0]
    assert (body["model"], body["temperature"], body["max_completion_tokens"]) == ("gpt-4o", 0.0, 512)


def test_retry_on_invalid_json(photo: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Invalid JSON is requested again more strictly, up to three times, and each attempt is logged."""
    config, engine = scripted({"answer": [bad_json(), bad_json(), ANSWER]})
    result = summarizer_node(state(photo, WORST), config)["summarizer_result"]
    assert result.final_answer == "B"
    first, *again = engine.bodies
    assert "Return ONLY valid JSON" not in text_of(first)
    assert len(again) == 2
    assert all("Return ONLY valid JSON" in field_of(body, "correction") for body in again)
    for attempt in (1, 2):
        assert f"attempt {attempt} of 3 rejected" in caplog.text
    assert "tool scores)" in caplog.text, "with a summary of the evidence"


@pytest.mark.parametrize(("stage", "query"), [("assessment", RATE), ("answer", WORST)])
def test_fallback_on_all_retries_failed(photo: Path, stage: str, query: str, caplog: pytest.LogCaptureFixture) -> None:
    """After three unusable answers the result says so, and a gap leads to no new plan; the output is logged."""
    babble = "I would rather not say. " * 500
    config, engine = scripted({stage: babble})
    update = summarizer_node(state(photo, query, plan(analyse=True)), config)
    (reported,) = update["rejected_answers"].values()
    result = update["summarizer_result"]
    assert result == SummarizerOutput(final_answer=UNABLE, quality_reasoning=PARSING_FAILED, error=result.error)
    assert "no usable answer in 3 attempts" in result.error
    assert len(reported) == 3
    assert (UNABLE, PARSING_FAILED) == ("Unable to determine", "VLM output parsing failed")
    assert update["iteration_count"] == 0
    assert len(engine.requests) == 3
    assert any(babble.strip() in record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)


@pytest.mark.parametrize(
    ("bad", "reported"),
    [
        ('{"answer": {"final_answer": "B"}}', "quality_reasoning: Field required"),
        ('{"answer": {"quality_reasoning": "Soft."}}', "final_answer: Field required"),
        ('{"answer": {"final_answer": ["B"], "quality_reasoning": "Soft."}}', "final_answer: Input should be"),
    ],
)
def test_parse_and_validate_vlm_json_response(photo: Path, bad: str, reported: str) -> None:
    """A missing field or a wrong type is reported to the model; a complete answer becomes the result."""
    config, engine = scripted({"answer": [bad, ANSWER]})
    result = summarizer_node(state(photo, WORST), config)["summarizer_result"]
    assert isinstance(result, SummarizerOutput)
    assert result.final_answer == ANSWER["final_answer"]
    assert result.quality_reasoning.startswith(ANSWER["quality_reasoning"])
    assert reported in field_of(engine.bodies[1], "correction")


def test_extract_final_answer(photo: Path) -> None:
    """Blanks around the answer are removed, and a blank answer is requested again."""
    config, engine = scripted(
        {"answer": [{**ANSWER, "final_answer": " \n"}, {**ANSWER, "final_answer": "  a halo \n"}]}
    )
    assert summarizer_node(state(photo, WHY), config)["summarizer_result"].final_answer == "a halo"
    assert "final_answer" in field_of(engine.bodies[1], "correction")


def test_extract_quality_reasoning(photo: Path) -> None:
    """Blanks around the reasoning are removed, and an empty or blank one is requested again."""
    said: list[Answer] = [{**ANSWER, "quality_reasoning": text} for text in ("", " \t", "  The edges are soft. \n")]
    config, engine = scripted({"answer": said})
    result = summarizer_node(state(photo, WHY, found=evidence()), config)["summarizer_result"]
    assert result.quality_reasoning == "The edges are soft."
    assert ["quality_reasoning" in field_of(body, "correction") for body in engine.bodies[1:]] == [True, True]


def test_accept_state_and_config(photo: Path) -> None:
    """The node takes a state and optionally a configuration, and returns a dict with the result."""
    accepted = inspect.signature(summarizer_node).parameters
    assert list(accepted) == ["state", "config"]
    assert accepted["config"].default is None
    assert get_type_hints(summarizer_node)["config"] == graph.RunnableConfig | None
    given = state(photo, RATE, planner_node({"query": RATE, "image_path": str(photo)})["plan"])
    config, _ = scripted(SAID)
    for update in (summarizer_node(given), summarizer_node(given, config)):
        assert isinstance(update, dict)
        assert isinstance(update["summarizer_result"], SummarizerOutput)


@pytest.mark.parametrize("missing", ["plan", "executor_evidence"])
def test_check_prerequisites(photo: Path, missing: str) -> None:
    """A state without plan or evidence gives an error that names the missing part, without a request."""
    config, engine = scripted(SAID)
    given = state(photo, found=evidence())
    del given[missing]  # type: ignore[misc]
    update = summarizer_node(given, config)
    assert list(update) == ["error"]
    assert missing in update["error"]
    assert engine.requests == []


@pytest.mark.parametrize(
    ("query_type", "query", "stage"),
    [
        ("IQA", RATE, "assessment"),
        ("IQA", "Measure the noise.", "assessment"),
        ("IQA", WHY, "answer"),
        ("IQA", WORST, "answer"),
        ("Other", RATE, "answer"),
        ("Other", WHY, "answer"),
    ],
)
def test_select_prompt_mode(photo: Path, query_type: str, query: str, stage: str) -> None:
    """A question of type IQA that asks for a rating gets a score; every other one gets an answer."""
    config, engine = scripted(SAID)
    summarizer_node(state(photo, query, plan(query_type)), config)
    assert [stage_of(body) for body in engine.bodies] == [stage]


def test_load_images(photo: Path, reference: Path, tmp_path: Path) -> None:
    """The model gets the unchanged bytes of image and reference; an unreadable file is an error."""
    for given in (None, reference):
        config, engine = scripted(SAID)
        summarizer_node(state(photo, reference=given), config)
        sent = [data for _, data in images_of(engine.bodies[0])]
        assert sent == [path.read_bytes() for path in (given, photo) if path]
    broken = tmp_path / "broken.png"
    broken.write_bytes(photo.read_bytes()[:100])
    for path in (broken, tmp_path / "gone.png"):
        for given_state in (state(path), state(photo, reference=path)):
            config, engine = scripted(SAID)
            update = summarizer_node(given_state, config)
            assert list(update) == ["error"]
            assert path.name in update["error"]
            assert engine.requests == []


def test_return_state_update(photo: Path) -> None:
    """The update has the result and the count of iterations, which rises if a new plan is needed."""
    for planned, again in ((plan(), 0), (plan(analyse=True), 1)):
        config, _ = scripted(SAID)
        update = summarizer_node(state(photo, RATE, planned), config)
        assert isinstance(update["summarizer_result"], SummarizerOutput)
        assert update["iteration_count"] == again
    given = state(photo, RATE, plan(analyse=True))
    given["iteration_count"] = 1
    assert summarizer_node(given, config)["iteration_count"] == 2


@pytest.mark.parametrize(("query", "mode"), [(RATE, "scoring"), (WHY, "explanation/QA")])
def test_log_summarizer_invocation(
    photo: Path, reference: Path, query: str, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One log line has the type of the query, the mode, the amount of evidence and the images."""
    config, _ = scripted(SAID)
    with caplog.at_level(logging.INFO, "agenticiqa"):
        summarizer_node(state(photo, query, plan(), evidence(), reference), config)
    (line,) = [record.getMessage() for record in caplog.records if record.getMessage().startswith("summarizer:")]
    for part in ("IQA", f"{mode} mode", "1 analyzed distortion", "1 tool score", str(photo), str(reference)):
        assert part in line


def test_log_prompt_and_response(photo: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The DEBUG log has the whole prompt, the response (shortened if very long) and every further attempt."""
    query = f"{WHY} " + " ".join(f"detail{number}" for number in range(600))
    long = {**ANSWER, "quality_reasoning": "It is soft. " * 1000}
    config, _ = scripted({"answer": [bad_json(), long]})
    with caplog.at_level(logging.DEBUG, "agenticiqa"):
        summarizer_node(state(photo, query, plan(), evidence()), config)
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.DEBUG]
    reported = "\n".join(lines)
    for line in AnswerQuestion.instructions.splitlines():
        assert line.strip() in reported
    for part in (query, "Edges appear soft.", "Return ONLY valid JSON", "attempt 1 of 3", "attempt 2 of 3"):
        assert part in reported
    assert "It is soft. It is soft. " in reported
    assert long["quality_reasoning"].strip() not in reported


def test_log_replanning_decision(photo: Path, caplog: pytest.LogCaptureFixture) -> None:
    """If a new plan is needed, one log line has this, the reason and the iteration."""
    config, _ = scripted(SAID)
    given = state(photo, RATE, plan(analyse=True))
    given["iteration_count"] = 1
    with caplog.at_level(logging.INFO, "agenticiqa"):
        reason = summarizer_node(given, config)["summarizer_result"].replan_reason
    (line,) = [record.getMessage() for record in caplog.records if "need_replan" in record.getMessage()]
    for part in ("need_replan=true", reason, "iteration 1"):
        assert part in line


@pytest.mark.parametrize("found", [None, ExecutorOutput(), ExecutorOutput(distortion_analysis={"Global": []})])
def test_empty_executor_evidence(photo: Path, found: ExecutorOutput | None) -> None:
    """Empty evidence still gives an answer, from the image alone; its reasoning says that tool scores are missing."""
    for query in (RATE, WORST):
        config, engine = scripted(SAID)
        update = summarizer_node(state(photo, query, found=found), config)
        assert "error" not in update
        assert len(images_of(engine.bodies[0])) == 1
        assert "no tool scores" in update["summarizer_result"].quality_reasoning.lower()
        assert update["summarizer_result"].final_answer != UNABLE


@pytest.mark.parametrize("query", [RATE, WHY])
@pytest.mark.parametrize("again", [True, False])
def test_contradictory_evidence(photo: Path, query: str, again: bool) -> None:
    """The reasoning names severe distortions at a score above 4, and the replan stage decides on a new plan."""
    decision = {"need_replan": again, "replan_reason": "Measure the blur once more." if again else ""}
    config, engine = scripted({**SAID, "decision": decision})
    result = summarizer_node(state(photo, query, plan(), evidence("severe", 4.5)), config)["summarizer_result"]
    (asked,) = (body for body in engine.bodies if stage_of(body) == "decision")
    for part in ("Contradictory evidence", "severe Blurs", "SSIM scores 4.50"):
        assert part in result.quality_reasoning
        assert part in field_of(asked, "doubts")
    assert (result.need_replan, result.replan_reason) == (again, "Measure the blur once more." if again else None)
    for consistent in (evidence("severe", 3.9), evidence("moderate", 4.5)):
        result = summarizer_node(state(photo, query, plan(), consistent), config)["summarizer_result"]
        assert "Contradictory" not in result.quality_reasoning


def test_missing_query_scope_coverage(photo: Path) -> None:
    """A region of the scope without analysis leads to a new plan, and the reason names only that region."""
    config, _ = scripted(SAID)
    planned = plan(scope=["vehicle", "background"], analyse=True)
    result = summarizer_node(state(photo, RATE, planned, evidence(region="vehicle")), config)["summarizer_result"]
    assert result.need_replan is True
    assert "background" in result.replan_reason
    assert "vehicle" not in result.replan_reason
