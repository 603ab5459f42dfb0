"""Measure the agreement of each embedded tool with MOS, and which tool follows which distortion.

    python -m agenticiqa.eval.research.tool_table LABELS.csv [--split dev]

prints the SRCC and fitted PLCC of every tool with the labels. With ``--write`` it writes the table by which tools are
selected, from distorted copies of scikit-image's photos and any number of labeled sets::

    python -m agenticiqa.eval.research.tool_table DATA/*/labels.csv --split dev --write configs/tool_table.yaml

``--tool`` measures only the named tools and keeps the rows of the others. A tool is not measured on images that it was
trained on, which may include the photos of scikit-image. ``--scores TOOL LABELS.csv SCORES.csv`` and ``--level-scores
TOOL LEVELS.csv`` give its held-out predictions instead. Held-out figures stay in the table until new ones replace them.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from agenticiqa.configs.yaml_json import yaml_value
from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.intervals import Interval, fitted_plcc_interval, interval
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.research import tool_categories
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.programs.batch.csv_table import rows_of
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.tools import TOOLS, Tool, get_tool
from agenticiqa.programs.tools.training_images import trained_on_count
from agenticiqa.signatures.categories import OVERALL
from agenticiqa.signatures.vocabulary import DISTORTIONS

HEADER = """\
# "categories" has the SRCC of each tool, by distortion category and image source. The reference is the distortion level
# (mean SRCC over the kinds of the category) or, for labeled sets, the MOS. A positive SRCC means that the tool changes
# in its declared direction. n counts images (undistorted photos once per kind). The mean over sources selects tools.
# "measured" says of each tool when, and on which photos at the levels of eval/research/distort.py.
# Written by python -m agenticiqa.eval.research.tool_table --write.
# "errors" gives the weights of the tool mean, by source and tool. The first number of a tool is the standard deviation
# of the MOS around its scores, in levels. The others are the correlations with the errors of the tools before it.
# Written by python -m agenticiqa.eval.research.tool_errors fit --write.
"""
LEVELS_SOURCE = "distortion_levels"  # the name of the source in the table
HELD_OUT = ", held out"  # suffix of a source: predictions by a tool that was not trained on these images

Table = dict[str, dict[str, dict[str, dict[str, float | int]]]]  # figures by category, tool and source
HeldOut = Mapping[tuple[str, str], Sequence[float]]  # raw values by tool and set, of a tool that was trained on the set


def agreement_with_labels(tool: Tool, items: Sequence[LabeledImage]) -> tuple[Interval, Interval, int]:
    """Return SRCC and fitted PLCC (positive: agrees) with intervals over scenes, and the number of refused images."""
    values = [(tool_categories.raw_or_none(tool, item), item) for item in items]
    measured = [(raw if tool.higher_is_better else -raw, item) for raw, item in values if raw is not None]
    directed, mos = [value for value, _ in measured], [item.mos for _, item in measured]
    contents = [item.content for _, item in measured]
    refused = len(items) - len(measured)
    return interval(srcc, directed, mos, contents), fitted_plcc_interval(directed, mos, contents), refused


def measured_table(
    tools: Sequence[Tool],
    sets: Mapping[str, Sequence[LabeledImage]],
    pristine: Mapping[str, Path],
    held_out: HeldOut,
    report_progress: Callable[[str], None],
) -> Table:
    """Return the table's rows of some tools. ``report_progress`` gets the name of each finished distortion or set."""
    table: Table = {}
    unseen = [tool for tool in tools if not trained_on_count(tool, pristine.values())]
    _add_levels(table, LEVELS_SOURCE, _levels(unseen, pristine, report_progress))
    for set_name, items in sets.items():
        for tool in tools:
            source = set_name
            if (tool.name, set_name) in held_out:
                source = set_name + HELD_OUT
                by_category = tool_categories.of_scores(tool, held_out[tool.name, set_name], items)
            elif set_name in tool.trained_on or trained_on_count(tool, [item.image for item in items]):
                continue
            else:
                by_category = tool_categories.on_labels(tool, items)
            for category, figure in by_category.items():
                table.setdefault(category, {}).setdefault(tool.name, {})[source] = asdict(figure)
        report_progress(set_name)
    return table


def merged(old: Table, new: Table, measured_now: Sequence[str]) -> Table:
    """Merge the new rows with old ones of tools that are still embedded but were not measured now, best first.

    Measured tools keep old held-out figures that have no new value, as the command cannot repeat them by itself.
    """
    result: Table = {}
    for category in (OVERALL, *DISTORTIONS):
        rows: dict[str, dict[str, dict[str, float | int]]] = {}
        for tool, row in old.get(category, {}).items():
            kept = row if tool not in measured_now else {name: row[name] for name in row if name.endswith(HELD_OUT)}
            if tool in TOOLS and kept:
                rows[tool] = dict(kept)
        for tool, row in new.get(category, {}).items():
            rows[tool] = {**rows.get(tool, {}), **row}
        mean = {tool: sum(float(one["srcc"]) for one in row.values()) / len(row) for tool, row in rows.items()}
        result[category] = {tool: rows[tool] for tool in sorted(rows, key=lambda tool: -round(mean[tool], 6))}
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("labels", nargs="+", help="labels.csv files: columns image, mos and, for FR tools, reference")
    parser.add_argument("--split", help="use only the rows of this split; a file without them is used whole")
    parser.add_argument("--tool", nargs="+", metavar="NAME", help="measure only these tools")
    parser.add_argument("--write", type=Path, metavar="YAML", help="write the table by which tools are selected")
    parser.add_argument(
        "--scores",
        nargs=3,
        action="append",
        default=[],
        metavar=("TOOL", "LABELS", "SCORES"),
        help="with --write: scores of a set that the tool was trained on, each from training without the image "
        "(columns image and score)",
    )
    parser.add_argument(
        "--level-scores",
        nargs=2,
        action="append",
        default=[],
        metavar=("TOOL", "LEVELS"),
        help="with --write: scores of the distorted photos, if the tool was trained on them, each from training "
        "without the photo (columns kind, level and score)",
    )
    return run_command(parser, _run, argv)


