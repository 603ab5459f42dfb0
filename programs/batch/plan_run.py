"""What a run has to do: its program, its settings, and the jobs that a results file does not hold yet."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.fingerprint import run_settings
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.batch.unfinished import find_finished
from agenticiqa.programs.stages.profile_use import warn_of_other_prompts


@dataclass(frozen=True)
class RunPlan:
    """A run about to begin. ``again`` counts the jobs of ``todo`` that have an outdated result, by reason."""

    program: AgenticIQA
    settings: Mapping[str, Any]
    todo: list[Job]
    again: Counter[str] = field(default_factory=Counter)


def plan_run(config: Config, jobs: Sequence[Job], results: ResultsFile | None, prepare: Callable[[], None]) -> RunPlan:
    """Plan a run over ``jobs``, less those that ``results`` holds a current result of.

    ``prepare`` is called if there is something to do. It may probe backends, and what it finds belongs to the settings.
    A fusion profile that was fitted with other prompts is warned of.
    """
    plan = _plan(config, jobs, results)
    if config.fusion.profile is not None:
        warn_of_other_prompts(config, plan.settings["prompts"])
    if not plan.todo:
        return plan
    prepare()
    program = AgenticIQA.from_config(config)
    settings = run_settings(program, config)
    return (
        RunPlan(program, settings, plan.todo, plan.again) if settings == plan.settings else _plan(config, jobs, results)
    )


def _plan(config: Config, jobs: Sequence[Job], results: ResultsFile | None) -> RunPlan:
    program = AgenticIQA.from_config(config)
    settings = run_settings(program, config)
    if results is None:
        return RunPlan(program, settings, list(jobs))
    resumed = find_finished(jobs, results, settings)
    return RunPlan(program, settings, [job for job in jobs if job not in resumed.finished], resumed.again)
