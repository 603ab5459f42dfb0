"""Fit the members of the full-reference consensus, and measure it on contents that it was not fitted on.

    python -m agenticiqa.eval.studies.fr_fusion LABELS.csv --mos-range WORST BEST

Prints each member's two numbers, fitted on all images, and a table of every full-reference metric beside the consensus.
For the consensus each content is judged by curves that were fitted on the other contents; intervals are over images.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import least_squares

from agenticiqa.eval.bootstrap import estimate, estimate_fitted, paired_difference
from agenticiqa.eval.calibrate.samples import raw_value
from agenticiqa.eval.datasets import Labelled, read_labels
from agenticiqa.eval.metrics import krcc, srcc
from agenticiqa.programs.errors import AgenticIQAError, UserError
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.metrics.fr_fusion import MEMBERS, Member, full_reference_quality


def fitted(member: Member, raw: Sequence[float], quality: Sequence[float]) -> Member:
    """The member with the curve that is nearest to the qualities in 1..5, outliers counting less (soft L1)."""
    distances = np.array([member.distance(value) for value in raw])
    start = (np.log(np.median(distances)), 0.0)

    def residuals(free: np.ndarray) -> np.ndarray:
        middle, steepness = np.exp(free)
        return 1 + 4 / (1 + (distances / middle) ** steepness) - np.asarray(quality)

    middle, steepness = np.exp(least_squares(residuals, start, loss="soft_l1").x)
    return replace(member, middle=round(float(middle), 4), steepness=round(float(steepness), 4))


def held_out(raws: Mapping[str, Sequence[float]], quality: Sequence[float], contents: Sequence[str]) -> list[float]:
    """The consensus on every image, by members that were fitted on the images of other contents."""
    result = [0.0] * len(quality)
    for content in sorted(set(contents)):
        rest = [row for row, other in enumerate(contents) if other != content]
        members = {
            name: fitted(member, [raws[name][row] for row in rest], [quality[row] for row in rest])
            for name, member in MEMBERS.items()
        }
        for row, other in enumerate(contents):
            if other == content:
                result[row] = full_reference_quality({name: raws[name][row] for name in members}, members)
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Print the fits and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", help="a labels.csv with the columns image, reference and mos")
    parser.add_argument("--mos-range", nargs=2, type=float, required=True, metavar=("WORST", "BEST"))
    args = parser.parse_args(argv)
    try:
        items = read_labels(args.labels)
        if any(item.reference is None for item in items):
            raise UserError(f"the consensus compares with references, and {args.labels} has rows without one")
        raws = {card.name: [raw_value(card, item) for item in items] for card in TOOLS.values() if card.kind == "FR"}
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    _report(items, raws, *args.mos_range)
    return 0


def _report(items: Sequence[Labelled], raws: Mapping[str, Sequence[float]], worst: float, best: float) -> None:
    mos = [item.mos for item in items]
    quality = np.clip([1 + 4 * (value - worst) / (best - worst) for value in mos], 1, 5).tolist()
    contents = [item.content for item in items]
    for name, member in MEMBERS.items():
        fit = fitted(member, raws[name], quality)
        print(f"{name}: middle={fit.middle}, steepness={fit.steepness}")
    rows = {
        name: [value if TOOLS[name].higher_is_better else -value for value in values] for name, values in raws.items()
    }
    rows["consensus, held out"] = held_out(raws, quality, contents)
    images = [item.name for item in items]
    print(
        "\n| metric | n | SRCC [95 %] | KRCC [95 %] | PLCC fitted [95 %] | SRCC of the consensus less its own [95 %] |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for name, values in rows.items():
        figures = [estimate(measure, values, mos, images) for measure in (srcc, krcc)]
        figures.append(estimate_fitted(values, mos, images))
        figures.append(paired_difference(srcc, rows["consensus, held out"], values, mos, images))
        print(
            f"| {name} | {len(mos)} |", " | ".join(f"{f.value:.4f} [{f.low:.3f}, {f.high:.3f}]" for f in figures), "|"
        )


if __name__ == "__main__":
    sys.exit(main())
