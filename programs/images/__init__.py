"""Images: loaded, decoded, cropped to regions."""

from agenticiqa.programs.images.loading import (
    ImageSource,
    LoadedImage,
    find_images,
    load,
    load_pair,
    prompt_inputs,
)

__all__ = ["ImageSource", "LoadedImage", "find_images", "load", "load_pair", "prompt_inputs"]
