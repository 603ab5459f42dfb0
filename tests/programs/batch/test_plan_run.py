"""What a run has to do, and with which settings, when a probe finds something out first."""

from pathlib import Path
from typing import Any

import pytest

from agenticiqa.configs import Config
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


def test_without_a_file_there_is_all_to_do(jobs: list[Job]) -> None:
    called: list[str] = []
    plan = plan_run(Config(), jobs, None, lambda: called.append("prepared"))
    assert (plan.todo, called, plan.program.backend) == (jobs, ["prepared"], "offline")
    assert plan_run(Config(), [], None, lambda: called.append("again")).todo == []
    assert called == ["prepared"], "nothing is probed when there is nothing to do"


def test_what_a_probe_finds_belongs_to_the_settings(
    jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of results that were made after a probe, of which this machine no longer knows the outcome."""
    probed = {"asked": "unknown"}
    monkeypatch.setattr(planning, "run_settings", lambda program, config: dict(probed))
    with ResultsFile(tmp_path / "scores.jsonl") as results:
        results.append(row(jobs[0], {"asked": "as JSON"}))
        results.append(row(jobs[1], {"asked": "as text"}))
        plan = plan_run(Config(), jobs, results, lambda: probed.update(asked="as JSON"))
    assert plan.todo == [jobs[1]]
    assert plan.settings == {"asked": "as JSON"}
    assert plan.again == {OTHER_SETTINGS: 1}
