"""Questions that the loaded image itself answers, before anything is measured: of its size, and of other images."""

import re

from agenticiqa.programs.offline.language.verdicts import Verdict

_PICTURE = r"(?:image|photo|photograph|picture|pic|shot|file|it|this(?: one)?)"
_THE = rf"(?:(?:the|this|that|my) )?{_PICTURE}"
_OF = rf"(?: (?:of|does|has|is|are|in) (?:there )?(?:in )?{_THE}(?: (?:have|has|got|big))?| are there| is that)?"
_SIZE = r"(?:resolution|(?:image |pixel )?dimensions|size in pixels|pixel (?:size|count)|aspect ratio|width|height)"
_POLITE = re.compile(
    r"^(?:(?:please|so|ok|hi|hello|hey)[ ,]+)*(?:(?:can|could) you )?(?:tell me )?(?:please )?|[ ?.!]+$"
)
_ASKS_SIZE = re.compile(
    rf"how many (?:mega ?)?pixels{_OF}"
    rf"|what(?:'s| is| are|s) (?:the |its )?(?:{_PICTURE}(?:'s)? )?{_SIZE}(?: and {_SIZE})?{_OF}(?: in pixels)?"
    rf"|how (?:large|big|wide|high|tall) is {_THE}(?: in (?:mega)?pixels)?"
)
_IMAGES = r"(?:image|photo|photograph|picture|pic|shot|file|version|copie|copy|frame|take)s?"
_ASKS_WHICH = re.compile(
    rf"(?:which|what)(?: one)? (?:of|among) (?:these|those|them|the|my)(?: (?:two|three|four|five|\d+|few))?"
    rf"(?: {_IMAGES})? (?:is|are|looks?|has|have)\b[^,:;]*"
    rf"|which (?:{_IMAGES}|one) (?:is|are|looks?|has|have)\b(?! it\b)[^,:;]*"
)
_LISTS = re.compile(r"\bor\b|\breference\b|\boriginal\b|\bparts?\b|\bregions?\b|\bhal(?:f|ves)\b|\bcorners?\b|\bside\b")


def answer_from_file(query: str, size: tuple[int, int], *, alone: bool) -> Verdict | None:
    """The verdict on a question for the size of the image, or for the best of several; ``None`` for every other one.

    ``size`` is width and height in pixels; ``alone`` says that there is no reference, which "which image" may mean.
    """
    asked = " ".join(query.lower().replace("\u2019", "'").split())
    asked = _POLITE.sub("", asked)
    if _ASKS_SIZE.fullmatch(asked):
        width, height = size
        megapixels = width * height / 1e6
        shown = f"{megapixels:.1f}" if megapixels >= 1 else f"{megapixels:.2g}"
        return Verdict(
            f"{width} x {height} pixels ({shown} megapixels)", "This is the size of the image as it was read."
        )
    if alone and _ASKS_WHICH.fullmatch(asked) and not _LISTS.search(asked):
        needed = "`agenticiqa compare IMAGE IMAGE...`, which ranks several images"
        return Verdict(None, "The question is about several images, and one is given.", needed=needed)
    return None
