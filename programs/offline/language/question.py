"""A question as the offline program understands it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agenticiqa.programs.offline.language.claims import Clause
from agenticiqa.programs.questions.scale import RatingScale

Asked = Literal["presence", "degree", "list", "where", "compare", "metric", "rating", "choice"]
SURE = 0.5  # least confidence with which a question is answered


@dataclass(frozen=True)
class Question:
    """What is asked, of which subject, and how sure the reading is.

    ``asked`` is the kind of answer: whether something is so ("presence"), how much of it there is ("degree"), what
    there is ("list"), where it is, how two images or parts compare, the value of a metric, a number on ``scale``
    ("rating"), or one of ``options`` by its letter ("choice"). ``claim`` has the distortions, their degree and the
    polarity. ``subject`` is the image or its reference; ``regions`` are the parts of it that are named, in the user's
    words, none for all of it. ``text`` is the part of the query that asks, spelling corrected, and ``bare`` is that
    without the regions. ``confidence`` is 0 to 1, and ``doubt`` says what lowers it.
    """

    asked: Asked
    text: str
    bare: str
    claim: Clause
    subject: Literal["image", "reference"]
    regions: tuple[str, ...]
    options: Mapping[str, str]
    scale: RatingScale | None
    confidence: float
    doubt: str = ""

    @property
    def is_sure(self) -> bool:
        """Whether it is understood well enough to be answered."""
        return self.confidence >= SURE
