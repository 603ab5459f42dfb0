"""Make seeded samples with known distortions, for training and testing the distortion detector.

Each photo gives one frame for each kind of distortion: resized, sometimes mirrored, sometimes saved as high-quality
JPEG. The frame is distorted at five strengths. A few frames get two distortions in succession. Good photos are also
used in some of ``styles``: each style alone, which is not damage, and with one distortion on top.
"""

import csv
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.eval.research.distort import DISTORTION_STRENGTHS, KINDS, distort
from agenticiqa.eval.research.photos import as_jpeg, opened_photo
from agenticiqa.eval.research.styles import ONE_HUE, STYLES
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.offline.measured.curves import findings_from
from agenticiqa.programs.offline.measured.detector import SUBTYPES, subtype_output
from agenticiqa.programs.offline.measured.findings import Finding
from agenticiqa.programs.tools.features.by_name import all_statistics
from agenticiqa.programs.tools.features.image_features import features
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.signatures.categories import BLURS, CATEGORIES, COLOR, COMPRESSION, CONTRAST, NOISE
from agenticiqa.signatures.vocabulary import TRAINED, DetectableDistortion

Values = NDArray[np.float64]

PRISTINE = "pristine"
STYLED = "styled"  # the kind of an image in a style; its level is the name of the style
PLAIN = "plain"  # the level of a good photo without a style
LONGEST = (256, 512)  # range of a frame's longer side, in pixels
PAIRS = 8  # frames with two distortions for each photo
LARGEST_PHOTO = 1280  # pixels of the longer side
# The severities of the distortion strengths 0..5, from none (0) to extreme (4).
SEVERITY_OF_STRENGTH = (0.0, 0.8, 1.6, 2.5, 3.3, 4.0)
SUBTYPE_OF = {kind: subtype.name for row in CATEGORIES for subtype in row.subtypes for kind in subtype.kinds}
# Two styles are also slight damage: grain is visible, and fog reduces contrast.
ALSO_SLIGHT: dict[str, DetectableDistortion] = {"film grain": NOISE, "fog": CONTRAST}
STYLES_EACH = 6  # styles of a good photo
# These also blur, by an unknown amount.
ALSO_BLUR = ("fast_fading", "jpeg2000")


@dataclass(frozen=True)
class Samples:
    """N samples, one per row of every array.

    ``frame`` is the number of the frame that a sample was made from. ``kind`` is "pristine", "styled", a kind of
    distortion, or two of these joined by "+"; ``level`` has their strengths likewise. ``gray`` marks photos without
    color. ``image`` and ``reference`` are features (N, features). ``without_reference`` and ``with_reference`` are
    severities by measured curves, (N, 7).
    """

    content: NDArray[np.str_]
    frame: NDArray[np.int64]
    kind: NDArray[np.str_]
    level: NDArray[np.str_]
    gray: NDArray[np.bool_]
    image: NDArray[np.float64]
    reference: NDArray[np.float64]
    without_reference: NDArray[np.float64]
    with_reference: NDArray[np.float64]

    def __getitem__(self, rows: NDArray[np.bool_]) -> "Samples":
        return Samples(*(getattr(self, field.name)[rows] for field in fields(self)))


Photo = tuple[str, Path]  # scene and file


def read_samples(
    manifests: Sequence[Path], packages: Path, cache: Path, seed: int, styled: Sequence[Photo] = ()
) -> Samples:
    """Return the samples of all photos of some manifests; ``cache`` keeps one .npz file for each photo.

    For manifests see ``listed_photos``; photos marked "test" are not used. Files are relative to the folder
    ``packages``. ``styled`` are good photos for styles. Raises UserError if photos are missing.
    """
    photos = [(photo, samples_of) for manifest in manifests for photo in listed_photos(manifest, packages)]
    photos += [(photo, styled_samples_of) for photo in styled]
    parts = []
    for (content, file), made in photos:
        # Cache files of packages are named by path, as photos of several packages may share a file name.
        name = file.relative_to(packages).as_posix() if made is samples_of else f"{STYLED} {file.name}"
        kept = cache / f"{zlib.crc32(name.encode()):08x}-{seed}.npz"
        if not kept.exists():
            part = made(file, content, seed)
            archive = io.BytesIO()
            np.savez_compressed(archive, **{field.name: getattr(part, field.name) for field in fields(part)})
            write_atomically(kept, archive.getvalue())
        with np.load(kept) as arrays:
            parts.append(Samples(**arrays))
    return Samples(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Samples)))


