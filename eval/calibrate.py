"""Fit a metric's curve to 1..5 on labelled images; the shipped profile was made with this.

python -m agenticiqa.eval.calibrate LABELS.csv --mos-range 0 100 --tool SSIM GMSD --name "LIVE r2" --out mine.yaml
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np
import yaml
from scipy.optimize import least_squares

from agenticiqa.eval.datasets import Labelled, read_labels
from agenticiqa.eval.metrics import srcc
from agenticiqa.programs.errors import AgenticIQAError, ToolError, UserError
from agenticiqa.programs.images import load_pair
from agenticiqa.programs.tools import CARDS, ToolCard, find_card
from agenticiqa.programs.tools.calibration import Calibration, logistic5

LEAST_POINTS = 20


def fit_calibration(
    raw: Sequence[float], quality: Sequence[float], raw_range: tuple[float, float], name: str
) -> Calibration:
    """The monotone logistic curve from raw values to qualities in 1..5 (at least 20 points).

    The five-parameter form with beta4 = 0, so that it cannot turn round. Raises ToolError for too few points, or for
    raw values that do not vary.
    """
    x, y = np.asarray(raw, float), np.asarray(quality, float)
    if len(x) < LEAST_POINTS or np.ptp(x) == 0:
        raise ToolError(f"a curve needs at least {LEAST_POINTS} points with different values, got {len(x)}")
    correlation = srcc(x, y)
    if correlation is None:
        raise ToolError("a curve needs qualities that differ, and these are all the same")
    rising = correlation >= 0

    def betas(free: np.ndarray) -> tuple[float, float, float, float, float]:
        span, steepness, middle, centre = free
        return (float(span), float(np.exp(steepness)) * (1 if rising else -1), float(middle), 0.0, float(centre))

    start = np.array([4.0, np.log(4 / np.std(x)), np.mean(x), 3.0])
    low, high = [0.0, -np.inf, min(raw_range), 1.0], [12.0, np.inf, max(raw_range), 5.0]
    fit = least_squares(lambda free: logistic5(x, betas(free)) - y, start, bounds=(low, high), loss="soft_l1")
    curve = Calibration(betas(fit.x), raw_range, "")
    residual = float(np.sqrt(np.mean([(curve(value) - target) ** 2 for value, target in zip(x, y, strict=True)])))
    made = date.today().isoformat()
    provenance = f"{name}, n={len(x)}, {made}, residual {residual:.2f}, SRCC {abs(correlation):.3f}"
    return Calibration(tuple(round(b, 6) for b in curve.betas), raw_range, provenance)  # type: ignore[arg-type]


def raw_value(card: ToolCard, item: Labelled) -> float:
    """What a metric gives for a labelled image, on its own scale. Raises ToolError where it does not apply."""
    image, reference = load_pair(item.image, item.reference if card.kind == "FR" else None)
    return float(card.measure(image.pixels, reference.pixels) if reference else card.measure(image.pixels))


def measure_all(card: ToolCard, items: Sequence[Labelled], low: float, high: float) -> tuple[list[float], list[float]]:
    """The raw values and the qualities in 1..5 of labelled images; for a full-reference card also of the references."""
    raw = [raw_value(card, item) for item in items]
    quality = [float(np.clip(1 + 4 * (item.mos - low) / (high - low), 1, 5)) for item in items]
    if card.kind == "FR":  # a pristine image is excellent by definition, and few sets show one
        for path in sorted({item.reference for item in items if item.reference}):
            pristine = load_pair(path, None)[0].pixels
            raw.append(card.measure(pristine, pristine))
            quality.append(5.0)
    return raw, quality


def main(argv: Sequence[str] | None = None) -> int:
    """Fit the named tools and write or update a profile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", help="a labels.csv with the columns image, mos and, for FR tools, reference")
    parser.add_argument("--mos-range", nargs=2, type=float, required=True, metavar=("WORST", "BEST"))
    parser.add_argument("--tool", nargs="+", required=True, choices=list(CARDS), metavar="TOOL")
    parser.add_argument("--split", help="only the rows of this split")
    parser.add_argument("--name", required=True, help="how the data set is to be named in the profile")
    parser.add_argument("--out", type=Path, required=True, help="the profile to write, or to update if it is there")
    args = parser.parse_args(argv)
    try:
        items = read_labels(args.labels, args.split)
        profile = yaml.safe_load(args.out.read_text("utf-8")) if args.out.exists() else {"tools": {}}
        for tool in args.tool:
            card = find_card(CARDS, tool)
            if card.kind == "FR" and any(item.reference is None for item in items):
                raise UserError(f"{tool} compares with references, and {args.labels} has rows without one")
            curve = fit_calibration(*measure_all(card, items, *args.mos_range), card.raw_range, args.name)
            profile["tools"][tool] = {
                "betas": list(curve.betas),
                "raw_range": list(curve.raw_range),
                "fitted_on": curve.fitted_on,
            }
            print(f"{tool}: {curve.fitted_on}")
        args.out.write_text(yaml.safe_dump(profile, sort_keys=False, default_flow_style=None, width=120), "utf-8")
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
