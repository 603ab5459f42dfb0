"""The Planner: a model reads the question (and, unless configured otherwise, sees the images) and makes the plan."""

import logging
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial

from agenticiqa.configs import PlanRules
from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.backends.run_context import current
from agenticiqa.programs.errors import Unanswered, UnknownToolNamed, excerpt
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.questions.options import question_part
from agenticiqa.programs.questions.plain_rating import is_plain_rating
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.questions.regions import names_region
from agenticiqa.programs.stages import progress, protocols
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.plan_rules import as_written, enforce, plan_by_rules, plan_to_add, violations
from agenticiqa.programs.stages.protocols import Planned, RejectedAnswers
from agenticiqa.programs.stages.remedies import reason_in, remedy_in
from agenticiqa.programs.stages.side_by_side import StageModule, beside
from agenticiqa.programs.tools.tool import Tool, find_tool, unknown_tool
from agenticiqa.programs.tools.tool_names import spelled_tools, tool_spellings, without_options
from agenticiqa.signatures.answers.requested import Requested
from agenticiqa.signatures.lexicon import distortions_in, terms_in
from agenticiqa.signatures.planner import PlanAnswer, WholePlanAnswer, plan_signature
from agenticiqa.signatures.types import GLOBAL, PlannerOutput, QueryType, unique

logger = logging.getLogger(__name__)

LONGEST_LISTED = 200  # characters of a model's names of tools in a note
Prefetch = Callable[[LoadedImage, str, LoadedImage | None], None]  # image, query, reference


class Planner(StageModule):
    """A planner that asks a model.

    The model answers what the question asks; the paper's rules set reference mode and flags. With ``rules="check"`` the
    model writes them, too, and may name regions and tools that the question does not; the log has what the rules would
    have set. A contradictory answer is rejected with the reason. An answer that infers distortions although the
    question names some is rejected once. Without a usable plan, ``fallback`` (such as the offline planner) plans;
    without a fallback Unanswered is raised. ``prefetch`` runs while the model makes the first plan, and measures what
    every plan needs.
    """

    def __init__(
        self,
        toolbox: Mapping[str, Tool],
        *,
        backend: Backend | None = None,
        attempts: int = 3,
        sees_images: bool = True,
        rules: PlanRules = "fill",
        fallback: protocols.PlannerStage | None = None,
        prefetch: Prefetch | None = None,
    ) -> None:
        super().__init__()
        signature = plan_signature(sees_images=sees_images, is_whole=rules == "check")
        self.ask: CheckedPredict[PlanAnswer] = CheckedPredict(
            signature, stage="planner", backend=backend, attempts=attempts
        )
        self.toolbox = toolbox
        self.sees_images, self.rules = sees_images, rules
        self.fallback = fallback
        self.prefetch = prefetch

    def forward(self, image: LoadedImage, query: str, reference: LoadedImage | None, feedback: str) -> Planned:
        """See ``protocols.PlannerStage``. Raises UnknownToolNamed when the question itself names an unknown tool."""
        reference_given, rates = reference is not None, detect_query_type(query) is QueryType.SCORING
        if self.rules == "fill" and not feedback and is_plain_rating(query):
            return Planned(plan_by_rules("IQA", "Global", None, [], is_explicit=False, reference_given=reference_given))
        doubted, remedy = False, remedy_in(feedback)
        asked_tools = spelled_tools(query, self.toolbox)
        tools = unique([*asked_tools, *remedy.tools])
        shown = tools_shown(self.rules, self.toolbox, query, reference_given=reference_given)
        shown = unique([*shown, *remedy.tools])
        requested = Requested(choices={"required_tool": shown})
        dropped: list[str] = []
        asked = f"{query}\n{reason_in(feedback)}"

        def check(answer: PlanAnswer) -> None:
            nonlocal doubted
            refuse_unknown_tools(answer.required_tool, query, self.toolbox, image.source)
            if self.rules == "fill":
                dropped[:] = drop_unnamed(answer, asked, tools, self.toolbox, rates=rates and not feedback)
            wrong = violations(answer)
            if not doubted and (overlooked := distortions_overlooked(answer, query)):
                doubted = True  # the lexicon may be wrong, so a repeated answer is accepted
                wrong.append(overlooked)
            if wrong:
                raise Rejected("; ".join(wrong))

        def enforced(answer: PlanAnswer, rejected: RejectedAnswers) -> Planned:
            plan = enforce(
                answer,
                reference_given=reference_given,
                named_tools=tools,
                replanning=bool(feedback),
                rates=rates,
            )
            if isinstance(answer, WholePlanAnswer):
                return Planned(as_written(answer, plan), rejected)
            note_set_by_rules(answer, plan)
            if remedy and answer.query_type == "IQA":
                chosen = [name for name in plan.tools if name in remedy.tools] or remedy.tools
                plan = plan_to_add(plan, remedy.distortions, unique([*asked_tools, *chosen]))
            current().usage.note_parsing(self.ask.stage, dropped)
            return Planned(plan, rejected)

        inputs = {
            "available_tools": ", ".join(shown) or "none",
            "query": query,
            "feedback": feedback or None,
            **(prompt_inputs(image, reference) if self.sees_images else {}),
        }
        prefetch = partial(self.prefetch, image, query, reference) if self.prefetch and not feedback else None
        try:
            with beside(prefetch):
                reply = self.ask(inputs=inputs, check=check, requested=requested)
        except Unanswered as gave_up:
            rejected = gave_up.rejected_answers
            if isinstance(gave_up.last_answer, PlanAnswer) and self.rules == "fill":
                progress.no_usable(self.ask.stage, "the model gave no valid plan", "; the last one was corrected")
                return enforced(gave_up.last_answer, rejected)
            if self.fallback is None:
                raise
            why = "the model gave no usable plan"
            progress.no_usable(self.ask.stage, why, "; the offline planner made the plan")
            planned = self.fallback(image=image, query=query, reference=reference, feedback=feedback)
            return Planned(planned.plan, rejected)
        return enforced(reply.answer, reply.rejected_answers)


