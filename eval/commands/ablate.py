"""``agenticiqa evaluate --ablate``: assess the same images without a part of the program, in subfolders of the run."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenticiqa.configs import Config
from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.report import rating_report, summarize
from agenticiqa.eval.report.ablations import WHOLE, ablation_report
from agenticiqa.eval.runs import made_with, pin, report_name
from agenticiqa.eval.scorers.ablated import Part, estimate_without, program_without
from agenticiqa.eval.scorers.rows import Watch, assess_set
from agenticiqa.programs.backends.ledger import Limits, within
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.results_file import ResultsFile, Row
from agenticiqa.programs.cli.expected_cost import print_estimate

OF_A_ROW = ("quality_score", "mos", "content", "timings_ms", "usage_by_stage")  # keys that the figures need


def print_price(config: Config, parts: Sequence[Part], jobs: Sequence[Job]) -> None:
    """Print the cost of assessing the images again without each part, before any request is sent."""
    for part in parts:
        print(f"Maximum cost of the run without {part} (requests with a cached answer are free):")
        print_estimate(estimate_without(config, part, jobs))


def ablate(
    config: Config,
    limits: Limits,
    parts: Sequence[Part],
    labels: Sequence[LabeledImage],
    digest: str,
    options: Mapping[str, Any],
    query: str,
    workers: int,
    whole: Iterable[Row],
    out: Path,
    watch: Watch,
    about: Mapping[str, Any],
) -> None:
    """Assess the labeled images without each part in turn, and compare the figures with those of the ``whole`` rows.

    Rows are written to ``out``/without-PART, where the same call continues them. ``digest`` and ``options`` describe
    the labels, as in the run of the whole program, and each report includes ``about``. Writes ``ablations.json`` and
    ``ablations.md`` into ``out``. Raises the error that ended a run, as ``assess_labels`` does.
    """
    runs = {WHOLE: _needed(whole)}
    for part in parts:
        print(f"without {part}:", file=sys.stderr)
        program, folder = program_without(config, part), out / f"without-{part}"
        with ResultsFile(folder / "results.jsonl") as results:
            pin(folder, made_with(program, config, digest, {**options, "query": query, "without": part}))
            with within(limits):
                rows = assess_set(program, labels, results, query=query, workers=workers, watch=watch)
            runs[f"without {part}"] = _needed(rows)
            figures = {**summarize(rows), **about, "backend": f"{about['backend']} without {part}"}
            rating_report(figures).write(folder, report_name(folder, figures["limit"]))
    report = ablation_report(runs)
    report.write(out, "ablations")
    report.show()
    print(f"Saved in {out}: ablations.json, ablations.md")


def _needed(rows: Iterable[Row]) -> list[Row]:
    return [{key: row.get(key) for key in OF_A_ROW} for row in rows]