def listed_photos(manifest: Path, folder: Path) -> list[Photo]:
    """Return scene and file of a manifest's training photos.

    A manifest has the columns content, file and package, and optionally split: "test" marks photos that are not used
    for training. Raises UserError with the names of the packages if photos are missing.
    """
    with manifest.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row.get("split") != "test"]
    if missing := {row["package"] for row in rows if not (folder / row["file"]).is_file()}:
        raise UserError(f"{folder}: photos are missing; unpack {', '.join(sorted(missing))} there")
    return [(row["content"], folder / row["file"]) for row in rows]


def samples_of(file: Path, content: str, seed: int) -> Samples:
    """Return the samples made from one photo."""
    photo = opened_photo(file, LARGEST_PHOTO)
    number = zlib.crc32(file.name.encode())
    return _measured(content, number, [*_at_all_strengths(photo, seed, number), *_pairs(photo, seed, number)])


def styled_samples_of(file: Path, content: str, seed: int) -> Samples:
    """Return the samples made from one good photo: plain and in a few styles, each without and with a distortion."""
    number = zlib.crc32(file.name.encode())
    return _measured(content, number, _in_styles(opened_photo(file, LARGEST_PHOTO), seed, number))


def _measured(content: str, number: int, frames: "Iterable[Distorted]") -> Samples:
    rows = []
    for place, samples in enumerate(frames):
        for kind, strength, pixels, reference in samples:
            image = reference if pixels is reference.pixels else _loaded(pixels)
            rows.append(
                {
                    "content": content,
                    "frame": number * 100 + place,
                    "kind": kind,
                    "level": strength,
                    "gray": _is_gray(reference.pixels),
                    "image": features(image).all,
                    "reference": features(reference).all,
                    "without_reference": _vector(findings_from(all_statistics(image))),
                    "with_reference": _vector(findings_from(all_statistics(image), all_statistics(reference))),
                }
            )
    return Samples(**{name: np.array([row[name] for row in rows]) for name in rows[0]})


Distorted = Iterator[tuple[str, str, RGB, LoadedImage]]


def _at_all_strengths(photo: Image.Image, seed: int, number: int) -> Iterable[Distorted]:
    for kind in KINDS:
        rng = np.random.default_rng([seed, number, zlib.crc32(kind.encode())])
        frame = _frame(photo, rng)
        if not (KINDS[kind].category == COLOR and _is_gray(frame)):
            yield _levels_of(frame, kind, int(rng.integers(1 << 31)))


def _levels_of(frame: RGB, kind: str, draw: int) -> Distorted:
    reference = _loaded(frame)
    yield PRISTINE, "0", frame, reference
    for strength in DISTORTION_STRENGTHS:
        yield kind, str(strength), distort(frame, kind, strength, seed=draw), reference


def _pairs(photo: Image.Image, seed: int, number: int) -> Iterable[Distorted]:
    kinds = [kind for kind, made in KINDS.items() if made.category in TRAINED]
    for place in range(PAIRS):
        rng = np.random.default_rng([seed, number, place])
        frame = _frame(photo, rng)
        # As in a camera: blur and exposure come before noise, and coding comes last.
        first, second = sorted(rng.choice(kinds, 2, replace=False), key=_order)
        strengths = rng.integers(DISTORTION_STRENGTHS[0], DISTORTION_STRENGTHS[-1], 2, endpoint=True)
        if KINDS[first].category != KINDS[second].category:
            once = distort(frame, first, int(strengths[0]), seed=place)
            twice = distort(once, second, int(strengths[1]), seed=PAIRS + place)
            yield iter([(f"{first}+{second}", f"{strengths[0]}+{strengths[1]}", twice, _loaded(frame))])


