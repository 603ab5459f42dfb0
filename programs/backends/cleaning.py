"""The parts of an answer that are not the answer: reasoning, marks of chat templates; and whether it breaks off."""

import re

UNFINISHED = "the JSON object is not complete"
IN_THOUGHTS = "the answer ends inside its reasoning, before the JSON object"

_TAG = "(think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad|seed:think)>"
_THOUGHTS = re.compile(
    rf"\s*(?:<{_TAG}.*?</\1>|◁think▷.*?◁/think▷|\[THINK\].*?\[/THINK\]"
    r"|<\|begin_of_thought\|>.*?<\|end_of_thought\|>|(?=<\|(?:channel|start)\|>).*<\|channel\|>final<\|message\|>)",
    re.DOTALL | re.IGNORECASE,
)
_THOUGHTS_BEGUN_BY_THE_PROMPT = re.compile(rf"\s*[^\s{{`<].*?</{_TAG}", re.DOTALL | re.IGNORECASE)
_THINKING = re.compile(
    rf"\s*(?:<{_TAG}|◁think▷|\[THINK\]|<\|begin_of_thought\|>|<\|channel\|>(?!final))", re.IGNORECASE
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?P<end>"|\\?\Z)', re.DOTALL)  # one without an end takes the rest
_WHOLE_VALUE_LAST = re.compile(r'(:\s*""|[}\]])[\s`]*$')


def without_thoughts(text: str) -> str:
    """The text without leading reasoning in tags; the opening tag may be missing because the prompt ends with it."""
    thoughts = _THOUGHTS.match(text) or _THOUGHTS_BEGUN_BY_THE_PROMPT.match(text)
    return text[thoughts.end() :] if thoughts else text


def ends_in_thoughts(text: str) -> bool:
    """Whether an answer begins with reasoning in tags that is never closed."""
    return bool(_THINKING.match(without_thoughts(text)))


def cut_short(text: str) -> bool:
    """Whether an answer breaks off: inside its reasoning, or in a JSON object with a value that may be incomplete.

    An answer that lacks nothing but closing braces is complete.
    """
    if ends_in_thoughts(text):
        return True
    text = without_thoughts(text)
    outside = _STRING.sub(_emptied, text[text.find("{") :] if "{" in text else "")
    if '"' in outside.replace('""', ""):  # a string that is not closed, or a stray quotation mark in one
        return not outside.rstrip("` \n").endswith("}")
    braces, brackets = (outside.count(opening) - outside.count(closing) for opening, closing in ("{}", "[]"))
    return brackets > 0 or (braces > 0 and not _WHOLE_VALUE_LAST.search(outside))


def _emptied(string: re.Match[str]) -> str:
    return '""' if string["end"] == '"' else string[0]
