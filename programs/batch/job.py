"""Represent one question about one image, the unit of a run."""

from dataclasses import dataclass, field, replace
from typing import Any

from agenticiqa.programs.errors import OfImage
from agenticiqa.programs.images import ImageSource, name_of, picklable
from agenticiqa.programs.images.files import one_line
from agenticiqa.programs.questions.options import OptionsArgument, read_options, with_options
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY, well_formed


@dataclass(frozen=True, repr=False)
class Job:
    """One image to assess, with its question and, optionally, its reference.

    Jobs with an array cannot be compared or hashed.

    Attributes:
        image: The image, in any form that ``images.sources`` lists.
        query: The question; by default the perceptual quality is rated.
        reference: The pristine image, in the same forms, or ``None``.
        resize_reference: Whether to scale a reference of another size to the size of the image.
        options: The answers to choose from, as texts or by letter; kept by letter.

    Raises:
        UserError: The options are invalid (see ``read_options``).
    """

    image: ImageSource
    query: str = DEFAULT_QUERY
    reference: ImageSource | None = None
    resize_reference: bool = False
    options: OptionsArgument | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", read_options(self.options))

    def __repr__(self) -> str:
        against = "" if self.reference is None else f", reference={name_of(self.reference)!r}"
        offered = "" if self.options is None else f", options={self.options!r}"
        return f"Job({self.name!r}, {self.query!r}{against}{offered})"

    @property
    def asked(self) -> str:
        """The question with its options, as it is compared and stored."""
        query, options = well_formed(self.query).strip(), read_options(self.options)
        return query if options is None else with_options(query, options)

    @property
    def name(self) -> str:
        """The name of the image in results and messages: its printable path, or a name such as ``<bytes>``."""
        return name_of(self.image)

    def picklable(self) -> "Job":
        """Return the same job in a form that can be sent to another process.

        Returns:
            A job with the same names; the content of file objects is read.

        Raises:
            ImageError: A file object cannot be read.
        """
        reference = None if self.reference is None else picklable(self.reference)
        return replace(self, image=picklable(self.image), reference=reference)


@dataclass(frozen=True)
class SharedQuestion:
    """The question about images without a question of their own. ``reference`` is a path or an address.

    With ``system_folders``, images in system folders are found, too (see ``images.search_images``).
    """

    query: str
    options: OptionsArgument | None = None
    reference: str | None = None
    resize_reference: bool = False
    system_folders: bool = False

    def about(self, image: ImageSource) -> Job:
        """Return the job of an image, without a reference."""
        return Job(image, self.query, None, self.resize_reference, self.options)


def failed_row(error: BaseException, job: Job | None = None) -> dict[str, Any]:
    """Return the row of a failed image, or of a name without an image: the name, and the reason without the name."""
    own_name = one_line(error.image) if isinstance(error, OfImage) else ""
    name = one_line(job.name) if job else own_name
    reason = error.problem if isinstance(error, OfImage) and own_name == name else str(error)
    return {"image": name, "error": one_line(reason)}


def failure_text(job: Job, error: BaseException) -> str:
    """Return a job's error in one line that begins with the name of the image, without repeating the name."""
    return "{image}: {error}".format_map(failed_row(error, job))
