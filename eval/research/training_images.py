"""Write the digests of the images that shipped models and curves were fitted to.

    python -m agenticiqa.eval.research.training_images DATA/*/labels.csv --packages PACKAGES [--out training_images.csv]

The name of a set is that of its folder. PACKAGES is as for ``train_quality_model``. LEARNED-IQA and the distortion
detector were trained on its photos, a set named package_photos; test photos are not in it. The file lists images and
references. For each it has the size and 4 bytes of two digests (``programs/tools/training_images.py``), which do not
reveal what the image shows.
"""

import argparse
import base64
import csv
import io
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.tools.training_images import FILE, REFERENCE, digests_of

COLUMNS = ("set", "split", "size", "digests")
IN_A_LINE = 1000  # images in a line; Python's csv module refuses much longer lines
PACKAGE_PHOTOS = "package_photos"  # the set of the photos in free packages, the sources of distortion series
Image = tuple[str, str, str, bytes, bytes]  # its set, split, size and digests


def images_of(labels: Path) -> list[Image]:
    """Return every image and reference of a labels file. Raises UserError and ImageError."""
    name = labels.resolve().parent.name
    images: dict[Path, str] = {}
    for item in read_labels(labels):
        images.setdefault(item.image, item.split or "")
        if item.reference:
            images[item.reference] = REFERENCE
    return [(name, split, *digests_of(image)) for image, split in images.items()]


def photos_of(packages: Path) -> list[Image]:
    """Return every training photo of the packages. Raises UserError."""
    from agenticiqa.eval.research.quality_rows import read_photos  # a late import, as it loads torch

    trained = [file for file, _, measured_only in read_photos(packages) if not measured_only]
    return [(PACKAGE_PHOTOS, REFERENCE, *digests_of(file)) for file in trained]


def kept_lines(file: Path) -> list[tuple[str, ...]]:
    """Return the lines of package photos in a file of digests, [] without the file."""
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        return [tuple(row) for row in csv.reader(lines) if row[0] == PACKAGE_PHOTOS]


def lines_of(images: Iterable[Image]) -> list[tuple[str, ...]]:
    """Return the lines of the file, from set, split and ``digests_of`` of every image."""
    lines = []
    for part, group in groupby(sorted(images), key=lambda image: image[:3]):
        digests = [b"".join(image[3:]) for image in group]
        for start in range(0, len(digests), IN_A_LINE):
            lines.append((*part, base64.b64encode(b"".join(digests[start : start + IN_A_LINE])).decode()))
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("labels", nargs="+", type=Path, help="labels.csv of every set used for fitting")
    parser.add_argument(
        "--packages", type=Path, help="folder of unpacked packages; without it, the lines of package photos stay"
    )
    parser.add_argument("--out", type=Path, default=FILE, help="file to write (default: the shipped file)")

    def run(args: argparse.Namespace) -> None:
        images = [image for labels in args.labels for image in images_of(labels)]
        kept = []
        if args.packages:
            images += photos_of(args.packages)
        else:
            kept = kept_lines(args.out)
        lines = [*kept, *lines_of(images)]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([COLUMNS, *lines])
        write_atomically(args.out, text.getvalue())
        and_packages = " and of packages" if args.packages else ""
        print(f"{args.out}: {len(images)} images of {len(args.labels)} sets{and_packages}")

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
