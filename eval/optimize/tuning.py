"""Tune the prompts of one stage on labels: search, compare on held-out questions, and keep only what is shown to help.

::

    tuned = optimize(program, labels, TuningSettings(budget=400), reflection=dspy.LM("openai/gpt-4o"))
    tuned.kept, tuned.figures["fused"]["srcc"]["change"], tuned.why
    write(tuned, Path("tuned"), {})    # of report: prompts.json, fusion.yaml, report.html
"""

import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dspy

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.names import OPTIMIZERS, Stage
from agenticiqa.eval.optimize.before_after import Tuned, compare, fitted, gain_of_profile
from agenticiqa.eval.optimize.dspy_optimizers import Count, gepa_for, tuned_by_dspy
from agenticiqa.eval.optimize.for_dspy import example_of
from agenticiqa.eval.optimize.items import PREDICTORS, Assessed, TuningQuestion, questions_of, split_by_content, unused
from agenticiqa.eval.optimize.measurements import Measurements, Progress, unreached, with_instructions
from agenticiqa.eval.optimize.objectives import feedback, value, worst_first
from agenticiqa.eval.optimize.reflection import Reflection
from agenticiqa.eval.optimize.search import SHOWN, Proposal, Search, Searched, Step, first_places
from agenticiqa.eval.optimize.settings import TuningSettings
from agenticiqa.eval.questions.task import Item
from agenticiqa.programs.assess import AgenticIQA, refuse_unpriced
from agenticiqa.programs.backends.limits import LimitReached, Limits, RunLimits
from agenticiqa.programs.backends.run_context import current, within
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.configured import curves_digest
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.profile import FusionProfile
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.saving import scoring_prompt
from agenticiqa.signatures.summarizer import NameLevel

DEFAULTS = TuningSettings()
MARGIN = 1.3  # factor on the expected cost of the comparison


def tunable(program: AgenticIQA, stage: Stage) -> dict[str, type[dspy.Signature]]:
    """Return the signatures that a stage tunes, by predictor, except the fixed one of the levels scorer.

    Raises UserError if the stage uses no model.
    """
    signatures = {name: part.signature for name, part in program.named_predictors() if part.signature is not NameLevel}
    beginning = PREDICTORS.get(stage, "")
    others = (PREDICTORS["answering"], "executor.locate.") if stage == "all" else ()
    chosen = [name for name in signatures if name.startswith(beginning) and not name.startswith(others)]
    if chosen:
        return {name: signatures[name] for name in chosen}
    if program.questions and not signatures:
        raise UserError("nothing to tune: the prompt of the levels scorer is fixed, as its models were trained on it")
    if not signatures:
        raise UserError("nothing to tune: no stage of the program uses a model")
    raise UserError(f"nothing to tune: --stage {stage} uses no model in this configuration")


def optimize(
    program: AgenticIQA,
    labels: Sequence[LabeledImage | Item | TuningQuestion],
    settings: TuningSettings = DEFAULTS,
    *,
    reflection: dspy.BaseLM | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
    limits: Limits | None = None,
) -> Tuned:
    """Tune the prompts of one stage, without changing the program.

    Args:
        program: The program to tune.
        labels: Images with MOS, images with named distortions, or questions with answers, as the stage needs.
        settings: The stage, the budget, the optimizer and the split.
        reflection: The model that writes instructions for "reflect" and "gepa".
        folder: Stores measurements and proposals, so the same call, or one with a larger budget, continues without
            repeating any.
        progress: Wraps each iterator of images, with their number, such as a progress bar.
        limits: The limits of this call, which apply beside those of the program. They also count the calls of
            ``reflection``, and its USD if it is a model of a configuration. The search ends before it reaches them.

    Returns:
        The program with the kept prompts, and the held-out figures before and after.

    Raises:
        UserError: The labels or the program do not fit the stage, or ``reflection`` is missing, or
            there is no such optimizer, or there is a limit in USD without the price of a model.
        dspy.LMError: Either model could not be reached.
    """
    began = time.monotonic()
    _refuse_optimizer(settings, reflection)
    refuse_unpriced(program, limits)
    signatures = tunable(program, settings.stage)
    questions = questions_of(labels, settings.stage, settings.scale)
    pool, held_out = split_by_content(questions, held_out=settings.held_out, seed=settings.seed)
    run_limits = current().limits.beside(program.limits).beside(limits)
    with within(run_limits), ExitStack() as files:
        answers, proposals = (
            files.enter_context(ResultsFile(folder / name)) if folder else None
            for name in ("measured.jsonl", "proposed.jsonl")
        )
        measured = Measurements(settings.stage, settings.workers, answers, progress)
        before, limit = _within_limits(measured, program, held_out)
        skipped = unreached(program, signatures, before) if settings.stage == "all" else {}
        reached = {name: signature for name, signature in signatures.items() if name not in skipped}
        run = _Run(program, settings, pool, held_out, reached, measured, run_limits, before, limit)
        searched = run.search(reflection, proposals)
        decision = run.decide(searched)
    seconds = round(time.monotonic() - began)
    return Tuned(
        decision.program,
        settings.stage,
        decision.kept,
        decision.why,
        decision.figures,
        searched,
        run.originals,
        decision.profile,
        skipped,
        counts={"to tune on": len(pool), "used": searched.used, "held-out": len(held_out)},
        spent={
            "seconds": seconds,
            "assessed": measured.fresh,
            "calls": run_limits.own.calls,
            "usd": run_limits.own.usd,
        },
        images=sorted({sha256_of(question.image) for question in questions}),
    )


