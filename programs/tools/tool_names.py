"""Find the tools that a question names."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from agenticiqa.programs.questions.instructions import LONGEST_READ, readable, without_instructions
from agenticiqa.programs.questions.options import parse_options, question_part
from agenticiqa.programs.tools.tool import find_tool, unknown_tool
from agenticiqa.signatures.lexicon import distortions_in, terms_in
from agenticiqa.signatures.types import unique

# Metrics that users may ask for by name. Those that are not in the toolbox are recognized, so that they can be refused.
WELL_KNOWN: tuple[str, ...] = (
    "PSNR", "SSIM", "MS-SSIM", "IW-SSIM", "CW-SSIM", "GMSD", "MS-GMSD", "MDSI", "FSIM", "FSIMc", "VIF", "VSI",
    "HaarPSI", "NLPD", "MAD", "LPIPS", "DISTS", "PieAPP", "AHIQ", "CKDN", "WaDIQaM", "WaDIQaM-FR",
    "WaDIQaM-NR", "TOPIQ", "TOPIQ-FR", "TOPIQ-NR", "QAlign", "Q-Align", "Q-Instruct", "UNIQUE", "UNIQIE",
    "LIQE", "CLIP-IQA", "CLIP-IQA+", "HyperIQA", "TReS", "MUSIQ", "DBCNN", "ARNIQA", "NIMA", "BRISQUE",
    "NIQE", "IL-NIQE", "PIQE", "MANIQA", "PaQ-2-PiQ", "DeQA", "DeQA-Score", "CPBD", "VMAF",
)  # fmt: skip
# Names that are also English words.
_ENGLISH = frozenset({"unique", "tres", "dists", "mad"})
_CUE = r"(?=['\"]?\s+(?:metric|tool|measure|index|model|algorithm)\b)"
_UNKNOWN_NAME = re.compile(
    r"\b(?i:us(?:e|ing)|with|by|run|apply|via)\s+(?:the\s+)?(?!IQA\b|NR\b|FR\b|AI\b|VLM\b|MOS\b)([A-Z][A-Z\d-]{2,})"
    + _CUE
)
# Counts only if it is similar to the name of a known tool: "use SSMI", but not "use HDR".
_MISSPELLED_NAME = re.compile(r"\b(?i:us(?:e|ing)|run|apply)\s+(?:the\s+)?([A-Z][A-Z\d-]{2,})(?![\w+])")
_SPELLING = re.compile(r"(?<![\w-])[A-Z][A-Z\d-]{2,40}(?![\w-])")
_SIMILARITY = 0.74  # minimum ratio of difflib; two swapped letters of four give 0.75
# A question about the tools themselves, or a report of a tool's result, does not request a tool.
_ABOUT_TOOLS = re.compile(
    r"\b(?:tool|metric)\b.{0,200}\b(?:appropriate|suitable|suited|usable|applicable"
    r"|(?:needs?|requires?|without)\b[^.?!]{0,200}\b(?:reference|original))\b"
    r"|\b(?:can|could|may|should)\b[^.?!]{0,200}\bbe used\b"
    r"|\bbe (?:computed|calculated|measured|run) without\b"
    r"|\b(?:which|what|best) (?:iqa )?tools?\b|\btools? used\b",
    re.I | re.S,
)
_LEADS = re.compile(r"\b(?:according to|based on|by|per|using|with) (?:the )?\Z", re.I)


@dataclass(frozen=True)
class Mention:
    """A tool's name in a text at ``[start, end)``; ``tool`` is the known tool's name, or ``None``."""

    text: str
    start: int
    end: int
    tool: str | None


def tool_mentions(query: str, known: Collection[str]) -> list[Mention]:
    """Return every name of a tool in the text, in order; of two that overlap, the longer.

    Names that are also English words ("contrast", "blur extent", "unique") count only in front of "metric", "tool" and
    the like, or if spelled unlike an English word: ``BLUR-EXTENT``, ``noise_sigma``, ``UNIQUE``. Only the first 2000
    characters are searched.
    """
    if len(query) > LONGEST_READ:
        query = query[:LONGEST_READ].rpartition(" ")[0]  # no name is cut
    names = _spelled(frozenset(known)).finditer(query)
    mentions = [Mention(m[0], *m.span(), find_tool(m[0], known)) for m in names if _is_meant(m)]
    taken = {mention.start for mention in mentions}
    unknown = [m for m in _UNKNOWN_NAME.finditer(query) if m.start(1) not in taken]
    taken |= {m.start(1) for m in unknown}
    plain = [name.upper() for name in known]
    unknown += [
        m
        for m in _MISSPELLED_NAME.finditer(query)
        if m.start(1) not in taken and get_close_matches(m[1], plain, cutoff=_SIMILARITY)
    ]
    mentions += [Mention(m[1], *m.span(1), None) for m in unknown]
    return sorted(mentions, key=lambda mention: mention.start)


@lru_cache(maxsize=16)
def _spelled(known: frozenset[str]) -> re.Pattern[str]:
    names = sorted({*known, *WELL_KNOWN}, key=lambda name: (-len(name), name))
    parts = (re.split(r"[\s_-]+|(?<=[A-Za-z])(?=\d)", name) for name in names)
    spelled = "|".join(r"[\s_-]*".join(map(re.escape, part)) for part in parts)
    return re.compile(rf"(?<![\w-])(?:{spelled})(?![\w+])", re.I)


def names_tools(query: str, tools: Collection[str]) -> list[str]:
    """Return the tools of those given that a query names."""
    return unique(mention.tool for mention in tool_mentions(query, tools) if mention.tool)


def spelled_tools(query: str, tools: Collection[str]) -> list[str]:
    """Return the given tools that a question names, in any spelling, also where the name may be a plain word.

    Names in the options do not count.

    >>> spelled_tools("Is it noisy by ssimulacra 2? A. As NIQE says B. No", ["NIQE", "SSIMULACRA2"])
    ['SSIMULACRA2']
    """
    matches = _spelled(frozenset(tools)).finditer(readable(without_options(query)))
    return unique(tool for match in matches if (tool := find_tool(match[0], tools)))


def tool_spellings(question: str) -> list[str]:
    """Return the words of a question that are spelled like a metric, as "MAGIQ" in a text not all in capitals."""
    return [] if question.isupper() else _SPELLING.findall(question)


def without_options(query: str) -> str:
    """Return the words that may request a tool: a metric that an option names is an answer."""
    question = question_part(query)
    return "" if parse_options(query) and question == without_instructions(query) else question


def requested_tools(query: str, mentions: Collection[Mention], known: Collection[str]) -> list[str]:
    """Return the known tools that the question requests. Raises ToolError if it requests one that is not known."""
    if asks_about_tools(query):
        return []
    for mention in mentions:
        if mention.tool is None:
            raise unknown_tool(mention.text, known)
    return unique(mention.tool for mention in mentions if mention.tool)


def without_tools(query: str, mentions: Sequence[Mention]) -> str:
    """Blank the names of tools in a question, so that their words are not read as distortions.

    Those with words of a distortion stay if the question names no other ("What does BLOCKINESS say?").
    """
    blanked = _blanked(query, mentions)
    if terms_in(blanked):
        return blanked
    return _blanked(query, [mention for mention in mentions if not distortions_in(mention.text)])


def _blanked(query: str, mentions: Sequence[Mention]) -> str:
    for mention in mentions:
        leads = _LEADS.search(query, 0, mention.start)
        start = leads.start() if leads else mention.start
        query = query[:start] + " " * (mention.end - start) + query[mention.end :]
    return query


def asks_about_tools(query: str) -> bool:
    """Return whether a question is about the tools themselves, or reports the result of one."""
    return bool(_ABOUT_TOOLS.search(query))


def _is_meant(match: re.Match[str]) -> bool:
    name = match[0]
    if re.match(_CUE, match.string[match.end() :]):
        return True
    if name.lower() not in _ENGLISH and not distortions_in(name):
        return True
    stands_out = name not in (name.lower(), name.capitalize()) and not match.string.isupper()
    return stands_out or "_" in name or "-" in name
