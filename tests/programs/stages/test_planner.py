"""Tools that run during the model's planning, and the fallback if the model gives no plan."""

from typing import Any

import pytest
from PIL import Image

from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.images import LoadedImage, load
from agenticiqa.programs.offline.stages import RulePlanner
from agenticiqa.programs.stages.planner import Planner, nameable
from agenticiqa.programs.stages.protocols import Planned
from agenticiqa.programs.tools import toolbox
from support.distortion_levels import scene
from support.engine import scripted_backend
from support.fake_server import bad_json, by_stage
from support.scripted_answers import NONE, RATE, plan


@pytest.fixture(scope="module")
def image() -> LoadedImage:
    return load(Image.fromarray(scene()))


def planner(answer: Any, **options: Any) -> Planner:
    backend, _ = scripted_backend(by_stage({"plan": answer}))
    return Planner(toolbox(), backend=backend, **options)


def test_only_needed_tools_run_during_the_first_planning(image: LoadedImage) -> None:
    measured: list[tuple[Any, ...]] = []
    made = planner(plan(), prefetch=lambda *given: measured.append(given))
    for feedback in ("", "the earlier plan fell short"):
        inputs: dict[str, Any] = {"image": image, "query": RATE, "reference": None, "feedback": feedback}
        planned: Planned = made(**inputs)
        assert planned.plan.query_type == "IQA"
        assert planned.rejected_answers == {}
    assert measured == [(image, RATE, None)]


def test_without_a_usable_plan_the_fallback_plans(image: LoadedImage) -> None:
    tools = toolbox()
    rules = RulePlanner(tools)
    planned = planner(bad_json(), fallback=rules)(image=image, query=RATE, reference=None, feedback="")
    assert planned.plan == rules(image=image, query=RATE, reference=None, feedback="").plan
    assert len(planned.rejected_answers["planner"]) == 3
    with pytest.raises(Unanswered):
        planner(bad_json())(image=image, query=RATE, reference=None, feedback="")


def test_a_plan_that_repeatedly_breaks_the_rules_is_corrected(image: LoadedImage) -> None:
    broken = plan("vehicle", flags=NONE, distortion_source="Explicit")
    inputs: dict[str, Any] = {"image": image, "query": f"{RATE} And the vehicles?", "reference": None, "feedback": ""}
    planned = planner(broken, fallback=RulePlanner(toolbox()))(**inputs)
    assert planned.plan.query_scope == ["vehicle"], "the model's, which the rules would not read out of the question"
    assert planned.plan.plan.distortion_analysis
    assert len(planned.rejected_answers["planner"]) == 3


def test_only_tools_that_the_question_can_name_are_shown() -> None:
    tools = toolbox()
    shown = {given: nameable(tools, RATE, reference_given=given) for given in (True, False)}
    assert shown[True] == list(tools)
    assert shown[False] == [name for name, tool in tools.items() if tool.kind == "NR"]
    assert "SSIM" in nameable(tools, "What is the ssim?", reference_given=False), "to say what it needs"


@pytest.mark.parametrize(
    ("query", "changed", "calls"),
    [
        ("Is this image noisy?", {}, 2),
        ("Is this image noisy?", {"query_type": "Other"}, 1),
        ("How bad is it by NOISE-SIGMA?", {"required_tool": ["NOISE-SIGMA"]}, 1),
        ("What is worst? A. Noise B. Blur", {}, 1),
        (RATE, {"reference_mode": "Full-Reference", "plan": NONE}, 1),
    ],
)
def test_a_plan_is_rejected_only_for_errors_that_rules_cannot_correct(
    image: LoadedImage, query: str, changed: dict[str, Any], calls: int
) -> None:
    """If the model repeats its answer, the answer is accepted."""
    backend, engine = scripted_backend(by_stage({"plan": plan(**changed)}))
    planned = Planner(toolbox(), backend=backend)(image=image, query=query, reference=None, feedback="")
    assert (len(engine.requests), planned.plan.distortion_source) == (calls, "Inferred")
    assert planned.plan.reference_mode == "No-Reference"
