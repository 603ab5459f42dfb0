"""A new plan adds evidence: what it looks at, what it measures, and what stays of the earlier evidence."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.stages.added import added
from agenticiqa.programs.stages.evidence import contradicted_by
from agenticiqa.programs.stages.plan_rules import plan_by_rules
from agenticiqa.programs.stages.remedies import Remedy, feedback_on, remedy_for, remedy_in
from agenticiqa.programs.stages.tool_runs import weighted
from agenticiqa.programs.tools import toolbox
from agenticiqa.signatures.types import DistortionAnalysis, ExecutorOutput, ToolCall
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY
from support.fake_server import Server, bad_json, by_stage, fake_server, field_of
from support.loopback import Body
from support.scripted_answers import LOOK_AGAIN, SCRIPT, pairs, plan, program_for

AGAIN = {"need_replan": True, "replan_reason": LOOK_AGAIN}
PLAN = plan_by_rules("IQA", "Global", None, [], is_explicit=False, reference_given=False)
TOOLS = toolbox()


def noted(severity: str, *, uncertain: bool) -> Any:
    """Return an analysis with this severity of every distortion."""

    def answer(request: Body) -> dict[str, Any]:
        row = {"severity": severity, "explanation": "At the edges.", "uncertain": uncertain}
        return {"distortion_analysis": [{"region": r, "type": d, **row} for r, d in pairs(request)]}

    return answer


def assessed(server: Server, photo: Path, query: str = DEFAULT_QUERY, **changes: Any) -> Any:
    return program_for(server, executor={"select": "table"}, **changes)(photo, query)


def call(tool: str, score: float | None = 3.0, weight: float | None = 1.0, region: str = "Global") -> ToolCall:
    error = None if score else "failed"
    return ToolCall(
        tool=tool, region=region, distortion="Overall", raw=score, calibrated=score, weight=weight, ms=1, error=error
    )


def row(name: str, severity: str) -> DistortionAnalysis:
    return DistortionAnalysis.model_validate({"type": name, "severity": severity, "explanation": "Seen."})


def test_a_doubt_about_a_rating_is_looked_at_again_and_measured_by_another_tool(photo: Path) -> None:
    """The new plan does something: it asks for the doubtful distortion alone, and runs a tool that did not run."""
    script = {
        **SCRIPT,
        "detection": {"distortion_set": [{"region": "Global", "distortions": ["Blurs", "Noise"]}]},
        "analysis": [noted("severe", uncertain=True), noted("moderate", uncertain=False)],
        "decision": AGAIN,
    }
    with fake_server(by_stage(script)) as server:
        result = assessed(server, photo)
    assert [sorted(pairs(body)) for body in server.of("analysis")] == [[("Global", "Blurs"), ("Global", "Noise")]] * 2
    (request,) = server.of("plan")
    could = json.loads(field_of(request, "feedback"))["could_be_added"]
    assert could["distortions"] == {"Global": ["Blurs", "Noise"]}
    ran = [each.tool for each in result.executor_evidence.tool_log]
    assert {*could["tools"]} <= {*ran}
    assert len(ran) == len({*ran})
    assert result.plan.tools == could["tools"]
    assert (result.iteration_count, result.replan_history) == (1, [f"iteration 1: {LOOK_AGAIN}"])
    analysis = result.executor_evidence.distortion_analysis["Global"]
    assert [each.severity for each in analysis] == ["moderate", "moderate"]
    found = "A second look at Blurs in Global found it moderate, after severe at first."
    assert found in result.executor_evidence.notes
    counted = [each.tool for each in result.executor_evidence.tool_log if each.weight]
    assert counted == ["LEARNED-IQA"], "the mean of the rating keeps its tools"


def test_a_second_look_that_fails_keeps_the_first(photo: Path) -> None:
    script = {
        **SCRIPT,
        "analysis": [noted("severe", uncertain=True), bad_json()],
        "decision": AGAIN,
    }
    with fake_server(by_stage(script)) as server:
        result = assessed(server, photo, attempts=1)
    evidence = result.executor_evidence
    assert [each.severity for each in evidence.distortion_analysis["Global"]] == ["severe"]
    assert evidence.failures == {}
    assert "has no distortion analysis" not in result.quality_reasoning


def test_a_doubt_that_nothing_can_resolve_asks_no_one_and_stays_in_the_reasoning(photo: Path) -> None:
    script = {**SCRIPT, "analysis": noted("slight", uncertain=True), "decision": AGAIN}
    with fake_server(by_stage(script)) as server:
        program = program_for(server, executor={"select": "table"})
        program.executor.toolbox = program.replan.toolbox = {"LEARNED-IQA": TOOLS["LEARNED-IQA"]}
        result = program(photo, DEFAULT_QUERY)
    assert server.of("decision") == server.of("plan") == []
    assert "The analysis of Blurs in Global is uncertain: At the edges" in result.quality_reasoning
    assert result.iteration_count == 0


def test_a_contradiction_widens_the_interval() -> None:
    for severity, score, weight, gap in (
        ("severe", 4.6, 1.0, 1.3),
        ("severe", 4.6, 0.0, 0.0),
        ("none", 1.4, 1.0, 1.8),
        ("moderate", 4.6, 1.0, 0.0),
    ):
        evidence = ExecutorOutput(
            distortion_analysis={"Global": [row("Blurs", severity)]},
            quality_scores={"Global": {"Overall": ("LEARNED-IQA", score)}},
            tool_log=[call("LEARNED-IQA", score, weight)],
        )
        assert contradicted_by(evidence) == pytest.approx(gap)


def test_a_plain_rating_is_planned_without_a_request_and_another_question_with_one(photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        assessed(server, photo)
        assert server.stages() == ["detection", "analysis", "assessment"]
        assessed(server, photo, "Rate the quality of the cup.")
        assessed(server, photo, planner={"rules": "check"})
    assert len(server.of("plan")) == 2


def test_without_images_a_question_is_planned_once_for_all_images_of_a_run(examples: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        program = program_for(server, planner={"sees_images": False})
        for name in ("coffee_jpeg.jpg", "chelsea_noise.png"):
            program(examples / name, "Rate the quality of the cup.")
    assert (len(server.of("plan")), len(server.of("assessment"))) == (1, 2)


def test_a_rating_that_names_no_distortion_looks_for_all_of_them(photo: Path) -> None:
    only_noise = plan(distortion_source="Explicit", distortions=[{"region": "Global", "distortions": ["Noise"]}])
    with fake_server(by_stage({**SCRIPT, "plan": only_noise})) as server:
        result = assessed(server, photo, "Rate this lovely snapshot.")
        asked = assessed(server, photo, "Rate this grainy snapshot.")
    assert (result.plan.distortion_source, result.plan.distortions) == ("Inferred", None)
    assert len(server.of("detection")) == 1
    assert result.answer_notes["planner"] == [
        "dropped 'Noise' from distortions, because the question names no such distortion"
    ]
    assert asked.plan.distortions == {"Global": ["Noise"]}


def test_the_reason_decides_what_a_plan_may_add() -> None:
    planned = PLAN.model_copy(update={"query_scope": ["sky", "sea"]})
    lacking = ExecutorOutput(distortion_set={"sea": ["Noise"]}, distortion_analysis={"sky": []})
    found = remedy_for(planned, lacking, TOOLS)
    assert found.distortions == {"sea": ["Noise"]}
    failed = ExecutorOutput(distortion_analysis={"Global": []}, tool_log=[call("NOISE-SIGMA", None)])
    noise = PLAN.model_copy(update={"distortions": {"Global": ["Noise"]}})
    other = remedy_for(noise, failed, TOOLS)
    assert other.distortions == {"Global": ["Noise"]}
    assert "NOISE-SIGMA" not in other.tools
    assert len(other.tools) == 1
    assert not remedy_for(PLAN, failed.model_copy(update={"tool_log": [call(name) for name in TOOLS]}), TOOLS).tools


def test_the_feedback_says_what_could_be_added() -> None:
    remedy = Remedy({"Global": ["Noise"]}, ["NOISE-SIGMA"])
    assert remedy_in(feedback_on(PLAN, "Why.", remedy)) == remedy
    for other in (feedback_on(PLAN, "Why.", Remedy()), "why", "", "[]", '{"could_be_added": 1}'):
        assert not remedy_in(other)


def test_a_region_that_only_the_form_of_the_feedback_names_is_dropped(photo: Path) -> None:
    """A small model copies words of the feedback: keys, tools, the region of the previous plan."""
    script = {**SCRIPT, "plan": plan("previous_plan"), "analysis": noted("slight", uncertain=True), "decision": AGAIN}
    with fake_server(by_stage(script)) as server:
        result = assessed(server, photo)
    assert result.plan.query_scope == "Global"
    assert server.of("location") == []


def test_a_region_without_a_score_gets_one_from_a_new_plan_and_others_keep_theirs() -> None:
    earlier = ExecutorOutput(tool_log=[call("LEARNED-IQA", 2.0), call("LEARNED-IQA", None, None, "sky")])
    new = ExecutorOutput(
        selected_tools={"Global": {"Overall": "NIQE"}, "sky": {"Overall": "NIQE"}},
        quality_scores={"Global": {"Overall": ("NIQE", 4.0)}, "sky": {"Overall": ("NIQE", 4.0)}},
        tool_log=[call("NIQE", 4.0), call("NIQE", 4.0, 1.0, "sky")],
    )
    weights = {(each.tool, each.region): each.weight for each in added(earlier, new).tool_log}
    assert weights == {
        ("LEARNED-IQA", "Global"): 1.0,
        ("LEARNED-IQA", "sky"): None,
        ("NIQE", "Global"): 0.0,
        ("NIQE", "sky"): 1.0,
    }
    third = ExecutorOutput(
        selected_tools={"sea": {"Overall": "PIQE"}},
        quality_scores={"sea": {"Overall": ("PIQE", 1.0)}},
        tool_log=[call("PIQE", 1.0, 1.0, "sea")],
    )
    both = added(added(earlier, new), third)
    again = added(both, third.model_copy(update={"tool_log": [call("BRISQUE", 1.0, 1.0, "sea")]}))
    assert {each.weight for each in again.tool_log if each.region == "sea"} == {0.0}, "the question names no sea"
    regions = {"Global", "sky"}
    calls = weighted(added(earlier, new).tool_log, TOOLS, has_reference=False, plain=regions, single_properties=True)
    shares = [each.weight for each in calls if each.weight]
    assert shares == pytest.approx([1 / 3] * 3), "equation 1"


def test_an_offline_program_needs_no_new_plan(photo: Path) -> None:
    assert AgenticIQA.offline()(photo, DEFAULT_QUERY).iteration_count == 0


def test_a_tool_that_needs_a_larger_image_is_no_reason_for_a_new_plan(tmp_path: Path) -> None:
    Image.effect_noise((12, 12), 60).convert("RGB").save(tmp_path / "tiny.png")
    script = {
        **SCRIPT,
        "detection": {"distortion_set": [{"region": "Global", "distortions": ["Compression"]}]},
        "analysis": noted("moderate", uncertain=True),
        "decision": AGAIN,
    }
    with fake_server(by_stage(script)) as server:
        result = assessed(server, tmp_path / "tiny.png")
    assert (server.of("plan"), server.of("decision"), result.iteration_count) == ([], [], 0)
