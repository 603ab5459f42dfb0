"""Compute the input tokens of an image by the published rules. Sizes are (width, height) in pixels.

A rule takes a model's plain name (``models.plain_name``) and a size.

- OpenAI: tiles of 512 pixels, or for newer models patches of 32, at "auto" detail, which requests use.
  https://developers.openai.com/api/docs/guides/images-vision#calculating-costs
- Anthropic: patches of 28 pixels. Its earlier rule, w * h / 750, is within 5 % of it for whole patches.
  https://platform.claude.com/docs/en/build-with-claude/vision-coordinates#how-claude-resizes-and-pads-images
- Google: tiles, by a formula that Google calls rough; for Gemini 3 a fixed budget, of which it may use a little less.
  https://ai.google.dev/gemini-api/docs/image-understanding and .../gemini-api/docs/media-resolution
- A server of the user's own (vLLM, Ollama, llama.cpp, ...): Qwen2.5-VL's patches of 28 pixels. Models differ widely.
  https://huggingface.co/Qwen/Qwen2.5-VL-7B-Instruct and https://github.com/ggml-org/llama.cpp/pull/17020
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

Size = tuple[int, int]
Rule = Callable[[str, Size], int]


@dataclass(frozen=True)
class Patches:
    """``each`` tokens per square of ``side`` pixels that covers the image, at most ``budget`` squares.

    An image is first scaled down to ``longest`` on the longer side. An image with more squares than the budget is then
    scaled down to fit, by rules that differ and leave a part unused. It counts as the whole budget, up to 6 % too much.
    """

    each: float
    budget: float = math.inf
    longest: int | None = None
    side: int = 32

    def __call__(self, name: str, size: Size) -> int:
        """Return the tokens of an image."""
        return math.ceil(round(min(_cells(within(size, self.longest), self.side), self.budget) * self.each, 6))


@dataclass(frozen=True)
class Tiles:
    """OpenAI's older rule: ``base`` tokens for an image and ``each`` for each of its tiles."""

    base: int
    each: int

    def __call__(self, name: str, size: Size) -> int:
        """Return the tokens of an image, scaled to fit 2048 x 2048, then to a shorter side of 768, in tiles of 512."""
        width, height = within(size, 2048)
        scale = min(1.0, 768 / min(width, height))
        return self.base + self.each * _cells((int(width * scale), int(height * scale)), 512)


# Looked up by the longest matching prefix of the model's name; a model that is not listed counts as the newest.
NEWEST = Patches(1.2, longest=65535)
OPENAI: dict[str, Tiles | Patches] = {
    "gpt-4": Tiles(85, 170),
    "gpt-4o-mini": Tiles(2833, 5667),
    "gpt-4.1-mini": Patches(1.62, 6144, 2048),
    "gpt-4.1-nano": Patches(2.46, 1536, 2048),
    "gpt-5": Tiles(70, 140),
    "gpt-5-mini": Patches(1.2, 1536, 2048),
    "gpt-5-nano": Patches(1.5, 1536, 2048),
    "gpt-5.2": Patches(1.2, 6144, 2048),
    "gpt-5.4": Patches(1.2, 2500, 2048),
    "gpt-5.5": Patches(1.2, 10000, 6000),
    "gpt-5.6": NEWEST,
    "o1": Tiles(75, 150),
    "o3": Tiles(75, 150),
    "o4-mini": Patches(1.72, 1536, 2048),
}
CLAUDE, CLAUDE_4_7 = Patches(1, 1568, 1568, side=28), Patches(1, 4784, 2576, side=28)
GEMINI_3 = 1120  # tokens of an image by default
QWEN = Patches(1, 16384, side=28)  # patches at most, as the model's own files say
LLAMA_CPP = Patches(1, 4096, side=28)  # llama.cpp's own limit
FEWEST = 4  # patches of Qwen2.5-VL; a smaller image is scaled up


def openai_tokens(name: str, size: Size) -> int:
    """Return the tokens of an image for a model of OpenAI."""
    known = [prefix for prefix in OPENAI if name.startswith(prefix)]
    return (OPENAI[max(known, key=len)] if known else NEWEST)(name, size)


def claude_tokens(name: str, size: Size) -> int:
    """Return the tokens of an image for a Claude model."""
    return claude_patches(name)(name, size)


def gemini_tokens(name: str, size: Size) -> int:
    """Return the tokens of an image for a model of Google."""
    if _version(name) >= (3, 0):
        return GEMINI_3
    return 258 if max(size) <= 384 else 258 * _cells(size, max(256, int(min(size) / 1.5)))


def claude_patches(name: str) -> Patches:
    """Return the patches of a Claude model."""
    return CLAUDE_4_7 if _version(name) >= (4, 7) else CLAUDE


# The rules of models that several providers offer, by a pattern for the beginning of their plain names.
FAMILIES: dict[str, Rule] = {
    r"gpt-[3-9]|o[1-9](-|$)": openai_tokens,
    r"claude": claude_tokens,
    r"gemini": gemini_tokens,
}


def seen_size_by(rule: Rule, name: str, size: Size) -> Size:
    """Return the size to which a Claude or a Qwen2.5-VL model resizes an image of ``size``.

    If the given rule is of patches, it is that of Qwen2.5-VL at its provider.
    """
    if "claude" in name:
        return _size_for_claude(size, claude_patches(name))
    width, height = (max(1, round(side / 28)) for side in size)
    budget = (rule if isinstance(rule, Patches) else QWEN).budget
    if width * height > budget:
        shrink = math.sqrt(28 * 28 * budget / (size[0] * size[1]))
        width, height = (max(1, int(side * shrink / 28)) for side in size)
    elif width * height < FEWEST:
        grow = math.sqrt(28 * 28 * FEWEST / (size[0] * size[1]))
        width, height = (math.ceil(side * grow / 28) for side in size)
    return 28 * width, 28 * height


def _size_for_claude(size: Size, limits: Patches) -> Size:
    """Return the largest size of the same shape within both limits, and not larger than the image."""
    for longest in range(min(max(size), limits.longest or max(size)), 0, -1):
        scaled = within(size, longest)
        if _cells(scaled, limits.side) <= limits.budget:
            break
    return scaled


def within(size: Size, longest: int | None) -> Size:
    """Return the size scaled down to at most ``longest`` on the longer side; unchanged for ``None``."""
    if longest is None or max(size) <= longest:
        return size
    width, height = (max(1, round(side * longest / max(size))) for side in size)
    return width, height


def _cells(size: Size, side: int) -> int:
    """Return how many squares cover an image."""
    return math.ceil(size[0] / side) * math.ceil(size[1] / side)


def _version(name: str) -> tuple[int, int]:
    """Return the version in a model's name, such as (4, 7) for "claude-opus-4-7-20260101".

    A name without a number is an alias of the newest model.
    """
    numbers = re.search(r"(?<!\d)(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?", name)
    return (int(numbers[1]), int(numbers[2] or 0)) if numbers else (99, 0)
