"""Read labeled images as the command-line options describe them, for every command with labels."""

from argparse import Namespace
from pathlib import Path

from agenticiqa.eval.labels.own_data import Declared
from agenticiqa.eval.tasks.labeled_set import LabeledSet, labeled_images
from agenticiqa.programs.cli.printable import print_error


def labels_named(args: Namespace, data: Path) -> LabeledSet:
    """Return the labeled images that ``data`` and the options name; print a doubtful direction on stderr.

    Raises UserError as ``labeled_images`` does.
    """
    labels = labeled_images(data, args.root, args.split, declared_by(args), partial=args.partial)
    if labels.doubt:
        print_error(f"the declared direction of the scores may be wrong: {labels.doubt}; check --[no-]lower-is-better")
    if labels.note:
        print_error(labels.note)
    return labels


def declared_by(args: Namespace) -> Declared:
    """Return what the options declare about the labels."""
    ends = (args.mos_range[0], args.mos_range[1]) if args.mos_range else None
    return Declared(args.image_column, args.mos_column, args.lower_is_better, ends, args.reference_column)
