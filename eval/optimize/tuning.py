"""Tune the prompts of one stage on labels: search, compare on held-out questions, and keep only what is shown to help.

::

    tuned = optimize(program, read_labels("labels.csv"), reflection=dspy.LM("openai/gpt-4o"), budget=400)
    tuned.kept, tuned.figures["fused"]["srcc"]["change"], tuned.why
    write(tuned, Path("tuned"), {})    # of report: prompts.json, fusion.yaml, report.html
"""

import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import dspy

from agenticiqa.eval.datasets import LabeledImage, MosScale
from agenticiqa.eval.names import OPTIMIZERS, Optimizer
from agenticiqa.eval.optimize.comparison import Tuned, compare, fitted, gain_of_profile
from agenticiqa.eval.optimize.dspy_optimizers import Count, DSPyOptimizer, gepa_for, tuned_by_dspy
from agenticiqa.eval.optimize.for_dspy import example_of
from agenticiqa.eval.optimize.items import PREDICTORS, Assessed, Stage, TuningQuestion, questions_of, split_by_content
from agenticiqa.eval.optimize.measurements import Measurements, Progress, unreached, with_instructions
from agenticiqa.eval.optimize.objectives import feedback, value, worst_first
from agenticiqa.eval.optimize.reflection import Reflection
from agenticiqa.eval.optimize.search import (
    SHOWN,
    Measure,
    Proposal,
    Propose,
    Search,
    Searched,
    Step,
    Value,
    first_places,
    search_key,
)
from agenticiqa.eval.questions.task import Item
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.limits import LimitReached, Limits
from agenticiqa.programs.backends.run_context import current
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.configured import curves_digest
from agenticiqa.programs.fusion.profile import FusionProfile
from agenticiqa.programs.images.files import digest, sha256_of
from agenticiqa.programs.saving import prompts_of, scoring_prompt
from agenticiqa.signatures.summarizer import NameLevel

FEWEST_COMPARED = 8  # held-out questions; with fewer, no improvement can be shown
MARGIN = 1.3  # factor on the expected cost of the comparison


def tunable(program: AgenticIQA, stage: Stage) -> dict[str, type[dspy.Signature]]:
    """Return the signatures that a stage tunes, by predictor, except the fixed one of the levels scorer.

    Raises UserError if the stage uses no model.
    """
    asked = {name: each.signature for name, each in program.named_predictors() if each.signature is not NameLevel}
    beginning = PREDICTORS.get(stage, "")
    others = (PREDICTORS["answering"], "executor.locate.") if stage == "all" else ()
    found = {name: each for name, each in asked.items() if name.startswith(beginning) and not name.startswith(others)}
    if found:
        return found
    if program.questions and not asked:
        raise UserError("nothing to tune: the prompt of the levels scorer is fixed, as its models were trained on it")
    if not asked:
        raise UserError("nothing to tune: no stage uses a model; name one with --backend or --config")
    raise UserError(f"nothing to tune: --stage {stage} uses no model in this configuration")


