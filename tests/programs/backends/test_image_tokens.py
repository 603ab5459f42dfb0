"""The tokens of an image match the examples and tables that providers publish."""

import pytest

from agenticiqa.programs.backends.image_tokens import Size, within
from agenticiqa.programs.backends.models import image_tokens


@pytest.mark.parametrize(
    ("backend", "size", "tokens"),
    [
        ("openai.gpt-4o", (1024, 1024), 765),
        ("openai.gpt-4o", (2048, 4096), 1105),
        ("openai.gpt-4o-mini", (512, 512), 2833 + 5667),
        ("openai.gpt-5-chat-latest", (512, 512), 70 + 140),
        ("openai.o3-2025-04-16", (512, 512), 75 + 150),
        ("openai.o4-mini", (1800, 2400), 2498),  # 1452 patches of 1.72
        ("openai.gpt-5.4", (1024, 1024), 1229),
        ("openai.gpt-5.4", (2048, 2048), 3000),
        ("anthropic.claude-sonnet-4-20250514", (200, 200), 64),
        ("anthropic.claude-sonnet-4-5", (1920, 1080), 1560),
        ("anthropic.claude-3-5-sonnet-20241022", (2000, 1500), 1564),
        ("anthropic.claude-sonnet-4-6", (1075, 1520), 33 * 47),
        ("anthropic.claude-opus-4-7", (1920, 1080), 2691),
        ("anthropic.claude-opus-4-8", (3840, 2160), 4784),
        ("google.gemini-2.5-flash", (384, 384), 258),
        ("google.gemini-2.5-flash", (960, 540), 6 * 258),
        ("google.gemini-3-flash-preview", (960, 540), 1120),
        ("vllm.qwen2.5-vl-7b", (560, 280), 20 * 10),
    ],
)
def test_images_cost_the_published_tokens(backend: str, size: Size, tokens: int) -> None:
    assert tokens <= image_tokens(backend, size) <= 1.06 * tokens


BACKENDS = [
    "openai.gpt-4o",
    "openai.gpt-4.1-nano",
    "openai.gpt-5.5",
    "openai.not-yet-known",
    "anthropic.claude-haiku-4-5",
    "anthropic.claude-opus-5",
    "google.gemini-2.0-flash",
    "vllm.some-vl",
    "llamacpp.some-vl",
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_rotated_image_costs_the_same(backend: str) -> None:
    for size in ((640, 480), (4032, 3024), (3000, 400), (1, 1), (20000, 3)):
        assert image_tokens(backend, size) == image_tokens(backend, size[::-1]) > 0


@pytest.mark.parametrize(("backend", "most"), [("anthropic.claude-haiku-4-5", 1568), ("llamacpp.m", 4096)])
def test_no_image_costs_more_than_the_budget(backend: str, most: int) -> None:
    sizes = [(side, int(side * share)) for side in range(1200, 9000, 487) for share in (1.0, 0.75, 0.4)]
    tokens = [image_tokens(backend, size) for size in sizes]
    assert max(tokens) <= most
    assert min(tokens[len(tokens) // 2 :]) > 0.8 * most


def test_a_size_within_the_limit_is_unchanged() -> None:
    assert within((640, 480), 640) == within((640, 480), None) == (640, 480)
    assert within((4000, 3000), 1000) == (1000, 750)
    assert within((3, 9000), 900) == (1, 900)
