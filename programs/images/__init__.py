"""Images: loaded, decoded, cropped to regions."""

from agenticiqa.programs.images.finding import find_images, search_images
from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.images.loading import load, load_pair, prompt_inputs
from agenticiqa.programs.images.sources import ImageSource, UndecodedImage, name_of, path_of, picklable

__all__ = [
    "ImageSource",
    "LoadedImage",
    "UndecodedImage",
    "find_images",
    "load",
    "load_pair",
    "name_of",
    "path_of",
    "picklable",
    "prompt_inputs",
    "search_images",
]
