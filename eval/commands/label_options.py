"""Read labeled images as the command-line options describe them, for every command with labels."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from agenticiqa.configs.user_files import open_text
from agenticiqa.configs.yaml_json import json_value
from agenticiqa.eval.commands.arguments import CalibrateAdapterOptions, LabelOptions
from agenticiqa.eval.labels.own_data import Declared
from agenticiqa.eval.tasks.labeled_set import LabeledSet, labeled_images, names_labels, own_images
from agenticiqa.programs.cli.output_paths import refuse_inputs
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.own import is_shard_folder

OF_A_ROW = {"image", "query"}  # keys that every row of a finished run has, and labels never have


def labels_named(args: LabelOptions, *data: Path, scores: tuple[str, ...] = ()) -> LabeledSet:
    """Return the labeled images that ``data`` and the options name; print a doubtful direction on stderr.

    Several tables are merged. ``scores`` are columns with scores of metrics. Raises UserError as ``labeled_images``
    does.
    """
    declared = replace(declared_by(args), scores=scores)
    if len(data) > 1:
        labels = own_images(data, args.root, args.split, declared)
    else:
        labels = labeled_images(data[0], args.root, args.split, declared, partial=args.partial)
    refuse_inputs(args, [file for label in labels.labels for file in (label.image, label.reference) if file])
    if labels.doubt:
        print_error(f"the declared direction of the scores may be wrong: {labels.doubt}; check --[no-]lower-is-better")
    if labels.note:
        print_error(labels.note)
    return labels


def labels_to_fit(args: CalibrateAdapterOptions) -> LabeledSet:
    """Return the labels of ``calibrate`` as ``labels_named`` does. Raises UserError also for results of a run.

    These may have several rows for an image, and their MOS are already mirrored if lower values are better.
    """
    for data in args.labels:
        if is_shard_folder(data) or (data.suffix.lower() == ".jsonl" and _keys_of_first_row(data) >= OF_A_ROW):
            raise UserError(f"{data} has results of a run, not labels: name the table of labels")
    return labels_named(args, *args.labels)


def declared_by(args: LabelOptions) -> Declared:
    """Return what the options declare about the labels."""
    ends = (args.mos_range[0], args.mos_range[1]) if args.mos_range else None
    columns = args.image_column, args.mos_column, args.lower_is_better, ends, args.reference_column
    return Declared(*columns, keep_raters=args.keep_raters)


class FusionData(NamedTuple):
    """The data by kind; ``labels`` have a form that ``labeled_images`` reads."""

    labels: list[Path]
    rows: list[Path]
    photos: list[Path]


def sorted_by_kind(data: Sequence[Path]) -> FusionData:
    """Sort the data by kind; the first line of a ``.jsonl`` file decides. A folder of shards holds rows."""
    lines = [path for path in data if path.suffix.lower() == ".jsonl" and not _has_labels(path)]
    rows = [path for path in data if path in lines or is_shard_folder(path)]
    labels = [path for path in data if path not in rows and names_labels(path)]
    photos = [path for path in data if path not in rows and path not in labels]
    return FusionData(labels, rows, photos)


def _has_labels(file: Path) -> bool:
    """Return whether a file of JSON lines begins with a row of labels; the reader of rows reports unreadable files."""
    keys = _keys_of_first_row(file)
    return bool(keys) and not keys >= OF_A_ROW


def _keys_of_first_row(file: Path) -> set[str]:
    """Return the keys of the first JSON line of a file; none if it cannot be read."""
    try:
        with open_text(file) as lines:
            first = json_value(next(filter(str.strip, lines), ""))
    except (OSError, ValueError):
        return set()
    return set(first) if isinstance(first, dict) else set()
