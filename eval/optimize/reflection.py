"""Run GEPA: which predictor is improved next, what the reflection model has to keep, and what ends a run.

Agrawal et al., "GEPA: Reflective Prompt Evolution Can Outperform Reinforcement Learning", 2025 (arXiv 2507.19457).
"""

import contextlib
import inspect
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dspy
from dspy.teleprompt.gepa import InstructionProposer

from agenticiqa.eval.datasets import MosScale
from agenticiqa.eval.optimize.gepa_adapter import GepaAdapter, Stopped, example, score_with_feedback
from agenticiqa.eval.optimize.splits import Splits
from agenticiqa.programs.assess import AgenticIQA

MINIBATCH = 3  # images in one reflection
KEEP = """Keep what the current instruction says about the form of the answer: its fields, its words to choose from,
its scales. Write rules that hold for any image; never mention the content, the file or the opinion score of an example.
Say what to look for, how much it should weigh, and where the earlier answers were too kind or too harsh."""


class Reflection(InstructionProposer):
    """DSPy's proposer, but an outage of the reflection model ends the run instead of counting as no proposal."""

    def __init__(self) -> None:
        super().__init__(additional_instructions=" ".join(KEEP.split()))

    def __call__(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        """A new instruction for each of ``components_to_update``. Raises Stopped for an outage."""
        try:
            return super().__call__(candidate, reflective_dataset, components_to_update)
        except dspy.LMError as error:
            raise Stopped from error


def next_used(
    state: Any,
    trajectories: Sequence[Mapping[str, Any]],
    scores: Sequence[float],
    index: int,
    candidate: dict[str, str],
) -> list[str]:
    """GEPA's component selector: round robin over the predictors that the minibatch used.

    GEPA's own round robin includes predictors that these questions never reach (answering while scoring, the replan
    decision where none was needed), and spends budget on them without a proposal.
    """
    used = {entry[0].signature.instructions for trajectory in trajectories for entry in trajectory["trace"]}
    names = [name for name, text in candidate.items() if inspect.cleandoc(text) in used] or list(candidate)
    return [names[state.i % len(names)]]


def tune(
    program: AgenticIQA,
    query: str,
    splits: Splits,
    scale: MosScale,
    reflection: dspy.LM,
    *,
    budget: int,
    seed: int = 0,
    log_dir: Path | None = None,
    workers: int = 1,
) -> tuple[AgenticIQA, dict[str, Any]]:
    """A copy of the program with the instructions that scored best in validation, and figures of the search.

    ``budget`` is the number of judgments; GEPA checks it between steps, so the last step may exceed it. Raises what
    ended the search: ``dspy.LMError`` for an outage of either model, UserError for an image that cannot be judged.
    """
    optimizer = dspy.GEPA(
        metric=score_with_feedback,
        max_metric_calls=budget,
        reflection_lm=reflection,
        reflection_minibatch_size=MINIBATCH,
        instruction_proposer=Reflection(),
        component_selector=next_used,
        num_threads=workers,
        log_dir=str(log_dir) if log_dir else None,
        track_stats=True,
        seed=seed,
    )
    train, val = ([example(label, query, scale) for label in rows] for rows in (splits.train, splits.val))
    try:
        with (
            dspy.context(disable_history=True, trace=None),  # both would keep every image of the run in memory
            open(os.devnull, "w") as devnull,
            contextlib.redirect_stdout(devnull),  # DSPy draws a bar for each minibatch on stdout
        ):
            best = optimizer.compile(GepaAdapter(program), trainset=train, valset=val)
    except Stopped as stopped:
        raise stopped.__cause__ or stopped from None
    found = best.detailed_results
    return best.program, {
        "metric_calls": found.total_metric_calls,
        "candidates": len(found.candidates),
        "validation_score": {"before": found.val_aggregate_scores[0], "after": max(found.val_aggregate_scores)},
    }
