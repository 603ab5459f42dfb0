"""AgenticIQA: plan, execute, summarize, and plan again when the evidence does not carry the answer."""

import logging
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dspy

from agenticiqa.configs import STAGES, Config, load_config
from agenticiqa.programs import saving
from agenticiqa.programs.backends.connect import connect, without_place
from agenticiqa.programs.backends.ledger import keeping
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.events import event, judging, next_round
from agenticiqa.programs.images import ImageSource, LoadedImage, load_pair
from agenticiqa.programs.offline.stages import (
    EvidenceAnswerer,
    MeasuredAnalyst,
    MeasuredDetector,
    MeasuredScorer,
    RulePlanner,
    SaliencyLocator,
    TableSelector,
)
from agenticiqa.programs.result import RunRecord
from agenticiqa.programs.stages import progress
from agenticiqa.programs.stages.executor import Analyst, Detector, Executor, Selector
from agenticiqa.programs.stages.flow import Call, Flow, arun, run
from agenticiqa.programs.stages.fusion import ScoreFusion
from agenticiqa.programs.stages.locator import Locator
from agenticiqa.programs.stages.planner import Planner, earlier_plan
from agenticiqa.programs.stages.replan import Replan, doubts, judge, remember
from agenticiqa.programs.stages.summarizer import Answerer, Scorer, Summarizer
from agenticiqa.programs.tools import toolbox
from agenticiqa.programs.tools.tool import run_tool
from agenticiqa.signatures.types import GLOBAL, OVERALL, PlannerOutput, SummarizerOutput, well_formed

logger = logging.getLogger(__name__)

LONGEST_QUERY = 4000
DEFAULT_QUERY = "Rate the perceptual quality of this image."


