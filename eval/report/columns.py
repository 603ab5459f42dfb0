"""Collect the values that a report needs from the rows of a run: about a hundred bytes of a row are kept."""

from __future__ import annotations

import statistics
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.metrics import Numbers
from agenticiqa.eval.names import GROUPS
from agenticiqa.programs.fusion.formula import ScoreFusion, expected_level
from agenticiqa.programs.fusion.interval import OFFLINE, fused_score
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.training_images import Part
from agenticiqa.signatures.types import FROM_REJECTED, ExecutorOutput

Row = Mapping[str, Any]

OURS, TOOL_MEAN = "AgenticIQA", "tools only"
MODEL_ALONE, OFFLINE_SCORE = "model only", "offline rules only"
AVERAGE, OFFLINE_AVERAGE = "plain average of tools and model", "plain average of tools and rules"
PAPER = "fusion formula of the paper"
WITHOUT_MODEL = "AgenticIQA without the model"
WITHOUT_PROFILE = "AgenticIQA without a fusion profile"
ABOUT = {  # what each of these rows of a report is and why it is shown, in the order of the rows
    WITHOUT_PROFILE: "the same run without its fusion profile, to show what the profile adds",
    WITHOUT_MODEL: "the score that the tools would give without the model's answer, to show what the model adds",
    MODEL_ALONE: "the mean of the model's level probabilities, to show what the tools add",
    OFFLINE_SCORE: "the quality level that the offline rules estimate, from LEARNED-IQA without a reference and from "
    "the severities of distortions with one, to show what the tools add",
    TOOL_MEAN: "the weighted mean of the tool scores, to show what the model or the rules add. Offline it nearly "
    "equals AgenticIQA, because the rules have little weight",
    AVERAGE: "half of each, to show what the weights of the fusion add",
    OFFLINE_AVERAGE: "half of each, to show what the weights of the fusion add",
    PAPER: "its equations 1 to 4 (--fusion paper) with the same answers and the plain mean of the "
    "tools that estimate quality, to show what this program's fusion adds",
}
LEARNED_TOOL = "LEARNED-IQA"  # the tool that makes offline level probabilities of the source "learned"
UNIFORM = "uniform"  # probabilities that replace a missing answer


