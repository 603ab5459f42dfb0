"""A model is recognized by its own name, whatever a gateway or a tuned version puts around it."""

import pytest

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.connect import features_of
from agenticiqa.programs.backends.models import always_reasons, image_tokens, plain_name, seen_size

SPELLINGS = {
    "gpt-4o-mini": "gpt-4o-mini",
    "openai/gpt-4o-mini": "gpt-4o-mini",
    "openrouter/openai/gpt-4o-mini:floor": "gpt-4o-mini:floor",
    "azure/gpt-4o-mini": "gpt-4o-mini",
    "ft:gpt-4o-mini-2024-07-18:org::id": "gpt-4o-mini-2024-07-18",
    "openai/ft:gpt-4o-mini-2024-07-18:org:name:id": "gpt-4o-mini-2024-07-18",
    "GPT-4o-mini": "gpt-4o-mini",
    "anthropic/claude-sonnet-4-6": "claude-sonnet-4-6",
    "us.anthropic.claude-sonnet-4-6-v1:0": "claude-sonnet-4-6-v1:0",
    "us-gov.anthropic.claude-sonnet-4-6-v1:0": "claude-sonnet-4-6-v1:0",
    "models/gemini-2.5-flash": "gemini-2.5-flash",
    "google/gemini-2.5-flash": "gemini-2.5-flash",
    "Qwen/Qwen2.5-VL-7B-Instruct": "qwen2.5-vl-7b-instruct",
    "qwen2.5vl:7b": "qwen2.5vl:7b",
}
AT_ITS_MAKER = {"gpt-4o-mini": "openai", "claude-sonnet-4-6": "anthropic", "gemini-2.5-flash": "google"}
SIZE = (1800, 1200)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_plain_name_has_no_gateway_and_no_mark_of_a_tuned_model(spelling: str) -> None:
    assert plain_name(spelling) == SPELLINGS[spelling]


@pytest.mark.parametrize("provider", ["openai", "anthropic", "vllm", "llamacpp"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_known_model_has_the_same_image_tokens_at_every_provider(provider: str, spelling: str) -> None:
    tokens = {
        maker: image_tokens(f"{maker}.{name}", SIZE)
        for name, maker in AT_ITS_MAKER.items()
        if SPELLINGS[spelling].startswith(name)
    }
    if tokens:
        assert [image_tokens(f"{provider}.{spelling}", SIZE)] == [*tokens.values()]


def test_an_unknown_model_has_the_image_tokens_of_its_provider() -> None:
    tokens = {name: image_tokens(f"{name}.some-vl", (4000, 4000)) for name in ("openai", "vllm", "llamacpp", "dspy")}
    assert tokens == {"openai": 18_750, "vllm": 16_384, "llamacpp": 4096, "dspy": 16_384}


@pytest.mark.parametrize(
    ("backend", "reasons"),
    [
        ("openai.gpt-5-mini", True),
        ("openai.openai/gpt-5.2", True),
        ("vllm.openai/o4-mini", True),
        ("openai.ft:o3-mini:org::id", True),
        ("openai.azure/gpt-5-chat", False),
        ("openai.gpt-5.2-chat-latest", False),
        ("openai.gpt-4o", False),
        ("openai.o3:floor", True),
        ("openai.o3-2025-04-16", True),
        ("vllm.org/o1vision", False),
        ("vllm.org/o1-7b-instruct", False),
    ],
)
def test_a_model_that_always_reasons_is_recognized(backend: str, reasons: bool) -> None:
    assert always_reasons(backend) == reasons


def test_a_tuned_model_has_the_features_of_its_base() -> None:
    for name in ("gpt-3.5-turbo-0125", "ft:gpt-3.5-turbo-0125:org::id"):
        assert features_of(StageConfig(backend=f"openai.{name}")).form == "json_object"


def test_the_size_that_a_model_sees_depends_on_its_own_name() -> None:
    sizes = {seen_size(f"{place}claude-sonnet-4-6", (4000, 3000)) for place in ("anthropic.", "vllm.anthropic/")}
    assert sizes == {(1270, 952)}
    assert seen_size("openai.qwen/qwen2.5-vl-7b", (4000, 3000)) == seen_size("vllm.qwen2.5-vl-7b", (4000, 3000))
    assert seen_size("llamacpp.qwen2.5-vl-7b", (4000, 3000)) < seen_size("vllm.qwen2.5-vl-7b", (4000, 3000))
