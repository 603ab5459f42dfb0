"""Fit the metrics that FR-FUSION combines, and measure the fusion on held-out scenes.

    python -m agenticiqa.eval.research.fr_fusion LABELS.csv --mos-range LOW HIGH

Prints the two parameters of each combined metric, fitted to all images, and a table of all full-reference metrics and
the fusion. The row of the fusion is held out: its curves are fitted to other scenes. Intervals are by a jackknife.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import least_squares

from agenticiqa.eval.datasets import LabeledImage, MosScale, folds_by_content, mos_scale
from agenticiqa.eval.intervals import difference_interval, fitted_plcc_interval, interval
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.metrics import krcc, srcc
from agenticiqa.eval.names import MOS_RANGE_HELP
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.curve_fit import raw_of
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.metrics.fr_fusion import MEMBERS, Member, full_reference_quality

HELD_OUT = "FR fusion, held out"


def fitted(member: Member, raw: Sequence[float], quality: Sequence[float]) -> Member:
    """Return the member with a curve fitted to the qualities (n,) in 1..5, by a soft L1 loss (robust to outliers)."""
    distances = np.array([member.distance(value) for value in raw])
    start = (np.log(np.median(distances)), 0.0)

    def residuals(free: np.ndarray) -> np.ndarray:
        middle, steepness = np.exp(free)
        return 1 + 4 / (1 + (distances / middle) ** steepness) - np.asarray(quality)

    middle, steepness = np.exp(least_squares(residuals, start, loss="soft_l1").x)
    return replace(member, middle=round(float(middle), 4), steepness=round(float(steepness), 4))


def held_out(raws: Mapping[str, Sequence[float]], quality: Sequence[float], contents: Sequence[str]) -> list[float]:
    """Return the fusion's score of every image, with its curves fitted to images of other scenes."""
    result = [0.0] * len(quality)
    fold_of = folds_by_content(contents, len(set(contents)))
    for fold in np.unique(fold_of):
        rest, out = (np.flatnonzero(mask).tolist() for mask in (fold_of != fold, fold_of == fold))
        members = {
            name: fitted(member, [raws[name][row] for row in rest], [quality[row] for row in rest])
            for name, member in MEMBERS.items()
        }
        for row in out:
            result[row] = full_reference_quality({name: raws[name][row] for name in members}, members)
    return result


def report(items: Sequence[LabeledImage], raws: Mapping[str, Sequence[float]], scale: MosScale) -> list[str]:
    """Return the fitted parameters and the Markdown table; ``raws`` has the values of each metric."""
    mos = [item.mos for item in items]
    quality = [scale.to_1_5(value) for value in mos]
    fits = {name: fitted(member, raws[name], quality) for name, member in MEMBERS.items()}
    lines = [f"{name}: middle={fit.middle}, steepness={fit.steepness}" for name, fit in fits.items()]
    rows = {
        name: [value if TOOLS[name].higher_is_better else -value for value in values] for name, values in raws.items()
    }
    contents = [item.content for item in items]
    rows[HELD_OUT] = held_out(raws, quality, contents)
    lines += [
        "",
        "| metric | n | SRCC [95 %] | KRCC [95 %] | PLCC fitted [95 %] | SRCC: fusion minus metric [95 %] |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, values in rows.items():
        figures = [f"{interval(measure, values, mos, contents):.4f}" for measure in (srcc, krcc)]
        figures.append(f"{fitted_plcc_interval(values, mos, contents):.4f}")
        figures.append(f"{difference_interval(srcc, rows[HELD_OUT], values, mos, contents):+.4f}")
        lines.append(f"| {name} | {len(mos)} | {' | '.join(figures)} |")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("labels", help="a labels.csv with the columns image, reference and mos")
    parser.add_argument("--mos-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help=MOS_RANGE_HELP)

    def run(args: argparse.Namespace) -> None:
        items = read_labels(args.labels)
        scale = mos_scale([item.mos for item in items], args.mos_range)
        if any(item.reference is None for item in items):
            raise UserError(f"{args.labels}: some rows have no reference; add one to every row")
        raws = {tool.name: [raw_of(tool, item) for item in items] for tool in TOOLS.values() if tool.kind == "FR"}
        print("\n".join(report(items, raws, scale)))

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
