"""Plans marked field by field."""

from pathlib import Path
from typing import Any

from agenticiqa.eval.questions.planning import FLAGS, comparable, marked_plan
from agenticiqa.eval.questions.task import AskedItem, Item

PLAN: dict[str, Any] = {
    "query_type": "IQA",
    "query_scope": ["the mast", "Gate"],
    "distortion_source": "Explicit",
    "distortions": {"mast": ["Noise", "Blurs"]},
    "reference_mode": "No-Reference",
    "required_tool": None,
    "plan": dict.fromkeys(FLAGS, True),
}


def asked(plan: dict[str, Any]) -> AskedItem:
    return AskedItem(Item("1", Path("a.png"), "?", "a", plan=plan), 0, {}, "")


def test_order_case_and_articles_do_not_count() -> None:
    other = {**PLAN, "query_scope": ["gate", "Mast"], "distortions": {"The mast": ["blurs", "Noise"]}}
    assert comparable(other) == comparable(PLAN)
    assert comparable({"query_scope": []}) == comparable({"query_scope": "Global"})
    assert comparable({"required_tool": "SSIM"}) == comparable({"required_tool": ["ssim"]})


def test_each_field_and_flag_is_marked() -> None:
    made = {**PLAN, "query_type": "Other", "plan": {**PLAN["plan"], "tool_selection": False}}
    marks = marked_plan(asked(PLAN), {"plan": made})
    assert [name for name, right in marks["fields"].items() if not right] == ["query_type", "tool_selection"]
    assert len(marks["fields"]) == 10
    assert not marks["correct"]
    assert marked_plan(asked(PLAN), {"plan": PLAN})["correct"]


def test_only_stated_fields_are_marked_and_no_plan_is_wrong() -> None:
    marks = marked_plan(asked({"query_type": "Other"}), {"plan": PLAN})
    assert marks["fields"] == {"query_type": False}
    marks = marked_plan(asked(PLAN), {"error": "Unanswered"})
    assert marks["unparsed"]
    assert not any(marks["fields"].values())