def _run(args: argparse.Namespace) -> None:
    sets = {Path(path).resolve().parent.name: _items(path, args.split) for path in args.labels}
    tools = [get_tool(name, TOOLS) for name in args.tool or TOOLS]
    if args.write:
        return _write(args.write, tools, sets, _held_out(args.scores, sets), args.level_scores)
    for name, items in sets.items():
        if len(sets) > 1:
            print(f"\n{name}\n")
        print("| metric | n | refused | SRCC [95 %] | PLCC fitted [95 %] | not held out |")
        print("| --- | --- | --- | --- | --- | --- |")
        for tool in tools:
            if tool.kind == "NR" or all(item.reference for item in items):
                ranked, fitted, refused = agreement_with_labels(tool, items)
                cells = (tool.name, ranked.n, refused, _cell(ranked), _cell(fitted), _not_held_out(tool, items))
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


def _items(path: str, split: str | None) -> list[LabeledImage]:
    items = read_labels(path)
    chosen = [item for item in items if item.split == split] if split else items
    return chosen or items


def _held_out(wanted: Sequence[tuple[str, str, str]], sets: Mapping[str, Sequence[LabeledImage]]) -> HeldOut:
    scores: dict[tuple[str, str], Sequence[float]] = {}
    for tool, labels, path in wanted:
        name = Path(labels).resolve().parent.name
        if name not in sets:
            raise UserError(f"--scores {tool} {labels}: name this file among the labels, too")
        scores[get_tool(tool, TOOLS).name, name] = _scores(Path(path), sets[name])
    return scores


def _scores(path: Path, items: Sequence[LabeledImage]) -> list[float]:
    """Return the column ``score`` of a CSV in the order of the images, which its column ``image`` names."""
    rows = {row["image"]: row["score"] for row in rows_of(path)}
    return [float(rows[item.name]) for item in items]


def _levels(
    tools: Sequence[Tool], pristine: Mapping[str, Path], report_progress: Callable[[str], None]
) -> dict[str, tool_categories.Figures]:
    kinds = {}
    photos = {name: tool_categories.read_scaled(file) for name, file in pristine.items()}
    for kind, figures in tool_categories.on_distortion_strengths(tools, photos):
        kinds[kind] = figures
        report_progress(kind)
    return kinds


def _held_out_levels(wanted: Sequence[tuple[str, str]]) -> dict[str, tool_categories.Figures]:
    """Return the figures, by kind of distortion and overall, of tools with scores of distorted photos in files."""
    kinds: dict[str, tool_categories.Figures] = {}
    for name, path in wanted:
        tool = get_tool(name, TOOLS)
        for kind, figure in tool_categories.of_level_scores(tool, Path(path)).items():
            kinds.setdefault(kind, {})[tool.name] = figure
    return kinds


def _add_levels(table: Table, source: str, kinds: Mapping[str, tool_categories.Figures]) -> None:
    for category, figures in tool_categories.by_category(kinds).items() if kinds else ():
        for name, figure in figures.items():
            table.setdefault(category, {}).setdefault(name, {})[source] = asdict(figure)


def _write(
    path: Path,
    tools: Sequence[Tool],
    sets: Mapping[str, Sequence[LabeledImage]],
    held_out: HeldOut,
    level_scores: Sequence[tuple[str, str]],
) -> None:
    pristine = tool_categories.photos()
    old: dict[str, Any] = (yaml_value(path.read_text(encoding="utf-8")) if path.exists() else None) or {}
    names = [tool.name for tool in tools]
    sources = {source for rows in old.get("categories", {}).values() for name in names for source in rows.get(name, ())}
    if left_out := {source.removesuffix(HELD_OUT) for source in sources} - {LEVELS_SOURCE, *sets}:
        raise UserError(f"rows of {', '.join(sorted(left_out))} would be dropped: name their labels.csv, too")
    of_levels = _held_out_levels(level_scores)
    new = measured_table(tools, sets, pristine, held_out, lambda done: print(f"{done}: done", file=sys.stderr))
    _add_levels(new, LEVELS_SOURCE + HELD_OUT, of_levels)
    table = merged(old.get("categories", {}), new, names)
    stamp = {"date": date.today().isoformat(), "version": version("agenticiqa"), LEVELS_SOURCE: ", ".join(pristine)}
    stamps: dict[str, Any] = {tool: old.get("measured", {}).get(tool) for tool in TOOLS}
    stamps |= {name: dict(stamp) for name in names}
    provenance = {"measured": {tool: entry for tool, entry in stamps.items() if entry}}
    kept = {"errors": old["errors"]} if "errors" in old else {}  # figures that tool_errors wrote
    text = yaml.safe_dump(
        {**provenance, **kept, "categories": table}, sort_keys=False, default_flow_style=None, width=120
    )
    write_atomically(path, HEADER + text)


def _not_held_out(tool: Tool, items: Sequence[LabeledImage]) -> str:
    count = trained_on_count(tool, [item.image for item in items])
    return f"trained on {count} of {len(items)}" if count else "-"


def _cell(figure: Interval) -> str:
    return f"{figure:.3f}" + (f" ({figure.note})" if figure.value is None else "")


if __name__ == "__main__":
    raise SystemExit(main())
