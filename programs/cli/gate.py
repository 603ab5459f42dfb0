"""``agenticiqa gate``: accept or refuse photos by a policy, with the reasons."""

import os
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from agenticiqa.configs.policy import FILE_CHECKS, GatePolicy, load_policy
from agenticiqa.programs.backends.cores import available_cores, workers_given
from agenticiqa.programs.batch.find_jobs import find_jobs
from agenticiqa.programs.batch.gate import GateResult, add_judgment, checked, gate, refused_distortions
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.printable import json_text, print_error, print_note, printable
from agenticiqa.programs.cli.status import BELOW, OK, SOME_FAILED, USAGE
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import one_line
from agenticiqa.programs.images.finding import OWN, skipped_text
from agenticiqa.programs.scale.names import is_shard_folder
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY

OF_A_ROW = ("image", "error", "quality_score", "executor_evidence", "outside_training")


def run(args: Namespace) -> int:
    """Check the photos; the exit status says whether all are accepted."""
    policy = load_policy(args.policy)
    if shards := [name for name in args.images if is_shard_folder(name)]:
        if len(shards) < len(args.images):
            raise UserError("name images, or folders of shards, not both at once")
        return _run_on_shards(policy, shards, as_json=args.json)
    workers = workers_given(args.workers, available_cores())
    found = find_jobs(args.images, DEFAULT_QUERY)
    for problem in found.problems:
        print_error(str(problem))
    if found.skipped:
        print_error(f"skipped, so not accepted: {skipped_text(found.skipped)}")
    if not found.jobs:
        return USAGE

    def judge(jobs: Sequence[Job]) -> Iterator[tuple[Job, Mapping[str, Any] | Exception]]:
        from agenticiqa.programs.assess import AgenticIQA  # only here: it loads DSPy
        from agenticiqa.programs.batch.judge_many import judge_many
        from agenticiqa.programs.result import Assessment

        return judge_many(AgenticIQA.offline(), jobs, workers, Assessment.to_dict)

    results: list[GateResult] = []
    try:
        results.extend(render.progress(gate(policy, found.jobs, workers, judge), len(found.jobs), "checking"))
    finally:  # also at Ctrl-C: what is checked is printed
        show(results, as_json=args.json)
    if found.problems or found.skipped.keys() - {OWN}:
        return SOME_FAILED
    return OK if all(result.accepted for result in results) else BELOW


def _run_on_shards(policy: GatePolicy, folders: Sequence[str], *, as_json: bool) -> int:
    """Apply the policy to kept results, and print each as it is read: a line, or with ``as_json`` a JSON line."""
    from agenticiqa.programs.scale.table import shard_rows  # only here: it loads pyarrow

    distortions, counts = refused_distortions(policy), Counter[str]()
    for row in (row for folder in folders for row in shard_rows(folder, OF_A_ROW)):
        result = GateResult(one_line(row["image"]))
        if row["error"] is not None:
            result.reasons["undecodable"] = one_line(row["error"])
        else:
            if policy.looks_at_files:
                if not os.path.isfile(row["image"]):
                    raise UserError(f"{result.image}: not here, and the policy looks at files: leave out {FILE_CHECKS}")
                result = checked(policy, Job(row["image"]))
            nested = {name: orjson.loads(row[name] or "null") for name in ("executor_evidence", "outside_training")}
            add_judgment(policy, distortions, {**row, **nested}, result)
        counts.update({"refused": not result.accepted, "accepted": result.accepted})
        line = (_verdict(result), result.image, "; ".join(result.reasons.values()))
        print(json_text(result.to_dict()) if as_json else "\t".join(map(printable, line)))
    print_note(f"{counts['accepted']} accepted, {counts['refused']} refused")
    return BELOW if counts["refused"] else OK


def show(results: Sequence[GateResult], *, as_json: bool) -> None:
    """Print the results, the refused ones first, and how many were refused for each reason."""
    refused = [result for result in results if not result.accepted]
    counts = dict(Counter(reason for result in refused for reason in result.reasons).most_common())
    if as_json:
        totals = {"accepted": len(results) - len(refused), "refused": len(refused), "reasons": counts}
        print(json_text({**totals, "images": [result.to_dict() for result in results]}, indent=2))
        return
    lines = [[_verdict(each), each.image, "; ".join(each.reasons.values())] for each in sorted(results, key=_accepted)]
    render.print_lines(("verdict", "image", "why"), lines)
    told = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    print(f"{len(results) - len(refused)} accepted, {len(refused)} refused{f': {told}' if told else ''}")


def _accepted(result: GateResult) -> bool:
    return result.accepted


def _verdict(result: GateResult) -> str:
    return "accepted" if result.accepted else f"refused: {', '.join(result.reasons)}"
