"""``agenticiqa evaluate --ablate``: the same images judged by the program without a part, in folders of the run."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenticiqa.configs import Config
from agenticiqa.eval.ablations.left_out import Part, estimate_without, program_without
from agenticiqa.eval.ablations.table import WHOLE, ablation_figures, markdown, table
from agenticiqa.eval.commands.console import print_table
from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.runs import made_with, pin
from agenticiqa.eval.scorers.rows import Watch, judge_set
from agenticiqa.programs.backends.limits import Limits, within
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.results_file import ResultsFile, Row
from agenticiqa.programs.cli import tables
from agenticiqa.programs.images.files import write_atomically

SENTENCE = (
    "Without a part all images were judged anew; calls are those that were sent, what was asked before came from the "
    "cache. Paired: the SRCC without a part minus that of the whole program on the images that both scored, 95 % "
    "intervals by a jackknife over contents. Several differences are shown and none is corrected for that."
)

OF_A_ROW = ("quality_score", "mos", "content", "timings_ms", "usage_by_stage")  # what the figures need


def tell_price(config: Config, parts: Sequence[Part], jobs: Sequence[Job]) -> None:
    """Print what judging anew would cost without each part, before anything is sent."""
    for part in parts:
        print(f"without {part}, at most, as what is asked as before comes from the cache:")
        tables.print_estimate(estimate_without(config, part, jobs))


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
) -> None:
    """Judge the labeled images without each part in turn, and print and keep the figures beside the ``whole`` rows.

    Rows are kept in ``out``/without-PART, where the same call continues them. ``digest`` and ``options`` describe the
    labels, as in the run of the whole. Writes ``ablations.json`` and ``ablations.md`` into ``out``. Raises what ended a
    run, as ``judge_labels`` does.
    """
    runs = {WHOLE: _needed(whole)}
    for part in parts:
        print(f"without {part}:", file=sys.stderr)
        program, folder = program_without(config, part), out / f"without-{part}"
        with ResultsFile(folder / "results.jsonl") as results:
            pin(folder, made_with(program, config, digest, {**options, "query": query, "without": part}))
            with within(limits):
                rows = judge_set(program, labels, results, query=query, workers=workers, watch=watch)
                runs[f"without {part}"] = _needed(rows)
    figures = ablation_figures(runs)
    write_atomically(out / "ablations.json", json.dumps(figures, indent=2) + "\n")
    write_atomically(out / "ablations.md", f"{markdown(figures)}\n{SENTENCE}\n")
    print_table(table(figures))
    print(f"- {SENTENCE}")
    print(f"Kept in {out}: ablations.json, ablations.md")


def _needed(rows: Iterable[Row]) -> list[Row]:
    return [{key: row.get(key) for key in OF_A_ROW} for row in rows]