def optimize(
    program: AgenticIQA,
    labels: Sequence[LabeledImage | Item | TuningQuestion],
    stage: Stage = "scoring",
    *,
    reflection: dspy.BaseLM | None = None,
    budget: int = 400,
    starts: int = 3,
    optimizer: Optimizer | DSPyOptimizer = "reflect",
    held_out: float = 0.4,
    scale: MosScale | None = None,
    seed: int = 0,
    workers: int = 1,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Tuned:
    """Tune the prompts of one stage, without changing the program.

    Args:
        program: The program to tune.
        labels: Images with MOS, images with named distortions, or questions with answers, as ``stage`` needs.
        stage: The stage to tune.
        reflection: The model that writes instructions for "reflect" and "gepa".
        budget: The most assessments of images, without those of the comparison. The search also ends at the limits of
            calls and USD that ``run_context.within`` sets.
        starts: How many first proposals "reflect" tries, continuing with the best.
        optimizer: "reflect", the search of this package, "gepa", DSPy's, or an optimizer of DSPy that you made, such as
            ``dspy.BootstrapFewShot(metric)``. Its examples are those of ``examples_of``; what its metric raises is
            raised.
        held_out: The share of the labels' contents that is held out for the comparison.
        scale: The scale of the MOS; by default inferred from their range.
        seed: Determines the split and the search.
        workers: How many images are assessed at a time.
        folder: Stores measurements and proposals, so the same call, or one with a larger budget, continues without
            repeating any.
        progress: Wraps each iterator of images, with their number, such as a progress bar.

    Returns:
        The program with the kept prompts, and the held-out figures before and after.

    Raises:
        UserError: The labels or the program do not fit the stage, or ``reflection`` is missing, or
            there is no such optimizer.
        dspy.LMError: Either model could not be reached.
    """
    began = time.monotonic()
    if isinstance(optimizer, str) and optimizer not in OPTIMIZERS:
        raise UserError(f"unknown optimizer {optimizer!r}: choose {' or '.join(OPTIMIZERS)}, or give one of DSPy")
    if isinstance(optimizer, str) and reflection is None:
        raise UserError(f"{optimizer!r} needs a model that writes instructions: give one with reflection=")
    signatures = tunable(program, stage)
    questions = questions_of(labels, stage, scale)
    pool, comparison_set = split_by_content(questions, held_out=held_out, seed=seed)
    fusion_places = sorted(first_places(random.Random(seed), len(pool))[:budget])
    limits = current().limits
    with ExitStack() as files:
        kept_answers, kept_proposals = (
            files.enter_context(ResultsFile(folder / name)) if folder else None
            for name in ("measured.jsonl", "proposed.jsonl")
        )
        measured = Measurements(stage, workers, kept_answers, progress)
        before, limit_reached = _within_limits(measured, program, comparison_set)
        skipped = unreached(program, signatures, before) if stage == "all" else {}
        signatures = {name: each for name, each in signatures.items() if name not in skipped}
        originals = {name: each.instructions for name, each in signatures.items()}
        price = MoneyLeft(limits, measured)

        def may_go_on() -> bool:
            return not limit_reached and price.affords(len(comparison_set))

        if reflection is not None and optimizer == "reflect":
            reflect = Reflection(reflection, signatures, kept_proposals)
            bench = _bench(program, pool, measured, reflect)
            search = Search(*bench, len(pool), budget=budget, starts=starts, seed=seed, may_go_on=may_go_on)
            found = search.run(originals)
            seen = [sorted(search.known.get(search_key(texts), ())) for texts in (originals, found.best)]
        elif limit_reached:
            found, seen = Searched(originals, ended=limit_reached), [[], []]
        else:
            seen = [fusion_places, fusion_places] if stage in ("scoring", "all") else [[], []]
            kept_back = len(comparison_set) + 2 * len(seen[0])
            count = Count(budget, measured, limits, lambda: price.affords(kept_back))
            if isinstance(optimizer, str):
                made, sets = gepa_for(pool, reflection, seed, count)
            else:
                made, sets = optimizer, {"trainset": [example_of(question) for question in pool]}
            found = tuned_by_dspy(made, sets, program, pool, signatures, count)
        candidate = with_instructions(program, found.best, found.demos)
        if may_go_on():
            seen[0] = seen[0] or fusion_places  # the budget was too small to begin a search
        profiles = [
            _profile(each, [pool[place] for place in places if place in fusion_places], measured)
            for each, places in zip((program, candidate), seen, strict=True)
        ]
        after, compared = before, comparison_set
        if found.tuned:
            after, limit_reached = _within_limits(measured, candidate, comparison_set)
        if limit_reached:
            found.ended = limit_reached
            compared, before, after = _both_known(measured, program, candidate, comparison_set)
        figures = compare(stage, compared, before, after, (profiles[0], profiles[1]))
        kept, why = bool(figures["kept"]), str(figures["why"])
        if not found.tuned:
            kept, why = False, "no better prompts were found"
        elif len(compared) < FEWEST_COMPARED:
            kept, why = (
                False,
                f"only {len(compared)} held-out questions could be compared; raise the limits, or use more labels",
            )
        final, places = (candidate, seen[1]) if kept else (program, seen[0])
        profile = _profile(final, [pool[place] for place in places], measured)
        if profile:
            figures["profile"] = gain_of_profile(compared, after if kept else before, profile)
    return Tuned(
        final,
        stage,
        kept,
        why,
        figures,
        found,
        originals,
        profile and profile.model_copy(update=_about(final, profile)),
        skipped,
        {"to tune on": len(pool), "used": found.used, "held-out": len(comparison_set)},
        {
            "seconds": round(time.monotonic() - began),
            "assessed": measured.fresh,
            "calls": limits.calls,
            "usd": limits.usd,
        },
        sorted({sha256_of(question.image) for question in questions}),
    )


@dataclass
class MoneyLeft:
    """The limits of a run, and the average cost of an assessment in this process."""

    limits: Limits
    measured: Measurements

    def affords(self, assessments: int) -> bool:
        """Return whether this many further assessments are expected to fit into the remaining limits."""
        each = MARGIN * assessments / max(self.measured.fresh, 1)
        usd, calls = self.limits.max_usd, self.limits.max_calls
        return (usd is None or self.limits.usd * (1 + each) <= usd) and (
            calls is None or self.limits.calls * (1 + each) <= calls
        )


def _bench(
    program: AgenticIQA, pool: Sequence[TuningQuestion], measured: Measurements, reflect: Reflection
) -> tuple[Measure, Value, Propose]:
    """Return what a search over the questions of ``pool`` calls: to measure, to value answers, and to propose."""
    stage = measured.stage

    def measure(texts: Mapping[str, str], places: Sequence[int]) -> list[Assessed]:
        return measured.assess(with_instructions(program, texts), [pool[place] for place in places])

    def valued(assessed: Sequence[Assessed], places: Sequence[int]) -> float:
        return value(stage, assessed, [pool[place] for place in places])

    def propose(
        texts: Mapping[str, str], places: Sequence[int], assessed: Sequence[Assessed], tried: Sequence[Step]
    ) -> Proposal:
        answered = Counter(name for one in assessed for name in one.calls if name in texts)
        if not answered:
            return Proposal(None, refused=("the model gave no valid answer that the reflection model could use",))
        turns = Counter(step.predictor for step in tried)
        name = min(sorted(answered), key=lambda each: turns[each])
        shown = [
            place
            for place in worst_first(stage, assessed, [pool[each] for each in places])
            if name in assessed[place].calls
        ]
        batch = [assessed[i] for i in shown[:SHOWN]], [pool[places[i]] for i in shown[:SHOWN]]
        return reflect(name, texts, *batch, feedback(stage, *batch), tried)

    return measure, valued, propose


def _within_limits(
    measured: Measurements, program: AgenticIQA, questions: Sequence[TuningQuestion]
) -> tuple[list[Assessed], str]:
    """Return all results and an empty text; after a limit, the results so far and the reason."""
    try:
        return measured.assess(program, questions), ""
    except LimitReached as limit:
        known = (measured.known_of(program, question) for question in questions)
        return [one for one in known if one is not None], str(limit)


def _about(program: AgenticIQA, profile: FusionProfile) -> dict[str, str]:
    """Return the digests of the prompts and of the tools' curves that a profile was fitted with."""
    tools = getattr(program.executor, "toolbox", {})
    return {
        "prompts": digest(prompts_of(program)),
        "tuned": scoring_prompt(program),
        "curves": curves_digest(profile.toolset, tools),
    }


def _profile(program: AgenticIQA, questions: Sequence[TuningQuestion], measured: Measurements) -> FusionProfile | None:
    if measured.stage not in ("scoring", "all"):
        return None
    try:
        return fitted(questions, measured.assess(program, questions))
    except LimitReached:
        return None


def _both_known(
    measured: Measurements, before: AgenticIQA, after: AgenticIQA, questions: Sequence[TuningQuestion]
) -> tuple[list[TuningQuestion], list[Assessed], list[Assessed]]:
    """Return the questions that were measured with both programs, and the results."""
    rows = [(q, measured.known_of(before, q), measured.known_of(after, q)) for q in questions]
    both = [(q, x, y) for q, x, y in rows if x is not None and y is not None]
    return [q for q, _, _ in both], [x for _, x, _ in both], [y for *_, y in both]
