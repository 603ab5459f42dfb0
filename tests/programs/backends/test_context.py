"""The size of a context is read from what servers report, whatever they report."""

import json
from typing import Any

import pytest

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.connect import server_of
from agenticiqa.programs.backends.context import context_size
from support.loopback import Arrived, Reply, loopback


@pytest.mark.parametrize(
    ("backend", "reported", "size"),
    [
        ("vllm.org/m", {"data": [{"id": "org/m", "max_model_len": 4096}, {"id": "b", "max_model_len": 1}]}, 4096),
        ("vllm.org/m", {"data": [{"id": "a", "max_model_len": 1}, {"id": "b", "max_model_len": 1}]}, None),
        ("vllm.org/m", {"data": [{"id": "org/m"}]}, None),
        ("vllm.org/m", {"data": [{"id": "org/m", "max_model_len": "4096"}]}, None),
        ("vllm.org/m", {"data": None}, None),
        ("vllm.org/m", [], None),
        ("vllm.org/m", "nothing", None),
        ("llamacpp.any", {"models": [{"name": "a"}], "data": [{"id": "a.gguf", "meta": {"n_ctx": 512}}]}, 512),
        ("llamacpp.any", {"data": [{"id": "a.gguf", "meta": None}]}, None),
        ("ollama.m:7b", {"models": [{"name": "m:7b", "context_length": 4096}]}, 4096),
        ("ollama.m:7b", {"models": []}, None),
        ("lmstudio.m", {"data": [{"id": "m", "max_context_length": 9}]}, None),
    ],
)
def test_the_size_of_a_context_is_that_of_the_model(backend: str, reported: Any, size: int | None) -> None:
    def respond(arrived: Arrived) -> Reply:
        assert arrived.method == "GET"
        return Reply(raw_body=json.dumps(reported).encode())

    with loopback(respond) as address:
        assert context_size(server_of(StageConfig(backend=backend, api_base=f"{address}/v1"))) == size


def test_a_server_without_a_list_or_without_an_answer_has_no_size() -> None:
    with loopback(lambda arrived: Reply(status=404, raw_body=b"no")) as address:
        stage = StageConfig(backend="vllm.m", api_base=f"{address}/v1")
        assert context_size(server_of(stage)) is None
    assert context_size(server_of(stage)) is None


def test_a_provider_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "key")
    for backend in ("openai.gpt-4o", "anthropic.claude"):
        assert context_size(server_of(StageConfig(backend=backend))) is None
