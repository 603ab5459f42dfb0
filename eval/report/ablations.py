"""Report the whole program and its ablations: agreement with MOS, and paired differences from the whole program."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from agenticiqa.eval.intervals import difference_interval, interval
from agenticiqa.eval.metrics import plcc, srcc
from agenticiqa.eval.report.model import Report, ReportTable, figure, number

Row = Mapping[str, Any]
WHOLE = "whole program"
SENTENCES = (
    "Each ablated program assessed all images again. changed: images with a different score. calls: requests sent to "
    "models, without those answered from the cache.",
    "SRCC difference: SRCC without the part minus SRCC of the whole program, on the images that both scored. Brackets: "
    "95 % intervals from a jackknife over scenes, paired, not corrected for multiple comparisons.",
)


def ablation_report(runs: Mapping[str, Sequence[Row]]) -> Report:
    """Return a line per run; all runs have the same images in the same order, and the first is the whole program.

    In the figures, ``difference`` is the SRCC minus that of the whole program, on the images that both scored, with a
    paired interval over contents. ``changed`` counts the images among them with a different score, and ``calls`` the
    requests sent to models.
    """
    whole = next(iter(runs.values()))
    figures = [_figures(name, rows, None if rows is whole else whole) for name, rows in runs.items()]
    rows = [
        {
            "program": each["name"],
            "n": number(each["n"], ",d"),
            "unscored": number(each["unscored"], ",d"),
            "SRCC": figure(each["srcc"]),
            "PLCC raw": figure(each["plcc"]),
            "SRCC difference": figure(each["difference"], "+.3f"),
            "changed": number(each["changed"], "d"),
            "calls": number(each["calls"], ",d"),
            "s per image": number(each["seconds"], ".2f"),
        }
        for each in figures
    ]
    return Report(figures, [ReportTable("Ablations", rows)], {"How to read it": SENTENCES})


def _figures(name: str, rows: Sequence[Row], whole: Sequence[Row] | None) -> dict[str, Any]:
    scored = [row for row in rows if row.get("quality_score") is not None]
    values = [row["quality_score"] for row in scored], [row["mos"] for row in scored], [r["content"] for r in scored]
    both = [
        (ours["quality_score"], row["quality_score"], row["mos"], row["content"])
        for ours, row in zip(whole or rows, rows, strict=True)
        if ours.get("quality_score") is not None and row.get("quality_score") is not None
    ]
    ours, without, mos, scenes = ([each[place] for each in both] for place in range(4))
    times = [sum(row["timings_ms"].values()) / 1000 for row in scored]
    return {
        "name": name,
        "n": len(scored),
        "unscored": len(rows) - len(scored),
        "srcc": asdict(interval(srcc, *values)),
        "plcc": asdict(interval(plcc, *values)),
        "difference": None if whole is None else asdict(difference_interval(srcc, without, ours, mos, scenes)),
        "changed": None if whole is None else sum(a != b for a, b in zip(ours, without, strict=True)),
        "calls": sum(use["calls"] for row in rows for use in (row.get("usage_by_stage") or {}).values()),
        "seconds": sum(times) / len(times) if times else None,
    }