class AgenticIQA(dspy.Module):
    """Judges an image, against a pristine reference if there is one, by a question in plain words.

    Composed of four stages, each asking a model or working offline::

        program = AgenticIQA.offline()                 # rules and measurements, nothing is sent anywhere
        program = AgenticIQA.from_config("mine.yaml")  # whatever the configuration says, stage by stage
        result = program("photo.jpg", "Is it sharp?")

    The result is a ``dspy.Prediction`` of ``final_answer`` (a float in [1, 5] when scoring, else text),
    ``quality_score`` (that float or ``None``), ``quality_reasoning``, ``query_type``, ``plan``, ``executor_evidence``,
    ``summarizer_result``, ``iteration_count``, ``replan_history``, ``retries``, ``usage`` (tokens by model),
    ``usage_by_stage`` (``models.ledger``: calls, tokens, money), ``timings_ms``, and the two loaded images. Raises
    UserError for what the caller can mend, Unanswered or NoScore when no answer can be had, and ``dspy.LMError`` when a
    model cannot be reached.
    """

    def __init__(
        self,
        planner: dspy.Module,
        executor: dspy.Module,
        summarizer: dspy.Module,
        replan: dspy.Module,
        *,
        max_replan_iterations: int = 2,
        max_side: int | None = None,
        backend: str = "custom",
    ) -> None:
        super().__init__()
        self.planner, self.executor, self.summarizer, self.replan = planner, executor, summarizer, replan
        self.max_replan_iterations = max_replan_iterations
        self.max_side = max_side
        self.backend = backend
        self.version = version("agenticiqa")

    @classmethod
    def offline(cls) -> "AgenticIQA":
        """The program without any language model, whatever a configuration says."""
        return cls._composed(Config())

    @classmethod
    def from_config(cls, path_or_name: str | os.PathLike[str] | Config | None = None) -> "AgenticIQA":
        """The program that a configuration describes: a file, a shipped name, a ``Config``, or the default's search.

        Raises ConfigError for a bad file and BackendError for a backend that is unknown or lacks its key.
        """
        return cls._composed(path_or_name if isinstance(path_or_name, Config) else load_config(path_or_name))

    @classmethod
    def _composed(cls, config: Config) -> "AgenticIQA":
        config = config.in_profile()
        tools = toolbox(config.calibration, config.pyiqa)
        fusion = ScoreFusion(config.fusion.eta, model_error=config.fusion.model_error)
        attempts = config.attempts
        planning, looking, telling, doubting = (connect(getattr(config, s), cache=config.cache) for s in STAGES)
        ask_look: dict[str, Any] = {"backend": looking, "attempts": attempts}
        ask_tell: dict[str, Any] = {"backend": telling, "attempts": attempts}
        return cls(
            planner=Planner(
                tools,
                backend=planning,
                attempts=attempts,
                sees_images=config.planner.sees_images,
                on_failure=config.planner.on_failure,
            )
            if planning
            else RulePlanner(tools),
            executor=Executor(
                Detector(**ask_look), Analyst(**ask_look), Selector(**ask_look), tools, Locator(**ask_look)
            )
            if looking
            else Executor(MeasuredDetector(), MeasuredAnalyst(), TableSelector(), tools, SaliencyLocator()),
            summarizer=Summarizer(Scorer(**ask_tell, fusion=fusion), Answerer(**ask_tell), fusion)
            if telling
            else Summarizer(MeasuredScorer(), EvidenceAnswerer(), fusion),
            replan=Replan(judge(backend=doubting, attempts=attempts) if doubting else None),
            max_replan_iterations=config.max_replan_iterations,
            max_side=config.max_side,
            backend=backend_name(config),
        )

    def forward(
        self,
        image: ImageSource,
        query: str = DEFAULT_QUERY,
        reference: ImageSource | None = None,
        resize_reference: bool = False,
    ) -> dspy.Prediction:
        """Judge one image. ``resize_reference`` allows a reference of another size, scaled to the image's."""
        with judging(named(image)) as judged, dspy.track_usage() as usage, keeping() as ledger:
            result = run(self._steps(image, query, reference, resize_reference))
            result.usage, result.usage_by_stage = by_model(usage.get_total_tokens()), ledger.to_json()
            progress.done(result, judged.seconds)
        return result

    async def aforward(
        self,
        image: ImageSource,
        query: str = DEFAULT_QUERY,
        reference: ImageSource | None = None,
        resize_reference: bool = False,
    ) -> dspy.Prediction:
        """As ``forward``, async."""
        with judging(named(image)) as judged, dspy.track_usage() as usage, keeping() as ledger:
            result = await arun(self._steps(image, query, reference, resize_reference))
            result.usage, result.usage_by_stage = by_model(usage.get_total_tokens()), ledger.to_json()
            progress.done(result, judged.seconds)
        return result

    def _steps(
        self, image: ImageSource, query: str, reference: ImageSource | None, resize_reference: bool
    ) -> Flow[dspy.Prediction]:
        query = well_formed(query).strip()
        if not query:
            raise UserError("the question is empty: ask something, or leave it out to rate the perceptual quality")
        if len(query) > LONGEST_QUERY:
            raise UserError(f"the question has {len(query)} characters: shorten it to {LONGEST_QUERY}")
        pair = {
            "image": image,
            "reference": reference,
            "resize_reference": resize_reference,
            "max_side": self.max_side,
        }
        loaded, pristine = yield Call(load_pair, pair)
        progress.begun(loaded, query, pristine, self.backend)
        told = RunRecord()
        given = {"image": loaded, "query": query, "reference": pristine}
        history: list[str] = []
        plan: PlannerOutput | None = None
        earlier = ""
        while True:
            planning = told.stage("plan", self.planner, {**given, "earlier": earlier})
            if history or not self._asks_for_a_plan:
                planned = yield from planning
            else:
                planned, _ = yield [planning, self._begin(given)]
            if planned.plan == plan:
                unchanged = event("plan_unchanged")
                logger.warning("the plan did not change, so planning again would change nothing", extra=unchanged)
                break
            plan = planned.plan
            progress.planned(plan, told.seconds["plan"])
            executed = yield from told.stage("execute", self.executor, {**given, "plan": plan})
            evidence = executed.evidence
            doubting = {"query": query, "plan": plan, "evidence": evidence}
            doubting |= {"iteration": len(history), "max_iterations": self.max_replan_iterations}
            summing = told.stage("summarize", self.summarizer, {**given, "plan": plan, "evidence": evidence})
            if isinstance(self.replan, Replan) and self.replan.judge is not None and doubts(evidence):
                summed, doubting["verdict"] = yield [summing, self.replan.verdict(**doubting)]
            else:
                summed = yield from summing
            decided = yield from told.stage("replan", self.replan, {**doubting, "result": summed.result})
            result: SummarizerOutput = decided.result
            if not result.need_replan:
                break
            reason = str(result.replan_reason)
            history = remember(history, len(history) + 1, reason)
            next_round()
            earlier = earlier_plan(plan, reason)
        if result.need_replan:  # it was asked for, but the plan stayed the same: the answer is final
            result = result.model_copy(update={"need_replan": False, "replan_reason": None})
        return dspy.Prediction(
            final_answer=result.final_answer,
            quality_score=result.quality_score,
            quality_reasoning=result.quality_reasoning,
            query_type=summed.query_type,
            plan=plan,
            executor_evidence=evidence,
            summarizer_result=result,
            iteration_count=len(history),
            replan_history=history,
            retries=told.retries,
            timings_ms=told.timings_ms,
            image=loaded,
            reference=pristine,
            query=query,
            backend=self.backend,
            version=self.version,
        )

    @property
    def _asks_for_a_plan(self) -> bool:
        return isinstance(self.planner, Planner) and isinstance(self.executor, Executor)

    def _begin(self, given: dict[str, Any]) -> Flow[None]:
        """While a model plans, measure what will be wanted whatever the plan."""
        pair = {"image": given["image"], "reference": given["reference"]}
        for tool in self.executor.surely_wanted(**given):
            yield Call(run_tool, {"tool": tool, **pair, "region": GLOBAL, "distortion": OVERALL})

    def save(self, path: str | os.PathLike[str], created_with: Mapping[str, Any] | None = None) -> None:
        """Write the tuned prompts with a header that tells which signatures they are for; never a model or its key."""
        saving.save(self, path, created_with or {})

    def load(self, path: str | os.PathLike[str]) -> None:
        """Read tuned prompts into this program. Raises StateError when they were made for other signatures."""
        saving.load(self, path)


def named(image: ImageSource) -> str:
    """What logs call an image that is not loaded yet."""
    if isinstance(image, LoadedImage):
        return image.source
    return str(os.fspath(image)) if isinstance(image, str | os.PathLike) else f"<{type(image).__name__}>"


def by_model(usage: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The tokens that DSPy counted, without the places of servers."""
    return {without_place(name): dict(tokens) for name, tokens in usage.items()}


def backend_name(config: Config) -> str:
    """The backends in a word: one name when every stage has the same, else ``stage=name`` for each."""
    stages = {name: _shown(getattr(config, name).backend) for name in STAGES}
    names = set(stages.values())
    return names.pop() if len(names) == 1 else ", ".join(f"{stage}={name}" for stage, name in stages.items())


def _shown(backend: str) -> str:
    """A backend as results name it: of a file in this process, not where it lies."""
    kind, _, model = backend.partition(".")
    return f"gguf.{Path(model).name}" if kind == "gguf" else backend
