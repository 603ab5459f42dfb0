"""Choose the fusion for the scores in a folder of shards (``--fuse``), with one shard in memory at a time."""

from collections.abc import Iterator
from itertools import islice

from agenticiqa.programs.batch.fit_fusion import FusionFit, fit_auto, fuse_row
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.profile import profile_text
from agenticiqa.programs.scale.table import Row, ShardFolder, placed_rows

PROFILE = "_fusion.yaml"
MOST_FITTED = 5000  # rows that a fit uses, the same number from each shard


def show_fitted(folder: ShardFolder, default: ScoreFusion) -> str:
    """Fit a profile to the rows, write the fitted scores into them, and return one line about it.

    With fewer than 50 images rated by a model, the rows show the default score.
    """
    numbers = folder.shards()
    fit, message = fit_auto(_sample(folder, numbers))
    if fit is None:
        show_default(folder, default)
        return message
    folder.write(PROFILE, profile_text(fit.profile).encode())
    _rewrite(folder, numbers, fit, default)
    return f"{message}; the profile is in {folder.place}/{PROFILE}"


def show_default(folder: ShardFolder, default: ScoreFusion) -> None:
    """Restore the default score in rows that show the score of an earlier fit."""
    if folder.has(PROFILE):
        _rewrite(folder, folder.shards(), None, default)
        folder.remove(PROFILE)


def _sample(folder: ShardFolder, numbers: list[int]) -> Iterator[Row]:
    each = -(-MOST_FITTED // max(1, len(numbers)))
    return (row for number in numbers for row in islice(folder.rows(number), each))


def _rewrite(folder: ShardFolder, numbers: list[int], fit: FusionFit | None, default: ScoreFusion) -> None:
    for number, stamp in folder.stamps(numbers).items():
        before = dict(placed_rows(folder, number))
        after = {place: fuse_row(row, fit, default) for place, row in before.items()}
        if stamp and after != before:
            folder.write_shard(number, after, stamp)
