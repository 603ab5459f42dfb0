"""What the program is called with: names that callers mistake for its arguments, and several images at once."""

from collections.abc import Iterable, Mapping
from typing import Any

import dspy

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import ImageSource, name_of
from agenticiqa.programs.stages.question import DEFAULT_QUERY
from agenticiqa.signatures.types import well_formed

MAX_QUERY_LENGTH = 4000  # characters

# What callers write by mistake, and the argument that they mean.
SYNONYMS = {
    **dict.fromkeys(("question", "prompt", "text", "q"), "query"),
    **dict.fromkeys(("ref", "original", "pristine", "reference_image"), "reference"),
    **dict.fromkeys(("img", "path", "file", "photo", "picture", "image_path"), "image"),
    "resize": "resize_reference",
}


class ImageExample(dspy.Example):
    """The inputs of one call; its repr names the images instead of printing their bytes, because DSPy logs it."""

    def __repr__(self) -> str:
        return ", ".join(
            f"{key}={value!r}" if key == "query" else f"{key}={name_of(value)}" for key, value in self.items()
        )


def as_example(item: ImageSource | Mapping[str, Any] | dspy.Example) -> dspy.Example:
    """An image, or a mapping of the arguments of a call, as a ``dspy.Example``; an example as it is."""
    if isinstance(item, dspy.Example):
        return item
    arguments = dict(item) if isinstance(item, Mapping) else {"image": item}
    return ImageExample(arguments).with_inputs(*arguments)


class ImageProgram(dspy.Module):
    """A ``dspy.Module`` that is called with an image, and whose ``batch`` takes images."""

    def batch(
        self,
        examples: Iterable[ImageSource | Mapping[str, Any] | dspy.Example],
        num_threads: int | None = None,
        max_errors: int | None = None,
        return_failed_examples: bool = False,
        provide_traceback: bool | None = None,
        disable_progress_bar: bool = False,
        timeout: int = 0,
        straggler_limit: int = 3,
    ) -> Any:
        """Judge several images in threads; the results are in the order given, with ``None`` for what failed.

        Each is an image, a mapping of the arguments of a call, or a ``dspy.Example`` with its inputs marked. The other
        arguments are those of ``dspy.Module.batch``; ``timeout=0`` sends no image twice because it takes long. For many
        images ``judge_many`` is better: it uses processes where that is faster, and holds no image longer than needed.
        """
        return super().batch(
            [as_example(example) for example in examples],
            num_threads=num_threads,
            max_errors=max_errors,
            return_failed_examples=return_failed_examples,
            provide_traceback=provide_traceback,
            disable_progress_bar=disable_progress_bar,
            timeout=timeout,
            straggler_limit=straggler_limit,
        )


def checked(query: str | None) -> str:
    """The question, stripped; the default one for ``None``. Raises UserError when it is empty, too long or no text."""
    if query is not None and not isinstance(query, str):
        raise UserError(f"the question is a {type(query).__name__}: give it as text")
    query = well_formed(DEFAULT_QUERY if query is None else query).strip()
    if not query:
        raise UserError("the question is empty: ask something, or leave it out to rate the perceptual quality")
    if len(query) > MAX_QUERY_LENGTH:
        raise UserError(f"the question has {len(query)} characters: shorten it to {MAX_QUERY_LENGTH}")
    return query
