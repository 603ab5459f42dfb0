"""Find the JSON object in an answer that has more in it: reasoning, a code fence, a draft before the answer.

The object itself is not changed. An unclear answer is left to the parser, or to the model's next attempt.
"""

import json
import re
from collections.abc import Iterator, Set

_TAG = "(think|thinking|thought|reasoning)>"
_THOUGHTS = re.compile(rf"\s*<{_TAG}.*?</\1>", re.DOTALL | re.IGNORECASE)
_THOUGHTS_BEGUN_BY_THE_PROMPT = re.compile(rf"\s*[^\s{{`<].*?</{_TAG}", re.DOTALL | re.IGNORECASE)
_THINKING = re.compile(rf"\s*<{_TAG}", re.IGNORECASE)
_ONLY_KEY = re.compile(r'\{\s*"(?:[^"\\]|\\.)*"\s*:\s*(?=\{)')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_WHOLE_VALUE_LAST = re.compile(r'(:\s*""|[}\]])[\s`]*$')
_DECODER = json.JSONDecoder(strict=False)  # a line break inside a string is a common and harmless mistake


def the_answer(text: str, fields: Set[str]) -> str | None:
    """The last complete JSON object in the text that has these fields; a wrapper object of one key is removed.

    ``None`` without such an object, and where the text breaks off inside the reasoning.
    """
    text = without_thoughts(text)
    objects = list(complete_objects(text))
    if objects and _THINKING.match(text) and not text.rstrip("` \n").endswith(objects[-1]):
        return None
    answers = [answer for each in objects if (answer := _with_fields(each, fields))]
    return answers[-1] if answers else None


def without_thoughts(text: str) -> str:
    """The text without leading reasoning in tags; the opening tag may be missing because the prompt ends with it."""
    thoughts = _THOUGHTS.match(text) or _THOUGHTS_BEGUN_BY_THE_PROMPT.match(text)
    return text[thoughts.end() :] if thoughts else text


def complete_objects(text: str) -> Iterator[str]:
    """The outermost complete JSON objects of a text, in their order; nothing after one that is never closed."""
    at = text.find("{")
    while at >= 0:
        try:
            _, end = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
                return
            end = at + 1
        else:
            yield text[at:end]
        at = text.find("{", end)


def cut_short(text: str) -> bool:
    """Whether an answer breaks off: inside its reasoning, or in a JSON object with a value that may be incomplete.

    An answer that lacks nothing but closing braces is complete.
    """
    if ends_in_thoughts(text):
        return True
    text = without_thoughts(text)
    outside = _STRING.sub('""', text[text.find("{") :] if "{" in text else "")
    if '"' in outside.replace('""', ""):  # a string that is not closed, or a stray quotation mark in one
        return not outside.rstrip("` \n").endswith("}")
    braces, brackets = (outside.count(opening) - outside.count(closing) for opening, closing in ("{}", "[]"))
    return brackets > 0 or (braces > 0 and not _WHOLE_VALUE_LAST.search(outside))


def ends_in_thoughts(text: str) -> bool:
    """Whether an answer begins with reasoning in tags that is never closed."""
    return bool(_THINKING.match(without_thoughts(text)))


def _with_fields(candidate: str, fields: Set[str]) -> str | None:
    found = _DECODER.decode(candidate)
    if fields <= found.keys():
        return candidate
    wrapped = _ONLY_KEY.match(candidate) if len(found) == 1 else None
    if wrapped and fields <= next(iter(found.values())).keys():
        _, end = _DECODER.raw_decode(candidate, wrapped.end())
        return candidate[wrapped.end() : end]
    return None
