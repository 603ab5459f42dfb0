"""Measure the errors of the quality tools relative to MOS, and how these errors correlate.

    python -m agenticiqa.eval.research.tool_errors measure DATA/clive/labels.csv clive.jsonl --split dev
    python -m agenticiqa.eval.research.tool_errors measure PHOTOS series.jsonl
    python -m agenticiqa.eval.research.tool_errors fit photo clive.jsonl reference live_r2.jsonl \\
        --write configs/tool_table.yaml

``measure`` writes the raw values of every tool for overall quality, one line for each image, and continues an
unfinished file. For a folder of pristine photos, it makes copies at strengths 1 to 5 of each kind of distortion. Their
quality is 5 - 0.8 strength, and the photo is their reference.

``fit`` takes pairs of a source of images (reference, photo, generated, ladder) and a file. "ladder" stands for
distortion series. "reference" gives the errors of full-reference tools, the other sources those of the other tools.
Images that a no-reference tool was trained on are skipped. ``--write`` names the table to update.
"""

import argparse
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from agenticiqa.eval.datasets import mos_scale
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.names import MOS_RANGE_HELP
from agenticiqa.eval.research import tool_categories
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.distort import DISTORTION_STRENGTHS, KINDS, distort
from agenticiqa.eval.research.tool_table import HEADER
from agenticiqa.programs.errors import ToolError, UserError
from agenticiqa.programs.images import find_images, load_pair
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.tools.catalog import toolbox
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.srcc_table import Errors
from agenticiqa.programs.tools.tool import Tool, raw_value
from agenticiqa.programs.tools.training_images import trained_on_count

WITH_REFERENCE = "reference"  # the source of images with references
QUALITY, SEEN = "quality", "trained_on"  # keys of a row beside the tools' names
FEWEST = 10  # least number of images of a file to measure errors on

Row = Mapping[str, Any]


def measured_rows(tools: Mapping[str, Tool], file: Path, wanted: Iterable[tuple[Row, RGB, RGB | None, Path]]) -> None:
    """Append a line for each wanted image that has no line yet, by name."""
    done = {row["name"] for row in read_rows(file)} if file.exists() else set()
    with file.open("a", encoding="utf-8") as lines:
        for row, pixels, reference, origin in wanted:
            if row["name"] in done:
                continue
            values = {}
            for name, tool in tools.items():
                if tool.kind == "NR" or reference is not None:
                    try:
                        values[name] = raw_value(tool, pixels, reference)
                    except ToolError:
                        continue
            # Not of full-reference tools, FR-FUSION included: all of their curves were fitted on LIVE r2.
            seen = [name for name in values if tools[name].kind == "NR" and trained_on_count(tools[name], [origin])]
            lines.write(json.dumps({**row, SEEN: seen, **values}) + "\n")
            lines.flush()


def labeled(path: str, split: str | None, mos_range: Sequence[float] | None, sample: int | None) -> Iterable[Any]:
    """Yield the images of a labels file, or a seeded sample, each as ``measured_rows`` takes it."""
    items = read_labels(path, split)
    scale = mos_scale([item.mos for item in items], mos_range)
    for item in random.Random(0).sample(items, sample) if sample else items:
        image, reference = load_pair(item.image, item.reference)
        row = {"name": item.name, QUALITY: scale.to_1_5(item.mos)}
        yield row, image.pixels, reference.pixels if reference else None, item.image


def distorted_copies(photos: Sequence[Path]) -> Iterable[Any]:
    """Yield photos and copies at strengths 1 to 5 of each kind of distortion, each as ``measured_rows`` takes it."""
    for seed, path in enumerate(photos):
        photo = tool_categories.read_scaled(path)
        yield {"name": path.name, QUALITY: 5.0}, photo, photo, path
        for kind in KINDS:
            for strength in DISTORTION_STRENGTHS:
                row = {"name": f"{path.name} {kind} {strength}", QUALITY: 5 - 0.8 * strength}
                yield row, distort(photo, kind, strength, seed=seed), photo, path


