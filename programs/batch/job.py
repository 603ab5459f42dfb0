"""One question about one image: what a run is a list of."""

from dataclasses import dataclass, replace

from agenticiqa.programs.images import ImageSource, name_of, picklable
from agenticiqa.programs.images.files import one_line
from agenticiqa.programs.stages.question import DEFAULT_QUERY


@dataclass(frozen=True, repr=False)
class Job:
    """One image to judge, with its question and, if there is one, its reference.

    Images may be given in every way that ``images.sources`` lists. Jobs are equal if their images are; those with an
    array cannot be compared or hashed.

    ``resize_reference`` allows a reference of another size, which is scaled to the image's.
    """

    image: ImageSource
    query: str = DEFAULT_QUERY
    reference: ImageSource | None = None
    resize_reference: bool = False

    def __repr__(self) -> str:
        against = "" if self.reference is None else f", reference={name_of(self.reference)!r}"
        return f"Job({self.name!r}, {self.query!r}{against})"

    @property
    def name(self) -> str:
        """The image as results and messages name it: its path, printable, or ``<bytes>`` and the like."""
        return name_of(self.image)

    def picklable(self) -> "Job":
        """The same job, fit to be sent to another process. Raises ImageError for a file object that cannot be read."""
        reference = None if self.reference is None else picklable(self.reference)
        return replace(self, image=picklable(self.image), reference=reference)


def failure_text(job: Job, error: BaseException) -> str:
    """What went wrong with a job in one line that begins with the image's name, which is not repeated."""
    name, text = one_line(job.name), one_line(str(error))
    return text if text.startswith(f"{name}:") else f"{name}: {text}"
