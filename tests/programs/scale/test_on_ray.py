"""Shards on a Ray cluster of this machine, and the limits of its workers."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.cli import main
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.limits import RunLimits
from agenticiqa.programs.scale.limits import GO, HALTED, WAIT, LimitActor
from agenticiqa.programs.scale.run_shards import NO_FILE, RunOfShards, run_shards
from agenticiqa.programs.scale.shard_assessor import ShardRun
from agenticiqa.programs.scale.table import ShardFolder
from support.instant import InstantIQA, instant
from support.shards import QUESTION, png, run_of

POISON = 255


def test_the_actor_admits_no_more_than_the_limits_of_all_workers() -> None:
    limit_actor = LimitActor(max_calls=4, in_flight=2)
    assert [limit_actor.ask(worker, "server", None) for worker in ("a", "b", "a")] == [GO, GO, WAIT]
    assert limit_actor.ask("a", "another server", None) == GO
    limit_actor.settle("b", "server", None, None)
    assert limit_actor.ask("b", "server", None) == GO
    limit_actor.settle("a", "server", None, None)
    assert limit_actor.ask("b", "server", None) == "the limit of 4 calls is reached"
    limit_actor.halt()
    assert limit_actor.ask("b", "server", None) == HALTED


def test_requests_of_a_stopped_worker_count_with_their_highest_price() -> None:
    limit_actor = LimitActor(max_usd=1.0, in_flight=1)
    assert limit_actor.ask("a", "server", 0.4) == GO
    assert limit_actor.ask("b", "server", 0.4) == WAIT
    limit_actor.began("a")  # replaces the stopped worker
    assert limit_actor.spent() == (1, 0.4)
    assert limit_actor.ask("b", "server", 0.4) == GO
    limit_actor.settle("b", "server", 0.4, 0.1)
    assert limit_actor.spent() == (2, 0.5)
    assert "would exceed the limit of 1 USD" in limit_actor.ask("b", "server", 0.6)


def test_without_ray_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.png").write_bytes(png(0))
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["assess", "a.png", "--engine", "ray", "--parquet", "scores"]) == 2
    assert capsys.readouterr().err == "agenticiqa: --engine ray needs Ray: run pip install 'agenticiqa[ray]'\n"
    assert main(["assess", "a.png", "--engine", "ray"]) == 2
    assert "--engine ray needs --parquet" in capsys.readouterr().err


class Killed(InstantIQA):
    """A program that a white image kills, as the system kills a process without memory."""

    def forward(self, image: Any, query: str | None = None, *args: Any, **kwargs: Any) -> Any:
        if Path(image).read_bytes() == png(POISON):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(image, query, *args, **kwargs)


def killed(config: Config) -> AgenticIQA:
    return Killed.from_config(config)


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    monkeypatch.chdir(tmp_path)
    root = str(Path(__file__).parents[3])  # from where workers import this module
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*sys.path, root]))
    (tmp_path / "album").mkdir()
    for number in range(10):
        (tmp_path / "album" / f"{number}.png").write_bytes(png(20 * number))
    return tmp_path / "album"


def on_ray(output: str, workers: int, make: Any = instant) -> RunOfShards:
    from agenticiqa.programs.scale.on_ray import ray_engine

    run = ShardRun(Config(), {"version": "1"}, QUESTION, output, 1, ("album",), make=make)
    with ray_engine(RunLimits(), workers, None) as engine:
        return run_shards(run, engine, 2)


def rows(output: str) -> list[tuple[str, float]]:
    return [(row["image"], row["quality_score"]) for row in ShardFolder(output).rows()]


@pytest.mark.ray
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_of_a_cluster_give_the_results_of_this_process(workers: int, album: Path) -> None:
    run_of(["album"], "here", 2)
    assert on_ray("there", workers).figures["assessed"] == 10
    assert rows("here") == rows("there")


@pytest.mark.ray
def test_a_shard_that_kills_its_worker_is_set_aside_and_all_others_finish(album: Path) -> None:
    (album / "5.png").write_bytes(png(POISON))
    ended = on_ray("scores", 2, killed)
    assert ended.set_aside == {2: NO_FILE}
    assert ended.figures["assessed"] == 8
    (album / "5.png").write_bytes(png(100))
    assert on_ray("scores", 2, killed).figures["assessed"] == 10


TIMES = ("ms", "timings_ms", "usage_by_stage")


def untimed(value: Any) -> Any:
    """Return a row without its times."""
    if isinstance(value, dict):
        return {name: untimed(each) for name, each in value.items() if name not in TIMES}
    return [untimed(each) for each in value] if isinstance(value, list) else value


@pytest.mark.ray
def test_ray_and_threads_give_the_same_rows_for_photos_as_one_process(album: Path, examples: Path) -> None:
    runners = {"one": ["--workers", "1"], "two": ["--workers", "2"], "ray": ["--workers", "2", "--engine", "ray"]}
    photos = [str(path) for path in sorted(examples.glob("*.webp"))[:3]]
    for name, options in runners.items():
        command = ["assess", *photos, "--parquet", name, "--no-cache", "--shard-images", "2", *options]
        assert main(command) == 0
    alone, *others = [[untimed(row) for row in ShardFolder(name).rows()] for name in runners]
    assert len(alone) == 3
    assert others == [alone, alone]
