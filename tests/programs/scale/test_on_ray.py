"""Shards on a Ray cluster of this machine, and the limits of its workers."""

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.cli import main
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.ledger import Limits
from agenticiqa.programs.backends.provider_batches.openai_files import answer_in, framed
from agenticiqa.programs.scale.limits import GO, HALTED, WAIT, LimitActor
from agenticiqa.programs.scale.run_shards import NO_FILE, RunOfShards, run_shards
from agenticiqa.programs.scale.shard_assessor import ShardRun
from agenticiqa.programs.scale.table import shard_rows
from support.instant import InstantIQA, instant
from support.shards import QUESTION, png, run_of
from support.snippets import snippets

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
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    (tmp_path / "album").mkdir()
    for number in range(10):
        (tmp_path / "album" / f"{number}.png").write_bytes(png(20 * number))
    return tmp_path / "album"


def on_ray(output: str, workers: int, make: Any = instant) -> RunOfShards:
    from agenticiqa.programs.scale.on_ray import ray_engine

    run = ShardRun(Config(), {"version": "1"}, QUESTION, output, 1, ("album",), make=make)
    with ray_engine(Limits(), workers, None) as engine:
        return run_shards(run, engine, 2)


def rows(output: str) -> list[tuple[str, float]]:
    return [(row["image"], row["quality_score"]) for row in shard_rows(output)]


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


def engine(row: dict[str, Any]) -> dict[str, Any]:
    """Replace vLLM's stage: take the same columns, and add the same columns."""
    sampling = row.pop("sampling_params")
    image = next(part for part in row.pop("messages")[-1]["content"] if part["type"] == "image_url")
    text = f"{sampling['structured_outputs']['json']} {image['image_url']['url'][-4:]}"
    tokens = [*text[: sampling["max_tokens"]]]
    seen = [
        {
            ord(t): {"logprob": -0.5, "rank": 1, "decoded_token": t},
            0: {"logprob": -1.5, "rank": 2, "decoded_token": "?"},
        }
        for t in tokens
    ]
    return {
        **row,
        "generated_text": "".join(tokens),
        "generated_tokens": [*map(ord, tokens)],
        "logprobs": seen if sampling["logprobs"] else None,
        "num_input_tokens": 7,
        "num_generated_tokens": len(tokens),
    }


@pytest.mark.ray
def test_the_script_in_the_docs_answers_a_file_of_requests_on_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray", reason="the extra ray is not installed")
    llm = pytest.importorskip("ray.data.llm")
    page = Path(__file__).parents[3] / "docs" / "scale.md"
    script = next(block.text for block in snippets(page) if block.text.startswith("# ray_llm.py"))
    (tmp_path / "ray_llm.py").write_text(script)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setattr(
        llm,
        "build_processor",
        lambda config, preprocess, postprocess: lambda rows: rows.map(preprocess).map(engine).map(postprocess),
    )
    photo = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [
        {"role": "system", "content": "Judge."},
        {"role": "user", "content": [{"type": "text", "text": "?"}, photo]},
    ]
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": True}}
    long = {"model": "m", "messages": messages, "max_tokens": 100, "temperature": 0.0, "response_format": form}
    short = {**long, "max_tokens": 3, "logprobs": True, "top_logprobs": 20}
    requests = tmp_path / "b.in.jsonl"
    lines = [
        b"".join((before, json.dumps(body).encode(), after))
        for id, body in (("a", long), ("b", short))
        for before, after in [framed(id)]
    ]
    requests.write_bytes(b"\n".join(lines) + b"\n")
    ray.init(address="local", num_cpus=1, include_dashboard=False, logging_level=logging.ERROR)
    try:
        import ray_llm

        ray_llm.main(str(requests), "m")
    finally:
        ray.shutdown()
    found = [answer_in(json.loads(line)) for line in (tmp_path / "b.out.jsonl").read_text().splitlines()]
    said = {each.id: json.loads(each.body)["choices"][0] for each in found}
    assert said["a"]["message"]["content"] == '{"type": "object"} AAAA'
    assert (said["a"]["finish_reason"], said["b"]["finish_reason"]) == ("stop", "length")
    first = said["b"]["logprobs"]["content"][0]
    assert (first["token"], first["logprob"], [each["token"] for each in first["top_logprobs"]]) == (
        "{",
        -0.5,
        ["{", "?"],
    )


@pytest.mark.ray
def test_ray_gives_the_same_results_for_photos_as_one_process() -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    tests = Path(__file__).parents[2]
    command = [
        sys.executable,
        str(tests / "benchmarks" / "runners.py"),
        str(tests.parent / "examples"),
        "--images",
        "3",
    ]
    shown = subprocess.run([*command, "--runners", "Ray, 2 workers"], check=True, capture_output=True, text=True).stdout
    assert shown.count("3 rows, 0 missing, 0 differ") == 4  # offline and with a model
