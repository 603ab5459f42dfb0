"""One question of a benchmark, and its options rotated for circular evaluation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal

from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.images.files import sha256_of

Kind = Literal["choice", "explanation", "planning"]


@dataclass(frozen=True)
class Item:
    """What is asked about one image, and what is true.

    ``name`` is unique in its set. ``content`` is the picture: questions about one content are not independent.
    ``options`` are in the order of the set, and ``correct`` the index of the true one, ``None`` where the set keeps it
    secret. ``golden`` is the reference text of an explanation, ``plan`` the true fields of a plan by their names in
    ``PlannerOutput``, all or some. ``groups`` are what figures are broken down by, such as ``{"type": "how"}``.
    """

    name: str
    image: Path
    query: str
    content: str
    options: tuple[str, ...] = ()
    correct: int | None = None
    reference: Path | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    golden: str | None = None
    plan: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Asked:
    """An item as it is asked: with its options by letter, and the true letter; both empty without options.

    ``rotation`` says by how many places the options are moved to the front, 0 for the order of the set.
    """

    item: Item
    rotation: int
    options: Mapping[str, str]
    truth: str

    @property
    def key(self) -> str:
        """What tells it from all other questions of a run."""
        return f"{self.item.name}#{self.rotation}"

    @property
    def job(self) -> Job:
        """The question for the program."""
        return Job(self.item.image, self.item.query, self.item.reference, options=dict(self.options) or None)


def asked_of(items: Sequence[Item], *, circular: bool = False) -> Iterator[Asked]:
    """Each item in the order of its options, and with ``circular`` also in all rotations of it.

    >>> item = Item("1", Path("a.png"), "Which?", "a", ("Blur", "Noise", "None"), correct=0)
    >>> [(" ".join(asked.options.values()), asked.truth) for asked in asked_of([item], circular=True)]
    [('Blur Noise None', 'A'), ('Noise None Blur', 'C'), ('None Blur Noise', 'B')]
    """
    for item in items:
        count = len(item.options)
        for rotation in range(count if circular else 1):
            texts = item.options[rotation:] + item.options[:rotation]
            letters = dict(zip(ascii_uppercase, texts, strict=False))
            truth = "" if item.correct is None else ascii_uppercase[(item.correct - rotation) % count]
            yield Asked(item, rotation, letters, truth)


@cache
def digest_of(path: Path | None) -> str | None:
    """The SHA-256 of a file in hex; ``None`` for no file, or one that cannot be read."""
    try:
        return sha256_of(path) if path else None
    except OSError:
        return None
