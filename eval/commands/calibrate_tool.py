"""Fit the curves of tools (to 1..5) to the user's MOS, and write them into a file with a picture."""

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from agenticiqa.eval.calibrate.curve_fit import Points, fit_curve, raw_of, root_mean_square_error
from agenticiqa.eval.calibrate.curve_picture import Outcome, picture
from agenticiqa.eval.commands.label_options import labels_to_fit
from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.tasks.labeled_set import LabeledSet
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.output_paths import check_outputs
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import AgenticIQAError, ToolError, UserError
from agenticiqa.programs.images import load
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.tools import TOOLS, Tool, get_tool
from agenticiqa.programs.tools.tool import raw_value
from agenticiqa.programs.tools.tool_curves import ToolCurve, read_tool_curves, write_tool_curves
from agenticiqa.programs.tools.training_images import parts_named, trained_on_count


def run(args: Namespace) -> int:
    """Measure the labeled images, fit the curves, and write their file and the picture."""
    out = args.out
    if out.suffix == ".png":
        raise UserError(
            f"{out}: --out is the file of the curves, with their picture as .png beside it; name a .yaml file"
        )
    for file in (out, out.with_suffix(".png")):
        if file.exists() and not args.force:
            raise UserError(f"{file} already exists: name another file, or add --force to replace it")
    check_outputs(args)
    base = read_tool_curves(args.base)
    tools = [get_tool(name, TOOLS) for name in dict.fromkeys(args.tool)]
    data = labels_to_fit(args)
    scale, has_references = data.any_scale(), any(label.reference for label in data.labels)
    for tool in tools:
        if tool.kind == "FR" and not has_references:
            raise UserError(f"{tool.name} needs references, but {data.name} has none: add a column reference")
    print(f"{len(data.labels)} labeled images; MOS {scale.low:g}..{scale.high:g} are mapped to 1..5", file=sys.stderr)
    origin = args.name or (f"{data.name}, split {args.split}" if args.split else data.name)
    outcomes = []
    for tool in tools:
        points = measured_points(tool, data, origin)
        if trained := trained_on_count(tool, {label.image for label in data.labels}):
            print_error(f"{tool.name} was trained on {trained} of these images: on new images it is less accurate")
        outcomes.append(fitted(tool, points, base.get(tool.name)))
    return write_curves(outcomes, base, args.base, out)


def measured_points(tool: Tool, data: LabeledSet, origin: str) -> Points:
    """Return the points of a tool from labeled images; print how many it cannot measure, and why, on stderr.

    A full-reference tool also measures a reference against itself, which has quality 5.
    """
    items = [item for item in data.labels if item.reference or tool.kind == "NR"]
    raw: dict[LabeledImage, float] = {}
    failures, perfect = [], None
    for item in render.progress(items, len(items), f"measuring {tool.name}"):
        try:
            raw[item] = raw_of(tool, item)
            if item.reference and tool.kind == "FR" and perfect is None:
                perfect = raw_value(tool, *[load(item.reference).pixels] * 2)
        except AgenticIQAError as error:
            failures.append(str(error))
    if failures:
        print_error(f"{tool.name}: {len(failures)} images failed, first: {failures[0]}")
    quality = np.array([data.any_scale().to_1_5(item.mos) for item in raw], dtype=float)
    values, contents = np.array([*raw.values()], dtype=float), tuple(item.content for item in raw)
    return Points(values, quality, contents, perfect, (), origin, parts_named(item.image for item in raw))


def fitted(tool: Tool, points: Points, old: ToolCurve | None) -> Outcome:
    """Fit one tool to its points; a refused fit is an outcome with its reason."""
    try:
        return Outcome(tool, points, old, fit_curve(points, tool))
    except ToolError as error:
        return Outcome(tool, points, old, refusal=str(error))


def write_curves(outcomes: Sequence[Outcome], base: Mapping[str, ToolCurve], base_name: str, out: Path) -> int:
    """Print the fits, and write the new curves with the other ones of the base, and the picture; return the status."""
    curves = {}
    for outcome in outcomes:
        name, points, fit = outcome.tool.name, outcome.points, outcome.fit
        if fit is None:
            print_error(f"{name}: {outcome.refusal}")
            continue
        curves[name] = fit.curve
        before = f" (old curve: {root_mean_square_error(outcome.old, points):.3f})" if outcome.old else ""
        print(f"{name}: {len(points.raw)} images, SRCC {fit.srcc:.3f}, residual {fit.residual:.3f}{before}")
    plot = out.with_suffix(".png")
    write_atomically(plot, picture(outcomes))
    if not curves:
        print(f"No curve was fitted, so no file was written. {plot} shows the points.")
        return SOME_FAILED
    write_tool_curves(out, {**base, **curves})
    copied = len(base.keys() - curves.keys())
    print(f"{out}: {len(curves)} curves fitted, {copied} copied from {base_name}. {plot} shows the fit.")
    print(f'To use it, add "tool_curves: {out}" to a configuration.')
    return OK if len(curves) == len(outcomes) else SOME_FAILED
