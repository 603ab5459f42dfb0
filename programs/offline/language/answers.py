"""Answer a question from measurements only; what does not follow from them is not answered."""

import re
from collections.abc import Mapping

from agenticiqa.programs.offline.findings import Finding
from agenticiqa.programs.offline.language import word_lists
from agenticiqa.programs.offline.language.choices import choose
from agenticiqa.programs.offline.language.measured_image import MeasuredImage
from agenticiqa.programs.offline.language.open_answers import answer_in_words, tool_scores
from agenticiqa.programs.offline.language.scope import read_scope, without_idioms
from agenticiqa.programs.offline.language.verdicts import Verdict
from agenticiqa.programs.stages.evidence import WHOLE_IMAGE
from agenticiqa.programs.stages.instructions import without_instructions
from agenticiqa.programs.stages.options import lists_options, question_part
from agenticiqa.programs.stages.protocols import Answered
from agenticiqa.signatures.lexicon import terms_in
from agenticiqa.signatures.types import GLOBAL, UNABLE, ExecutorOutput, unique
from agenticiqa.signatures.vocabulary import DetectableDistortion

# A sentence that quotes a tool's result for the question that follows.
_CITED = re.compile(r"[^.?!]*\b(?:the tool|scores?)\b(?:[^.?!]|\.\d)*[.!](?=\s)", re.I)
# An adjective at the end of a region's name is not part of it: "is the background intentional".
_ADJECTIVE = re.compile(r"\s+\w+(?:ional|[ai]tive|ctive|istic|ical)$", re.I)
_HAVING = re.compile(r"\b(low|lacking|poor|rich|high|strong) in (contrast|details?)\b", re.I)
# What the question excludes.
_EXCLUDED = re.compile(
    r"\b(?:apart from|aside from|other than|besides|except(?: for)?|regardless of|ignoring)\b[^,.;:?!]*[,.;:]?", re.I
)
# Words for what no measurement tells: a question with one is not answered.
_NOT_MEASURABLE = re.compile(
    rf"\b(?:{word_lists.AESTHETIC}|what colou?rs?|which colou?rs?|how many|who|whose|where)\b", re.I
)


def answer_from_evidence(
    query: str,
    options: Mapping[str, str],
    findings: Mapping[DetectableDistortion, Finding],
    evidence: ExecutorOutput,
    expected_level: float,
    *,
    has_reference: bool,
) -> Answered:
    """Answer a question from the measurements.

    ``options`` are the answers offered, by letter; without options the answer is in words. ``findings`` are the
    measured distortions by category, severities 0..4; ``expected_level`` is the estimated quality, 1..5;
    ``has_reference`` is true if the findings are against a reference. The final answer is a letter, or words, or
    ``UNABLE`` if no rule gives a single answer: nothing is guessed. The reasoning says in sentences which rule and
    which measurements gave the answer, or what is missing.
    """
    question = _plain(query, options)
    excluded = [
        name for match in _EXCLUDED.findall(question) for term in terms_in(match) for name in term.meaning.categories
    ]
    kept = {name: finding for name, finding in findings.items() if name not in excluded}
    measured = MeasuredImage(kept, evidence, expected_level, has_reference)
    question = _EXCLUDED.sub(" ", question)
    regions = regions_of(question, evidence)
    for region in sorted(regions, key=len, reverse=True):
        question = re.sub(rf"(?<!\w){re.escape(region)}(?:'s)?(?!\w)", " ", question, flags=re.I)
    scored = None if options else tool_scores(query, measured)
    if scored:
        return Answered(scored.answer or UNABLE, scored.reason)
    if not findings:
        verdict = Verdict(None, "Nothing was measured.")
    elif found := _NOT_MEASURABLE.search(question) or re.match(r"\W*(?:what|which) colou?r", query, re.I):
        verdict = Verdict(None, f"Measurements do not tell what the question asks with '{found[0]}'.")
    elif options:
        verdict = choose(question, options, measured, words_of(regions))
    else:
        verdict = answer_in_words(question, measured, words_of(regions))
    return Answered(verdict.answer or UNABLE, _reasoning(verdict, measured, regions))


def _plain(query: str, options: Mapping[str, str]) -> str:
    """The question without its options, quoted results, and phrases in which a term means something else."""
    question = without_instructions(query)
    if options and lists_options(query, options):
        listing, question = question, question_part(query)
        if question == listing:  # "Choose from: A) ... B) ..." asks no question
            return ""
    return without_idioms(_HAVING.sub(r"\1 \2", _CITED.sub(" ", question)))


def regions_of(question: str, evidence: ExecutorOutput) -> list[str]:
    """The regions that the evidence or the question names, each once; none for the whole image."""
    analyzed = [*(evidence.distortion_analysis or {}), *(evidence.quality_scores or {})]
    named = [region for region in analyzed if region != GLOBAL] or read_scope(question, {}).regions
    return unique(_ADJECTIVE.sub("", region) for region in named)


def words_of(regions: list[str]) -> list[str]:
    """The single words of the regions' names."""
    return [word for region in regions for word in region.split()]


def _reasoning(verdict: Verdict, measured: MeasuredImage, regions: list[str]) -> str:
    about = [name for name in verdict.categories if name in measured.findings]
    details = [
        f"{measured.describe(name)} ({measured.findings[name].explanation.strip().rstrip('.')})" for name in about
    ]
    scores = [
        f"{tool} scores {score:.2f} of 5 for {region if region != GLOBAL else 'the image'}, {distortion}"
        for region, row in (measured.evidence.quality_scores or {}).items()
        for distortion, (tool, score) in row.items()
    ]
    placed = [_ADJECTIVE.sub("", region) for region, box in (measured.evidence.boxes or {}).items() if box]
    parts = [verdict.reason]
    if details or (scores and verdict.answer):
        shown = [*details, *scores[:4]] if verdict.answer else details
        parts.append(f"Measured: {'; '.join(shown)}.")
    if not verdict.answer:
        parts.append(f"An answer needs {verdict.needed}.")
    elif unplaced := [region for region in regions if region not in placed]:
        noted = [note for note in measured.evidence.notes if note.endswith(WHOLE_IMAGE)]
        parts += noted or [f"The whole image was measured, not only {', '.join(unplaced)}."]
    return " ".join(parts)
