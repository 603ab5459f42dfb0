"""How far a model's levels can be trusted beside the tools, fitted to a run of ``agenticiqa evaluate``.

    agenticiqa evaluate LABELS.csv --config mine.yaml --out RUN
    python -m agenticiqa.eval.studies.fusion_fit RUN/results.jsonl

prints the ``fusion`` section for the configuration, and what it gains on contents that it was not fitted to.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agenticiqa.configs import FusionConfig
from agenticiqa.eval.bootstrap import Estimate, paired_difference
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.programs.errors import AgenticIQAError, UserError
from agenticiqa.signatures.types import LEVEL_KEYS, ExecutorOutput

LEVELS = np.arange(1.0, 6.0)
ERRORS = (0.0, 0.5, 0.75, 1.0, 1.5, 2.0, 2.25, 2.5, 3.0, 4.0, 6.0, 100.0)  # of the model; with the last it has no say
ETAS = (2.0, 1.0, 0.5, 0.25, 0.125)
FOLDS = 5
FEWEST = 30
WORTH_IT = 0.003  # of SRCC: what a better setting seems to gain by chance on a few hundred images


@dataclass(frozen=True)
class Setting:
    """The two numbers of the fusion: ``ScoreFusion(eta, model_error=model_error)``."""

    eta: float
    model_error: float


DEFAULT = Setting(**FusionConfig().model_dump())
SETTINGS = [Setting(eta, error) for eta in ETAS for error in reversed(ERRORS)]


def fused(tool: Numbers, p: Numbers, setting: Setting) -> Numbers:
    """``ScoreFusion.fuse_scores`` of many images: tool scores (n,) in 1..5 and probabilities (n, 5) to scores (n,)."""
    logs = -setting.eta * (tool[:, None] - LEVELS) ** 2
    if setting.model_error > 0:
        kernel = np.exp(-0.5 * ((LEVELS - LEVELS[:, None]) / setting.model_error) ** 2)
        p = p @ (kernel / kernel.sum(axis=1, keepdims=True)).T
    joint = np.exp(logs - logs.max(axis=1, keepdims=True)) * p
    return joint @ LEVELS / joint.sum(axis=1)


def best_setting(tool: Numbers, p: Numbers, mos: Numbers, default: Setting = DEFAULT) -> Setting:
    """The setting with the highest SRCC, or the default where that gains too little on it to be told from chance."""
    worth = {setting: srcc(fused(tool, p, setting), mos) or 0.0 for setting in (*SETTINGS, default)}
    best = max(worth, key=lambda setting: worth[setting])
    return best if worth[best] > worth[default] + WORTH_IT else default


def folds_of(contents: Sequence[str], folds: int = FOLDS, seed: int = 0) -> np.ndarray:
    """The fold of each image, 0 to folds - 1; the images of one content stay together."""
    names, of = np.unique(np.asarray(contents, dtype=str), return_inverse=True)
    return np.random.default_rng(seed).permutation(np.arange(len(names)) % folds)[of]


def cross_fitted(tool: Numbers, p: Numbers, mos: Numbers, contents: Sequence[str]) -> Numbers:
    """The fused score of each image with the setting that was best on the other folds."""
    result, folds = np.empty_like(tool), folds_of(contents, min(FOLDS, len(set(contents))))
    for fold in np.unique(folds):
        rest, out = folds != fold, folds == fold
        result[out] = fused(tool[out], p[out], best_setting(tool[rest], p[rest], mos[rest]))
    return result


def gain(scores: Numbers, parts: Sequence[Numbers], mos: Numbers, contents: Sequence[str], resamples: int) -> Estimate:
    """The SRCC of scores less that of the better part, with its paired bootstrap interval."""
    better = max(parts, key=lambda part: srcc(part, mos) or 0.0)
    return paired_difference(srcc, scores, better, mos, contents, resamples=resamples)


def signed(figure: Estimate) -> str:
    """A difference with its interval, as text; "-" where it is undefined."""
    if figure.value is None:
        return "-"
    interval = "" if figure.low is None else f" [{figure.low:+.4f}, {figure.high:+.4f}]"
    return f"{figure.value:+.4f}{interval}"


def read_run(path: Path) -> tuple[Numbers, Numbers, Numbers, list[str]]:
    """Tool means (n,), probabilities (n, 5), MOS (n,) and contents of the images of a run that have all of them.

    Raises UserError, in one line, for a file that is no such run or has fewer than 30 such images.
    """
    tool, p, mos, contents = [], [], [], []
    try:
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if "error" in row or row.get("quality_probs") is None:
                continue
            mean = ExecutorOutput.model_validate(row["executor_evidence"]).overall_mean
            if mean is not None:
                tool.append(mean)
                p.append([row["quality_probs"][key] for key in LEVEL_KEYS])
                mos.append(row["mos"])
                contents.append(row["content"])
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        why = " ".join(str(error).split())
        raise UserError(f"{path}: expected the results.jsonl of 'agenticiqa evaluate': {why}") from error
    if len(tool) < FEWEST:
        raise UserError(f"{path}: {len(tool)} images have tool scores and probabilities; at least {FEWEST} are needed")
    return np.array(tool), np.array(p), np.array(mos), contents


def main(argv: Sequence[str] | None = None) -> int:
    """Fit to a run and print the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="the results.jsonl of a run")
    parser.add_argument("--resamples", type=int, default=1000, help="of the bootstrap interval (%(default)s; 0: none)")
    args = parser.parse_args(argv)
    try:
        tool, p, mos, contents = read_run(args.results)
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    setting, parts = best_setting(tool, p, mos), [tool, p @ LEVELS]
    held_out = cross_fitted(tool, p, mos, contents)
    figures = [f"{srcc(scores, mos) or 0:.3f}" for scores in (*parts, held_out)]
    print(f"# {len(mos)} images: SRCC of the tools {figures[0]}, of the levels {figures[1]}, fused {figures[2]}")
    print(f"# fused less the better part: {signed(gain(held_out, parts, mos, contents, args.resamples))}")
    print(f"fusion:\n  eta: {setting.eta:g}\n  model_error: {setting.model_error:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