def _refuse_optimizer(settings: TuningSettings, reflection: dspy.BaseLM | None) -> None:
    """Raise UserError for an unknown optimizer, and for one without the model that it needs."""
    if not isinstance(settings.optimizer, str):
        return
    if settings.optimizer not in OPTIMIZERS:
        choices = " or ".join(OPTIMIZERS)
        raise UserError(f"unknown optimizer {settings.optimizer!r}: choose {choices}, or give one of DSPy")
    if reflection is None:
        raise UserError(f"{settings.optimizer!r} needs a model that writes instructions: give one with reflection=")


class _Decision(NamedTuple):
    """The ``program`` with the prompts that are kept, the reason, the held-out figures, and its fitted fusion."""

    program: AgenticIQA
    kept: bool
    why: str
    figures: dict[str, Any]
    profile: FusionProfile | None


@dataclass
class _Run:
    """One search over the questions of ``pool``, and its comparison on ``held_out``.

    ``before`` has the held-out results of the original program, and ``limit`` ended their measurement, if any did.
    """

    program: AgenticIQA
    settings: TuningSettings
    pool: Sequence[TuningQuestion]
    held_out: Sequence[TuningQuestion]
    signatures: Mapping[str, type[dspy.Signature]]
    measured: Measurements
    limits: RunLimits
    before: list[Assessed]
    limit: LimitReached | None

    @property
    def originals(self) -> dict[str, str]:
        """The instructions before tuning, by predictor."""
        return {name: signature.instructions for name, signature in self.signatures.items()}

    @property
    def fusion_places(self) -> list[int]:
        """The questions to which both fusions are fitted for the comparison."""
        return sorted(first_places(random.Random(self.settings.seed), len(self.pool))[: self.settings.budget])

    def questions(self, places: Sequence[int]) -> list[TuningQuestion]:
        """Return the questions of the pool at these places."""
        return [self.pool[place] for place in places]

    def affords(self, assessments: int) -> bool:
        """Return whether this many assessments are expected to fit into the remaining limits, by their average cost."""
        share = MARGIN * assessments / max(self.measured.fresh, 1)
        spent = self.limits.own
        return all(each.affords(share * spent.calls, share * spent.usd) for each in self.limits.all)

    def may_go_on(self) -> bool:
        """Return whether the limits allow more than the comparison."""
        return self.limit is None and self.affords(len(self.held_out))

    def search(self, reflection: dspy.BaseLM | None, proposals: ResultsFile | None) -> Searched:
        """Search with the optimizer of the settings; ``proposals`` stores the answers of ``reflection``."""
        if reflection is not None and self.settings.optimizer == "reflect":
            searched = self.by_reflection(Reflection(reflection, self.signatures, proposals))
        else:
            searched = self.by_dspy(reflection)
        if not searched.original_places and self.may_go_on():  # the budget was too small to begin a search
            searched.original_places = self.fusion_places
        return searched

    def decide(self, searched: Searched) -> _Decision:
        """Compare the best prompts with the original ones on held-out questions, and keep what is shown to help."""
        tuned = with_instructions(self.program, searched.best, searched.demos)
        shared = set(self.fusion_places)
        fusions = (
            self.fusion(self.program, [place for place in searched.original_places if place in shared]),
            self.fusion(tuned, [place for place in searched.best_places if place in shared]),
        )
        questions, before, after = self._both(tuned, searched)
        figures = compare(self.settings.stage, questions, before, after, fusions)
        kept, why = (figures["kept"], figures["why"]) if searched.tuned else (False, "no better prompts were found")
        final, places, assessed = self.program, searched.original_places, before
        if kept:
            final, places, assessed = tuned, searched.best_places, after
        fusion = self.fusion(final, places)
        if fusion:
            held_out = {*self.held_out}  # the fusion may be fitted to other ones
            rows = [(q, one) for q, one in zip(questions, assessed, strict=True) if q in held_out]
            figures["profile"] = gain_of_profile([q for q, _ in rows], [one for _, one in rows], fusion)
        profile = fusion.profile if fusion else None
        return _Decision(final, kept, why, figures, profile and profile.model_copy(update=_about(final, profile)))

    def _both(
        self, tuned: AgenticIQA, searched: Searched
    ) -> tuple[Sequence[TuningQuestion], list[Assessed], list[Assessed]]:
        """Return the questions without a part in the search, with the results before and after.

        These are the held-out ones, and those of the pool that the search did not use. After a limit, they are those
        that have both results.
        """
        questions, limit = list(self.held_out), self.limit
        if searched.tuned:
            _, limit = _within_limits(self.measured, tuned, self.held_out)
            more = unused(self.pool, searched.seen, len(self.held_out))
            if limit is None and more and self.affords(2 * len(more)):
                questions += more
                for program in (self.program, tuned):
                    limit = limit or _within_limits(self.measured, program, more)[1]
        if limit is None:
            return questions, self.measured.assess(self.program, questions), self.measured.assess(tuned, questions)
        searched.ended = str(limit)
        results = [(q, self.measured.known_of(self.program, q), self.measured.known_of(tuned, q)) for q in questions]
        both = [(q, x, y) for q, x, y in results if x is not None and y is not None]
        return [q for q, _, _ in both], [x for _, x, _ in both], [y for *_, y in both]

    def by_reflection(self, reflect: Reflection) -> Searched:
        """Search with the package's own optimizer."""
        propose, size = partial(self._propose, reflect), len(self.pool)
        search = Search(self._measure, self._value, propose, size, self.settings, self.may_go_on)
        return search.run(self.originals)

    def by_dspy(self, reflection: dspy.BaseLM | None) -> Searched:
        """Run GEPA, or the caller's optimizer."""
        settings = self.settings
        if self.limit is not None:
            return Searched(self.originals, ended=str(self.limit))
        places = self.fusion_places if settings.stage in ("scoring", "all") else []
        kept_back = len(self.held_out) + 2 * len(places)
        count = Count(settings.budget, self.measured, self.limits, lambda: self.affords(kept_back))
        if isinstance(settings.optimizer, str):
            optimizer, sets = gepa_for(self.pool, reflection, settings.seed, count)
        else:
            optimizer, sets = settings.optimizer, {"trainset": [example_of(question) for question in self.pool]}
        searched = tuned_by_dspy(optimizer, sets, self.program, self.pool, self.signatures, count)
        searched.original_places = searched.best_places = places
        searched.seen = [*range(len(self.pool))]
        return searched

    def fusion(self, program: AgenticIQA, places: Sequence[int]) -> ScoreFusion | None:
        """Return the program's fusion, fitted to these questions, or ``None`` if it cannot be fitted."""
        if program.fusion is None or self.settings.stage not in ("scoring", "all"):
            return None
        try:
            profile = fitted(self.questions(places), self.measured.assess(program, self.questions(places)))
        except LimitReached:
            return None
        return program.fusion.with_profile(profile) if profile else None

    def _measure(self, texts: Mapping[str, str], places: Sequence[int]) -> list[Assessed]:
        return self.measured.assess(with_instructions(self.program, texts), self.questions(places))

    def _value(self, assessed: Sequence[Assessed], places: Sequence[int]) -> float:
        return value(self.settings.stage, assessed, self.questions(places))

    def _propose(
        self,
        reflect: Reflection,
        texts: Mapping[str, str],
        places: Sequence[int],
        assessed: Sequence[Assessed],
        tried: Sequence[Step],
    ) -> Proposal:
        answered = Counter(name for one in assessed for name in one.calls if name in texts)
        if not answered:
            return Proposal(None, refused=("the model gave no valid answer that the reflection model could use",))
        turns = Counter(step.predictor for step in tried)
        name = min(sorted(answered), key=turns.__getitem__)
        ranks = worst_first(self.settings.stage, assessed, self.questions(places))
        worst = [rank for rank in ranks if name in assessed[rank].calls][:SHOWN]
        batch = [assessed[rank] for rank in worst], self.questions([places[rank] for rank in worst])
        return reflect(name, texts, *batch, feedback(self.settings.stage, *batch), tried)


def _within_limits(
    measured: Measurements, program: AgenticIQA, questions: Sequence[TuningQuestion]
) -> tuple[list[Assessed], LimitReached | None]:
    """Return all results; after a limit, the results so far and the limit."""
    try:
        return measured.assess(program, questions), None
    except LimitReached as limit:
        known = (measured.known_of(program, question) for question in questions)
        return [one for one in known if one is not None], limit


def _about(program: AgenticIQA, profile: FusionProfile) -> dict[str, str | bool]:
    """Return the scoring prompt and the digest of the tools' curves that a profile was fitted with."""
    prompt, tools = scoring_prompt(program), getattr(program.executor, "toolbox", {})
    return {"prompt": prompt.digest, "tuned": prompt.is_tuned, "curves": curves_digest(profile.toolset, tools)}