@dataclass
class Columns:
    """The columns of a run, one value for each row: numbers are (N,), NaN where a row has none.

    ``predictions`` are by scorer, ``tools`` the calibrated scores by tool (the mean over regions, or a baseline's),
    each in 1..5 and in order of first appearance. ``called`` holds the tools that scored a row,
    ``mos_source`` the source of its level probabilities. ``first`` is the scorer that scored the rows: the named
    scorer, else this program. ``fusion`` is that of the program; ``fusion_is_known`` is false if there is none although
    a model rated some of the rows.
    """

    fusion: ScoreFusion | None = None
    fusion_is_known: bool = True
    first: str = OURS
    names: list[str] = field(default_factory=list)
    contents: list[str] = field(default_factory=list)
    reasons: list[str | None] = field(default_factory=list)
    mos_source: list[str | None] = field(default_factory=list)
    called: list[frozenset[str]] = field(default_factory=list)
    parts: list[tuple[Part, ...]] = field(default_factory=list)
    groups: dict[str, list[str | None]] = field(default_factory=lambda: {group: [] for group in GROUPS})
    conduct: Conduct = field(default_factory=lambda: Conduct())
    _numbers: dict[str, array[float]] = field(default_factory=dict)
    _scorers: dict[str, None] = field(default_factory=dict)
    _tools: dict[str, None] = field(default_factory=dict)
    _shared: dict[Any, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def numbers(self, key: str) -> Numbers:
        """Return a column: ``mos``, ``mos_std``, an end of the score's interval (``80 low``), a scorer or a tool."""
        column = self._numbers.get(key, array("d"))
        return np.concatenate([np.array(column), np.full(len(self) - len(column), np.nan)])

    @property
    def predictions(self) -> dict[str, Numbers]:
        """Return the values of every scorer except single tools."""
        return {name: self.numbers(name) for name in self._scorers}

    @property
    def tools(self) -> dict[str, Numbers]:
        """Return the values of every tool."""
        return {name: self.numbers(f"tool {name}") for name in self._tools}

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Return which rows have a score."""
        return np.isfinite(self.numbers(self.first))

    def add(self, row: Row) -> None:
        """Add the needed values of the next row."""
        if row.get("scorer"):
            self.first = str(row["scorer"])
        self._scorers.setdefault(self.first)
        self._put("mos", row["mos"])
        self._put("mos_std", row.get("mos_std"))
        score = row.get("quality_score")
        self._predict(self.first, score)
        for share, ends in (row.get("score_interval") or {}).items():
            self._put(f"{share} low", ends[0])
            self._put(f"{share} high", ends[1])
        evidence = row.get("executor_evidence") or {}
        self.called.append(self._same(self._add_tools(evidence.get("tool_log") or (), row.get("baselines") or {})))
        self.mos_source.append(self._add_mos_source(row, evidence))
        self._predict(WITHOUT_MODEL, row.get("score_without_model"))
        self.reasons.append(None if score is not None else self._same(_reason(row)))
        self.contents.append(self._same(row["content"]))
        self.parts.append(self._same(tuple(Part(*part) for part in row.get("training_parts") or ())))
        for group, values in self.groups.items():
            values.append(self._same(None if row.get(group) in (None, "") else str(row[group])))
        self.conduct.add(row)
        self.names.append(row["name"])

    def _add_tools(self, log: Iterable[Mapping[str, Any]], baselines: Mapping[str, float]) -> frozenset[str]:
        """Add the scores of the tools, and return the called tools; a baseline scores the whole image."""
        by_tool: dict[str, list[float]] = {}
        for call in log:
            if call["calibrated"] is not None:
                by_tool.setdefault(call["tool"], []).append(call["calibrated"])
        means = {tool: statistics.fmean(values) for tool, values in by_tool.items()}
        for tool, score in {**means, **baselines}.items():
            self._tools.setdefault(tool)
            self._put(f"tool {tool}", score)
        return frozenset(by_tool)

    def _add_mos_source(self, row: Row, evidence: Mapping[str, Any]) -> str | None:
        """Add the tool score, the expected level and their combinations; return the source of the probabilities."""
        calls = [{"ms": 0.0, **call} for call in evidence.get("tool_log") or []]
        known = {"quality_scores": evidence.get("quality_scores"), "tool_log": calls}
        tools = ExecutorOutput.model_validate(known)
        mean = tools.overall_mean
        self._predict(TOOL_MEAN, mean)
        source, shares = row.get("probability_source"), row.get("quality_probs")
        if not source or not shares or source == UNIFORM:
            return None
        probabilities = {int(level): float(share) for level, share in shares.items()}
        expectation = expected_level(probabilities)
        second, average = (OFFLINE_SCORE, OFFLINE_AVERAGE) if source in OFFLINE else (MODEL_ALONE, AVERAGE)
        self._predict(second, expectation)
        if mean is not None:
            self._predict(average, (mean + expectation) / 2)
        if (plain := plain_mean(tools)) is not None and source not in OFFLINE:
            self._predict(PAPER, ScoreFusion().fuse_scores([plain], probabilities))
        if row.get("fusion") and self.fusion is None:
            self.fusion_is_known = False
        elif row.get("fusion") and self.fusion and self.fusion.profile:
            whole, without_profile = ExecutorOutput.model_validate(evidence), self.fusion.with_profile(None)
            self._predict(WITHOUT_PROFILE, fused_score(without_profile, whole, probabilities, source).score)
        return str(source)

    def _predict(self, name: str, value: float | None) -> None:
        if value is not None:
            self._scorers.setdefault(name)
            self._put(name, value)

    def _put(self, key: str, value: float | None) -> None:
        column = self._numbers.setdefault(key, array("d"))
        column.extend([np.nan] * (len(self) - len(column)))
        column.append(np.nan if value is None else value)

    def _same(self, value: Any) -> Any:
        """Return one object for equal values, so that a column with few distinct values is small."""
        return self._shared.setdefault(value, value)


@dataclass
class Conduct:
    """Counts of a run: rejected answers, sources of the level probabilities, replans, failed tool calls, times."""

    sources: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    images_with_rejected: int = 0
    replanned: int = 0
    failed_calls: int = 0
    times: array[float] = field(default_factory=lambda: array("d"))  # milliseconds

    def add(self, row: Row) -> None:
        """Count the events in the row of an assessed image."""
        if "error" in row:
            return
        if timings := row.get("timings_ms"):
            self.times.append(sum(timings.values()))
        if source := row.get("probability_source"):
            self.sources[source] += 1
        rejected = row.get("rejected_answers") or {}
        self.images_with_rejected += bool(rejected)
        self.rejected.update({stage: len(reasons) for stage, reasons in rejected.items()})
        self.replanned += row.get("iteration_count", 0) > 0
        log = (row.get("executor_evidence") or {}).get("tool_log") or ()
        self.failed_calls += sum(bool(call["error"]) for call in log)

    def summary(self) -> dict[str, Any]:
        """Return the counts, as plain JSON types."""
        times = self.times
        return {
            "probability_sources": dict(self.sources),
            "incomplete": sum(self.sources[source] for source in FROM_REJECTED),
            "images_with_rejected_answers": self.images_with_rejected,
            "rejected_answers": dict(self.rejected),
            "replanned": self.replanned,
            "failed_tool_calls": self.failed_calls,
            "ms_per_image": {"median": statistics.median(times), "mean": statistics.fmean(times)} if times else None,
        }


def plain_mean(evidence: ExecutorOutput) -> float | None:
    """Return the plain mean of the scores of tools that estimate quality (equation 1); ``None`` without any."""
    calls = [call.model_copy(update={"weight": _rates(call.tool)}) for call in evidence.tool_log]
    return evidence.model_copy(update={"tool_log": calls}).overall_mean


def _rates(tool: str) -> float:
    return float(tool not in TOOLS or TOOLS[tool].rates_overall)


def columns_of(rows: Iterable[Row], fusion: ScoreFusion | None = None) -> Columns:
    """Return the columns of rows, which are read once and not kept; ``fusion`` is that of the program."""
    columns = Columns(fusion)
    for row in rows:
        columns.add(row)
    if not columns.names:
        columns._scorers.setdefault(columns.first)
    return columns


def _reason(row: Row) -> str:
    return str(row["error"]).partition(":")[0] if "error" in row else str(row.get("quality_reasoning") or "no score")
