"""``agenticiqa gate``: accept or refuse photos by a policy, with the reasons."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenticiqa.configs.policy import GatePolicy, load_policy
from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.batch.find_jobs import find_jobs
from agenticiqa.programs.batch.gate import (
    MEASURED,
    GateResult,
    add_assessment,
    checked_row,
    gate,
    lacking,
    refused_distortions,
)
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.arguments import GateOptions
from agenticiqa.programs.cli.output_paths import Output, check_outputs, write_all
from agenticiqa.programs.cli.printable import json_text, print_error, print_note
from agenticiqa.programs.cli.status import BELOW, OK, SOME_FAILED, USAGE
from agenticiqa.programs.cli.views import View, files_of, json_of, print_tables, writes_files
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import one_line
from agenticiqa.programs.images.finding import EXPECTED
from agenticiqa.programs.page.table import Table, data_table, rounded
from agenticiqa.programs.scale.names import holds_results
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

ROW_COLUMNS = ("image", "error", *MEASURED, "quality_score", "executor_evidence", "outside_training")


def run(args: GateOptions) -> int:
    """Check the photos; the exit status says whether all are accepted."""
    policy, adapter = load_policy(args.policy), args.keys.get("adapter")
    refused_distortions(policy)  # an unknown word is an error
    if shards := [name for name in args.images if holds_results(name)]:
        if len(shards) < len(args.images):
            raise UserError("name either images or results of assess (--jsonl, --parquet), not both")
        if adapter:
            raise UserError("--adapter does not apply to results of assess, which have scores already: leave it out")
        return _run_on_results(policy, shards, args)
    workers = args.workers or available_cores()
    inputs = find_jobs(args.images, DEFAULT_QUERY, column=args.image_column, system_folders=args.system_folders)
    print_error(*inputs.not_assessed)
    if not inputs.jobs:
        return USAGE

    def assess(jobs: Sequence[Job]) -> Iterator[tuple[Job, Mapping[str, Any] | Exception]]:
        from agenticiqa.programs.assess import AgenticIQA  # an import of DSPy
        from agenticiqa.programs.batch.assess_many import assess_many
        from agenticiqa.programs.result import Assessment

        return assess_many(AgenticIQA.offline(adapter=adapter), jobs, workers, Assessment.to_dict)

    check_outputs(args, inputs.jobs)
    results: list[GateResult] = []
    try:
        results.extend(render.progress(gate(policy, inputs.jobs, workers, assess), len(inputs.jobs), "checking"))
    finally:  # print the finished results, also after Ctrl-C
        is_shown = show(results, inputs.jobs, args)
    if inputs.problems or inputs.skipped.keys() - EXPECTED or not is_shown:
        return SOME_FAILED
    return _status(results)


def _run_on_results(policy: GatePolicy, places: Sequence[str], args: GateOptions) -> int:
    """Apply the policy to saved results: write the requested files, or print a line for each result as it is read."""
    check_outputs(args)
    results = _verdicts(policy, places)
    if writes_files(args) or args.jsonl:
        kept = [*results]
        is_shown = show(kept, [Job(result.image) for result in kept], args)
        return _status(kept) if is_shown else SOME_FAILED
    counts = Counter[bool]()
    for result in results:
        counts[result.accepted] += 1
        line = (_verdict(result), result.image, _why(result))
        print(json_text(result.to_dict()) if args.json else render.tabbed(line))
    print_note(f"{counts[True]} accepted, {counts[False]} refused")
    return BELOW if counts[False] else OK


def _verdicts(policy: GatePolicy, places: Sequence[str]) -> Iterator[GateResult]:
    """Yield the verdict on each image of saved results, without reading it.

    Raises UserError first if a row lacks a field.
    """
    from agenticiqa.programs.scale.table import store_at  # an import of pyarrow

    distortions = refused_distortions(policy)
    numbers = {place: _one_row_each(policy, place, store_at(place).rows(ROW_COLUMNS)) for place in places}
    for place, chosen in numbers.items():
        for row in (row for number, row in enumerate(store_at(place).rows(ROW_COLUMNS)) if number in chosen):
            if row.get("error") is not None:
                yield GateResult(one_line(row["image"]), {"undecodable": one_line(row["error"])})
            else:
                result = checked_row(policy, row)
                add_assessment(policy, distortions, row, result)
                yield result


def _one_row_each(policy: GatePolicy, place: str, rows: Iterable[Mapping[str, Any]]) -> set[int]:
    """Return the number of one row of each image: of several questions, the first with a score, else without an error.

    Rows that are left out are noted. Raises UserError if a row lacks a field that the policy needs.
    """
    best: dict[str, tuple[int, int]] = {}  # how much the chosen row of an image says, and its number
    count = 0
    for number, row in enumerate(rows):
        count += 1
        if row.get("error") is None and (name := lacking(policy, row)):
            raise UserError(
                f"{place}: the row of {one_line(row['image'])} has no {name}, which the policy needs: assess the "
                "images again, or leave out its conditions with --policy FILE"
            )
        says = (row.get("error") is None) + (row.get("quality_score") is not None)
        if says > best.get(row["image"], (-1, 0))[0]:
            best[row["image"]] = says, number
    if count > len(best):
        print_note(f"{place}: {count - len(best)} rows of other questions are left out, as each image is checked once")
    return {number for _, number in best.values()}


def show(results: Sequence[GateResult], jobs: Sequence[Job], args: GateOptions) -> bool:
    """Print and write the results of these jobs, the refused ones first, and a line of counts to stderr.

    Return whether every output was written. If none was, the results are printed.
    """
    in_order = sorted(results, key=lambda result: result.accepted)
    counts = dict(Counter(reason for result in results for reason in result.reasons).most_common())
    refused = sum(not result.accepted for result in results)
    totals = {"accepted": len(results) - refused, "refused": refused, "reasons": counts}
    rows = "".join(f"{json_text(result.to_dict())}\n" for result in results)
    view = View(
        [Table(("verdict", "image", "why"), [[_verdict(result), result.image, _why(result)] for result in in_order])],
        data=[verdicts(in_order)],
        document={**totals, "images": [result.to_dict() for result in results]},
        page=lambda page: sheet_text(page, results, jobs),
        page_name="contact sheet",
    )
    done = write_all([Output("results file", args.jsonl, lambda: rows), *files_of(args, view), json_of(args, view)])
    if not any(done):
        print_tables(view)
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    print_note(f"{len(results) - refused} accepted, {refused} refused{f': {reasons}' if reasons else ''}")
    return all(done)


def verdicts(results: Sequence[GateResult]) -> Table:
    """Return the results as plain values: image, whether it is accepted, the reasons, and the measurements."""
    lines = []
    for result in results:
        words = (result.image, str(result.accepted).lower(), ", ".join(result.reasons), _why(result))
        lines.append([*words, *(rounded(result.measured.get(name)) for name in (*MEASURED, "score"))])
    return data_table(("image", "accepted", "reasons", "why", *MEASURED, "score"), lines)


def sheet_text(page: Path, results: Sequence[GateResult], jobs: Sequence[Job]) -> str:
    """Return the page of the results of these jobs, the refused ones first, filtered by reason. Raises OSError."""
    from agenticiqa.programs.batch.plan_run import hash_of  # an import of DSPy
    from agenticiqa.programs.cli import overview
    from agenticiqa.programs.page.entry import VERDICTS, Entry, SheetCard

    pairs = [*zip(jobs, results, strict=False)]  # fewer results after Ctrl-C
    cards = {}
    for job, result in sorted(pairs, key=lambda pair: pair[1].accepted):
        values = [(name.replace("_", " "), value) for name, value in result.measured.items() if value is not None]
        measured = ", ".join(f"{name} {round(value, 2):g}" for name, value in values)
        sha256 = hash_of(job.image) or one_line(job.name)  # the name for an unreadable file, which has no picture
        entry = Entry(result.image, sha256, None, shown={"measured": measured} if measured else {})
        cards[job] = SheetCard(entry, _verdict(result), _why(result), [*result.reasons] or ["accepted"])
    accepted = sum(result.accepted for _, result in pairs)
    return overview.sheet_text(page, cards, f"Accepted photos: {accepted} of {len(pairs)}", template=VERDICTS)


def _status(results: Sequence[GateResult]) -> int:
    return OK if all(result.accepted for result in results) else BELOW


def _why(result: GateResult) -> str:
    return "; ".join(result.reasons.values())


def _verdict(result: GateResult) -> str:
    return "accepted" if result.accepted else f"refused: {', '.join(result.reasons)}"
