"""The prompt for the decision whether the evidence is sufficient, used only if rules cannot decide.

It does not contain the answer, so that both requests can run at the same time.
"""

from typing import Annotated, Any

import dspy
from pydantic import Field, model_validator

from agenticiqa.signatures.answers.model_answer import ModelAnswer
from agenticiqa.signatures.input_texts import EVIDENCE, QUERY
from agenticiqa.signatures.vocabulary import well_formed

TRUTH = {"true": True, "false": False}


class Decision(ModelAnswer):
    """Whether to plan again, and if so, what the new plan must fix."""

    need_replan: bool = Field(strict=True)
    replan_reason: Annotated[str, Field(json_schema_extra={"maxLength": 240})]

    @classmethod
    def prepared(cls, written: dict[str, Any]) -> dict[str, Any]:
        """Replace a missing reason by an empty text, and "True" or "false" by truth values."""
        need, reason = written.get("need_replan"), written.get("replan_reason") or ""
        truth = TRUTH.get(need.strip().lower()) if isinstance(need, str) else None
        return {**written, "replan_reason": reason} | ({} if truth is None else {"need_replan": truth})

    @model_validator(mode="after")
    def _reason_when_needed(self) -> "Decision":
        self.replan_reason = well_formed(self.replan_reason).strip()
        if self.need_replan and not self.replan_reason:
            raise ValueError("replan_reason must say which gap the new plan must close")
        return self


class DecideReplan(dspy.Signature):
    """You decide whether the evidence for an image quality answer is sufficient, or whether to plan and measure again.
    Rules raised doubts about it: contradictions between the analysis and the tool scores, or stated uncertainty.
    Planning again costs time.
    """

    query: str = dspy.InputField(desc=QUERY)
    plan: str = dspy.InputField(desc="the plan that was followed, as JSON")
    evidence: str = dspy.InputField(desc=EVIDENCE)
    doubts: str = dspy.InputField(desc="what the rules found, one per line")
    decision: Decision = dspy.OutputField(
        desc="the decision\n"
        "  - need_replan: true only when a different plan would probably change the answer, such as one that analyzes "
        "a region that was left out, or measures what was only looked at.\n"
        "  - replan_reason: when need_replan is true, the gap in one specific sentence: which evidence is missing "
        "or contradictory, and for which region; otherwise empty."
    )
