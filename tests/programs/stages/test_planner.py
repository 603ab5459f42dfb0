"""What runs beside the model's planning, and who plans when the model does not."""

from typing import Any

import pytest
from PIL import Image

from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.images import LoadedImage, load
from agenticiqa.programs.offline.stages import RulePlanner
from agenticiqa.programs.stages.planner import Planner
from agenticiqa.programs.stages.protocols import Planned
from agenticiqa.programs.tools import toolbox
from support.distortion_levels import scene
from support.engine import scripted_backend
from support.fake_server import bad_json, by_stage
from support.judging import NONE, RATE, plan


@pytest.fixture(scope="module")
def image() -> LoadedImage:
    return load(Image.fromarray(scene()))


def planner(answer: Any, **options: Any) -> Planner:
    backend, _ = scripted_backend(by_stage({"plan": answer}))
    return Planner(toolbox(), backend=backend, **options)


def test_beside_the_first_plan_only_what_will_be_needed_is_measured(image: LoadedImage) -> None:
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


def test_a_plan_that_keeps_breaking_the_rules_is_corrected_and_not_replaced(image: LoadedImage) -> None:
    broken = plan("vehicle", flags=NONE)
    planned = planner(broken, fallback=RulePlanner(toolbox()))(image=image, query=RATE, reference=None, feedback="")
    assert planned.plan.query_scope == ["vehicle"], "the model's, which the rules would not read out of the question"
    assert planned.plan.plan.distortion_analysis
    assert len(planned.rejected_answers["planner"]) == 3
