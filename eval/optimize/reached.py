"""Which predictors the questions reach, so that no budget is spent on the others."""

from collections.abc import Iterable, Sequence

from agenticiqa.eval.optimize.judged import Judged
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.stages.ask import CheckedPredict

NEVER_ASKED = "which was never asked about the {n} images of the first pass"
NEVER_VALID = "which was asked, but of whose answers none was valid in the first pass"


def unreached(program: AgenticIQA, predictors: Iterable[str], first_pass: Sequence[Judged]) -> dict[str, str]:
    """The predictors without an accepted answer in a first pass, with the reason; none if nothing was answered at all.

    There is nothing to reflect on about such a predictor.
    """
    answered = frozenset[str]().union(*(judged.answered for judged in first_pass))
    if not answered:
        return {}
    asked = frozenset[str]().union(*(judged.asked for judged in first_pass))
    stage_of = {name: part.stage for name, part in program.named_sub_modules() if isinstance(part, CheckedPredict)}

    def why(predictor: str) -> str:
        stages = {stage for name, stage in stage_of.items() if f"self.{predictor}".startswith(f"{name}.")}
        return NEVER_VALID if stages & asked else NEVER_ASKED.format(n=len(first_pass))

    return {name: why(name) for name in predictors if name not in answered}
