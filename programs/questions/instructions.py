"""Separate a question from the instructions of a benchmark: answer formats, and cues such as "Answer:".

The phrases are those of MMBench, MMMU, MMStar, SEED-Bench, MME, POPE, Q-Bench, A-Bench, MathVista, Video-MME, LLaVA and
its training data, as VLMEvalKit and lmms-eval send them.
"""

import re

_QUESTION = (
    r"(?:the|this)\s++(?:(?:above|following|preceding|given|question's)\s++)?(?:multiple[- ]choice\s++)?"
    r"(?:question|problem)"
)
_REST = r"(?:(?!\byes\b[^.?!\n]{0,400}\bno\b)[^.?!:\n]){0,160}"  # the rest of a sentence; "yes or no" are options
_TO_LIST = (
    r"(?:from|among|of|between)\s++(?:the|these|those|one\s++of\s++the)\s++(?:\w+\s++){0,3}?"
    r"(?:options|choices|answers|candidates|list|above|below)\b"
    r"(?:\s++(?:above|below|given|provided|listed|as\s++follows))?"
    r"(?:\s++directly)?"
)
_NO_REASON = r"(?![^.?!\n]{0,200}\b(?:explain|explanation|why|reasons?|reasoning|justif\w+|describe)\b)"

_VERB = r"(?:return|output|write|type|submit|provide|give|state|answer|respond|reply|select|choose|indicate|put|use)\b"

_SENTENCES = (
    # "Answer with the option's letter from the given choices directly."
    rf"(?:answer|respond|reply){_NO_REASON}(?:\s++{_QUESTION})?(?:\s++(?:only|directly|just|briefly|simply))*"
    rf"\s++(?:with|using|by|in)\b{_REST}\b(?:letters?|options?|choices?|words?|phrases?|sentence|character|number)\b{_REST}",
    rf"(?:answer|solve)\s++{_NO_REASON}{_QUESTION}(?:\s++directly)?"
    rf"(?:\s++(?:and|based\s++on|about|according\s++to)\b{_REST})?",
    r"(?:answer|respond|reply)(?:\s++(?:directly|briefly|concisely|shortly))+",
    # "Please respond with only the letter of the correct answer."
    rf"(?=(?:only|just|simply)\s|{_VERB}){_NO_REASON}(?=[^.?!:\n]{{0,200}}\b(?:option|choice|answer|correct|only|just|single|one)\b)"
    rf"(?:(?:only|just|simply)\s++)?{_VERB}{_REST}\b(?:letters?|\\boxed)\b{_REST}",
    # "Please select the correct answer from the options above."
    rf"(?:(?:carefully\s++)?read\s++{_QUESTION}(?:\s++carefully)?\s++and\s++)?"
    r"(?:select|choose|pick|provide|give|indicate|find)\s++(?:only\s++|just\s++)?"
    r"(?:(?:exactly\s++|only\s++)?one|an?|the|your)"
    rf"\s++(?:\w+\s++){{0,2}}?(?:answer|option|choice)s?(?:\s++(?:only|directly|above|below|{_TO_LIST}"
    rf"|(?:to|for|that|which|based)\b(?:(?!\bor\b)[^.?!:,\n]){{0,120}}))?",
    rf"(?:select|choose|pick)\s++(?:one\s++)?{_TO_LIST}",
    # "Think step by step before answering."
    r"(?:(?:let's|let\s++us|first,?)\s++)?(?:think|reason|work)(?:\s++\w+){0,4}\s++step[- ]by[- ]step\b[^.?!\n]{0,400}",
    r"first,?\s++(?:output|provide|give|write|think)\b[^\n]{0,400}?<answer>\s*+</answer>(?:\s++tags?)?",
    r"(?:and\s++)?put\s++(?:the|your)\b[^\n]{0,400}?\\boxed\s*+\{[^}]{0,400}\}",
    r"the\s++last\s++line\s++of\s++your\s++(?:response|answer)\s++should\s++be\b(?>[^\n]{0,400}?\boptions\b)[^.\n]{0,400}",
    r"(?:your|the)\s++(?:final\s++)?answer\s++(?:must|should)\s++be\b"
    r"(?>[^.?!\n]{0,400}?\b(?:letters?|characters?|words?|options?)\b)[^.?!\n]{0,400}",
    # "Do not explain."
    r"(?:do\s++not|don't)\s++(?:explain|justify|(?:give|include|provide|output|write|add)\b"
    r"(?>[^.?!\n]{0,400}?\b(?:explanations?|reason\w*|text|words?|anything)\b))[^.?!\n]{0,400}",
    r"(?:with\s++)?no\s++(?:further\s++)?explanations?(?:\s++(?:is\s++)?(?:needed|required|necessary))?",
    r"(?:be\s++(?:brief|concise)|keep\s++(?:it|your\s++answer)\s++(?:short|brief)|offer\s++a\s++very\s++short\s++reply)",
    r"(?:this|the\s++(?:question|following))\s++is\s++a\s++multiple[- ]choice\s++question",
    r"(?:there\s++is\s++)?only\s++one\s++(?:correct\s++)?(?:answer|option)(?:\s++is\s++correct)?",
    r"if\s++you\s++are\s++(?:not\s++sure|unsure|uncertain)\b[^.?!\n]{0,400}",
    r"hint:\s*+(?:please\s++)?answer\s++the\s++question\s++and\s++provide\s++the\s++correct\s++option\s++letter,"
    r"\s*+e\.g\.,[^.\n]{0,400}",
    r"请(?:直接)?(?:回答|选择|从|用|给出)(?>[^。？！\n]{0,400}?(?:字母|选项|答案|单词|短语))[^。？！\n]{0,400}",
)
_CUE = (
    r"(?:(?:the|your|my)\s++)?(?:(?:best|correct|right|final)\s++)?(?:answer|option|choice)"
    r"(?:\s++is\s*+:?|(?:\s++\(letter\))?\s*+:)\s*+\(?|答案\s*+[:：是]*"
)
_LABEL = r"<\|?image[^>\n]{0,20}>|(?:question|q)\s*+[:：]|context\s*+:\s*+n/a"

