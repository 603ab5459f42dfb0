"""Judge what a run has to do: each result is written as it is finished, each failure printed, both counted."""

from collections.abc import Callable

from agenticiqa.programs.backends.limits import LimitReached
from agenticiqa.programs.batch.job import failure_text
from agenticiqa.programs.batch.judge_many import judge_many
from agenticiqa.programs.batch.plan_run import RunPlan
from agenticiqa.programs.batch.results_file import Row
from agenticiqa.programs.batch.stop_rule import StopRule
from agenticiqa.programs.batch.summary import Summary
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.outputs import CannotAppend, Write, complain
from agenticiqa.programs.images.files import one_line
from agenticiqa.programs.result import Assessment, is_unscored


def judge_and_write(
    plan: RunPlan, workers: int, postprocess: Callable[[Assessment], Row], write: Write, summary: Summary
) -> list[Exception]:
    """Judge what is to do: write each result, print each failure, count both. Returns what the failures were."""
    rule = StopRule(workers)
    errors: list[Exception] = []
    outcomes = judge_many(plan.program, plan.todo, workers, postprocess, rule.should_stop)
    for job, outcome in render.progress(outcomes, len(plan.todo)):
        if isinstance(outcome, LimitReached):
            complain(one_line(str(outcome)))
        elif isinstance(outcome, Exception):
            errors.append(outcome)
            summary.failed.append(failure_text(job, outcome))
            complain(summary.failed[-1])
        else:
            try:
                write(job, outcome)
            except CannotAppend as error:
                errors.append(error)
                complain(str(error))
                rule.ended_by = error
            summary.judged += 1
            summary.unscored += is_unscored(outcome)
    return errors
