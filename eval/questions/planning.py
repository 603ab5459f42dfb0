"""Ask for the plan only, and mark it field by field against the true one."""

from collections.abc import Collection, Mapping
from typing import Any

import dspy

from agenticiqa.eval.questions.task import AskedItem
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.ledger import keeping
from agenticiqa.programs.batch.results_file import Row
from agenticiqa.programs.events import assessing
from agenticiqa.programs.images import ImageSource, name_of
from agenticiqa.programs.images.pairs import load_checked
from agenticiqa.programs.questions.options import OptionsArgument, query_for_stages, read_options
from agenticiqa.signatures.types import GLOBAL, fold_scope

FLAGS = ("distortion_detection", "distortion_analysis", "tool_selection", "tool_execution")
FIELDS = ("query_type", "query_scope", "distortion_source", "distortions", "reference_mode", "required_tool", *FLAGS)
ARTICLES = ("the ", "a ", "an ", "this ", "that ", "these ", "those ")


class FirstPlan(dspy.Module):
    """A program's planner alone, called like the program: it returns the first plan, without tools or an answer."""

    def __init__(self, program: AgenticIQA) -> None:
        super().__init__()
        self.planner = program.planner
        self.max_side, self.align = program.max_side, program.align

    def forward(
        self,
        image: ImageSource,
        query: str,
        reference: ImageSource | None = None,
        resize_reference: bool = False,
        options: OptionsArgument | None = None,
    ) -> dspy.Prediction:
        """Return a prediction of the plan, the files' hashes, the rejected answers and the usage."""
        asked = query_for_stages(query, read_options(options))
        with assessing(name_of(image)), keeping() as ledger:
            pair = load_checked(
                image, reference, resize_reference=resize_reference, align=self.align, max_side=self.max_side
            )
            planned = self.planner(image=pair.image, query=asked, reference=pair.compared, feedback="")
        return dspy.Prediction(
            image=pair.image.source,
            image_sha256=pair.image.sha256,
            reference=pair.reference.source if pair.reference else None,
            reference_sha256=pair.reference.sha256 if pair.reference else None,
            query=query,
            plan=planned.plan,
            rejected_answers=planned.rejected_answers,
            usage_by_stage=ledger.to_json(),
            answered_by=ledger.answered_by,
        )


def plan_row(result: dspy.Prediction) -> Row:
    """Convert the result of ``FirstPlan`` to plain JSON types."""
    return {**dict(result.items()), "plan": result.plan.model_dump(mode="json")}


def marked_plan(asked: AskedItem, row: Mapping[str, Any]) -> Row:
    """Return ``true_plan``, whether each field of the plan agrees (``fields``), and whether all agree (``correct``).

    Only fields in the true plan are marked. Without a plan all are wrong, and the answer is ``unparsed``. Regions are
    compared without their articles, names in any case and order.
    """
    true = comparable(asked.item.plan or {})
    made = comparable(row["plan"]) if row.get("plan") else {}
    fields = {name: name in made and made[name] == true[name] for name in FIELDS if name in true}
    return {
        "true_plan": dict(asked.item.plan or {}),
        "fields": fields,
        "correct": all(fields.values()),
        "unparsed": not made,
    }


def comparable(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Normalize all or some fields of a plan for comparison; its flags become fields of their own."""
    found = {name: plan[name] for name in FIELDS if name in plan}
    found |= {name: value for name, value in (plan.get("plan") or {}).items() if name in FLAGS}
    if "query_scope" in found:
        scope = fold_scope(found["query_scope"])
        found["query_scope"] = sorted(map(_region, [scope] if isinstance(scope, str) else scope))
    if "distortions" in found:
        named = found["distortions"] or {}
        found["distortions"] = {_region(region): _names(names) for region, names in named.items() if names}
    if "required_tool" in found:
        tools = found["required_tool"] or []
        found["required_tool"] = _names([tools] if isinstance(tools, str) else tools)
    return {name: value.casefold() if isinstance(value, str) else value for name, value in found.items()}


def _region(name: str) -> str:
    plain = " ".join(name.split()).casefold()
    article = next((each for each in ARTICLES if plain.startswith(each)), "")
    return plain.removeprefix(article) or GLOBAL.casefold()


def _names(names: Collection[str]) -> list[str]:
    return sorted({name.strip().casefold() for name in names})
