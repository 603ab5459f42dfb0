"""The jobs that a run has to do, and its settings."""

from pathlib import Path
from typing import Any

import pytest

from agenticiqa.configs import Config
from agenticiqa.programs.backends.connect import features_of
from agenticiqa.programs.batch import plan_run as planning
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.plan_run import fingerprint_of, identity_of, plan_run
from agenticiqa.programs.batch.results_file import OTHER_SETTINGS, ResultsFile


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    for name in "ab":
        (tmp_path / name).write_bytes(name.encode())
    return [Job(tmp_path / name, "?") for name in "ab"]


def row(job: Job, settings: dict[str, Any]) -> dict[str, Any]:
    return {**identity_of(job, fingerprint_of(job, settings))._asdict(), "image": job.name}


def test_without_a_results_file_all_jobs_are_to_do(jobs: list[Job]) -> None:
    plan = plan_run(Config(), jobs, None)
    assert (plan.todo, plan.program.backend) == (jobs, "offline")
    assert plan_run(Config(), [], None).todo == []


def test_jobs_with_results_of_other_settings_are_assessed_again(
    jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "run_settings", lambda program, config: {"asked": "as JSON"})
    with ResultsFile(tmp_path / "scores.jsonl") as results:
        results.append(row(jobs[0], {"asked": "as JSON"}))
        results.append(row(jobs[1], {"asked": "as text"}))
        plan = plan_run(Config(), jobs, results)
    assert plan.todo == [jobs[1]]
    assert plan.settings == {"asked": "as JSON"}
    assert plan.again == {OTHER_SETTINGS: 1}


def test_features_that_a_server_refused_do_not_make_results_outdated(jobs: list[Job]) -> None:
    config = Config().with_backend("vllm.test", "http://host:8000/v1")
    before = plan_run(config, jobs, None).settings
    features_of(config.summarizer).keep({"form": "json_object", "logprobs": 0})
    assert features_of(config.summarizer).form == "json_object"
    assert plan_run(config, jobs, None).settings == before
