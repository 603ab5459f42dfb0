"""Labels split by content into training, validation and held-out images."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.programs.errors import UserError


@dataclass(frozen=True)
class Splits:
    """Labels split so that no content is in two of them."""

    train: list[LabeledImage]
    val: list[LabeledImage]
    held_out: list[LabeledImage]

    def counts(self) -> dict[str, dict[str, int]]:
        """The number of images and contents of each split."""
        return {
            name: {"images": len(rows), "contents": len({label.content for label in rows})}
            for name, rows in vars(self).items()
        }


def split_by_content(
    labels: Sequence[LabeledImage], *, held_out: float, val: float = 0.4, max_val: int, seed: int
) -> Splits:
    """Draw the share ``held_out`` of all contents and ``val`` of the others, at least one each; the others train.

    At most ``max_val`` of the validation images are kept, as every candidate is run on all of them. Raises UserError
    for a share outside (0, 1) and for fewer than three contents.
    """
    if not 0 < held_out < 1:
        raise UserError(f"the held-out share lies between 0 and 1, got {held_out:g}")
    contents = sorted({label.content for label in labels})
    if len(contents) < 3:
        raise UserError(f"{len(contents)} contents (scenes) cannot be split in three: training, validation, held-out")
    rng = random.Random(seed)
    rng.shuffle(contents)
    n_held_out = min(len(contents) - 2, max(1, round(held_out * len(contents))))
    n_val = min(len(contents) - n_held_out - 1, max(1, round(val * (len(contents) - n_held_out))))
    split_of = dict.fromkeys(contents[:n_held_out], "held_out")
    split_of |= dict.fromkeys(contents[n_held_out : n_held_out + n_val], "val")
    splits: dict[str, list[LabeledImage]] = {"train": [], "val": [], "held_out": []}
    for label in labels:
        splits[split_of.get(label.content, "train")].append(label)
    if len(splits["val"]) > max_val:
        splits["val"] = rng.sample(splits["val"], max_val)
    return Splits(**splits)
