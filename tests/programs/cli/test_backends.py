"""``agenticiqa backends``: tables, JSON and errors."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenticiqa.configs import STAGES
from agenticiqa.programs.backends.providers import PROVIDERS
from agenticiqa.programs.cli.main import main
from support.fake_server import bad_key, fake_server, stage_of
from support.loopback import Body, Reply, error_reply
from support.providers import (
    ANTHROPIC,
    DIALECTS,
    GEMINI,
    LLAMACPP,
    LMSTUDIO,
    OLLAMA,
    SGLANG,
    VLLM,
    Dialect,
    provider_server,
)
from support.scripted_answers import ASSESSMENT, RATED

KEY = "sk-shown-to-nobody"
COLOR = '{"color": "gray"}'
CONTEXTS = {VLLM: 32768, SGLANG: 16384, OLLAMA: 4096, LLAMACPP: 8192, LMSTUDIO: 2048}  # tokens that each reports


def probed(request: Body) -> Reply | str:
    """Return the answers of a server to both questions of --probe."""
    return RATED if stage_of(request) == "assessment" else COLOR


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
    assert (row["backend"], row["structured_outputs"]) == ("offline", None)


def test_providers_are_listed_below_the_backends(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backends"]) == 0
    out = capsys.readouterr().out
    for name in PROVIDERS:
        assert f"{name}.<" in out
    assert "OPENAI_API_KEY" in out
    assert main(["backends", "--backend", "vllm.m", "--api-base", "http://127.0.0.1:9/v1"]) == 0
    assert "anthropic" not in capsys.readouterr().out


@pytest.mark.parametrize("command", [["backends"], ["assess", "examples/coffee_jpeg.jpg", "--dry-run"]])
def test_a_key_in_place_of_the_name_of_its_variable_is_not_shown(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--backend", "vllm.m", "--api-base", "http://127.0.0.1:9/v1", "--api-key-env", KEY]) == 2
    out, err = capsys.readouterr()
    assert KEY not in out + err
    assert "it is not the key itself" in err


def test_features_come_from_the_table_and_nothing_is_sent(capsys: pytest.CaptureFixture[str], configured: Any) -> None:
    with fake_server("never") as server:
        file = configured(summarizer={"backend": "vllm.m", "api_base": server.url, "api_key_env": "THEIR_KEY"})
        offline, row = rows(capsys, "--config", file)
    assert server.requests == []
    assert offline["stages"] == ["planner", "executor", "replan"]
    assert row == {
        "stages": ["summarizer"],
        "backend": "vllm.m",
        "server": server.url.removeprefix("http://"),
        "key": {"variable": "THEIR_KEY", "set": False},
        "price": None,
        "structured_outputs": "JSON schema",
        "logprobs": 20,
        "seed": True,
        "formats": ["jpeg", "png", "webp"],
        "probe": None,
    }


def test_a_table_says_what_was_tried_and_what_the_question_cost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(*arguments: str, status: int = 0) -> dict[str, str]:
        assert main(["backends", *arguments]) == status
        return dict(line.split("\t") for line in capsys.readouterr().out.splitlines())

    monkeypatch.setenv("THEIR_KEY", KEY)

    def gray(request: Body) -> Reply:
        said = probed(request)
        return Reply(said if isinstance(said, str) else json.dumps({"assessment": ASSESSMENT}), usage=(200, 10))

    with fake_server(gray) as server:
        named = ["--backend", "vllm/m", "--api-base", server.url, "--api-key-env", "THEIR_KEY"]
        before = shown(*named)
        assert server.requests == []
        assert shown(*named, "--probe")["probe"] == "3 requests, 600 + 30 tokens, price unknown"
        after = shown(*named, "--probe", "--price", "1,10")
    assert (before["address"], before["key"]) == (server.url.removeprefix("http://"), "THEIR_KEY (set)")
    assert (before["price"], before["probe"]) == ("unknown; --price sets it", "not sent")
    assert {before[name].rpartition(" ")[2] for name in ("JSON", "log-probs", "seed", "images")} == {"(assumed)"}
    assert (after["JSON"], after["seed"]) == ("JSON schema (tried)", "yes (assumed)")
    assert after["log-probs"] == "no (tried)", "the server ignored the request for them"
    assert after["price"] == "1 and 10 USD per million tokens (your own)"
    assert after["probe"] == "2 requests, 400 + 20 tokens, 0.000600 USD"
    assert re.fullmatch(r"200 \+ 10 tokens in [\d.]+ s, valid, quality_probs", after["rating"])
    assert after["context"] == "the server reports no size"
    with fake_server(lambda request: RATED if stage_of(request) == "assessment" else "") as server:
        assert shown("--backend", "vllm.m", "--api-base", server.url, "--probe", status=1)["rating"].count("s, valid")
    with fake_server("I see gray") as server:
        unusable = shown("--backend", "vllm.m", "--api-base", server.url, "--probe", status=1)
    assert unusable["rating"].endswith("s, not valid (stderr has the reason)")
    assert (unusable["JSON"], unusable["log-probs"]) == ("JSON schema (assumed)", "yes (assumed)")


@pytest.mark.parametrize(
    ("backend", "variable", "server", "key"),
    [
        ("openai.gpt-4o", None, "api.openai.com/v1", {"variable": "OPENAI_API_KEY", "set": False}),
        (
            "openai.gpt-4o",
            "OPENAI_BASE_URL",
            "gw.example/v1 (OPENAI_BASE_URL)",
            {"variable": "OPENAI_API_KEY", "set": False},
        ),
        ("anthropic.m", None, "api.anthropic.com/v1", {"variable": "ANTHROPIC_API_KEY", "set": False}),
        ("ollama.llava", None, "localhost:11434/v1 (the default)", None),
    ],
)
def test_an_address_that_is_not_in_the_configuration_is_shown_with_its_origin(
    backend: str,
    variable: str | None,
    server: str,
    key: dict[str, Any] | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if variable:
        monkeypatch.setenv(variable, "https://gw.example/v1")
    (row,) = rows(capsys, "--backend", backend)
    assert (row["server"], row["key"]) == (server, key)


def test_a_backend_is_listed_once_with_all_its_stages(capsys: pytest.CaptureFixture[str], configured: Any) -> None:
    shared = {"backend": "vllm.m", "api_base": "http://127.0.0.1:9/v1", "fallback_backend": "openai.gpt-4o"}
    file = configured(executor=shared, summarizer=shared, replan={"backend": "openai.gpt-4o"})
    assert [(row["backend"], row["stages"]) for row in rows(capsys, "--config", file)] == [
        ("offline", ["planner"]),
        ("vllm.m", ["executor", "summarizer"]),
        ("openai.gpt-4o", ["executor (fallback)", "summarizer (fallback)", "replan"]),
    ]
    assert main(["backends", "--config", configured(executor={**shared, "fallback_backend": "offline"})]) == 2


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_each_provider_accepts_the_features_of_its_row(
    dialect: Dialect, capsys: pytest.CaptureFixture[str], configured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_KEY", KEY)
    with provider_server(dialect, probed, key=KEY) as server:
        stage = {"backend": dialect.backend, "api_base": server.url, "api_key_env": "THEIR_KEY", "max_retries": 0}
        (row,) = rows(capsys, "--config", configured(**dict.fromkeys(STAGES, stage)), "--probe")
    assert (server.refused, [len(seen.images) for seen in server.seen]) == ([], [1, 1])
    assert row["probe"]["rating"]["is_valid"]
    context = row["probe"]["context"]
    assert context["size"] == CONTEXTS.get(dialect)
    assert context["needed"] == 10 + (16_000 if dialect is GEMINI else 2048)
    assert context["fits"] == (None if context["size"] is None else dialect is not LMSTUDIO)
    assert row["structured_outputs"] == "JSON schema"
    assert row["logprobs"] == (0 if dialect in (ANTHROPIC, LMSTUDIO) else 20)
    assert row["seed"] == (dialect is not ANTHROPIC)


def test_features_that_a_server_refuses_are_shown(capsys: pytest.CaptureFixture[str], configured: Any) -> None:
    def script(body: Body) -> Reply | str:
        refused = body.get("response_format", {}).get("type") == "json_schema"
        return error_reply(400, {"error": {"message": "no json_schema here"}}) if refused else probed(body)

    with fake_server(script) as server:
        _, row = rows(
            capsys, "--config", configured(summarizer={"backend": "vllm.m", "api_base": server.url}), "--probe"
        )
    assert (row["structured_outputs"], row["logprobs"]) == ("JSON objects", 0)


def test_no_key_and_no_password_is_shown(
    capsys: pytest.CaptureFixture[str], configured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_KEY", KEY)
    with fake_server(probed) as server:
        address = server.url.replace("http://", f"http://user:{KEY}@")
        file = configured(summarizer={"backend": "vllm.m", "api_base": address, "api_key_env": "THEIR_KEY"})
        for arguments in ([], ["--json"], ["--probe"]):
            assert main(["backends", "--config", file, *arguments]) == 0
            reported = capsys.readouterr()
            assert KEY not in reported.out + reported.err
    assert "THEIR_KEY" in reported.out


def test_a_server_that_does_not_answer_is_reported_and_the_others_are_shown(
    capsys: pytest.CaptureFixture[str], configured: Any
) -> None:
    with fake_server(probed) as up, fake_server(bad_key()) as down:
        file = configured(
            executor={"backend": "vllm.down", "api_base": down.url},
            summarizer={"backend": "vllm.up", "api_base": up.url},
            replan={"backend": "openai.gpt-4o"},
        )
        assert main(["backends", "--config", file, "--probe", "--json"]) == 1
    reported = capsys.readouterr()
    first, second = [line for line in reported.err.splitlines() if line.startswith("agenticiqa:")]
    assert first.count("vllm/down at ") == 1
    assert "no such key" in first
    assert "OPENAI_API_KEY" in second
    assert [found["backend"] for found in json.loads(reported.out)["backends"]] == ["offline", "vllm.up"]
    assert len(up.requests) == 2