def tools_shown(rules: PlanRules, toolbox: Mapping[str, Tool], query: str, *, reference_given: bool) -> list[str]:
    """Return the tools that a request for a plan lists: with ``fill`` only those that the question names.

    A plan can have no others then. With ``check`` the model decides, so all that it may name are listed.
    """
    if rules == "check":
        return nameable(toolbox, query, reference_given=reference_given)
    return spelled_tools(query, toolbox)


def nameable(toolbox: Mapping[str, Tool], query: str, *, reference_given: bool) -> list[str]:
    """Return the tools that a question may name: the applicable ones, and all others that it mentions.

    Without a reference, full-reference tools are omitted; the executor reports an error if the question names one.
    """
    return [
        name for name, tool in toolbox.items() if reference_given or tool.kind == "NR" or name.lower() in query.lower()
    ]


def distortions_overlooked(answer: PlanAnswer, query: str) -> str:
    """Return the fault of a plan that infers distortions although the question names some, or an empty text."""
    if answer.query_type == "Other" or answer.distortion_source == "Explicit":
        return ""
    question = question_part(query)
    for tool in answer.required_tool:  # "NOISE-SIGMA" names no noise
        question = re.sub(re.escape(tool), " ", question, flags=re.IGNORECASE)
    phrases = distortions_in(question)
    if not phrases:
        return ""
    listed = ", ".join(unique(f"{phrase!r} ({category})" for phrase, category in phrases))
    return (
        f"distortion_source is 'Inferred', but the question mentions {listed}: if it asks about this, "
        "distortion_source must be 'Explicit' and distortions must list it."
    )


def note_set_by_rules(answer: PlanAnswer, plan: PlannerOutput) -> None:
    """Log differences between the model's reference mode and flags and those of the rules."""
    by_rules = plan.model_dump(include=set(answer.stated))
    other = [key for key, wrote in answer.stated.items() if str(wrote).casefold() != str(by_rules[key]).casefold()]
    if other:
        logger.info("planner: corrected %s in the model's plan", " and ".join(other))


def drop_unnamed(
    answer: PlanAnswer, asked: str, named_tools: Collection[str], known_tools: Collection[str], *, rates: bool
) -> list[str]:
    """Remove what a plan names and the question does not; return a sentence for each kind.

    ``asked`` is the question with the reason for a new plan, which may name a region, too. A model may have
    read a tool in the image, or copied a region. Distortions of a removed region apply to the whole image. If the
    question ``rates`` the quality and has no word for a distortion, the plan must not name one either, because then
    the others would not be looked for.
    """
    notes = []
    tools = {name: find_tool(name, named_tools) for name in answer.required_tool}
    if surplus := [name for name, tool in tools.items() if tool is None]:
        notes.append(_dropped(surplus, "required_tool", "tool"))
    answer.required_tool = unique(filter(None, tools.values()))
    regions = [*answer.query_scope, *(row.region for row in answer.distortions)]
    unnamed = [
        region
        for region in unique(regions)
        if region != GLOBAL and (find_tool(region, known_tools) or not names_region(asked, region))
    ]
    if unnamed:
        notes.append(_dropped(unnamed, "query_scope", "region"))
        answer.query_scope = [region for region in answer.query_scope if region not in unnamed] or [GLOBAL]
        for row in answer.distortions:
            if row.region in unnamed:
                row.region = GLOBAL
    named = unique(name for row in answer.distortions for name in row.distortions)
    if rates and named and not distortions_in(asked) and not terms_about_distortions(asked):
        notes.append(_dropped(named, "distortions", "distortion"))
        answer.distortions, answer.distortion_source = [], "Inferred"
    return notes


def terms_about_distortions(asked: str) -> bool:
    """Return whether a question has a word for a distortion or for the lack of one, also a vague one ("soft")."""
    return any(term.meaning.is_about_distortions for term in terms_in(asked))


def _dropped(names: Collection[str], key: str, kind: str) -> str:
    listed = excerpt(", ".join(map(repr, names)), LONGEST_LISTED)
    logger.info("planner: dropped %s from the plan, because the question names no such %s", listed, kind)
    return f"dropped {listed} from {key}, because the question names no such {kind}"


def refuse_unknown_tools(names: list[str], query: str, known: Collection[str], image: str) -> None:
    """Raise UnknownToolNamed if a plan lists an unknown tool that the question itself spells as a tool.

    The plan decides which of these words are tools, so the error fails its image only.
    """
    spelled = {word.casefold() for word in tool_spellings(without_options(query))}
    for name in names:
        if not find_tool(name, known) and name.casefold() in spelled:
            raise UnknownToolNamed(str(unknown_tool(name, known)), image)
