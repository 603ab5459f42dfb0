"""Whether a question is about technical image quality, by its words."""

import re
from collections.abc import Collection
from typing import Literal

from agenticiqa.signatures.lexicon import distortions_in
from agenticiqa.signatures.vocabulary import Distortion

# A question with one of these is about more than technical quality ...
_AESTHETIC = re.compile(
    r"\b(?:emotion\w*|mood\w*|feel\w*|atmospher\w*|beaut\w*|pretty|aesthetic\w*|attractive\w*|appeal\w*|artistic\w*"
    r"|style\w*|stylish|genre|compos\w*|symmetr\w*|rule of thirds|perspective|framing|emphasi\w*|story|stories"
    r"|theme|message|meaning|creativ\w*|interesting|happy|sad|sadness|joy\w*|evoke\w*|convey\w*|express\w*"
    r"|elegan\w*|cute|romantic|nostalgi\w*|calm\w*|dramatic|lively|fresh\w*|harmon\w*|pleasing|cozy|cosy|funny"
    r"|vibe\w*|how many|who|doing|what (?:kind|type|breed|species|brand|make) of)\b",
    re.I,
)
# ... unless it also has one of these, which name technical quality explicitly.
_TECHNICAL = re.compile(
    r"(?<!aesthetic )(?<!artistic )"
    r"\b(?:quality|distort\w*|degrad\w*|defect\w*|flaw\w*|resolution|low-res|artifact\w*|artefact\w*|fidelity"
    r"|ghosting|vignett\w*|flare|watermark\w*|legib\w*|illegible|readab\w*|unreadable|be read"
    r"|(?:to|can|cannot) read|make out|discern\w*|recogni[sz]able|visibility|preserv\w*|over-?processed|hdr|iqa)\b",
    re.I,
)
# Words of judgment: a question with one is about quality if it has no aesthetic word.
_JUDGMENT = re.compile(
    r"\b(?:rat(?:e|es|ed|ing|ings)|scor(?:e|es|ed|ing)|assess\w*|evaluat\w*|grade[ds]?|judg\w*|good|bad|poor|better"
    r"|best|worse|worst|wrong|issues?|problems?|improve\w*|usable|acceptable|natural|unnatural|realistic|great"
    r"|terrible|awful|excellent|perceptual|thoughts|opinion|how'?s (?:it|this)|how is (?:it|this)\b"
    r"|how does (?:it|this) look|looks? ok\w*|hold up|print\w*|ok|okay|suitable|affected)\b",
    re.I,
)
# Lighting, color and contrast can be part of an image's style as well as faults.
_AMBIGUOUS: frozenset[Distortion] = frozenset({"Brightness change", "Color distortions", "Contrast"})


def query_type_of(question: str, options: Collection[str]) -> Literal["IQA", "Other"]:
    """Return ``"IQA"`` for a question about technical image quality, ``"Other"`` for one about anything else.

    Words of emotion, style or beauty make it ``"Other"``, unless it also names quality or a distortion.
    """
    if _AESTHETIC.search(question):
        faults = {category for _, category in distortions_in(question)} - _AMBIGUOUS
        return "IQA" if faults or _TECHNICAL.search(question) else "Other"
    everything = " ; ".join((question, *options))
    judged = _TECHNICAL.search(everything) or _JUDGMENT.search(everything) or distortions_in(everything)
    return "IQA" if judged else "Other"
