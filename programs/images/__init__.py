"""Images: loaded, decoded, cropped to regions."""

from agenticiqa.programs.images.loading import LoadedImage, find_images, load, load_pair, prompt_inputs
from agenticiqa.programs.images.sources import ImageSource, UndecodedImage, name_of, picklable

__all__ = [
    "ImageSource",
    "LoadedImage",
    "UndecodedImage",
    "find_images",
    "load",
    "load_pair",
    "name_of",
    "picklable",
    "prompt_inputs",
]
