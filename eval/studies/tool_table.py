"""How well each embedded tool agrees with observers, and which follows which distortion.

    python -m agenticiqa.eval.studies.tool_table LABELS.csv [--split dev]

prints every tool's agreement with the labels. With ``--write`` the table that tools are chosen by is made instead, of
ladders of scikit-image's photos and of any number of labelled sets::

    python -m agenticiqa.eval.studies.tool_table DATA/*/labels.csv --split dev --write configs/tool_table.yaml

``--tool`` measures some tools only and keeps the rows of the others. What a tool was trained on says nothing of it and
is left out; ``--scores TOOL LABELS.csv SCORES.csv`` gives its held-out predictions there instead.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from agenticiqa.eval.bootstrap import Estimate, estimate, estimate_fitted
from agenticiqa.eval.calibrate.samples import raw_value
from agenticiqa.eval.datasets import Labelled, read_labels
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.studies import tool_categories
from agenticiqa.eval.studies.fusion_study import read_columns
from agenticiqa.programs.errors import AgenticIQAError, ToolError, UserError
from agenticiqa.programs.tools import TOOLS, Tool, get_tool
from agenticiqa.programs.tools.distort import KINDS
from agenticiqa.signatures.types import OVERALL
from agenticiqa.signatures.vocabulary import DISTORTIONS

HEADER = """\
# How well each tool follows each category of distortion: SRCC with the level on ladders (mean of the category's kinds)
# and with opinion on labelled sets, positive where the tool moves as its card says, and n, the number of images (on
# ladders the undistorted photos count for each kind). Tools are chosen by the mean over the sources. Written by
# python -m agenticiqa.eval.studies.tool_table --write
"""
LADDERS = "ladders"

Table = dict[str, dict[str, dict[str, dict[str, float | int]]]]  # category, tool, source


def agreement(card: Tool, items: Sequence[Labelled]) -> tuple[Estimate, Estimate, int]:
    """SRCC and fitted PLCC (positive: agrees) with 95 % intervals over contents, and how many images it refused."""
    values, mos, contents = [], [], []
    for item in items:
        try:
            raw = raw_value(card, item)
        except ToolError:
            continue
        values.append(raw if card.higher_is_better else -raw)
        mos.append(item.mos)
        contents.append(item.content)
    refused = len(items) - len(values)
    return estimate(srcc, values, mos, contents), estimate_fitted(values, mos, contents), refused


def made(
    cards: Sequence[Tool],
    sets: Mapping[str, Sequence[Labelled]],
    pristine: Mapping[str, tool_categories.RGB],
    scores: Mapping[tuple[str, str], Sequence[float]],
) -> Table:
    """The table of some tools. ``scores`` has held-out predictions, on the tool's own scale, by tool and set."""
    kinds = {}
    for kind, figures in tool_categories.on_ladders(cards, pristine):
        kinds[kind] = figures
        print(f"ladder {kind}: done", file=sys.stderr)
    table: Table = {}
    for category, figures in tool_categories.by_category(kinds).items():
        for tool, found in figures.items():
            table.setdefault(category, {}).setdefault(tool, {})[LADDERS] = asdict(found)
    for name, items in sets.items():
        for card in cards:
            source = name
            if (card.name, name) in scores:
                source = f"{name}, held out"
                found_by = tool_categories.of_scores(card, scores[card.name, name], items)
            elif name in card.trained_on:
                continue
            else:
                found_by = tool_categories.on_labels(card, items)
            for category, found in found_by.items():
                table.setdefault(category, {}).setdefault(card.name, {})[source] = asdict(found)
        print(f"{name}: done", file=sys.stderr)
    return table


