"""Check the arguments of a call, report misspelled argument names, and assess several images in one call."""

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import dspy
import numpy as np

from agenticiqa.configs.spelling import did_you_mean
from agenticiqa.programs.errors import ImageError, WrongArgument
from agenticiqa.programs.images import ImageSource, name_of
from agenticiqa.programs.images.finding import images_given
from agenticiqa.programs.images.tables import BESIDE_IMAGE, RENAME, NoImage, image_column, image_in
from agenticiqa.programs.stages import protocols
from agenticiqa.programs.stages.question import is_image
from agenticiqa.programs.stages.side_by_side import in_thread

P = ParamSpec("P")
T = TypeVar("T")

STAGE_PROTOCOLS: dict[str, type] = {
    "planner": protocols.PlannerStage,
    "executor": protocols.ExecutorStage,
    "summarizer": protocols.SummarizerStage,
    "replan": protocols.ReplanStage,
}

# Names that callers use by mistake, and the intended argument.
SYNONYMS = {
    **dict.fromkeys(("question", "prompt", "text", "q"), "query"),
    **dict.fromkeys(("ref", "original", "pristine", "reference_image"), "reference"),
    **dict.fromkeys(("img", "path", "file", "photo", "picture", "image_path"), "image"),
    **dict.fromkeys(("choices", "candidates"), "options"),
    "resize": "resize_reference",
}
IN_ROWS = (*BESIDE_IMAGE, "align")  # arguments of a call that a row may have beside its image
NO_MISTAKE = "text"  # in a row: the column of captions in many data sets


def naming_mistakes(call: Callable[P, T]) -> Callable[P, T]:
    """Wrap ``call`` so that unknown arguments raise WrongArgument with a one-line message that names them."""
    signature, owner = inspect.signature(call), call.__qualname__.partition(".")[0]
    takes = [name for name in signature.parameters if name != "self"]

    @wraps(call)
    def checked_call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            unknown = next((name for name in kwargs if name not in takes), None)
            meant = SYNONYMS.get(str(unknown).lower())
            hint = f", did you mean {meant}?" if meant else did_you_mean(str(unknown), takes)
            problem = f"{owner} has no argument {unknown!r}{hint or '.'}" if unknown else f"{owner}: {error}."
            raise WrongArgument(f"{problem} It takes {', '.join(takes)}.") from None
        return call(*args, **kwargs)

    return checked_call


def require_stages(**stages: object) -> None:
    """Raise WrongArgument for a stage that the program could not call.

    A stage that is ``None`` is not given.
    """
    for name, stage in stages.items():
        protocol = STAGE_PROTOCOLS[name]
        takes = [parameter for parameter in inspect.signature(protocol.__call__).parameters if parameter != "self"]
        if stage is None:
            continue
        is_complete = all(hasattr(stage, method) for method in _methods(protocol))
        if isinstance(stage, dspy.BaseLM | type) or not (is_complete and _can_be_called(stage, takes)):
            raise WrongArgument(
                f"{name} must be a stage, an object that accepts {', '.join(takes)}; got {type(stage).__name__}. "
                "To ask a model in every stage, use AgenticIQA(lm=...) or AgenticIQA(backend=...); with a "
                "configuration, use AgenticIQA.from_config(...)"
            )


def _can_be_called(stage: object, names: Iterable[str]) -> bool:
    forward = getattr(type(stage), "forward", None)  # a module's own __call__ takes anything
    try:
        signature = inspect.signature(stage if forward is None else forward)  # type: ignore[arg-type]
        signature.bind(*(() if forward is None else (stage,)), **dict.fromkeys(names))
    except (TypeError, ValueError):
        return False
    return True


def _methods(protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]


