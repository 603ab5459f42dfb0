"""Run GEPA on the instructions of a program.

Agrawal et al., "GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning", 2025 (arXiv 2507.19457).
"""

import logging
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dspy
import gepa

from agenticiqa.eval.optimize.candidate_tree import CandidateTree
from agenticiqa.eval.optimize.gepa_adapter import GepaAdapter, with_instructions
from agenticiqa.eval.optimize.judging import Judged, TuningQuestion, judge, model_rates
from agenticiqa.eval.optimize.reflection import Reflection, Stopped
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.signatures.summarizer import NameLevel

logger = logging.getLogger(__name__)

MINIBATCH = 4  # images in one reflection; they make six pairs
GIVE_UP = 5  # reflections in a row without a usable instruction


@dataclass(frozen=True)
class Search:
    """What a search did. ``validation`` are mean scores on the validation images, of the original and of the best.

    ``iterations`` counts GEPA's steps, ``reflections`` those with a question to the reflection model, ``instructions``
    the new ones that it gave, ``accepted`` those that ranked their batch better. ``refused`` counts refused proposals
    by reason, ``reflected_on`` reflections by predictor.
    """

    metric_calls: int
    iterations: int
    reflections: int
    instructions: int
    accepted: int
    validation: dict[str, float]
    refused: dict[str, int]
    reflected_on: dict[str, int]
    gave_up: bool

    def to_json(self) -> dict[str, Any]:
        """As in the header of a tuned program's file."""
        return {**asdict(self), "tuned": self.tuned, "warning": self.warning}

    @property
    def tuned(self) -> bool:
        """Whether other instructions than the original ones were found to be better in validation."""
        return self.accepted > 0 and self.validation["after"] > self.validation["before"]

    @property
    def warning(self) -> str | None:
        """Why nothing was tuned at all; ``None`` if there was a new instruction to try."""
        if self.instructions:
            return None
        if not self.reflections:
            return (
                f"no new instruction was tried: in {self.iterations} iterations there was nothing to reflect on (every "
                "batch was ranked rightly, or no predictor gave an answer)"
            )
        reasons = "; ".join(f"{reason} ({count} times)" for reason, count in self.refused.items())
        return f"the reflection model gave no new instruction in {self.reflections} reflections: {reasons}"


class Logger:
    """GEPA's log lines as ours."""

    def log(self, message: str) -> None:
        """Log one line."""
        logger.info("%s", message)


class StopAfterFailures:
    """GEPA's stopper after reflections in vain. It also counts the iterations, those before a resumed run included."""

    def __init__(self, adapter: GepaAdapter) -> None:
        self.adapter, self.iterations = adapter, 0

    def __call__(self, gepa_state: Any) -> bool:
        """Whether to stop; asked before each iteration and after the last one."""
        self.iterations = len(gepa_state.full_program_trace)
        return self.adapter.in_vain >= GIVE_UP


def tunable(program: AgenticIQA) -> dict[str, type[dspy.Signature]]:
    """The signatures of what may be tuned, by predictor: not the levels scorer's text, which its models learned."""
    return {name: each.signature for name, each in program.named_predictors() if each.signature is not NameLevel}


def tune(
    program: AgenticIQA,
    train: Sequence[TuningQuestion],
    val: Sequence[TuningQuestion],
    reflection: dspy.LM,
    *,
    budget: int,
    predictors: Collection[str] | None = None,
    seed: int = 0,
    log_dir: Path | None = None,
    workers: int = 1,
) -> tuple[AgenticIQA, Search]:
    """A copy of the program with the instructions that ranked the validation images best, and figures of the search.

    ``budget`` is the number of judgments; GEPA checks it between steps, so the last step may exceed it. Only
    ``predictors`` are tuned, all that are ``tunable`` by default. The search ends early after 5 reflections in a row
    without a usable instruction. ``log_dir`` keeps its state, and the same call with it goes on from there. Raises what
    ended the search: ``dspy.LMError`` for an outage of either model, UserError for an image that cannot be judged.
    """
    signatures = {
        name: signature for name, signature in tunable(program).items() if predictors is None or name in predictors
    }

    def judge_batch(candidate: AgenticIQA, batch: Sequence[TuningQuestion], keep_calls: bool) -> list[Judged]:
        return judge(candidate, batch, workers, keep_calls=keep_calls)

    adapter = GepaAdapter(program, judge_batch, Reflection(reflection, signatures), by_model=model_rates(program))
    stopper = StopAfterFailures(adapter)
    pages: list[Any] | None = (
        [CandidateTree(log_dir)] if log_dir else None
    )  # GEPA calls what an object has of its hooks
    try:
        found: gepa.GEPAResult[Judged, int] = gepa.optimize(
            seed_candidate={name: signature.instructions for name, signature in signatures.items()},
            trainset=list(train),
            valset=list(val),
            adapter=adapter,
            reflection_minibatch_size=MINIBATCH,
            module_selector=adapter.choose,
            use_merge=False,  # it compares scores of batches of another make-up, which ranks do not allow
            max_metric_calls=budget,
            stop_callbacks=stopper,
            callbacks=pages,
            logger=Logger(),
            run_dir=str(log_dir) if log_dir else None,
            track_best_outputs=False,
            display_progress_bar=sys.stderr.isatty(),
            seed=seed,
        )
    except Stopped as stopped:
        raise stopped.__cause__ or stopped from None
    reflections = adapter.reflections
    search = Search(
        metric_calls=found.total_metric_calls or 0,
        iterations=stopper.iterations,
        reflections=len(reflections),
        instructions=sum(reflected.proposed for reflected in reflections),
        accepted=len(found.candidates) - 1,
        validation={"before": found.val_aggregate_scores[0], "after": max(found.val_aggregate_scores)},
        refused=dict(Counter(reason for reflected in reflections for reason in reflected.refused)),
        reflected_on=dict(Counter(reflected.predictor for reflected in reflections)),
        gave_up=adapter.in_vain >= GIVE_UP,
    )
    best = found.candidates[found.best_idx] if search.tuned else {}
    return with_instructions(program, best), search
