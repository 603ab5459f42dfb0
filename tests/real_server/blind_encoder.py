"""Write an image encoder with random weights, so that llama.cpp accepts images for a model that reads text only.

The file has the layout of LLaVA: a CLIP tower and two linear layers that map its patches to the embeddings of the
language model. Random weights keep the protocol and lose the content: the model receives noise in place of an image.
"""

import sys
from pathlib import Path

import gguf
import numpy as np

SIDE, PATCH = 112, 14  # pixels; (112 / 14)^2 = 64 tokens per image
WIDTH, INNER, BLOCKS, HEADS = 64, 160, 2, 4  # INNER differs from WIDTH, or llama.cpp takes up and down for swapped
SMALL = 0.1  # of the usual deviation in the last layer, so that the noise does not drown the text


def write_blind_encoder(file: Path, embedding: int) -> None:
    """Write the encoder as GGUF.

    Args:
        file: The file to write, for llama.cpp's ``--mmproj``.
        embedding: The length of the language model's token embeddings.
    """
    weights = np.random.default_rng(0)
    writer = gguf.GGUFWriter(str(file), "clip")

    def tensor(name: str, *shape: int, deviation: float) -> None:
        writer.add_tensor(name, weights.normal(0, deviation, shape).astype(np.float32))

    def linear(name: str, inputs: int, outputs: int, scale: float = 1.0) -> None:
        tensor(f"{name}.weight", outputs, inputs, deviation=scale / inputs**0.5)
        writer.add_tensor(f"{name}.bias", np.zeros(outputs, np.float32))

    def norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
        writer.add_tensor(f"{name}.bias", np.zeros(WIDTH, np.float32))

    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_bool("clip.use_gelu", True)
    writer.add_string("clip.projector_type", "mlp")
    sizes = {
        "image_size": SIDE,
        "patch_size": PATCH,
        "embedding_length": WIDTH,
        "feed_forward_length": INNER,
        "block_count": BLOCKS,
        "projection_dim": WIDTH,
        "attention.head_count": HEADS,
    }
    for key, size in sizes.items():
        writer.add_uint32(f"clip.vision.{key}", size)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    for key in ("image_mean", "image_std"):
        writer.add_array(f"clip.vision.{key}", [0.5, 0.5, 0.5])

    tensor("v.patch_embd.weight", WIDTH, 3, PATCH, PATCH, deviation=1 / (3 * PATCH * PATCH) ** 0.5)
    tensor("v.position_embd.weight", (SIDE // PATCH) ** 2, WIDTH, deviation=0.2)
    norm("v.pre_ln")
    for number in range(BLOCKS):
        block = f"v.blk.{number}"
        norm(f"{block}.ln1")
        for part in ("attn_q", "attn_k", "attn_v", "attn_out"):
            linear(f"{block}.{part}", WIDTH, WIDTH)
        norm(f"{block}.ln2")
        linear(f"{block}.ffn_up", WIDTH, INNER)
        linear(f"{block}.ffn_down", INNER, WIDTH)
    linear("mm.0", WIDTH, embedding)
    linear("mm.2", embedding, embedding, SMALL)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write_blind_encoder(Path(sys.argv[1]), int(sys.argv[2]))
