"""Fit the two parameters of the score fusion to a run of ``agenticiqa evaluate``.

    agenticiqa evaluate LABELS.csv --config mine.yaml --out RUN
    python -m agenticiqa.eval.studies.fusion_fit RUN/results.jsonl

prints the ``fusion`` section for a configuration, and its gain in SRCC on contents that it was not fitted to
(cross-validation by content).
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agenticiqa.eval.bootstrap import Interval, difference_interval
from agenticiqa.eval.datasets import folds_by_content
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.programs.batch.results_file import latest_rows
from agenticiqa.programs.errors import AgenticIQAError, UserError
from agenticiqa.signatures.types import LEVEL_KEYS, ExecutorOutput
from agenticiqa.signatures.vocabulary import LEVELS

LEVEL_VALUES = np.array(sorted(LEVELS.values()), dtype=float)  # 1.0 .. 5.0
MODEL_ERRORS = (0.0, 0.5, 0.75, 1.0, 1.5, 2.0, 2.25, 2.5, 3.0, 4.0, 6.0, 100.0)  # at 100 the model has no influence
ETAS = (2.0, 1.0, 0.5, 0.25, 0.125)
FOLDS = 5
MIN_IMAGES = 30
MIN_GAIN = 0.003  # of SRCC: about what the best of many settings gains by chance on a few hundred images


@dataclass(frozen=True)
class Setting:
    """The parameters of the fusion: ``ScoreFusion(eta, model_error=model_error)``."""

    eta: float
    model_error: float


DEFAULT = Setting(2.0, 3.0)
SETTINGS = [Setting(eta, error) for eta in ETAS for error in reversed(MODEL_ERRORS)]


def fused(tool: Numbers, p: Numbers, setting: Setting) -> Numbers:
    """``ScoreFusion.fuse_scores`` for many images: tool scores (n,) in 1..5 and probabilities (n, 5) to scores (n,)."""
    logs = -setting.eta * (tool[:, None] - LEVEL_VALUES) ** 2
    if setting.model_error > 0:
        logs_p = -0.5 * (((p @ LEVEL_VALUES)[:, None] - LEVEL_VALUES) / setting.model_error) ** 2
        p = np.exp(logs_p - logs_p.max(axis=1, keepdims=True))
    joint = np.exp(logs - logs.max(axis=1, keepdims=True)) * p
    return joint @ LEVEL_VALUES / joint.sum(axis=1)


def best_setting(tool: Numbers, p: Numbers, mos: Numbers, default: Setting = DEFAULT) -> Setting:
    """The setting with the highest SRCC, or the default where the gain over it is within chance (``MIN_GAIN``)."""
    found = {setting: srcc(fused(tool, p, setting), mos) or 0.0 for setting in (*SETTINGS, default)}
    best = max(found, key=lambda setting: found[setting])
    return best if found[best] > found[default] + MIN_GAIN else default


def cross_fitted(tool: Numbers, p: Numbers, mos: Numbers, contents: Sequence[str]) -> Numbers:
    """The fused score of each image with the setting that was best on the other folds."""
    result, folds = np.empty_like(tool), folds_by_content(contents, FOLDS)
    for fold in np.unique(folds):
        rest, out = folds != fold, folds == fold
        result[out] = fused(tool[out], p[out], best_setting(tool[rest], p[rest], mos[rest]))
    return result


def gain(scores: Numbers, parts: Sequence[Numbers], mos: Numbers, contents: Sequence[str], resamples: int) -> Interval:
    """The SRCC of scores minus that of the better part, with its paired bootstrap interval."""
    better = max(parts, key=lambda part: srcc(part, mos) or 0.0)
    return difference_interval(srcc, scores, better, mos, contents, resamples=resamples)


def read_run(path: Path) -> tuple[Numbers, Numbers, Numbers, list[str]]:
    """Tool means (n,), probabilities (n, 5), MOS (n,) and contents of the images of a run that have all of them.

    Raises UserError, in one line, for another file and for fewer than 30 such images.
    """
    tool, p, mos, contents = [], [], [], []
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for row in latest_rows(rows, ("name", "content", "query")):
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
    if len(tool) < MIN_IMAGES:
        raise UserError(
            f"{path}: {len(tool)} images have tool scores and probabilities; at least {MIN_IMAGES} are needed"
        )
    return np.array(tool), np.array(p), np.array(mos), contents


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="the results.jsonl of a run")
    parser.add_argument("--resamples", type=int, default=1000, help="of the bootstrap interval (%(default)s; 0: none)")
    args = parser.parse_args(argv)
    try:
        tool, p, mos, contents = read_run(args.results)
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    setting, parts = best_setting(tool, p, mos), [tool, p @ LEVEL_VALUES]
    held_out = cross_fitted(tool, p, mos, contents)
    figures = [f"{srcc(scores, mos) or 0:.3f}" for scores in (*parts, held_out)]
    print(f"# {len(mos)} images: SRCC of the tools {figures[0]}, of the levels {figures[1]}, fused {figures[2]}")
    print(f"# fused minus the better part: {gain(held_out, parts, mos, contents, args.resamples):+.4f}")
    print(f"fusion:\n  eta: {setting.eta:g}\n  model_error: {setting.model_error:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
