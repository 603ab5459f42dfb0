"""The options that say where labels are and how they are read: the same of every command that takes labels."""

from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from pathlib import Path

from agenticiqa.eval.datasets import MOS_RANGE_HELP
from agenticiqa.eval.labels.columns import Declared
from agenticiqa.eval.tasks.reading import LabeledSet, labeled_images
from agenticiqa.programs.cli.completing import complete_folders
from agenticiqa.programs.cli.outputs import complain

DATA_HELP = (
    "a table (.csv, .tsv, .jsonl, .parquet) with columns image and mos, a folder with labels.csv or metadata.csv, a "
    "folder of save_to_disk, hub:OWNER/NAME@REVISION, or the NAME of a data set, see `agenticiqa datasets`"
)
OF_LABELS = ("root", "split", "image_column", "mos_column", "lower_is_better", "mos_range")


def add_label_arguments(parser: ArgumentParser) -> None:
    """The options of ``OF_LABELS``."""
    complete_folders(
        parser.add_argument("--root", metavar="DIR", type=Path, help="of a data set: the folder that its archive is in")
    )
    parser.add_argument("--split", metavar="S", help="only the rows of this split")
    own = parser.add_argument_group("own data")
    own.add_argument("--image-column", metavar="C", help="the column of the images (default: image, filename, ...)")
    own.add_argument("--mos-column", metavar="C", help="the column of the scores (default: mos, score, ...)")
    own.add_argument(
        "--lower-is-better",
        action=BooleanOptionalAction,
        help="whether low scores are the good ones, as for a DMOS; the MOS is then the mirror image in the scale",
    )
    own.add_argument("--mos-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help=MOS_RANGE_HELP)


def labels_named(args: Namespace, data: Path) -> LabeledSet:
    """The labeled images that ``data`` and the options name; a doubt about their direction is told on stderr.

    Raises UserError as ``labeled_images`` does.
    """
    ends = (args.mos_range[0], args.mos_range[1]) if args.mos_range else None
    declared = Declared(args.image_column, args.mos_column, args.lower_is_better, ends)
    found = labeled_images(data, args.root, args.split, declared)
    if found.doubt:
        complain(f"the direction is declared otherwise, but {found.doubt}")
    return found
