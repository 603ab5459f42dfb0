"""The jobs that a run has to do, and its settings."""

from pathlib import Path

import pytest

from agenticiqa.configs import Config
from agenticiqa.programs.backends.connect import features_of
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.plan_run import plan_run


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    for name in "ab":
        (tmp_path / name).write_bytes(name.encode())
    return [Job(tmp_path / name, "?") for name in "ab"]


def test_without_a_results_file_all_jobs_are_to_do(jobs: list[Job]) -> None:
    plan = plan_run(Config(), jobs, None)
    assert (plan.todo, plan.program.backend) == (jobs, "offline")
    assert plan_run(Config(), [], None).todo == []


def test_features_that_a_server_refused_do_not_make_results_outdated(jobs: list[Job]) -> None:
    config = Config().with_backend("vllm.test", "http://host:8000/v1")
    before = plan_run(config, jobs, None).settings
    features_of(config.summarizer).keep({"form": "json_object", "logprobs": 0})
    assert features_of(config.summarizer).form == "json_object"
    assert plan_run(config, jobs, None).settings == before
