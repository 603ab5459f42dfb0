"""Measure whether it pays to choose the next measurement of an image by what it is expected to tell.

    python -m agenticiqa.eval.research.measurement_choice DATA

DATA has the folders of ``fusion_study``. LEARNED-IQA is predicted by ten folds. The next measurement is another tool,
or the call that asks a vision-language model (VLM) for a rating, which is fused by a profile without labels. Each set
is measured with predictions that were fitted to the others:

- "all tools": a ridge regression on the scores of all tools of the mean, beside LEARNED-IQA alone
- "fixed": the VLM rates a random part of the images
- "by width": it rates those with the widest interval
- "by gain": it rates those for which a ridge regression on what is known without it expects most

Every figure is the mean absolute error in levels; those with a VLM are means over 15 real VLMs (CLIVE, AGIQA-3K), or 10
simulated ones. Brackets are 95 % bootstrap intervals of the difference from "fixed" over VLMs.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.research.adapter_figures import Numbers, RatedImages
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.fusion_study import (
    LEARNED,
    NIQE,
    SHARPNESS,
    ToolCase,
    Vlm,
    fitted_fusion,
    margins_of,
    real_vlms,
    simulated_vlms,
    tool_cases,
    tool_scores,
)
from agenticiqa.eval.research.interval_figures import ReadImages, read_all
from agenticiqa.programs.fusion.interval import fused_score
from agenticiqa.programs.images.loading import load

SETS = ("clive", "biq2021", "agiqa3k")
TOOLS_BESIDE = (NIQE, "BRISQUE", "PIQE", SHARPNESS)
SHARES = (0.25, 0.5, 0.75)  # parts of the images that the VLM rates
PENALTY, RESAMPLES = 10.0, 2000


class RatedSet(NamedTuple):
    """The N images of a set: MOS, scores of LEARNED-IQA, widths, features (N, F), and fused scores by VLM."""

    mos: Numbers
    learned: Numbers
    width: Numbers
    features: Numbers
    fused: Mapping[str, Numbers]

    def gain(self, vlm: str) -> Numbers:
        """Return by how much (N,) the rating of a VLM reduces the error."""
        return np.abs(self.learned - self.mos) - np.abs(self.fused[vlm] - self.mos)


def known_of(folder: Path, images: ReadImages, others: Sequence[RatedImages], *, real: bool) -> RatedSet:
    """Measure the images of a set; ``real`` uses the published VLMs instead of simulated ones."""
    files = [item.image for item in read_labels(folder / "labels.csv")]
    loaded = [load(file) for file in files]
    beside = {name: tool_scores(name, loaded) for name in TOOLS_BESIDE}
    case = next(one for one in tool_cases(images.rated, others, beside) if one.name == LEARNED)
    mos = images.rated.mos
    vlms = real_vlms(margins_of(folder, files)) if real else simulated_vlms(case.scores, mos)
    values = np.stack([case.scores, *beside.values()], axis=1)
    apart = np.abs(values[:, 1:] - values[:, :1])
    features = np.column_stack([values, values[:, 0] ** 2, apart, images.reading[:, 1:]])
    low, high = images.ends(case.scores).T
    return RatedSet(mos, case.scores, high - low, features, {vlm.name: fused_with(case, vlm) for vlm in vlms})


def fused_with(case: ToolCase, vlm: Vlm) -> Numbers:
    """Return the scores (N,) that a profile without labels fuses from a tool and a VLM."""
    images = range(len(case.scores))
    fusion = fitted_fusion(case, vlm, images)
    return np.array([fused_score(fusion, case.evidence(i), vlm.levels(i), "logprobs").score for i in images])


def predicted(train: Numbers, target: Numbers, features: Numbers) -> Numbers:
    """Return the predictions (N,) of a ridge regression on standardized features."""
    mean, std = train.mean(axis=0), train.std(axis=0) + 1e-9
    scaled = (train - mean) / std
    weights = np.linalg.solve(
        scaled.T @ scaled + PENALTY * np.eye(scaled.shape[1]), scaled.T @ (target - target.mean())
    )
    return np.asarray((features - mean) / std @ weights + target.mean())


def error_by_order(known: RatedSet, vlm: str, order: Numbers, share: float) -> float:
    """Return the error if the VLM rates the ``share`` of images that come first in a descending ``order``."""
    count = round(share * len(order))
    asked = np.argsort(-order, kind="stable")[:count]
    return float(np.mean(np.abs(known.learned - known.mos)) - known.gain(vlm)[asked].sum() / len(order))


def rows_of(name: str, known: RatedSet, others: Sequence[RatedSet]) -> list[str]:
    """Return the lines of a set."""
    alone = np.mean(np.abs(known.learned - known.mos))
    values = slice(0, 1 + len(TOOLS_BESIDE))
    train = np.concatenate([other.features[:, values] for other in others])
    both = predicted(train, np.concatenate([other.mos for other in others]), known.features[:, values])
    shift = np.mean(both - known.learned)  # the level of the raters is not what the tools are compared for
    lines = [f"| {name} | LEARNED-IQA | {alone:.3f} | all tools {np.mean(np.abs(both - shift - known.mos)):.3f} | |"]
    gains = [np.mean([other.gain(vlm) for vlm in other.fused], axis=0) for other in others]
    expected = predicted(np.concatenate([o.features for o in others]), np.concatenate(gains), known.features)
    for share in (*SHARES, 1.0):
        fixed = np.array([alone - share * known.gain(vlm).mean() for vlm in known.fused])
        cells = []
        for order in (known.width, expected):
            errors = np.array([error_by_order(known, vlm, order, share) for vlm in known.fused])
            draws = np.random.default_rng(0).integers(0, len(errors), (RESAMPLES, len(errors)))
            low, high = np.percentile((errors - fixed)[draws].mean(axis=1), [2.5, 97.5])
            cells.append(f"{errors.mean():.3f} [{low:+.3f}, {high:+.3f}]")
        lines.append(f"| {name} | {share:.0%} rated by VLM | {fixed.mean():.3f} | {' | '.join(cells)} |")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__, "an hour on two cores, most of it for the features, which are cached")
    parser.add_argument("data", type=Path, help="the folder of the sets")

    def run(args: argparse.Namespace) -> None:
        sets = read_all(args.data)
        print("| images | measurements | fixed | by width | by gain |\n| --- | --- | --- | --- | --- |")
        for real, names in ((True, ("clive", "agiqa3k")), (False, SETS)):
            found = {
                name: known_of(
                    args.data / name, sets[name], [sets[o].rated for o in sets if o not in (name, "avt_ai")], real=real
                )
                for name in names
            }
            for name, known in found.items():
                title = f"{name}, {len(known.fused)} {'real' if real else 'simulated'} VLMs"
                print("\n".join(rows_of(title, known, [other for key, other in found.items() if key != name])))

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
