"""Train the networks that find distortions in a part of an image, on photos with damage planted in a part.

    python -m agenticiqa.eval.research.train_patches LABELS.csv... --packages PACKAGES --cache CACHE [--out patches.npz]

LABELS.csv is a set of authentic photos; only rows with the split "train" are used. For PACKAGES see
``train_detector``. CACHE keeps the features of each photo. The command prints, by cross-validation over photos, how
often it finds the place and kind of planted damage, and how often it finds damage in clean photos. --out trains on all
photos, writes the weights and prints their SHA-256.
"""

import argparse
import csv
import io
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.linear_model import LogisticRegression

from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.research import DATA
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.distort import KINDS, distort
from agenticiqa.eval.research.distorted import SEVERITY_OF_STRENGTH
from agenticiqa.eval.research.named_weights import write_weights
from agenticiqa.eval.research.random_damage import (
    CORRECT,
    FLAT,
    JPEG_QUALITIES,
    perhaps_saved,
    random_planted,
    saved_as_jpeg,
    seed_of,
)
from agenticiqa.eval.research.small_networks import fit_networks
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.offline.measured.detector import head_outputs
from agenticiqa.programs.offline.measured.local_damage import LEAST_CONFIDENCE, LEAST_SEVERITY, confidence, regions
from agenticiqa.programs.offline.measured.patches import OUTPUTS, WORST
from agenticiqa.programs.tools.features.patch_features import patch_grid
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.signatures.categories import BRIGHTNESS, CONTRAST
from agenticiqa.signatures.vocabulary import TRAINED

Values = NDArray[np.float64]

CLEAN = "clean"
FOLDS, SHARES = 3, (0.1, 0.05, 0.03, 0.02, 0.01)
PLANTED_EACH = 6  # copies of a photo with damage of a part, besides the photo and one copy damaged everywhere
PATCHES_EACH = 40  # patches of an image used for training
COPIES = 3  # sizes in which each pristine photo is used
LONGER_SIDE = (384, 900)  # range of these sizes in pixels
# One network instead of the mean of two with half the units: it takes the same time and finds more after JPEG.
HIDDEN, NETWORKS, EPOCHS, BATCH = 96, 1, 16, 512
DECAY, JITTER = 1e-3, 0.1  # rates of decay and noise, smaller than for whole images, as there are more patches
FOUND_FROM = 0.3  # minimum share (intersection over union) of a correct region
PENALTY = 1.0  # penalty on the squared weights of the standardized evidence of regions


@dataclass(frozen=True)
class PatchSample:
    """One image: its photo, kind and strength of damage, the damaged share of each patch, and features of patches."""

    photo: str
    kind: str
    level: int
    share: Values
    features: NDArray[np.float32]

    @property
    def is_local(self) -> bool:
        """Return whether the damage is in a part of the image only."""
        return self.kind != CLEAN and float(self.share.mean()) < 0.99


def read_photos(labels: Sequence[Path], packages: Path, manifest: Path) -> Iterator[tuple[str, RGB]]:
    """Yield names and pixels of the training split of each set, and of pristine photos in a few sizes.

    All random draws depend on names only, not on the folders of sets and packages.
    """
    for path in labels:
        for item in sorted(read_labels(path, split="train"), key=lambda item: -item.mos):
            with Image.open(item.image) as opened:
                yield f"{path.parent.name}/{item.image.name}", np.asarray(opened.convert("RGB"))
    with manifest.open(encoding="utf-8", newline="") as file:
        photos = {row["file"]: packages / row["file"] for row in csv.DictReader(file)}
    for name, path in photos.items():
        if not path.is_file():
            print(f"{path}: photo not found; skipped", file=sys.stderr)
            continue
        with Image.open(path) as opened:
            photo = opened.convert("RGB")
        for copy in range(COPIES):
            longer = int(np.random.default_rng(seed_of(path.name, copy)).integers(*LONGER_SIDE))
            scaled = photo.copy()
            scaled.thumbnail((longer, longer), Image.Resampling.LANCZOS)
            yield f"{name}#{copy}", np.asarray(scaled)


def samples_of(name: str, pixels: RGB) -> Iterator[PatchSample]:
    """Yield the samples of a photo: unchanged, saved as JPEG, with damage of a part, and damaged everywhere.

    Half of the damaged copies are saved as JPEG afterwards. The undamaged JPEG copy counts as clean: JPEG artifacts are
    everywhere and must not be found as damage of a part.
    """
    photo = name.partition("#")[0]
    grid = patch_grid(pixels)
    rows, columns = grid.values.shape[:2]
    yield PatchSample(photo, CLEAN, 0, np.zeros((rows, columns)), grid.values.astype(np.float32))
    rng = np.random.default_rng(seed_of(name, PLANTED_EACH + 1))
    saved = patch_grid(saved_as_jpeg(pixels, int(rng.integers(*JPEG_QUALITIES))))
    yield PatchSample(photo, CLEAN, 0, np.zeros((rows, columns)), saved.values.astype(np.float32))
    for number in range(PLANTED_EACH):
        planted = random_planted(pixels, name, number)
        share = share_of_patches(planted.share, (rows, columns), grid.side)
        yield PatchSample(
            photo, planted.kind, planted.level, share, patch_grid(planted.pixels).values.astype(np.float32)
        )
    rng = np.random.default_rng(seed_of(name, PLANTED_EACH))
    kind, strength = list(KINDS)[rng.integers(len(KINDS))], int(rng.integers(1, 6))
    damaged = patch_grid(perhaps_saved(distort(pixels, kind, strength, seed=int(rng.integers(1 << 31))), rng))
    yield PatchSample(photo, kind, strength, np.ones((rows, columns)), damaged.values.astype(np.float32))


