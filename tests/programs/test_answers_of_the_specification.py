"""Every answer in the specification and the paper is read at the first attempt."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.programs.assess import AgenticIQA
from support.fake_server import by_stage, fake_server
from support.loopback import Reply
from support.scripted_answers import ALL, RATE, SCRIPT, plan, program_for

PLAN = """
  {
    "query_type": "IQA",
    "query_scope": ["vehicle"],
    "distortion_source": "Explicit",
    "distortions": {"vehicle": ["Blurs"]},
    "reference_mode": "No-Reference",
    "required_tool": null,
    "plan": {
      "distortion_detection": false,
      "distortion_analysis": true,
      "tool_selection": false,
      "tool_execution": false
    }
  }
"""
PAPERS_PLAN = PLAN.replace("Explicit", "Explict").replace("No-Ref", "No-ref").replace("tool_execution", "tool_execute")
ANALYSIS = '[{"type": "Blurs", "severity": "moderate", "explanation": "Edges appear soft."}]'
PROBS = '{"1": -3.2, "2": -0.5, "3": -0.1, "4": -2.1, "5": -4.5}'
ANSWER = """
{
  "final_answer": "B",
  "quality_reasoning": "The image shows moderate blur affecting sharpness, consistent with tool score of 2.6.",
  "need_replan": false
}
"""
UNABLE = """
{
  "final_answer": "Unable to determine",
  "quality_reasoning": "Insufficient evidence for vehicle region.",
  "need_replan": true,
  "replan_reason": "Missing tool scores for vehicle region"
}
"""
BLURRY = "Is the vehicle blurry? A. Not at all B. A little C. Very much"
RATING: dict[str, Any] = {
    "plan": plan(),
    "detection": Reply('{"distortion_set": {"Global": ["Blurs"]}}'),
    "analysis": Reply(f'{{"distortion_analysis": {{"Global": {ANALYSIS}}}}}'),
    "selection": Reply('{"selected_tools": {"Global": {"Blurs": "NIQE"}}}'),
    "assessment": Reply(f'{{"quality_probs": {PROBS}, "quality_reasoning": "Blur, as NIQE says."}}'),
}
ABOUT_THE_VEHICLE: dict[str, Any] = {
    **SCRIPT,
    "plan": Reply(PLAN),
    "analysis": Reply(f'{{"distortion_analysis": {{"vehicle": {ANALYSIS}}}}}'),
    "answer": Reply(ANSWER),
}
CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "a rating": (RATE, RATING, None),
    "evidence in the specification's form": (RATE, {**RATING, "analysis": Reply(f'{{"Global": {ANALYSIS}}}')}, None),
    "a choice": (BLURRY, ABOUT_THE_VEHICLE, "B"),
    "a choice, planned as in the paper": (BLURRY, {**ABOUT_THE_VEHICLE, "plan": Reply(PAPERS_PLAN)}, "B"),
    "no answer": ("How sharp is the vehicle?", {**ABOUT_THE_VEHICLE, "answer": Reply(UNABLE)}, "Unable to determine"),
    "a doubt": (
        RATE,
        {**RATING, "plan": [plan(), plan(flags=ALL)], "decision": Reply(UNABLE), "analysis": [
            Reply(f'{{"distortion_analysis": {{"Global": {ANALYSIS.replace("soft", "unclear")}}}}}'), RATING["analysis"]
        ]},
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_specifications_examples_are_read_at_the_first_attempt(case: str, photo: Path) -> None:
    query, script, answer = CASES[case]
    with fake_server(by_stage(script)) as server:
        result = program_for(server)(photo, query)
    assert result.rejected_answers == {}
    if answer is None:
        assert result.summarizer_result.probability_source == "quality_probs"
        assert result.summarizer_result.quality_probs["3"] == pytest.approx(0.537, abs=1e-3)
        assert result.executor_evidence.distortion_analysis["Global"][0].severity == "moderate"
    else:
        assert result.final_answer == answer
        assert result.plan.model_dump() == json.loads(PLAN)


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter, dspy.JSONAdapter, dspy.XMLAdapter, None])
@pytest.mark.parametrize("configured", [True, False], ids=["a configured backend", "a model of DSPy"])
def test_the_specifications_examples_are_read_with_every_adapter(
    adapter: type[dspy.Adapter] | None, configured: bool, photo: Path
) -> None:
    script = in_order_of_the_stages([PLAN, ABOUT_THE_VEHICLE["analysis"].content, ANSWER])
    with fake_server(script) as server:
        lm = dspy.LM("openai/mine", api_base=server.url, api_key="none", cache=False)
        program = program_for(server) if configured else AgenticIQA()
        program = located(program)
        settings = {} if configured else {"lm": lm}
        with dspy.context(adapter=adapter() if adapter else None, **settings):
            result = program(photo, BLURRY)
    assert (result.final_answer, result.rejected_answers) == ("B", {})
    assert result.answer_notes == {"answering": ["the unknown key 'need_replan' was left out"]}
    assert len(server.requests) == 3


def in_order_of_the_stages(texts: list[str]) -> Any:
    """Each text is used once, with every adapter: the prompts differ in their words."""
    left = iter(texts)
    return lambda request: Reply(next(left))


def located(program: AgenticIQA) -> AgenticIQA:
    """Return the program with a locator that asks no model."""
    from agenticiqa.programs.offline.stages import SaliencyLocator

    program.executor.locate = SaliencyLocator()
    return program
