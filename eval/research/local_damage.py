"""Measure how well damage in a part of an image is found, placed and named, and how often there is a false alarm.

    python -m agenticiqa.eval.research.local_damage LABELS.csv... [--split dev] [--planted 200] [--maps]
        [--jpeg QUALITY] [--feather PIXELS]

The contents are the references of the sets and the best-rated fifth of their photos without a reference. In them damage
of every kind is planted, at levels 3 to 5, in ninths, quarters, halves and ellipses. --jpeg saves each planted image as
JPEG before it is judged, and each photo that is to have none; --feather makes straight borders soft. --maps also plays
the pointing game: whether the highest point of each tool's map lies in what was planted.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.eval.datasets import read_labels
from agenticiqa.eval.intervals import error_interval
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.programs import images
from agenticiqa.programs.errors import ToolError, UserError
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.boxes import overlap
from agenticiqa.programs.offline.distortions import findings_of, findings_of_whole
from agenticiqa.programs.offline.findings import Finding
from agenticiqa.programs.offline.patches import patch_severities
from agenticiqa.programs.pictures.heatmap import drawn_damage
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.planted import CORRECT, NAMED, PLANTED, Planted, named_box, plant, saved_as_jpeg, seed_of
from agenticiqa.signatures.types import Box
from agenticiqa.signatures.vocabulary import DETECTABLE, DetectableDistortion

Findings = dict[DetectableDistortion, Finding]

VISIBLE = 0.5  # severity
FOUND_FROM = 0.3  # intersection over union from which a box is where the damage is
BEST_RATED = 0.8  # quantile
DETECTOR = "the detector"
# Parts of other tones than the rest look like the scene's own objects, so they are counted by themselves.
TONAL = ("darken", "brighten", "low_contrast", "high_contrast", "desaturate", "oversaturate", "color_cast")


@dataclass(frozen=True)
class DamageOutcome:
    """What was found of one planted damage: by category whether it is visible, and the boxes of what is local."""

    content: str
    planted: Planted
    place: str
    size: tuple[int, int]
    visible: frozenset[DetectableDistortion]
    boxes: dict[DetectableDistortion, Box]
    points: dict[str, bool]

    @property
    def is_found(self) -> bool:
        """Whether a correct category is visible, locally or not."""
        return bool(self.visible & set(CORRECT[self.planted.kind]))

    @property
    def is_placed(self) -> bool:
        """Whether any local finding is where the damage is."""
        return any(overlap(box, self.planted.box) >= FOUND_FROM for box in self.boxes.values())

    @property
    def is_named_there(self) -> bool:
        """Whether a local finding of a correct category is where the damage is."""
        correct = [box for name, box in self.boxes.items() if name in CORRECT[self.planted.kind]]
        return any(overlap(box, self.planted.box) >= FOUND_FROM for box in correct)


def contents(labels: Sequence[Path], split: str | None) -> tuple[list[Path], list[Path]]:
    """The references of the sets, and the best-rated photos of those without references."""
    references: dict[Path, None] = {}
    photos: list[Path] = []
    for path in labels:
        items = read_labels(path)
        references |= {item.reference: None for item in items if item.reference}
        rated = [item for item in items if not item.reference and (split is None or item.split == split)]
        if rated:
            least = float(np.quantile([item.mos for item in rated], BEST_RATED))
            photos += [item.image for item in rated if item.mos >= least]
    return [*references], photos


def plan(number: int, content: str, size: tuple[int, int]) -> tuple[str, int, str, Box, bool, int]:
    """Kind, level, place, box, whether round and soft, and seed of the ``number``-th damage."""
    rng = np.random.default_rng(seed_of(content, number))
    kind, place = PLANTED[number % len(PLANTED)], NAMED[rng.integers(len(NAMED))]
    return (
        kind,
        int(rng.integers(3, 6)),
        place,
        named_box(place, size),
        bool(rng.random() < 0.2),
        int(rng.integers(1 << 31)),
    )


def outcomes(
    paths: Sequence[Path], count: int, with_maps: bool, *, jpeg: int | None = None, feather: int = 0
) -> Iterator[DamageOutcome]:
    """``count`` planted damages in the contents, in turn, and what was found of each."""
    for number in range(count):
        path = paths[number % len(paths)]
        reference = images.load(path)
        kind, level, place, box, soft, seed = plan(number, path.name, reference.size)
        planted = plant(reference.pixels, kind, level, box, seed, round_and_soft=soft, feather=feather)
        image = opened(planted.pixels, jpeg)
        found = findings_of(image)
        visible = {name: finding for name, finding in found.items() if finding.severity >= VISIBLE}
        boxes = {name: finding.local.box for name, finding in visible.items() if finding.local}
        points = pointed(image, reference, planted) if with_maps else {}
        yield DamageOutcome(path.name, planted, place, image.size, frozenset(visible), boxes, points)


def opened(pixels: RGB, jpeg: int | None) -> LoadedImage:
    """The image as it is judged: unsaved, or saved as JPEG of a quality."""
    return images.load(Image.fromarray(pixels if jpeg is None else saved_as_jpeg(pixels, jpeg)))


def pointed(image: LoadedImage, reference: LoadedImage, planted: Planted) -> dict[str, bool]:
    """For each map, whether its highest point, as it is drawn, is in the planted damage."""
    maps: dict[str, NDArray[np.float64]] = {}
    for name, tool in TOOLS.items():
        if tool.map:
            try:
                maps[name] = tool.map(image.pixels, *([reference.pixels] if tool.kind == "FR" else []))
            except ToolError:
                continue
    patches = patch_severities(image)
    if patches is not None:
        columns = [DETECTABLE.index(name) for name in CORRECT[planted.kind]]
        maps[DETECTOR] = patches.values[..., columns].max(axis=-1)
    found = {}
    for name, damage in maps.items():
        drawn = drawn_damage(damage, image.size, image.size)
        found[name] = bool(planted.share[np.unravel_index(int(drawn.argmax()), drawn.shape)] >= 0.5)
    return found


def alarms(paths: Sequence[Path], jpeg: int | None = None) -> tuple[list[bool], list[bool]]:
    """For each photo, whether anything is found in a part of it, and whether anything is found in it as a whole."""
    local, whole = [], []
    for path in paths:
        image = images.load(path) if jpeg is None else opened(images.load(path).pixels, jpeg)
        local.append(any(finding.local and finding.severity >= VISIBLE for finding in findings_of(image).values()))
        whole.append(any(finding.severity >= VISIBLE for finding in findings_of_whole(image).values()))
    return local, whole


def share(hits: Sequence[bool], contents_of: Sequence[str]) -> str:
    """A share with its 95 % interval over contents."""
    values = np.array(hits, float)
    return f"{error_interval(lambda x, _: float(np.mean(x)), values, values, contents_of):.2f}"


def table(found: Sequence[DamageOutcome]) -> list[str]:
    """Markdown rows by kind and by place: n, the shares that were found, placed, and named where they are."""
    measures: dict[str, Callable[[DamageOutcome], bool]] = {
        "found": lambda each: each.is_found,
        "placed": lambda each: each.is_placed,
        "placed and named": lambda each: each.is_named_there,
    }
    lines = [f"| damage | n | {' | '.join(measures)} |", "| --- | ---: | ---: | ---: | ---: |"]
    structural = [each for each in found if each.planted.kind not in TONAL]
    groups: dict[str, Sequence[DamageOutcome]] = {
        "all kinds": found,
        "but for tone and color": structural,
        "tone and color": [each for each in found if each.planted.kind in TONAL],
    }
    for what in ("ninth", "quarter", "half"):
        groups[f"in a {what}, but for tone and color"] = [each for each in structural if each.place.startswith(what)]
    for kind in PLANTED:
        groups[kind] = [each for each in found if each.planted.kind == kind]
    for name, rows in groups.items():
        if rows:
            names = [each.content for each in rows]
            cells = [share([measure(each) for each in rows], names) for measure in measures.values()]
            lines.append(f"| {name} | {len(rows)} | {' | '.join(cells)} |")
    return lines


def pointing_table(found: Sequence[DamageOutcome]) -> list[str]:
    """Markdown rows: each map and the share of planted damage (but tone and color) that its highest point lies in."""
    rows = [each for each in found if each.planted.kind not in TONAL]
    area = np.mean([float((each.planted.share >= 0.5).mean()) for each in rows])
    lines = [f"| map | n | pointing game (chance {area:.2f}) |", "| --- | ---: | ---: |"]
    for name in dict.fromkeys(name for each in rows for name in each.points):
        of_map = [each for each in rows if name in each.points]
        hits = share([each.points[name] for each in of_map], [each.content for each in of_map])
        lines.append(f"| {name} | {len(of_map)} | {hits} |")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("labels", type=Path, nargs="+", help="labeled sets, with references or of authentic photos")
    parser.add_argument("--split", help="of the authentic photos")
    parser.add_argument("--planted", type=int, default=200, help="how many (%(default)s)")
    parser.add_argument("--jpeg", type=int, metavar="QUALITY", help="save as JPEG of this quality before judging")
    parser.add_argument("--feather", type=int, default=0, metavar="PIXELS", help="width of straight borders (sharp)")
    parser.add_argument("--maps", action="store_true", help="also play the pointing game with each map")

    def run(args: argparse.Namespace) -> None:
        if args.jpeg is not None and not 1 <= args.jpeg <= 100:
            raise UserError(f"--jpeg is a quality from 1 to 100, got {args.jpeg}")
        references, photos = contents(args.labels, args.split)
        found = list(outcomes([*references, *photos], args.planted, args.maps, jpeg=args.jpeg, feather=args.feather))
        print("\n".join(table(found)))
        if args.maps:
            print("\n" + "\n".join(pointing_table(found)))
        for name, paths in (("references", references), ("best-rated fifth of the photos", photos)):
            if paths:
                local, whole = alarms(paths, args.jpeg)
                names = [path.name for path in paths]
                in_part, in_whole = share(local, names), share(whole, names)
                print(f"\n{name} (n={len(paths)}): found in a part {in_part}, in the whole {in_whole}")

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