def read_rows(path: Path) -> list[Row]:
    """Return the lines of a file that ``measured_rows`` wrote."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def errors_of(source: str, files: Sequence[Sequence[Row]], tools: Mapping[str, Tool]) -> Errors:
    """Return the errors of the tools that apply to a source; all files of rows count the same."""
    names = sorted(applying(source, tools))
    covariances = []
    for rows in files:
        kept = [row for row in rows if {*names} <= row.keys() and (source == WITH_REFERENCE or not row[SEEN])]
        if len(kept) >= FEWEST:
            covariances.append(np.cov([[score(tools[name], row) - row[QUALITY] for row in kept] for name in names]))
    if not covariances:
        raise UserError(f"{source}: fewer than {FEWEST} images of a file have values of all tools and are new to them")
    covariance = np.mean(covariances, axis=0)
    deviations = np.sqrt(np.diag(covariance))
    together = covariance / np.outer(deviations, deviations)
    return Errors(
        dict(zip(names, deviations.tolist(), strict=True)),
        {(a, b): float(together[i, j]) for i, a in enumerate(names) for j, b in enumerate(names) if a < b},
    )


def applying(source: str, tools: Mapping[str, Tool]) -> list[str]:
    """Return the tools that rate the images of a source."""
    return [name for name, tool in tools.items() if (tool.kind == "FR") == (source == WITH_REFERENCE)]


def score(tool: Tool, row: Row) -> float:
    """Return the tool's score in [1, 5] for the image of a row."""
    assert tool.curve
    return tool.curve(row[tool.name])


def as_yaml(errors: Errors, tools: Mapping[str, Tool]) -> dict[str, Any]:
    """Return the errors of a source as in the table: by tool its deviation, then correlations with earlier tools."""
    names = [name for name in tools if name in errors.error]
    return {
        "tools": {
            name: [
                round(errors.error[name], 3),
                *(round(errors.correlation[min(name, other), max(name, other)], 2) for other in names[:at]),
            ]
            for at, name in enumerate(names)
        }
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__)
    commands = parser.add_subparsers(required=True, metavar="{measure,fit}")
    measure = commands.add_parser("measure", help="write the values of the tools, one line for each image")
    measure.add_argument("images", help="a labels.csv, or a folder of pristine photos")
    measure.add_argument("out", type=Path, help="the file to write or to continue")
    measure.add_argument("--split", help="only the rows of this split")
    measure.add_argument("--sample", type=int, metavar="N", help="only N images, chosen at random")
    measure.add_argument("--mos-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help=MOS_RANGE_HELP)
    fit = commands.add_parser("fit", help="write the errors to the table")
    fit.add_argument("files", nargs="+", metavar="SOURCE FILE", help="pairs of an image source and a file by `measure`")
    fit.add_argument("--write", type=Path, metavar="YAML", required=True, help="the table to update")
    tools = {name: tool for name, tool in toolbox().items() if tool.rates_overall}

    def run(args: argparse.Namespace) -> None:
        if "out" in args:
            is_folder = Path(args.images).is_dir()
            wanted = (
                distorted_copies(find_images([Path(args.images)]))
                if is_folder
                else labeled(args.images, args.split, args.mos_range, args.sample)
            )
            return measured_rows(tools, args.out, wanted)
        if len(args.files) % 2:
            parser.error("expected pairs of a source and a file: SOURCE FILE ...")
        files: dict[str, list[list[Row]]] = {}
        for source, path in zip(args.files[::2], args.files[1::2], strict=True):
            files.setdefault(source, []).append(read_rows(Path(path)))
        errors = {source: as_yaml(errors_of(source, of_source, tools), tools) for source, of_source in files.items()}
        for source, entry in errors.items():
            entry["images"] = sum(map(len, files[source]))
        old = yaml.safe_load(args.write.read_text(encoding="utf-8"))
        for source, entry in errors.items():
            before = old.get("errors", {}).get(source, {}).get("images", 0)
            if entry["images"] < before:
                parser.error(
                    f"{source}: the table has the errors on {before} images, and these files have {entry['images']}: "
                    "name the files of all sets, or remove the entry from the table"
                )
        errors = {**old.get("errors", {}), **errors}  # other sources stay
        text = yaml.safe_dump({**old, "errors": errors}, sort_keys=False, default_flow_style=None, width=120)
        write_atomically(args.write, HEADER + text)

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