def awaited_as(call: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the ``acall`` of a module with this ``__call__``: it makes the same call in a thread."""

    @wraps(call, ("__module__", "__doc__"))
    async def acall(*args: P.args, **kwargs: P.kwargs) -> T:
        module: Any = args[0]  # its own __call__, because a subclass may override it
        result: T = await in_thread(module, *args[1:], **kwargs)
        return result

    return acall


class ImageExample(dspy.Example):
    """A ``dspy.Example`` that accepts images in any form, and shows and saves their names instead of their bytes.

    DSPy prints an example that fails, and ``dspy.Evaluate`` writes examples to files: a plain ``dspy.Example`` puts
    bytes and base64 there, or cannot be written at all.
    """

    def __repr__(self) -> str:
        return ", ".join(f"{key}={_shown(value)}" for key, value in self.items())

    def __eq__(self, other: object) -> bool:
        """Compare as ``dspy.Example`` does; arrays are equal if their elements are."""
        if not isinstance(other, dspy.Example) or self.keys(include_dspy=True) != other.keys(include_dspy=True):
            return False
        return all(_same(value, other[key]) for key, value in self.items(include_dspy=True))

    def __hash__(self) -> int:
        return hash(repr(self))

    def toDict(self) -> dict[str, Any]:
        """Convert the fields to plain JSON types, with the name of each image.

        Returns:
            The fields by name.
        """
        fields = {key: name_of(value) if is_image(value) else value for key, value in self.items(include_dspy=True)}
        plain: dict[str, Any] = dspy.Example(fields).toDict()
        return plain


def row_arguments(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return the arguments of a call that a row has; other keys are ignored.

    A row without an image, or with another word for an argument, gets an image that fails with the reason.
    """
    name, keys = f"row {number}", {str(key).lower(): key for key in row}
    mistakes = [(word, SYNONYMS[word]) for word in keys if SYNONYMS.get(word, "image") != "image"]
    for word, meant in mistakes:
        if word != NO_MISTAKE and meant not in keys:
            return {"image": NoImage(name, f"unknown key {keys[word]!r}: rename it to {meant!r}")}
    try:
        image = image_in(row[image_column(name, map(str, row), remedy=RENAME)], name)
    except ImageError as error:
        return {"image": NoImage(name, error.problem)}
    given = {word: row[keys[word]] for word in IN_ROWS if word in keys and row[keys[word]] is not None}
    if "reference" in given:
        given["reference"] = image_in(given["reference"], f"reference of {name}")
    return {"image": image, **given}


def as_example(item: ImageSource | Mapping[str, Any] | dspy.Example, number: int = 0) -> ImageExample:
    """Convert an image, a row, or a ``dspy.Example`` with marked inputs to an example."""
    if isinstance(item, ImageExample):
        return item
    if isinstance(item, dspy.Example):
        arguments, marked = dict(item.items()), item.inputs().keys()
    else:
        arguments = row_arguments(item, number) if isinstance(item, Mapping) else {"image": item}
        marked = [*arguments]
    example: ImageExample = ImageExample(arguments).with_inputs(*marked)
    return example


def _shown(value: object) -> str:
    return name_of(value) if is_image(value) else repr(value)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one is other or np.array_equal(one, other)
    return one is other or (type(one) is type(other) and bool(one == other))


class ImageProgram(dspy.Module):
    """A ``dspy.Module`` that is called with an image; its ``batch`` takes images."""

    def batch(
        self,
        examples: Iterable[ImageSource | Mapping[str, Any] | dspy.Example] | Mapping[str, Any] | ImageSource,
        num_threads: int | None = None,
        max_errors: int | None = None,
        return_failed_examples: bool = False,
        provide_traceback: bool | None = None,
        disable_progress_bar: bool = False,
        timeout: int = 0,
        straggler_limit: int = 3,
    ) -> Any:
        """Assess several images in threads.

        For many images use ``assess_many``: it uses processes if they are faster, and frees each image early.

        Args:
            examples: Images, rows (dicts with an image, and the arguments of a call), or ``dspy.Example`` objects with
                marked inputs. Or a table (a DataFrame of pandas or Polars, an Arrow table, a data set of ``datasets``),
                one image, or the name of a folder or a pattern.
            num_threads: This and the following arguments are those of ``dspy.Module.batch``.
            max_errors: The most failures before the batch stops; by default ``dspy.settings.max_errors``.
            return_failed_examples: Whether to return a tuple: results, failed examples, exceptions.
            provide_traceback: Whether to log the tracebacks of failures.
            disable_progress_bar: Whether to show no progress bar.
            timeout: Seconds after which a slow image is submitted a second time; 0 for never.
            straggler_limit: ``timeout`` applies when at most this many images remain.

        Returns:
            The results in the given order, with ``None`` for failures.
        """
        return super().batch(
            [as_example(example, number) for number, example in enumerate(images_given(examples))],
            num_threads=num_threads,
            max_errors=max_errors,
            return_failed_examples=return_failed_examples,
            provide_traceback=provide_traceback,
            disable_progress_bar=disable_progress_bar,
            timeout=timeout,
            straggler_limit=straggler_limit,
        )
