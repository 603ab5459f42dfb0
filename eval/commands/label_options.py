"""Read labeled images as the command-line options describe them, for every command with labels."""

from argparse import Namespace
from pathlib import Path

from agenticiqa.eval.calibrate.fusion_data import sorted_by_kind
from agenticiqa.eval.labels.own_data import Declared
from agenticiqa.eval.tasks.labeled_set import LabeledSet, labeled_images
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.errors import UserError


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


def labels_to_fit(args: Namespace) -> LabeledSet:
    """Return the labels of ``calibrate`` as ``labels_named`` does. Raises UserError also for results of a run.

    These may have several rows for an image, and their MOS are already mirrored if lower values are better.
    """
    if sorted_by_kind([args.labels]).rows:
        raise UserError(f"{args.labels} has results of a run, not labels: name the table of labels")
    return labels_named(args, args.labels)


def declared_by(args: Namespace) -> Declared:
    """Return what the options declare about the labels."""
    ends = (args.mos_range[0], args.mos_range[1]) if args.mos_range else None
    return Declared(args.image_column, args.mos_column, args.lower_is_better, ends, args.reference_column)
