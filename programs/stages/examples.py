"""The examples that a predictor shows: DSPy's optimizers also put raw training examples among them."""

import logging
from collections.abc import Mapping
from typing import Any

import dspy

from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images import load

logger = logging.getLogger(__name__)

IMAGE_OR_NONE = dspy.Image | None
# How DSPy writes an image into a saved state.
SAVED_START, SAVED_END = "<<CUSTOM-TYPE-START-IDENTIFIER>>", "<<CUSTOM-TYPE-END-IDENTIFIER>>"


def shown_examples(predictor: dspy.Predict) -> list[Any]:
    """A predictor's examples with each image as a ``dspy.Image``, whatever kind it was given as.

    DSPy would write a path or an array into the prompt as text. An example whose image cannot be read is left out, with
    a warning in the log. One without an output is not changed: DSPy does not show it.
    """
    signature = predictor.signature
    images = [name for name, field in signature.input_fields.items() if field.annotation in (dspy.Image, IMAGE_OR_NONE)]
    shown = []
    for example in predictor.demos:
        if any(name in example for name in signature.output_fields):
            try:
                shown.append(_with_images(example, images))
            except ImageError as error:
                logger.warning("an example of the prompt is left out, its image cannot be read: %s", error)
        else:
            shown.append(example)
    return shown


def _with_images(example: Mapping[str, Any] | dspy.Example, images: list[str]) -> Any:
    given = {name: example[name] for name in images if name in example and not _is_shown(example[name])}
    if not given:
        return example
    return {**dict(example.items()), **{name: load(image).to_dspy() for name, image in given.items()}}


def _is_shown(value: Any) -> bool:
    """Whether DSPy shows it as it is: an image, one of a saved state, or none."""
    saved = isinstance(value, str) and value.startswith(SAVED_START) and value.endswith(SAVED_END)
    return value is None or saved or isinstance(value, dspy.Image)