def merged(old: Table, new: Table, measured_now: Sequence[str]) -> Table:
    """The new rows with the old ones of tools that are still embedded and were not measured now, best first."""
    result: Table = {}
    for category in (OVERALL, *DISTORTIONS):
        kept = {tool: row for tool, row in old.get(category, {}).items() if tool in TOOLS and tool not in measured_now}
        rows = {**kept, **new.get(category, {})}
        mean = {tool: sum(float(one["srcc"]) for one in row.values()) / len(row) for tool, row in rows.items()}
        result[category] = {tool: rows[tool] for tool in sorted(rows, key=lambda tool: -round(mean[tool], 6))}
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Print the agreement, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", nargs="+", help="labels.csv files: columns image, mos and, for FR tools, reference")
    parser.add_argument("--split", help="only the rows of this split, in files that have it")
    parser.add_argument("--tool", nargs="+", metavar="NAME", help="only these tools")
    parser.add_argument("--write", type=Path, metavar="YAML", help="make the table that tools are chosen by")
    parser.add_argument("--scores", nargs=3, action="append", default=[], metavar=("TOOL", "LABELS", "SCORES"))
    args = parser.parse_args(argv)
    try:
        sets = {Path(path).resolve().parent.name: _items(path, args.split) for path in args.labels}
        cards = [get_tool(name, TOOLS) for name in args.tool or TOOLS]
        if args.write:
            _write(args.write, cards, sets, _held_out(args.scores, sets))
            return 0
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    for name, items in sets.items():
        if len(sets) > 1:
            print(f"\n{name}\n")
        print("| metric | n | refused | SRCC [95 %] | PLCC fitted [95 %] |")
        print("| --- | --- | --- | --- | --- |")
        for card in cards:
            if card.kind == "NR" or all(item.reference for item in items):
                rank, linear, refused = agreement(card, items)
                print(f"| {card.name} | {rank.n} | {refused} | {_cell(rank)} | {_cell(linear)} |", flush=True)
    return 0


def _items(path: str, split: str | None) -> list[Labelled]:
    items = read_labels(path)
    chosen = [item for item in items if item.split == split] if split else items
    return chosen or items


def _held_out(
    wanted: Sequence[tuple[str, str, str]], sets: Mapping[str, Sequence[Labelled]]
) -> dict[tuple[str, str], Sequence[float]]:
    scores: dict[tuple[str, str], Sequence[float]] = {}
    for tool, labels, path in wanted:
        name = Path(labels).resolve().parent.name
        if name not in sets:
            raise UserError(f"--scores {tool} {labels}: that file is not among the labels")
        scores[get_tool(tool, TOOLS).name, name] = [*read_columns(Path(path), sets[name], ["score"])["score"]]
    return scores


def _write(
    path: Path,
    cards: Sequence[Tool],
    sets: Mapping[str, Sequence[Labelled]],
    scores: Mapping[tuple[str, str], Sequence[float]],
) -> None:
    pristine = tool_categories.photos()
    old: dict[str, Any] = (yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else None) or {}
    names = [card.name for card in cards]
    table = merged(old.get("categories", {}), made(cards, sets, pristine, scores), names)
    measured = {"date": date.today().isoformat(), "version": version("agenticiqa")}
    stamps: dict[str, Any] = {tool: old.get("measured", {}).get(tool) for tool in TOOLS}
    stamps |= {name: dict(measured) for name in names}
    provenance = {
        "ladders": f"the {len(KINDS)} kinds of programs/tools/distort.py at levels 0 to 5 of {', '.join(pristine)}",
        "sets": {name: len(items) for name, items in sets.items()},
        "measured": {tool: stamp for tool, stamp in stamps.items() if stamp},
    }
    text = yaml.safe_dump({**provenance, "categories": table}, sort_keys=False, default_flow_style=None, width=120)
    path.write_text(HEADER + text, encoding="utf-8")


def _cell(figure: Estimate) -> str:
    if figure.value is None:
        return f"- ({figure.note})"
    interval = "" if figure.low is None else f" [{figure.low:.3f}, {figure.high:.3f}]"
    return f"{figure.value:.3f}{interval}"


if __name__ == "__main__":
    sys.exit(main())