def _in_styles(photo: Image.Image, seed: int, number: int) -> Iterable[Distorted]:
    kinds = [kind for kind, made in KINDS.items() if made.category in TRAINED]
    chosen = np.random.default_rng([seed, number]).permutation(list(STYLES))[:STYLES_EACH]
    for place, style in enumerate([PLAIN, *chosen.tolist()]):
        rng = np.random.default_rng([seed, number, place])
        frame = np.asarray(photo) if rng.random() < 0.5 else _frame(photo, rng)
        styled = frame if style == PLAIN else STYLES[style](frame, rng)
        kind = str(rng.choice([name for name in kinds if style not in ONE_HUE or KINDS[name].category != COLOR]))
        strength = int(rng.choice(DISTORTION_STRENGTHS))
        reference = _loaded(styled)
        yield iter(
            [
                (STYLED, style, styled, reference),
                (f"{STYLED}+{kind}", f"{style}+{strength}", distort(styled, kind, strength, seed=place), reference),
            ]
        )


def _order(kind: str) -> int:
    return {NOISE: 1, COMPRESSION: 2}.get(KINDS[kind].category, 0)


def _frame(photo: Image.Image, rng: np.random.Generator) -> RGB:
    longest = np.exp(rng.uniform(*np.log(LONGEST)))
    scale = min(float(longest) / max(photo.size), 1.0)
    frame = photo.resize((round(photo.width * scale), round(photo.height * scale)), Image.Resampling.LANCZOS)
    if rng.random() < 0.5:
        frame = frame.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    if rng.random() < 0.25:
        frame = as_jpeg(frame, rng)
    return np.ascontiguousarray(frame)


def _is_gray(pixels: RGB) -> bool:
    return bool(np.mean(np.ptp(pixels.astype(np.int16), axis=2) < 6) > 0.99)


def _loaded(pixels: RGB) -> LoadedImage:
    return LoadedImage("<synthetic>", pixels, sha256="synthetic")


def _vector(findings: dict[DetectableDistortion, Finding]) -> list[float]:
    return [findings[name].severity for name in TRAINED]


def targets(samples: Samples) -> tuple[dict[str, Values], dict[str, Values]]:
    """Return, by output of the detector, the true severities (N) and whether each is known, 1 or 0 (N)."""
    of_category = {name: name for name in TRAINED}
    of_subtype = {subtype_output(name, kind): name for name, kinds in SUBTYPES.items() for kind in kinds}
    truth = {name: np.zeros(len(samples.kind)) for name in of_category | of_subtype}
    known = {name: np.ones(len(samples.kind)) for name in truth}
    for name, category in (of_category | of_subtype).items():
        known[name][samples.gray & (category == COLOR)] = 0
    for row, (kinds, strengths) in enumerate(zip(samples.kind, samples.level, strict=True)):
        for kind, strength in zip(kinds.split("+"), strengths.split("+"), strict=True):
            if kind in SUBTYPE_OF:
                category = KINDS[kind].category
                for name in (category, subtype_output(category, SUBTYPE_OF[kind])):
                    truth[name][row] = SEVERITY_OF_STRENGTH[int(strength)]
            elif kind == STYLED:
                if strength in ALSO_SLIGHT:
                    truth[ALSO_SLIGHT[strength]][row] = SEVERITY_OF_STRENGTH[1]
            elif kind != PRISTINE:
                for name in known:
                    known[name][row] = 0
            if kind in ALSO_BLUR:
                for name in (BLURS, *(subtype_output(BLURS, subtype) for subtype in SUBTYPES[BLURS])):
                    known[name][row] = 0
    return truth, known
