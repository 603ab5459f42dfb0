"""Choose which tools measure which images for a calibration, fit the curves, and sort the named data by kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agenticiqa.configs.reading import json_value
from agenticiqa.eval.calibrate import samples
from agenticiqa.eval.calibrate.calibration_fit import fit_calibration
from agenticiqa.eval.calibrate.fit_report import Outcome
from agenticiqa.eval.tasks.reading import LabeledSet, names_labels
from agenticiqa.programs.errors import ToolError, UserError
from agenticiqa.programs.images import find_images
from agenticiqa.programs.scale.names import is_shard_folder
from agenticiqa.programs.tools import TOOLS, Tool, get_tool
from agenticiqa.programs.tools.calibration import Calibration
from agenticiqa.programs.tools.training_images import trained_on_count


@dataclass(frozen=True)
class SamplesToMeasure:
    """The images to measure, each with its tools; ``origin`` names the data in a profile, ``summary`` describes it."""

    tools_of: dict[samples.Sample, list[Tool]]
    origin: str
    summary: str = ""

    def tools(self) -> dict[str, Tool]:
        """Return the tools that have images to measure, in the order of the catalog."""
        names = {tool.name for tools in self.tools_of.values() for tool in tools}
        return {name: tool for name, tool in TOOLS.items() if name in names}


def from_labels(
    data: LabeledSet, *, split: str | None = None, tool_names: Sequence[str] = (), name: str | None = None
) -> SamplesToMeasure:
    """Return labeled images for the named tools, or for all tools that apply to them.

    By default these are the full-reference tools if references are given, else the no-reference ones, without tools for
    single distortions. ``split`` names the split of the labels. Raises UserError for scores on an unknown scale, an
    unknown tool, and a full-reference tool without references.
    """
    named = _named(tool_names)
    items, scale = data.labels, data.any_scale()
    kind = "FR" if any(item.reference for item in items) else "NR"
    tools_of: dict[samples.Sample, list[Tool]] = {}
    for tool in named or [tool for tool in TOOLS.values() if tool.kind == kind and tool.rates_overall]:
        rated = samples.rated_samples(items, scale, full_reference=tool.kind == "FR")
        if not rated:
            raise UserError(f"{tool.name} needs references, but {data.name} has none: add a column reference")
        for sample in (*rated, *samples.anchor_samples(tool, items)):
            tools_of.setdefault(sample, []).append(tool)
    summary = f"{len(items)} labeled images; MOS {scale.low:g}..{scale.high:g} are mapped to 1..5"
    return SamplesToMeasure(tools_of, name or (f"{data.name}, split {split}" if split else data.name), summary)


def from_photos(paths: Sequence[Path], *, tool_names: Sequence[str] = (), name: str | None = None) -> SamplesToMeasure:
    """Return pristine photos (files or folders) at every distortion level, by default for all single-distortion tools.

    Raises UserError for paths without images, for an unknown tool and for one that rates overall quality.
    """
    named = _named(tool_names)
    photos = find_images(paths)
    tools_of: dict[samples.Sample, list[Tool]] = {}
    for tool in named or [tool for tool in TOOLS.values() if not tool.rates_overall]:
        if tool.rates_overall:
            raise UserError(
                f"{tool.name} measures overall quality: fit it to images with MOS (labels.csv), not to photos that "
                "this command distorts"
            )
        for sample in samples.level_samples(tool, photos):
            tools_of.setdefault(sample, []).append(tool)
    shown = name or paths[0].resolve().name
    return SamplesToMeasure(
        tools_of, f"{len(photos)} pristine photos with synthetic distortions (quality = 5 - 0.8 x level), {shown}"
    )


def outcome(tool: Tool, raw: Mapping[samples.Sample, float], origin: str, old: Calibration | None) -> Outcome:
    """Fit one tool to its raw values; a refused fit is an outcome with its reason. ``old`` is its previous curve."""
    points = None
    images = {sample.image for sample in raw if sample.level is None}
    trained = trained_on_count(tool, images)
    try:
        points = samples.points_of(tool, raw, origin)
        return Outcome(tool, old, points, fit_calibration(points, tool), trained_on=trained)
    except ToolError as error:
        return Outcome(tool, old, points, refusal=str(error), trained_on=trained)


def _named(names: Sequence[str]) -> list[Tool]:
    return [get_tool(name, TOOLS) for name in dict.fromkeys(names)]


OF_A_ROW = {"image", "query"}  # keys that every row of a finished run has, and labels never have


class Given(NamedTuple):
    """The data by kind; ``labels`` has a form that ``labeled_images`` reads."""

    labels: Path | None
    rows: list[Path]
    photos: list[Path]


def sorted_by_kind(data: Sequence[Path]) -> Given:
    """Sort the data by kind; the first line of a ``.jsonl`` file decides. A folder of shards holds rows.

    Raises UserError for two or more files of labels.
    """
    lines = [path for path in data if path.suffix.lower() == ".jsonl" and not _has_labels(path)]
    rows = [path for path in data if path in lines or is_shard_folder(path)]
    labels = [path for path in data if path not in rows and names_labels(path)]
    if len(labels) > 1:
        raise UserError(f"expected one labels file, got {len(labels)}: join them into one")
    photos = [path for path in data if path not in rows and path not in labels]
    return Given(labels[0] if labels else None, rows, photos)


def _has_labels(file: Path) -> bool:
    """Return whether a file of JSON lines begins with a row of labels; the reader of rows reports unreadable files."""
    try:
        with file.open(encoding="utf-8-sig") as lines:
            first = json_value(next(filter(str.strip, lines), ""))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and not first.keys() >= OF_A_ROW
