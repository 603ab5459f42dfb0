"""AgenticIQA: plan, execute and summarize, and repeat with a new plan while the evidence is insufficient."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple, TextIO

import dspy

from agenticiqa.configs import STAGES, Config, FusionConfig, Price, load_config
from agenticiqa.configs.options import Effect
from agenticiqa.programs.backends.call_log import NO_HISTORY
from agenticiqa.programs.backends.choice import AMBIENT, without_place
from agenticiqa.programs.backends.connect import backend_name, connect
from agenticiqa.programs.backends.limits import Limits
from agenticiqa.programs.errors import WrongArgument
from agenticiqa.programs.events import next_round
from agenticiqa.programs.fusion.configured import check_prompt, fusion_of
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.tool_mean import PlainMean
from agenticiqa.programs.images import ImageSource
from agenticiqa.programs.images.pairs import Pair
from agenticiqa.programs.offline.reference import load_assessed, with_check
from agenticiqa.programs.offline.stages import (
    EvidenceAnswerer,
    MeasuredAnalyst,
    MeasuredDetector,
    MeasuredScorer,
    RulePlanner,
    SaliencyLocator,
    TableSelector,
)
from agenticiqa.programs.questions.options import OptionsArgument, query_for_stages, read_options
from agenticiqa.programs.result import Assessment, RunRecord, bookkeeping
from agenticiqa.programs.saving import SavedProgram, scoring_prompt
from agenticiqa.programs.stages import progress, protocols
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.programs.stages.evidence import basis_of
from agenticiqa.programs.stages.executor import Executor
from agenticiqa.programs.stages.inputs import awaited_as, naming_mistakes, require_stages
from agenticiqa.programs.stages.levels import LevelsPlanner, levels_scorer
from agenticiqa.programs.stages.plan_rules import effect_of
from agenticiqa.programs.stages.planner import Planner
from agenticiqa.programs.stages.protocols import ReplanVerdict, Summarized
from agenticiqa.programs.stages.question import checked
from agenticiqa.programs.stages.remedies import Remedy, feedback_on, remedy_for
from agenticiqa.programs.stages.replan import Replan, as_final, remember, replan_judge
from agenticiqa.programs.stages.side_by_side import beside, cpu_slot
from agenticiqa.programs.stages.summarizer import Summarizer
from agenticiqa.programs.tools import toolbox
from agenticiqa.programs.tools.catalog import own_tool
from agenticiqa.programs.tools.metrics.learned_iqa import TOOL, outside_training
from agenticiqa.programs.tools.tool import Tool
from agenticiqa.signatures.types import ExecutorOutput, PlannerOutput, SummarizerOutput


class AgenticIQA(SavedProgram):
    """A program that answers a question about the quality of an image, with or without a pristine reference.

    It has four stages. Each one asks a model or works offline::

        program = AgenticIQA()                         # asks DSPy's model: dspy.configure(lm=...), dspy.context, set_lm
        program = AgenticIQA(backend="openai/gpt-4o")  # asks this model in every stage
        program = AgenticIQA(lm=dspy.LM("openai/gpt-4o"))  # asks it through DSPy's own model, as set_lm does
        program = AgenticIQA.offline()                 # uses rules and measurements, sends nothing
        program = AgenticIQA.from_config("mine.yaml")  # sets up each stage from the configuration
        result = program("photo.jpg", "Is it sharp?")

    A model set with ``set_lm`` or ``dspy.context`` replaces the configured one.

    Args:
        planner: The stage that plans (``stages.protocols`` describes all four). A stage that is not given is set up
            by ``config``.
        executor: The stage that collects the evidence.
        summarizer: The stage that answers from the evidence.
        replan: The stage that decides whether to plan again.
        lm: The model of every stage, instead of ``backend``: a ``dspy.LM``, or its name.
        backend: A model as a configuration names it ("openai.gpt-4o"); by default DSPy's model is asked (see
            ``backends.choice.models_to_ask``).
        api_base: The address of its server, if it is not at its provider.
        api_key_env: The environment variable with the key of that server.
        price: Its price in USD per million tokens, such as "2.5,10" for input and output, if it is not known.
        fusion: How tool scores and the model's probabilities become a score, if no summarizer is given: a
            ``ScoreFusion``, the file of a fusion profile, or "paper" for ``ScoreFusion()``, equations 1 to 4 of the
            paper. By default, tools that the program itself chooses have weights in the tool mean.
        keep_history: Whether to keep DSPy's history (``dspy.inspect_history``, ``lm.history``); in it each image is
            replaced by its hash and size.
        limits: The most calls and USD of this program and all its copies, instead of ``max_calls`` and ``max_usd`` of
            ``config``. A call beyond them raises LimitReached.
        config: All other settings, such as ``Config(max_side=1024)``. Without ``lm`` and ``backend``, it also names the
            backend of each stage, by default "offline".

    Attributes:
        frozen: The names of the predictors that optimizers do not see (see ``eval.optimize.freeze``).
        limits: The limits, and the calls and USD so far.

    Raises:
        WrongArgument: A stage cannot be called as one, or ``lm`` or ``backend`` would not be asked or contradict each
            other, or ``fusion`` or ``limits`` would not be used, or a limit in USD lacks the price of a model.
        BackendError: A backend is unknown, or its key is missing.
        ConfigError: A setting is invalid, or has no effect without ``backend``.
        StateError: No tuned prompt of ``config`` fits this program.
        UserError: The fusion profile cannot be used.
    """

    def __init__(
        self,
        planner: protocols.PlannerStage | None = None,
        executor: protocols.ExecutorStage | None = None,
        summarizer: protocols.SummarizerStage | None = None,
        replan: protocols.ReplanStage | None = None,
        *,
        lm: dspy.BaseLM | str | None = None,
        backend: str | None = None,
        api_base: str | None = None,
        api_key_env: str | None = None,
        price: Price | str | None = None,
        fusion: ScoreFusion | str | os.PathLike[str] | None = None,
        keep_history: bool = False,
        limits: Limits | None = None,
        config: Config | None = None,
    ) -> None:
        super().__init__()
        given = {"planner": planner, "executor": executor, "summarizer": summarizer, "replan": replan}
        refuse_conflicts(given, lm, backend, fusion)
        if backend is None and (lm is not None or config is None):
            backend = AMBIENT
        config = (config or Config()).with_backend(backend, api_base, api_key_env, price)
        if fusion is not None and not isinstance(fusion, ScoreFusion):
            config = config.model_copy(update={"fusion": FusionConfig.model_validate(os.fspath(fusion))})
        config = config.with_tuned_fusion().in_mode()
        default = composed(config, fusion if isinstance(fusion, ScoreFusion) else None)
        self.planner = planner or default.planner
        self.executor = executor or default.executor
        self.summarizer = summarizer or default.summarizer
        self.replan = replan or default.replan
        if summarizer is None and default.executor.plain_mean == "always" != getattr(self.executor, "plain_mean", None):
            raise WrongArgument(
                "fusion takes the plain mean of all tools, which the executor computes: make it with "
                "plain_mean='always'"
            )
        self.max_replan_iterations = config.max_replan_iterations
        self.image_settings = config.image_settings
        self.keep_history = keep_history or config.keep_history
        self.backend = "custom" if any(given.values()) else backend_name(config)
        self.version = version("agenticiqa")
        if lm is not None:
            if not self.questions:
                raise WrongArgument("lm has no effect, because every stage works offline; leave it out")
            self.set_lm(dspy.LM(lm) if isinstance(lm, str) else lm)
        self.limits = limits_of(self, limits, config)
        if config.prompts is not None:
            self.load(config.prompts)
        if fusion is None:  # prompts that belong to a profile given as an argument may be loaded later
            check_prompt(config.fusion.profile, self.fusion, scoring_prompt(self).digest)

    @classmethod
    def offline(cls, adapter: str | os.PathLike[str] | None = None) -> "AgenticIQA":
        """Return a program that uses no language model, regardless of any configuration.

        Args:
            adapter: A file written by ``agenticiqa calibrate adapter``; by default scores are not adapted.

        Returns:
            The program; its calls send nothing.

        Raises:
            UserError: The adapter cannot be used.
        """
        return cls(config=Config(adapter=None if adapter is None else os.fspath(adapter)))

    @classmethod
    def from_config(cls, config: str | os.PathLike[str] | Mapping[str, Any] | Config | None = None) -> "AgenticIQA":
        """Build the program from a configuration.

        Args:
            config: A file, a shipped name, a mapping of sections, or a ``Config``. The default is
                ``$AGENTICIQA_CONFIG``, or else the shipped default configuration.

        Returns:
            The program, with tuned prompts if the configuration names some.

        Raises:
            ConfigError: The configuration is missing or invalid.
            BackendError: A backend is unknown, or its key is missing.
            StateError: No tuned prompt fits this program.
        """
        return cls(config=config if isinstance(config, Config) else load_config(config))

    @property
    def fusion(self) -> ScoreFusion | None:
        """How the summarizer makes a score; ``None`` for a stage of your own without a ``ScoreFusion``."""
        fusion = getattr(self.summarizer, "fusion", None)
        return fusion if isinstance(fusion, ScoreFusion) else None

    @property
    def questions(self) -> list[CheckedPredict[Any]]:
        """The predictors that ask language models; the list is empty offline."""
        return [module for _, module in self.named_sub_modules(type_=CheckedPredict)]

    @property
    def asks_only_questions(self) -> bool:
        """Whether only the package's own predictors ask models; a stage or module of your own may ask in other ways."""
        return all(map(_is_own, (self.planner, self.executor, self.summarizer, self.replan)))

    def get_lm(self) -> dspy.BaseLM | None:
        """Return the model that the stages use now, for ``dspy.BestOfN`` and other modules that copy it.

        Returns:
            The model; if the stages use one with different parameters, the one with the most output tokens. ``None``
            offline.

        Raises:
            ValueError: The stages use different models.
        """
        models = [question.models[0] for question in self.questions]
        if len({lm.model for lm in models}) > 1:
            raise ValueError(f"the stages use different models: {', '.join(sorted({lm.model for lm in models}))}")
        return max(models, key=lambda lm: lm.kwargs.get("max_tokens") or 0, default=None)

    def inspect_history(self, n: int = 1, file: TextIO | None = None) -> None:
        """Print the last model calls, as ``dspy.Module.inspect_history`` does, or how to record them.

        Args:
            n: The number of calls.
            file: The stream to print to, by default stdout.
        """
        if not self.history:
            print(NO_HISTORY, file=file)
        super().inspect_history(n, file)

    def __repr__(self) -> str:
        return f"<AgenticIQA, backend {self.backend}>"

    @naming_mistakes
    def __call__(
        self,
        image: ImageSource,
        query: str | None = None,
        reference: ImageSource | None = None,
        resize_reference: bool = False,
        *,
        align: bool | None = None,
        options: OptionsArgument | None = None,
    ) -> Assessment:
        """Assess one image.

        Args:
            image: The image, in any form that ``images.sources`` lists.
            query: The question; by default the perceptual quality is rated.
            reference: The pristine image. One that shows another scene is not used; see ``reference_check`` of the
                result.
            resize_reference: Whether to scale a reference of another size to the size of the image.
            align: Whether to compare only the area that both images show (default: the program's setting).
            options: 2 to 26 texts, or a mapping of letter to text. The answer is one of their letters, and options in
                the query are ignored.

        Returns:
            The answer with its evidence. ``quality_score`` is in [1, 5], higher is better, or ``None`` without a
            rating.

        Raises:
            UserError: An argument or an image is invalid; WrongArgument (also a TypeError) for unknown arguments.
            Unanswered: No answer of a model was usable.
            NoScore: Neither a tool nor a model provided a score.
            LimitReached: The limits do not allow a further call.
            dspy.LMError: A model could not be reached.
        """
        try:
            result: Assessment = super().__call__(
                image=image,
                query=query,
                reference=reference,
                resize_reference=resize_reference,
                align=align,
                options=options,
            )
        except Exception as error:
            if self.trial is not None:
                self.trial.note(error)
            raise
        if self.trial is not None:
            self.trial.note(result)
        return result

    acall = awaited_as(__call__)

    def forward(
        self,
        image: ImageSource,
        query: str | None = None,
        reference: ImageSource | None = None,
        resize_reference: bool = False,
        *,
        align: bool | None = None,
        options: OptionsArgument | None = None,
    ) -> Assessment:
        """Run the stages; DSPy calls this when the program is called."""
        with bookkeeping(
            image, keep_history=self.keep_history, only_questions=self.asks_only_questions, limits=self.limits
        ) as finish:
            question, offered = checked(query), read_options(options)
            backend = asked_backend(self)  # an error without a model, before anything is loaded
            pair = self.load_pair(image, reference, resize_reference, align)
            progress.log_started(pair.image, question, pair.compared, backend)
            current = Round(self, pair, question, offered, self.max_replan_iterations)
            while current.make_plan():
                current.execute()
                current.summarize()
                if not current.decide():
                    break
            result, record = with_check(current.result, pair.check), current.record
            if result.need_replan:  # the new plan does the same, so the answer is final
                progress.unchanged_plan(offline=not self.questions)
                result = as_final(result)
            with cpu_slot():
                outside = () if pair.compared else outside_training(pair.image.assessed)
            return finish(
                Assessment(
                    final_answer=result.final_answer,
                    quality_score=result.quality_score,
                    quality_reasoning=result.quality_reasoning,
                    query_type=current.summarized.query_type,
                    options=dict(current.summarized.options),
                    outside_training=list(outside),
                    plan=current.plan,
                    executor_evidence=current.evidence,
                    summarizer_result=result,
                    iteration_count=current.iteration,
                    replan_history=current.history,
                    rejected_answers=record.rejected_answers,
                    timings_ms=record.timings_ms,
                    image=pair.image,
                    reference=pair.reference,
                    reference_check=pair.check,
                    query=question,
                    backend=backend,
                    version=self.version,
                )
            )

    def load_pair(
        self, image: ImageSource, reference: ImageSource | None, resize_reference: bool, align: bool | None = None
    ) -> Pair:
        """Load the image and its reference with this program's settings.

        Args:
            image: The image, in any form that ``images.sources`` lists.
            reference: The pristine image, or ``None``.
            resize_reference: Whether to scale a reference of another size.
            align: Whether to compare only the area that both images show (default: the program's setting).

        Returns:
            The loaded images, and how they overlap.

        Raises:
            ImageError: An image cannot be read, or the sizes differ.
        """
        settings = self.image_settings if align is None else replace(self.image_settings, align=align)
        with cpu_slot():
            return load_assessed(image, reference, settings, resize_reference=resize_reference)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments, other than the stages, that affect results."""
        recorded = Config.keys_with(Effect.ON_RESULTS)
        images = {key: value for key, value in asdict(self.image_settings).items() if key in recorded}
        return {"max_replan_iterations": self.max_replan_iterations, **images}


@dataclass(repr=False)
class Round:
    """The current round of an assessment: each step runs a stage of the program, and stores what it returns.

    ``AgenticIQA.forward`` and the nodes of ``programs.graph`` run the steps: plan, execute, summarize and decide.

    Attributes:
        program: The program.
        pair: The loaded images.
        query: The question.
        options: The options by letter, or ``None``.
        limit: The most further plans.
        record: The wall times and the rejected answers of all rounds.
        iteration: The number of replan requests.
        history: The reason for each replan request.
        feedback: Why the last evidence was insufficient, for the planner; empty in the first round.
        earlier_plans: The plans that were carried out before a replan.
        answered: The answers so far, by what they are based on.
        decided: The reasons to plan again of the model's decisions so far, by what these are based on.
        plan: What the planner returned.
        evidence: What the executor returned.
        summarized: What the summarizer returned.
        verdict: Whether a model asks to plan again.
        result: The answer with the replan decision.
    """

    program: AgenticIQA
    pair: Pair
    query: str
    options: Mapping[str, str] | None
    limit: int
    record: RunRecord = field(default_factory=RunRecord)
    iteration: int = 0
    history: list[str] = field(default_factory=list)
    feedback: str = ""
    earlier_plans: list[PlannerOutput] = field(default_factory=list)
    answered: dict[str, Summarized] = field(default_factory=dict)
    decided: dict[str, Sequence[str]] = field(default_factory=dict)
    plan: PlannerOutput = field(init=False)
    evidence: ExecutorOutput = field(init=False)
    summarized: Summarized = field(init=False)
    verdict: ReplanVerdict = field(init=False)
    result: SummarizerOutput = field(init=False)

    @property
    def query_with_options(self) -> str:
        """The question with its options, the input of all stages except the summarizer."""
        return query_for_stages(self.query, self.options)

    def make_plan(self) -> bool:
        """Plan, and return whether there is something new to execute.

        A plan that does what an earlier one did would give the same evidence, so it does not replace the last plan.
        """
        image, reference = self.pair.image, self.pair.compared
        with self.record.timed("planner"):
            planned = self.program.planner(
                image=image, query=self.query_with_options, reference=reference, feedback=self.feedback
            )
        self.record.noted(planned)
        if self.feedback:
            self.earlier_plans = [*self.earlier_plans, self.plan]
            if effect_of(planned.plan) in map(effect_of, self.earlier_plans):
                return False
        self.plan = planned.plan
        progress.planned(self.plan, self.record.seconds["planner"])
        return True

    def feedback_for(self, reason: str) -> str:
        """Return the feedback for the next plan, with what this plan may add."""
        return feedback_on(self.plan, reason, self.remedy)

    @property
    def remedy(self) -> Remedy:
        """What a new plan may add to the evidence; tools that need a larger image are no part of it."""
        side = min(self.pair.image.assessed.size)
        able = {name: tool for name, tool in self.toolbox.items() if tool.smallest <= side}
        return remedy_for(self.plan, self.evidence, able)

    @property
    def can_add(self) -> bool:
        """Whether a new plan can add evidence, which is unknown for a stage of the caller without a toolbox."""
        return not self.toolbox or bool(self.remedy)

    @property
    def toolbox(self) -> Mapping[str, Tool]:
        """The tools of the executor; none for a stage of the caller without a toolbox."""
        return getattr(self.program.executor, "toolbox", {})

    def execute(self) -> None:
        """Collect the evidence that the plan requests."""
        image, query, plan = self.pair.image, self.query_with_options, self.plan
        compares = any(name in self.toolbox and self.toolbox[name].kind == "FR" for name in plan.tools)
        reference = self.pair.reference if compares else self.pair.compared  # a named tool compares any two images
        earlier = self.evidence if self.feedback else None
        with self.record.timed("executor"):
            executed = self.program.executor(image=image, query=query, plan=plan, reference=reference, earlier=earlier)
        self.evidence = self.record.noted(executed).evidence

    def summarize(self) -> None:
        """Answer from the evidence, while a model decides about doubts in it; equal evidence is not judged again."""
        replan, decide, basis = self.program.replan, None, basis_of(self.plan, self.evidence)
        is_doubtful = replan.needs_verdict(self.plan, self.evidence, self.iteration, self.limit, self.can_add)
        if is_doubtful and basis not in self.decided:
            decide = partial(replan.verdict, self.query_with_options, self.plan, self.evidence)
        with beside(decide) as verdict:
            self.summarized = self.answered.get(basis) or self._summarized()
        self.answered[basis] = self.summarized
        self.verdict = ReplanVerdict()
        if decide:
            self.verdict = verdict.result()
            self.decided[basis] = self.verdict.reasons
        elif is_doubtful:
            self.verdict = ReplanVerdict(self.decided[basis])

    def _summarized(self) -> Summarized:
        with self.record.timed("summarizer"):
            return self.record.noted(
                self.program.summarizer(
                    image=self.pair.image,
                    query=self.query,
                    plan=self.plan,
                    evidence=self.evidence,
                    reference=self.pair.compared,
                    options=self.options,
                )
            )

    def decide(self) -> bool:
        """Decide whether to plan again, and return the decision; if so, the next round has started."""
        with self.record.timed("replan"):
            decided = self.program.replan(
                plan=self.plan,
                evidence=self.evidence,
                result=self.summarized.result,
                verdict=self.verdict,
                iteration=self.iteration,
                max_iterations=self.limit,
                can_add=self.can_add,
            )
        self.result = self.record.noted(decided).result
        if self.result.need_replan:
            reason = str(self.result.replan_reason)
            self.iteration += 1
            self.history = remember(self.history, self.iteration, reason)
            self.feedback = self.feedback_for(reason)
            next_round()
        return self.result.need_replan


def refuse_conflicts(
    stages: Mapping[str, object], lm: object, backend: str | None, fusion: ScoreFusion | str | os.PathLike[str] | None
) -> None:
    """Raise WrongArgument for what is no stage or no model, and for an argument of ``AgenticIQA`` without effect."""
    require_stages(**stages)
    if not isinstance(lm, dspy.BaseLM | str | None):
        raise WrongArgument(f"lm is of type {type(lm).__name__}: give a dspy.LM, or its name")
    if lm is not None and backend is not None:
        raise WrongArgument(f"lm and backend={backend!r} both select the model; give only one of them")
    if backend is not None and all(stages.values()):
        raise WrongArgument(f"backend={backend!r} has no effect, because every stage is given; leave it out")
    if fusion is not None and stages["summarizer"] is not None:
        raise WrongArgument("fusion has no effect, because the summarizer is given; make the summarizer with it")


def limits_of(program: AgenticIQA, given: Limits | None, config: Config) -> Limits:
    """Return the limits of a program, by default those of the configuration; none if it asks no model.

    Raises WrongArgument for given limits without effect, and for a limit in USD without the price of a model.
    """
    if not program.questions:
        if given is not None:
            raise WrongArgument("limits have no effect, because every stage works offline; leave them out")
        return Limits()
    limits = given or Limits(max_usd=config.max_usd, max_calls=config.max_calls)
    refuse_unpriced(program, limits)
    return limits


def refuse_unpriced(program: AgenticIQA, limits: Limits | None) -> None:
    """Raise WrongArgument for a limit in USD if the price of a model of the program is not known."""
    if limits is None or limits.max_usd is None:
        return
    for question in program.questions:
        own = question.predictor.lm
        for lm in [own] if own else question.backend.lms or [None]:
            if getattr(getattr(lm, "engine", None), "price", None) is None:
                raise WrongArgument(
                    f"max_usd needs the price of {lm.model if lm else 'the model of DSPy'}: name the model with "
                    "backend=, and a price that is not known with price='IN,OUT' (USD per million tokens), or limit "
                    "max_calls"
                )


class Stages(NamedTuple):
    """The four stages of a program, as a configuration sets them up."""

    planner: protocols.PlannerStage
    executor: Executor
    summarizer: Summarizer
    replan: Replan


def composed(config: Config, fusion: ScoreFusion | None = None) -> Stages:
    """Build each stage from the configuration: one that asks a model, or its offline counterpart.

    ``fusion`` replaces that of the configuration.
    """
    tools = toolbox(config.tool_curves, config.pyiqa, config.adapter)
    attempts = config.attempts
    planning, executing, summarizing, replanning = (connect(getattr(config, s), cache=config.cache) for s in STAGES)
    levels = levels_scorer(config)
    fusion = fusion or fusion_of(config, tools, levels.ask.backend if levels else summarizing)
    plain_mean: PlainMean = "never" if config.is_offline else "chosen"
    if fusion.plain_mean:
        plain_mean = "always"
    if executing:
        # Stages that ask a model, and their signatures, are not loaded for a photo that is assessed offline.
        from agenticiqa.programs.stages.analyst import Analyst
        from agenticiqa.programs.stages.detector import Detector
        from agenticiqa.programs.stages.locator import Locator
        from agenticiqa.programs.stages.selector import Selector

        executor = Executor(
            Detector(backend=executing, attempts=attempts),
            Analyst(backend=executing, attempts=attempts),
            Selector(backend=executing, attempts=attempts),
            tools,
            Locator(backend=executing, attempts=attempts),
            TableSelector() if config.executor.select == "table" else None,
            plain_mean,
        )
    else:
        offline = (MeasuredDetector(), MeasuredAnalyst(), TableSelector())
        executor = Executor(*offline, tools, SaliencyLocator(), plain_mean=plain_mean)
    planner: protocols.PlannerStage = RulePlanner(tools)
    if planning:
        planner = Planner(
            tools,
            backend=planning,
            attempts=attempts,
            sees_images=config.planner.sees_images,
            rules=config.planner.rules,
            fallback=RulePlanner(tools) if config.planner.on_failure == "rules" else None,
            prefetch=executor.prefetch if plain_mean != "always" or config.executor.select == "table" else None,
        )
    elif config.mode == "levels":
        planner = LevelsPlanner()
    scorer: protocols.ScorerStage = levels or MeasuredScorer(tools[TOOL.name].adapter if config.adapter else None)
    answerer: protocols.AnswererStage = EvidenceAnswerer()
    if summarizing:
        from agenticiqa.programs.stages.answerer import Answerer
        from agenticiqa.programs.stages.scorer import Scorer

        scorer = levels or Scorer(
            backend=summarizing,
            attempts=attempts,
            fusion=fusion,
            strict=config.strict,
            rating=config.summarizer.rating,
        )
        answerer = Answerer(backend=summarizing, attempts=attempts, strict=config.strict)
    summarizer = Summarizer(scorer, answerer, fusion)
    replan = Replan(replan_judge(backend=replanning, attempts=attempts) if replanning else None)
    return Stages(planner, executor, summarizer, replan)


def add_tool(
    program: AgenticIQA,
    name: str,
    function: Callable[..., float],
    curve: Callable[[float], float] | None = None,
) -> None:
    """Add a metric of your own to a program: questions can then name it, and with a curve the program can choose it.

    Args:
        program: The program, which is changed.
        name: The name in questions, plans and results: letters, digits, "-" and "_".
        function: Takes the pixels of the image, uint8 RGB of shape (H, W, 3), and returns a float. If it has a second
            required argument, it also gets those of the reference. The first line of its docstring is shown to models.
        curve: Maps a value to a score in 1..5, higher is better. A plain rating uses it only if it is a ``ToolCurve``
            that states a smaller error than the shipped ones. Without it, values are reported on their own scale and
            are no part of the score.

    Raises:
        ToolError: The name is taken or invalid, or the function has other arguments.
        WrongArgument: The program has no executor of this package.
    """
    stages = [stage for _, stage in program.named_sub_modules()]
    executors = [stage for stage in stages if isinstance(stage, Executor)]
    if not executors:
        raise WrongArgument("the executor of this program has no tools; add the metric in your own stage")
    tool = own_tool(name, function, curve, executors[0].toolbox)
    for stage in stages:
        if isinstance(stage, Executor | Planner):
            stage.toolbox = {**stage.toolbox, name: tool}
        elif isinstance(stage, RulePlanner):
            stage.known_tools = [*stage.known_tools, name]


def _is_own(module: object) -> bool:
    """Return whether a module and the modules in it are of this package, up to a question and what is around it."""
    if not type(module).__module__.startswith("agenticiqa."):
        return False
    inside = [] if isinstance(module, CheckedPredict) else vars(module).values()
    return all(_is_own(each) for each in inside if isinstance(each, dspy.Module))


def asked_backend(program: AgenticIQA) -> str:
    """Return the name of the program's backend, or of the models that the caller set in DSPy instead.

    Raises BackendError if a predictor has no model.
    """
    models = [(question, question.models[0]) for question in program.questions]
    names = {without_place(lm.model): None for question, lm in models if lm not in question.backend.lms}
    if not names:
        return program.backend
    all_replaced = all(lm not in question.backend.lms for question, lm in models)
    return ", ".join(names if all_replaced else [program.backend, *names])