def share_of_patches(share: Values, shape: tuple[int, int], side: int) -> Values:
    """Return the mean of pixels' shares (H, W) in each cell of a grid of ``shape`` with cells of ``side`` pixels."""
    rows, columns = shape
    sides = [(0, rows * side - share.shape[0]), (0, columns * side - share.shape[1])]
    return np.pad(share, sides, mode="symmetric").reshape(rows, side, columns, side).mean(axis=(1, 3))


def cached_samples(name: str, pixels: RGB, cache: Path) -> list[PatchSample]:
    """Return the samples of ``samples_of``, kept in an .npz file for each photo."""
    file = cache / f"{zlib.crc32(name.encode()):08x}.npz"
    if not file.exists():
        samples = list(samples_of(name, pixels))
        archive = io.BytesIO()
        np.savez(
            archive,
            kind=np.array([sample.kind for sample in samples]),
            level=np.array([sample.level for sample in samples]),
            share=np.stack([sample.share for sample in samples]),
            features=np.stack([sample.features for sample in samples]),
        )
        write_atomically(file, archive.getvalue())
    with np.load(file) as kept:
        rows = zip(kept["kind"].tolist(), kept["level"].tolist(), kept["share"], kept["features"], strict=True)
        return [PatchSample(name.partition("#")[0], *row) for row in rows]


def targets(sample: PatchSample) -> tuple[Values, Values]:
    """Return severities of the patches (rows, columns, 7), and whether each is known, 1 or 0."""
    wanted = np.zeros((*sample.share.shape, len(TRAINED)))
    known = np.ones_like(wanted)
    if sample.kind in CORRECT:
        main, *others = (TRAINED.index(name) for name in CORRECT[sample.kind])
        severity = WORST if sample.kind == FLAT else SEVERITY_OF_STRENGTH[sample.level]
        wanted[..., main] = severity * sample.share
        # Unknown whether these are present, and how severe they are.
        tonal = [TRAINED.index(CONTRAST), TRAINED.index(BRIGHTNESS)]
        unsure = set(others) | (set(tonal) if main in tonal else set())
        for column in unsure - {main}:
            known[..., column] = sample.share <= 0.02
    return wanted, known


def train(samples: Sequence[PatchSample], seed: int) -> dict[str, Values]:
    """Return the weights of the networks."""
    rng = np.random.default_rng(seed)
    inputs, wanted, known = [], [], []
    for sample in samples:
        truth, sure = targets(sample)
        damaged = sample.share.ravel() > 0.02
        parts = [rng.permutation(np.flatnonzero(part)) for part in (damaged, ~damaged)]
        most = PATCHES_EACH // (2 if all(map(len, parts)) else 1)
        chosen = np.concatenate([part[:most] for part in parts])
        inputs.append(sample.features.reshape(-1, sample.features.shape[-1])[chosen])
        wanted.append(truth.reshape(-1, len(TRAINED))[chosen])
        known.append(sure.reshape(-1, len(TRAINED))[chosen])
    fitted = fit_networks(
        np.concatenate(inputs).astype(float),
        np.concatenate(wanted),
        np.concatenate(known),
        HIDDEN,
        seed,
        networks=NETWORKS,
        epochs=EPOCHS,
        batch=BATCH,
        decay=DECAY,
        jitter=JITTER,
    )
    return {f"patch_{part}": values for part, values in fitted.items()}


def predicted(weights: dict[str, Values], sample: PatchSample) -> Values:
    """Return the severities of the patches, (rows, columns, 7)."""
    return np.clip(head_outputs(weights, "patch", sample.features.astype(float)), 0, WORST)


@dataclass(frozen=True)
class Candidate:
    """A region of image ``number``: its category, evidence and severity, and whether it is the planted damage."""

    number: int
    column: int
    evidence: Values
    severity: float
    is_planted: bool


def candidates(number: int, sample: PatchSample, severities: Values) -> Iterator[Candidate]:
    """Yield the regions of an image with damage of a part or none; skip regions that are partly right."""
    truth = sample.share > 0.5
    for column, name in enumerate(TRAINED):
        for region in regions(severities[..., column]):
            shared = (region.mask & truth).sum()
            is_planted = shared / (region.mask | truth).sum() >= FOUND_FROM and name in CORRECT.get(sample.kind, ())
            if is_planted or shared <= 0.3 * region.mask.sum():
                severity = float(severities[..., column][region.mask].mean())
                yield Candidate(number, column, region.evidence, severity, is_planted)


