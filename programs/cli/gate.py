"""``agenticiqa gate``: accept or refuse photos by a policy, with the reasons."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenticiqa.configs.policy import load_policy
from agenticiqa.programs.backends.cores import available_cores, workers_given
from agenticiqa.programs.batch.find_jobs import find_jobs
from agenticiqa.programs.batch.gate import GateResult, gate
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.printable import json_text, print_error
from agenticiqa.programs.cli.status import BELOW, OK, SOME_FAILED, USAGE
from agenticiqa.programs.images.finding import skipped_text
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY


def run(args: Namespace) -> int:
    """Check the photos; the exit status says whether all are accepted."""
    policy = load_policy(args.policy)
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
    if found.problems or found.skipped:
        return SOME_FAILED
    return OK if all(result.accepted for result in results) else BELOW


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