LONGEST_READ = 2_000  # characters of a question that rules read; longer texts are slow and not questions
LONGEST_CUE = 1_000  # characters at the end of a question that are searched for instructions
LOOKED_BACK = 2  # characters before an instruction that show where it begins
MOST_CUES = 12  # maximum instructions that are removed from one end

_ANY = "|".join(_SENTENCES)
_LEADING = re.compile(rf"(?:(?:{_LABEL})\s*+|(?:please\s++)?(?:{_ANY})\s*+(?:[.!。]+(?!\w)|(?=\n))\s*+)", re.I)
_TRAILING = re.compile(
    r"(?:\A|(?<=[.?!:;)\]。？！：\n])|(?<=[.?!:;)\]。？！：\n]\s)|(?<=\s)(?=(?-i:[A-Z])|please\b|请))(?=\w)"
    rf"(?:{_CUE}|(?:(?:and|then|also),?\s++)?(?:please\s++)?(?:directly\s++)?(?:{_ANY})\s*+[.!:。：]{{0,9}}+)\s*+$",
    re.I,
)


def without_instructions(query: str) -> str:
    """Remove answer instructions at the beginning and end of a query; keep a query that has nothing else.

    >>> without_instructions("Is it sharp? A. Yes B. No Answer with the option's letter from the given choices.")
    'Is it sharp? A. Yes B. No'
    """
    return without_trailing(without_leading(query)) or query.strip()


def readable(text: str) -> str:
    """Return the text that rules read: runs of blanks become one, and only both ends of a long text are kept."""
    text = re.sub(r"\n{3,}", "\n\n", re.sub(r"[^\S\n]+", " ", text))
    return text if len(text) <= LONGEST_READ else f"{text[: LONGEST_READ // 2]}\n{text[-LONGEST_READ // 2 :]}"


def without_leading(text: str) -> str:
    """Remove instructions at the beginning of a text."""
    text = text.strip()
    for _ in range(MOST_CUES):
        match = _LEADING.match(_straight(text[:LONGEST_CUE]))
        if not match:
            break
        text = text[match.end() :].lstrip()
    return text


def without_trailing(text: str) -> str:
    """Remove instructions at the end of a text."""
    text = text.strip()
    for _ in range(MOST_CUES):
        begin = max(len(text) - LONGEST_CUE, 0)
        match = _TRAILING.search(_straight(text[begin:]), min(begin, LOOKED_BACK))
        if not match:
            break
        text = text[: begin + match.start()].rstrip()
    return text


def _straight(text: str) -> str:
    return text.replace("’", "'")