def fit_regions(regions: Sequence[Candidate]) -> Values:
    """Return the weights of ``confidence`` for each category, (7, 3, features + 1), by penalized logistic regression.

    A category without planted examples gets a bias that no region passes.
    """
    features = len(regions[0].evidence)
    weights = np.zeros((len(TRAINED), 3, features + 1))
    weights[:, 1], weights[:, 2, -1] = 1, -20
    for column in range(len(TRAINED)):
        rows = [region for region in regions if region.column == column]
        truth = np.array([region.is_planted for region in rows])
        if not rows or not 5 <= truth.sum() <= len(rows) - 5:
            continue
        evidence = np.stack([region.evidence for region in rows])
        mean, deviation = evidence.mean(axis=0), evidence.std(axis=0) + 1e-6
        model = LogisticRegression(C=1 / PENALTY).fit((evidence - mean) / deviation, truth)
        weight = np.append(model.coef_[0], model.intercept_)
        weights[column] = np.stack([np.append(mean, 0), np.append(deviation, 1), weight])
    return weights


def report(samples: Sequence[PatchSample], regions: Sequence[Candidate], odds: Values) -> list[str]:
    """Return lines of hit rates by kind for planted damage of strengths 3 to 5, and of false alarms in clean photos."""
    best: dict[int, tuple[float, bool]] = {}
    least = np.array([LEAST_CONFIDENCE[TRAINED[region.column]] for region in regions])
    for region, odd in zip(regions, (odds - least).tolist(), strict=True):
        if region.severity >= LEAST_SEVERITY:
            best[region.number] = max(best.get(region.number, (-np.inf, False)), (odd, region.is_planted))
    clean = np.array([best.get(n, (-np.inf,))[0] for n, sample in enumerate(samples) if sample.kind == CLEAN])
    lines = [f"highest log odds above the threshold of the category, quantiles of {len(clean)} clean photos:"]
    lines += [f"  exceeded by {share:.0%}: {np.quantile(clean, 1 - share):.2f}" for share in SHARES]
    lines.append(f"false alarms (blur without the test for straight edges): {np.mean(clean >= 0):.1%}")
    hits: dict[str, list[bool]] = {}
    for number, sample in enumerate(samples):
        if sample.is_local and sample.level >= 3 and sample.share.any():
            odd, is_planted = best.get(number, (-np.inf, False))
            hits.setdefault(sample.kind, []).append(odd >= 0 and is_planted)
    lines += [f"  {kind}: {np.mean(values):.2f} of {len(values)}" for kind, values in sorted(hits.items())]
    return [*lines, f"all kinds: {np.mean([hit for values in hits.values() for hit in values]):.3f}"]


def fold_of(photo: str) -> int:
    """Return the fold of a photo, from its name."""
    return zlib.crc32(photo.encode()) % FOLDS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("labels", type=Path, nargs="+", help="labels.csv of authentic photos with a training split")
    parser.add_argument("--packages", type=Path, required=True, help="the folder with the unpacked packages")
    parser.add_argument("--photos", type=Path, default=DATA / "pristine.csv", help="CSV that lists the photos")
    parser.add_argument("--cache", type=Path, required=True, help="folder to cache the features of each photo")
    parser.add_argument("--seed", type=int, default=0, help="seed of the networks (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="file for the weights")
    return run_command(parser, _run, argv)


def _run(args: argparse.Namespace) -> None:
    samples: list[PatchSample] = []
    for name, pixels in read_photos(args.labels, args.packages, args.photos):
        samples += cached_samples(name, pixels, args.cache)
    print(f"{len(samples)} images of {len({sample.photo for sample in samples})} photos", flush=True)
    regions: list[Candidate] = []
    for fold in range(FOLDS):
        weights = train([sample for sample in samples if fold_of(sample.photo) != fold], args.seed)
        for number, sample in enumerate(samples):
            if fold_of(sample.photo) == fold and (sample.is_local or sample.kind == CLEAN):
                regions += candidates(number, sample, predicted(weights, sample))
    odds = np.zeros(len(regions))
    folds = np.array([fold_of(samples[region.number].photo) for region in regions])
    for fold in range(FOLDS):
        fitted = fit_regions([region for region, of in zip(regions, folds, strict=True) if of != fold])
        for row in np.flatnonzero(folds == fold):
            odds[row] = confidence(regions[row].evidence, fitted[regions[row].column])
    print("\n".join(report(samples, regions, odds)), flush=True)
    if args.out:
        weights = train(samples, args.seed) | {"region": fit_regions(regions)}
        write_weights(args.out, weights, OUTPUTS)


if __name__ == "__main__":
    raise SystemExit(main())
