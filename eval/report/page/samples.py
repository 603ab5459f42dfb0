"""Prepare all images of a run for the list on its page: fields in columns, and the steps that led to each score."""

import base64
import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from agenticiqa.programs.images.files import without_controls
from agenticiqa.signatures.types import LEVEL_KEYS

LONGEST = 400  # characters of a step's text


def steps_of(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the steps that led to a row's score: the name of each and a line about it."""
    return [(name, text if len(text) <= LONGEST else f"{text[:LONGEST]}...") for name, text in _steps(row) if text]


def packed(columns: Mapping[str, Sequence[Any]]) -> Markup:
    """Encode columns as gzip in base64, for a script element: 10,000 images with steps take about half a MB.

    Characters that reorder text become blanks, as in the rest of a page.
    """
    text = without_controls(json.dumps(columns, ensure_ascii=False))
    return Markup(base64.b64encode(gzip.compress(text.encode(errors="replace"), 6, mtime=0)).decode())


def coded(values: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return each value's index among the distinct values, and these in order of first appearance."""
    names = [*dict.fromkeys(values)]
    number = {name: place for place, name in enumerate(names)}
    return [number[value] for value in values], names


def _steps(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if row.get("raw_score") is not None:
        yield "measured", f"{row['scorer']} {row['raw_score']:.6g}"
    if plan := row.get("plan"):
        wanted = [name.replace("_", " ") for name, on in (plan.get("plan") or {}).items() if on]
        scope = plan["query_scope"] if isinstance(plan["query_scope"], str) else ", ".join(plan["query_scope"])
        yield "plan", f"{scope}, {plan['reference_mode']}; {', '.join(wanted) or 'no steps'}"
    evidence = row.get("executor_evidence") or {}
    findings = [
        f"{item['severity']} {item['type']}{'' if region == 'Global' else f' ({region})'}: {item['explanation']}"
        for region, listed in (evidence.get("distortion_analysis") or {}).items()
        for item in listed
    ]
    yield "distortions", " ".join(findings)
    calls = [
        f"{call['tool']} {'-' if call['calibrated'] is None else format(call['calibrated'], '.2f')}"
        f"{'' if call['region'] == 'Global' else ' (' + call['region'] + ')'}"
        for call in evidence.get("tool_log") or ()
    ]
    yield "tools", ", ".join(calls)
    if shares := row.get("quality_probs"):
        levels = ", ".join(f"{level}: {shares.get(level, 0):.2f}" for level in LEVEL_KEYS)
        yield "levels", f"{levels} ({row.get('probability_source')})"
    yield "reason", str(row.get("quality_reasoning") or "")
    yield "replanned", "; ".join(row.get("replan_history") or ())
    rejected = row.get("rejected_answers") or {}
    yield "rejected answers", ", ".join(f"{stage} {len(reasons)}" for stage, reasons in rejected.items())
    yield "time", ", ".join(f"{stage} {ms:.0f} ms" for stage, ms in (row.get("timings_ms") or {}).items())
    yield "error", str(row.get("error") or "")
