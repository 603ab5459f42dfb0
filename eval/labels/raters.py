"""Merge the ratings of one or several people into MOS, leave out careless raters, and compute the ceiling of the SRCC.

A table of ratings has the columns image, mos and rater, with one row per rating. A second rating of an image by the
same person has 1 in the column repeat. Rating = quality of the image + bias of the rater + noise (ITU-T P.910, 12.6).
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as ratio_of_variances

from agenticiqa.eval.datasets import OTHER_SCALES, USUAL_SCALES, LabeledImage, number_of
from agenticiqa.eval.intervals import CONFIDENCE, Interval
from agenticiqa.eval.metrics import MIN_IMAGES, srcc
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.page.csv_text import csv_text

if TYPE_CHECKING:  # commands without ratings of several people start without pandas
    from pandas import DataFrame

LEAST_AGREEMENT = 0.3  # correlation with the others and with the own repeats; a rater below both is left out
FEWEST_FOR_SCALE = 6  # ratings that show on which scale they are
SAME_ORDER = 0.5  # SRCC from which a rater agrees with the others in all but the scale
SPREADS_DIFFER = 1.75  # ratio of standard deviations; it is 2 for the scales 0..10 and 0..5, 1..9 and 1..5
BEYOND = 0.25  # share of ratings that the scale of others does not have
BY_CHANCE = 0.05  # share of raters at chance whose few repeats agree well enough to be kept

Placed = tuple[str, Mapping[str, str]]  # the place of a row in its table, and its cells


class Rater(NamedTuple):
    """A person who rated: the number of rated images, the bias in units of the scale, and the agreement.

    ``others`` is the SRCC with the mean of all others on shared images. ``own`` is the intraclass correlation of two
    ratings of an image (ICC(1,1); P. E. Shrout and J. L. Fleiss 1979, "Intraclass correlations"), with the variance of
    all ratings by this person, as the few images that come twice may be alike. Each is ``None`` for fewer than three
    images and for equal ratings.
    """

    name: str
    images: int
    bias: float
    others: float | None
    own: float | None
    repeats: int
    is_careless: bool

    @property
    def figures(self) -> str:
        """The figures in words, without those that are unknown."""
        bias = "" if self.others is None else f", bias {self.bias:+.2f}, SRCC with the others {self.others:.2f}"
        own = "" if self.own is None else f", agreement with oneself {self.own:.2f} ({self.repeats} repeats)"
        return f"{self.images} ratings{bias}{own}"


class Panel(NamedTuple):
    """The raters whose ratings are used, those that were left out, and the ceiling of the SRCC with the MOS."""

    raters: list[Rater]
    left_out: list[Rater]
    ceiling: Interval


NO_PANEL = Panel([], [], Interval(None, None, None, 0))


def merged(
    title: str, rows: Sequence[Placed], *, keep_all: bool = False, is_one_scale: bool = False
) -> tuple[Sequence[Placed], Panel]:
    """Return a row per image with mos, mos_std and raters, and the panel; a table without raters is unchanged.

    Repeats of one rater are averaged first. A MOS stays within the range of all ratings. Careless raters are left out
    one by one, unless ``keep_all`` is set, because each of them also lowers the agreement of the others. In a crowd
    with eight of them or more, the worst quarter is left out at a time. Raises UserError, with the title and the place,
    for a row without rater, a wrong number or a repeated rating, if no rater is left, and if raters seem to have used
    different scales, unless the user declared that ``is_one_scale``.
    """
    if not any("rater" in row for _, row in rows):
        return rows, NO_PANEL
    every = _ratings(title, rows)
    means, repeats = _means(every), _repeats(every)
    if not is_one_scale:
        _refuse_different_scales(title, means)
    raters, left_out = _raters(means, repeats), list[Rater]()
    while not keep_all and (careless := sorted((rater.others, rater) for rater in raters if rater.is_careless)):
        if len(careless) == len(raters) == 2:  # equal agreement of both
            raise UserError(f"{title}: no rater agrees with the others or with oneself; to use them, add --keep-raters")
        worst = [rater for _, rater in careless[: max(1, len(careless) // 4)]]
        left_out += worst
        means = means.drop(index=[rater.name for rater in worst]).dropna(axis=1, how="all")
        raters = _raters(means, repeats)
    used, ratings = every[every.rater.isin(means.index)], unbiased(means)
    # Without bias, a mean can be beyond the ends of the scale, and then none of the usual scales would fit.
    mos = ratings.mean().clip(every.mos.min(), every.mos.max())
    figures = mos.to_frame("mos").assign(mos_std=ratings.std(), raters=ratings.count()).round(9).to_dict("index")
    cells = {place: {name: f"{x:.12g}" for name, x in of.items() if np.isfinite(x)} for place, of in figures.items()}
    table = [(place, {**row, **cells[place]}) for place, row in rows if place in cells]
    return table, Panel(raters, left_out, ceiling(used, ratings))


def write_mos(path: Path, labels: Sequence[LabeledImage]) -> None:
    """Write the MOS of images as a table with paths relative to its folder. Raises OSError."""
    rows: list[tuple[str, ...]] = [("image", "mos", "mos_std", "raters")]
    for label in labels:
        numbers = ("" if x is None else f"{x:.6g}" for x in (label.mos, label.mos_std, label.raters))
        rows.append((os.path.relpath(label.image, path.parent), *numbers))
    write_atomically(path, csv_text(rows, "\n"))


def unbiased(ratings: "DataFrame") -> "DataFrame":
    """Return ratings, a row per rater and a column per image, without each rater's bias: least squares, with mean 0.

    If all raters rated all images, the bias is the mean difference from the MOS, as in ITU-T P.910 clause 12.6.
    Otherwise the least squares also take into account which raters rated an image.
    """
    known = ratings.notna().to_numpy()
    equations = np.diag(known.sum(axis=1)) - (known / known.sum(axis=0)) @ known.T
    return ratings.sub(np.linalg.lstsq(equations, (ratings - ratings.mean()).sum(axis=1))[0], axis=0)


def ceiling(ratings: "DataFrame", table: "DataFrame") -> Interval:
    """Return the highest correlation of a scorer with the MOS of the images, with its 95 % interval.

    The correlation of any scorer with the MOS is its correlation with the true quality times the square root of the
    reliability of the MOS (attenuation formula; C. Spearman 1904, "The proof and measurement of association between
    two things"). Reliability is 1 - noise / variance of the MOS. A mean of k ratings has 1 / k of the noise of one
    rating, which is the Spearman-Brown formula. The noise of one rating is the variance within repeats, but at least
    that of rounding to the scale, step^2 / 12. Without repeats, it is the variance between raters, which also has their
    different tastes. The SRCC of normally distributed MOS is up to .02 lower. The interval is that of a ratio of
    two variances (F distribution).

    Args:
        ratings: A row per rating, with the columns rater, image and mos.
        table: The result of ``unbiased`` for them.

    Returns:
        The ceiling; ``n`` is the number of repeats, 0 for a ceiling from the differences between raters.
    """
    cells = ratings.groupby(["image", "rater"]).mos
    mos, times = table.mean(), cells.count()
    n = free = len(ratings) - len(times)
    squares = float((cells.var() * (times - 1)).sum())
    if not n:
        free = len(times) - len(mos) - len(table) + 1
        squares = float(((table - mos) ** 2).sum().sum())
    if free < 1 or len(mos) < MIN_IMAGES or np.ptp(mos) == 0:
        return Interval(None, None, None, n)
    steps = np.diff(np.unique(ratings.mos))
    noise = max(squares / free, float(steps.min()) ** 2 / 12) * (1 / times).groupby("image").sum() / table.count() ** 2
    ends = ratio_of_variances.ppf([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], free, len(mos) - 1)
    value, low, high = (float(np.sqrt(max(0.0, 1 - noise.mean() / mos.var() / end))) for end in (1.0, *ends))
    return Interval(value, low, high, n)


def _ratings(title: str, rows: Sequence[Placed]) -> "DataFrame":
    """Return a row per rating, with the columns image (the place of its first row), rater, repeat and mos."""
    from pandas import DataFrame

    first: dict[tuple[str, str | None], str] = {}
    given: dict[tuple[str, str, float], tuple[float, str]] = {}
    for place, row in rows:
        if "rater" not in row:
            raise UserError(f"{title}: {place}: the column rater is empty or missing; add the name of the person")
        image = first.setdefault((row.get("image", place), row.get("reference")), place)
        key = image, row["rater"], number_of(title, place, "repeat", row.get("repeat", "0"))
        if key in given:
            again = f"{row['rater']} already rated {row.get('image')} in {given[key][1]}"
            raise UserError(f"{title}: {place}: {again}; remove one of the two rows, or rename one of two raters")
        given[key] = number_of(title, place, "mos", row.get("mos", "")), place
    return DataFrame([(*key, mos) for key, (mos, _) in given.items()], columns=["image", "rater", "repeat", "mos"])


def _means(ratings: "DataFrame") -> "DataFrame":
    """Return the mean of each rater's ratings of an image, with a row per rater and a column per image."""
    return ratings.pivot_table(index="rater", columns="image", values="mos", sort=False)


def _refuse_different_scales(title: str, means: "DataFrame") -> None:
    """Raise UserError if a rater seems to use another one of the usual scales than the others.

    Both agree in the order of images, but their spreads differ, and many ratings of one are beyond the ends of the
    narrowest usual scale that holds those of the other. Without shared images, all ratings are compared.
    """
    values = means.to_numpy()
    count, total = (~np.isnan(values)).sum(axis=0), np.nansum(values, axis=0)
    for number, (name, own) in enumerate(zip(means.index, values, strict=True)):
        rated = ~np.isnan(own)
        shared = rated & (count > 1)
        if shared.any():
            mine, others = own[shared], (total[shared] - own[shared]) / (count[shared] - 1)
            agreement, compared = srcc(mine, others), shared
        else:
            mine, others, agreement, compared = own[rated], total[~rated] / count[~rated], 1.0, ~rated
        if min(len(mine), len(others)) < FEWEST_FOR_SCALE or agreement is None or agreement < SAME_ORDER:
            continue
        less, more = sorted((float(mine.std()), float(others.std())))
        if more < SPREADS_DIFFER * less:
            continue
        given = np.delete(values, number, axis=0)[:, compared]
        given = given[~np.isnan(given)]
        if max(_beyond(mine, given), _beyond(given, mine)) >= BEYOND:
            ends = [f"from {each.min():.6g} to {each.max():.6g}" for each in (mine, given)]
            raise UserError(
                f"{title}: {name} gave ratings {ends[0]}, but other raters {ends[1]}: convert all ratings to one "
                "scale, or, if all raters used one, give its ends with --mos-range LOW HIGH"
            )


def _beyond(ratings: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Return the share of ratings beyond the ends of the narrowest usual scale that holds the others; 0 without one."""
    scales = sorted((*USUAL_SCALES, *OTHER_SCALES), key=lambda ends: ends[1] - ends[0])
    holding = (ends for ends in scales if ends[0] <= others.min() and others.max() <= ends[1])
    low, high = next(holding, (-np.inf, np.inf))
    return float(np.mean((ratings < low) | (ratings > high)))


def _repeats(ratings: "DataFrame") -> dict[str, tuple[int, float]]:
    """Return by rater the number of images rated twice, and the mean square of the differences."""
    twice = ratings.pivot(index=["rater", "image"], columns="repeat", values="mos").reindex(columns=[0, 1]).dropna()
    squares = ((twice[1] - twice[0]) ** 2).groupby("rater")
    return {name: (len(of), float(of.mean())) for name, of in squares}


def _raters(means: "DataFrame", repeats: Mapping[str, tuple[int, float]]) -> list[Rater]:
    """Return the raters of these means; arrays, because a series of pandas for each rater takes ten times as long."""
    table = unbiased(means)
    total, count, values = table.sum().to_numpy(), table.count().to_numpy(), table.to_numpy()
    biases = np.nanmean(means.to_numpy() - values, axis=1)
    raters = []
    for name, bias, own in zip(table.index, biases, values, strict=True):
        rated, shared = own[~np.isnan(own)], ~np.isnan(own) & (count > 1)
        others = srcc(own[shared], (total[shared] - own[shared]) / (count[shared] - 1))
        again, square = repeats.get(name, (0, 0.0))
        is_known = again >= MIN_IMAGES and np.ptp(rated) > 0
        noise = square / 2 / float(rated.var(ddof=1)) if is_known else 1.0
        is_careless = others is not None and others < LEAST_AGREEMENT and noise > _most_noise(again, len(rated))
        agreement = max(0.0, 1 - noise) if is_known else None
        raters.append(Rater(name, len(rated), float(bias), others, agreement, again, is_careless))
    return raters


def _most_noise(repeats: int, images: int) -> float:
    """Return the noise above which a rater with this number of repeats does not agree with oneself."""
    return float(min(1 - LEAST_AGREEMENT, ratio_of_variances.ppf(BY_CHANCE, repeats, images - 1)))
