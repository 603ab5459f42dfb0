"""Labels made ready for tuning: brought to the program's scale, and divided by content."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from agenticiqa.eval.datasets import Labelled
from agenticiqa.programs.errors import UserError

LOWEST, HIGHEST = 1.0, 5.0


@dataclass(frozen=True)
class Scale:
    """The labels' own scale: the opinion scores that stand for the worst and the best quality."""

    low: float
    high: float

    def to_levels(self, mos: float) -> float:
        """``mos`` on 1 to 5, linearly; what lies beyond the ends is clipped."""
        share = (mos - self.low) / (self.high - self.low)
        return LOWEST + (HIGHEST - LOWEST) * min(1.0, max(0.0, share))


def scale_of(labels: Sequence[Labelled], ends: Sequence[float] | None = None) -> Scale:
    """The scale with the given ends, or with the lowest and highest opinion score as its ends."""
    low, high = ends or (min(label.mos for label in labels), max(label.mos for label in labels))
    if not low < high:
        raise UserError(
            f"the scale of the labels runs from {low:g} to {high:g}; its low end has to be below its high end"
        )
    return Scale(low, high)


@dataclass(frozen=True)
class Parts:
    """Labels divided so that no content is in two parts."""

    train: list[Labelled]
    val: list[Labelled]
    held_out: list[Labelled]


def divide(labels: Sequence[Labelled], *, held_out: float, val: float = 0.4, most_val: int, seed: int) -> Parts:
    """Draw the shares ``held_out`` of all contents and ``val`` of the others, at least one each; the rest is to train.

    Of the validation rows at most ``most_val`` are drawn, as every candidate is run on all of them. Raises UserError
    for a share outside (0, 1) and for fewer than three contents.
    """
    if not 0 < held_out < 1:
        raise UserError(f"the held-out share lies between 0 and 1, got {held_out:g}")
    contents = sorted({label.content for label in labels})
    if len(contents) < 3:
        raise UserError(f"{len(contents)} contents (scenes) cannot be divided in three: training, validation, held-out")
    rng = random.Random(seed)
    rng.shuffle(contents)
    n_held_out = min(len(contents) - 2, max(1, round(held_out * len(contents))))
    n_val = min(len(contents) - n_held_out - 1, max(1, round(val * (len(contents) - n_held_out))))
    part_of = dict.fromkeys(contents[:n_held_out], "held_out")
    part_of |= dict.fromkeys(contents[n_held_out : n_held_out + n_val], "val")
    parts: dict[str, list[Labelled]] = {"train": [], "val": [], "held_out": []}
    for label in labels:
        parts[part_of.get(label.content, "train")].append(label)
    if len(parts["val"]) > most_val:
        parts["val"] = rng.sample(parts["val"], most_val)
    return Parts(**parts)
