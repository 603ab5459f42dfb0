"""``agenticiqa backends``, as a user meets it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenticiqa.programs.backends.providers import PROVIDERS
from agenticiqa.programs.cli.main import main
from support.fake_server import bad_key, by_stage, fake_server
from support.provider_base import spoken
from support.providers import ANTHROPIC, DIALECTS, LMSTUDIO, Dialect, able, provider_server

KEY = "sk-shown-to-nobody"


@pytest.fixture
def configured(tmp_path: Path) -> Any:
    def write(**stages: dict[str, Any]) -> str:
        file = tmp_path / "mine.yaml"
        file.write_text(yaml.safe_dump(stages))
        return str(file)

    return write


def rows(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> list[dict[str, Any]]:
    assert main(["backends", "--json", *arguments]) == status
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["backends"]
    return found


def test_without_a_model_everything_is_offline(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = rows(capsys)
    assert row["stages"] == ["planner", "executor", "summarizer", "replan"]
    assert (row["backend"], row["known"]) == ("offline", "nothing is sent")


def test_what_can_be_named_stands_below(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backends"]) == 0
    out = capsys.readouterr().out
    for name in [*PROVIDERS, "gguf"]:
        assert f"{name}.<" in out
    assert "OPENAI_API_KEY" in out
    assert main(["backends", "--backend", "vllm.m", "--api-base", "http://127.0.0.1:9/v1"]) == 0
    assert "anthropic" not in capsys.readouterr().out


def test_what_is_not_known_is_not_claimed(capsys: pytest.CaptureFixture[str], configured: Any) -> None:
    with fake_server("never") as server:
        file = configured(summarizer={"backend": "vllm.m", "api_base": server.url, "api_key_env": "THEIR_KEY"})
        offline, row = rows(capsys, "--config", file)
    assert offline["stages"] == ["planner", "executor", "replan"]
    assert (row["stages"], row["backend"]) == (["summarizer"], "vllm.m")
    assert row["server"] == server.url.removeprefix("http://")
    assert row["key"] == {"variable": "THEIR_KEY", "set": False}
    assert row["known"] == "not probed: agenticiqa backends --probe"
    assert [row[name] for name in ("structured_outputs", "logprobs", "seed", "images", "several_images")] == [None] * 5


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_probe_fills_the_row_of_each_provider_and_is_kept(
    dialect: Dialect, capsys: pytest.CaptureFixture[str], configured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_KEY", KEY)
    with provider_server(dialect, "never", key=KEY, probes=able) as server:
        stage = {"backend": dialect.backend, "api_base": server.url, "api_key_env": "THEIR_KEY"}
        file = configured(**dict.fromkeys(("planner", "executor", "summarizer", "replan"), stage))
        (row,) = rows(capsys, "--config", file, "--probe")
        asked = len(server.seen)
        assert rows(capsys, "--config", file) == [row]
    assert asked == len(server.seen) == 4
    assert row["stages"] == ["planner", "executor", "summarizer", "replan"]
    assert row["known"].startswith("probed 20")
    assert row["structured_outputs"] == "strict JSON schema"
    assert bool(row["logprobs"]) == (dialect not in (ANTHROPIC, LMSTUDIO))
    assert row["seed"] == (dialect is not ANTHROPIC)
    assert (row["images"], row["several_images"]) == (True, True)


def test_no_key_and_no_password_is_shown(
    capsys: pytest.CaptureFixture[str], configured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_KEY", KEY)
    with fake_server("never") as server:
        address = server.url.replace("http://", f"http://user:{KEY}@")
        file = configured(summarizer={"backend": "vllm.m", "api_base": address, "api_key_env": "THEIR_KEY"})
        for arguments in ([], ["--json"], ["--probe"]):
            assert main(["backends", "--config", file, *arguments]) == 0
            told = capsys.readouterr()
            assert KEY not in told.out + told.err
    assert "THEIR_KEY" in told.out


def test_a_probe_that_fails_is_told_and_the_others_are_shown(
    capsys: pytest.CaptureFixture[str], configured: Any
) -> None:
    with fake_server("never") as up, fake_server("never", probes=lambda _: bad_key()) as down:
        file = configured(
            executor={"backend": "vllm.down", "api_base": down.url},
            summarizer={"backend": "vllm.up", "api_base": up.url},
            replan={"backend": "openai.gpt-4o"},
        )
        assert main(["backends", "--config", file, "--probe", "--json"]) == 1
    told = capsys.readouterr()
    first, second = told.err.splitlines()
    assert "vllm@" in first
    assert "no such key" in first
    assert "OPENAI_API_KEY" in second
    known = {row["backend"]: row["known"] for row in json.loads(told.out)["backends"]}
    assert known["vllm.up"].startswith("probed")
    assert known["vllm.down"] == known["openai.gpt-4o"] == "not probed: agenticiqa backends --probe"


def test_a_backend_of_no_kind_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backends", "--backend", "bogus.model"]) == 2
    assert "is unknown" in capsys.readouterr().err


def test_a_provider_without_a_model_is_not_called_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    for name, form in (("openai", "openai.<model>"), ("openai.", "openai.<model>"), ("gguf", "gguf.<file>")):
        assert main(["backends", "--backend", name]) == 2
        assert f"backend '{name}' names no model: expected {form}" in capsys.readouterr().err


def test_a_first_start_probes_and_the_next_ones_use_what_was_seen(
    examples: Path, capsys: pytest.CaptureFixture[str], configured: Any
) -> None:
    said = {"quality_level": "Fair", "quality_probs": dict.fromkeys("12345", -1.7), "quality_reasoning": "Soft."}
    script = by_stage({"assessment": spoken(json.dumps({"assessment": said}), {"Fair": {"Fair": -0.4, "Good": -1.5}})})
    vllm = next(dialect for dialect in DIALECTS if dialect.name == "vllm")
    with provider_server(vllm, script, probes=able) as server:
        file = configured(summarizer={"backend": vllm.backend, "api_base": server.url})
        command = ["assess", str(examples / "coffee_jpeg.jpg"), "--config", file, "--json", "--no-cache"]
        assert main(command) == 0
        first = capsys.readouterr()
        assert main(command) == 0
        again = capsys.readouterr()
    assert len(server.seen) == 4 + 1 + 1
    assert "log-probabilities, strict JSON schema, several images, seed" in first.err
    assert "log-probabilities" not in again.err
    for told in (first, again):
        row = json.loads(told.out)
        assert row["probability_source"] == "logprobs"
        assert row["probability_mass"] == pytest.approx(0.893, abs=1e-3)


def test_a_run_on_a_server_that_is_gone_ends_before_it_begins(
    examples: Path, capsys: pytest.CaptureFixture[str], configured: Any, tmp_path: Path
) -> None:
    with fake_server("never") as server:
        gone = server.url
    file = configured(summarizer={"backend": "vllm.m", "api_base": gone, "max_retries": 0})
    out = tmp_path / "out.jsonl"
    assert main(["assess", str(examples / "coffee_jpeg.jpg"), "--config", file, "--jsonl", str(out)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert out.read_bytes() == b""


def test_a_dry_run_sends_nothing(examples: Path, configured: Any) -> None:
    with fake_server("never", probes=lambda _: bad_key()) as server:
        file = configured(summarizer={"backend": "vllm.m", "api_base": server.url})
        assert main(["assess", str(examples / "coffee_jpeg.jpg"), "--config", file, "--dry-run"]) == 0
    assert server.requests == []
