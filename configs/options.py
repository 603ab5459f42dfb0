"""The declaration of a command-line option, and the options that are also keys of the configuration.

A key is declared once, as a field of one of the classes below. ``Config`` inherits it, and each command that lists the
class accepts it as an option. The module is plain Python, so that --help does not load pydantic.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_type_hints

from annotated_types import Ge, MinLen

SMALLEST_SENT = 32  # pixels
SHORTEST = 0.001  # seconds


class Effect(Enum):
    """What another value of a key does to the results of a run; the annotation of each key declares it.

    The settings of a run, and with them its fingerprint, follow from it. There is no default: a key that is recorded
    without need makes a resumed run assess, and pay for, finished images again, and one that is missing mixes results
    of different settings.

    Attributes:
        ON_RESULTS: Results depend on the value, which is recorded.
        BY_CONTENT: Results depend on what the value names or sets; ``run_settings`` records that.
        NONE: Results stay the same, as with a limit or the address of a server; nothing is recorded.
    """

    ON_RESULTS = auto()
    BY_CONTENT = auto()
    NONE = auto()


class Writes(Enum):
    """What a command writes to the place that an option names; all other files and folders are read.

    Attributes:
        FILE: A file; ``-`` is stdout.
        RESULTS: A results file, with a summary beside it; ``-`` is stdout.
        PAGE: An HTML page.
        SHEET: An HTML page, with a folder of pictures beside it.
        FOLDER: Files in a folder.
        STDOUT: The option is a switch or a number, and the command prints what it asks for.
    """

    FILE = auto()
    RESULTS = auto()
    PAGE = auto()
    SHEET = auto()
    FOLDER = auto()
    STDOUT = auto()


@dataclass(frozen=True)
class Option:
    """An option or argument of a command.

    ``form`` is shown in the help, such as ``--max-side PIXELS``; a form without dashes is an argument. ``dest`` is the
    name of the value in the parsed arguments, by default the name of the flag. A switch has the ``type`` bool. With
    ``choices`` the value is one of them. With ``several`` the option can be repeated, and its value is a list. With
    ``key`` the option sets the key ``dest`` of the configuration. ``writes`` is set for each option that names or asks
    for an output: such places are checked before the first image, and two outputs on stdout are refused.

    ``with_shards`` says that the option has its effect in ``assess --parquet``, too, which keeps neither all images nor
    all results in memory. Any other option of ``assess`` is refused there. A key always has its effect, because it may
    also stand in the configuration.
    """

    form: str
    help: str
    type: Any = str
    default: Any = None
    nargs: str | int | None = None
    choices: tuple[str, ...] = ()
    dest: str = ""
    several: bool = False
    required: bool = False
    at_least: float | None = None
    key: bool = False
    writes: Writes | None = None
    with_shards: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags, such as ``--max-side``; empty for an argument."""
        return tuple(word for word in self.form.split() if word.startswith("-"))

    @property
    def unset(self) -> Any:
        """The value of an option that is not given; ``None`` for a key, so that the configuration decides."""
        return False if self.type is bool and not (self.key or self.several) else self.default

    @property
    def metavar(self) -> str:
        """The placeholder of the value, such as ``PIXELS``; empty for a switch."""
        return self.form if not self.flags else " ".join(self.form.split()[len(self.flags) :])

    @property
    def name(self) -> str:
        """The name of the value in the parsed arguments."""
        return self.dest or self.flags[-1].removeprefix("--").replace("-", "_")


@dataclass(frozen=True)
class Group:
    """Options under one title in the help; with ``one_of``, at most one of them can be given."""

    options: "Options"
    title: str | None = None
    about: str | None = None
    one_of: bool = False
    required: bool = False


Options: TypeAlias = "tuple[Option | Group, ...]"


def flat(options: Options) -> Iterator[Option]:
    """Yield the options, also those in groups."""
    for option in options:
        if isinstance(option, Group):
            yield from flat(option.options)
        else:
            yield option


def keys(fields: type) -> tuple[Option, ...]:
    """Return the options that the fields of a class declare; an option that is not given changes no key."""
    options = []
    for name, hint in get_type_hints(fields, include_extras=True).items():
        (option,) = (part for part in hint.__metadata__ if isinstance(part, Option))
        kind = next(part for part in (*get_args(hint.__origin__), hint.__origin__) if part is not type(None))
        choices = get_args(hint.__origin__) if isinstance(kind, str) else ()
        least = next((part.ge for part in hint.__metadata__ if isinstance(part, Ge)), None)
        kinds: dict[str, Any] = {"type": str if choices else kind, "choices": choices, "at_least": least}
        options.append(replace(option, dest=name, key=True, with_shards=True, **kinds))
    return tuple(options)


@dataclass(frozen=True)
class AdapterKey:
    """The adapter of the learned scorer.

    Attributes:
        adapter: A file that adapts the learned scorer to your labels, written by ``calibrate adapter``.
    """

    adapter: Annotated[
        str | None,
        Option(
            "--adapter FILE", "adapt the offline score to your own labels, with the file that `calibrate adapter` wrote"
        ),
        MinLen(1),
        Effect.BY_CONTENT,
    ] = None


@dataclass(frozen=True)
class FusionKey:
    """The fusion; a configuration may also have a section of it."""

    fusion: Annotated[
        str | None,
        Option(
            "--fusion FILE",
            "combine tools and model by this fusion profile, which `calibrate fusion` wrote. With paper in place "
            "of FILE, use equations 1 to 4 of the paper with the plain mean of every executed tool",
        ),
        MinLen(1),
    ] = None


@dataclass(frozen=True)
class ModelKeys:
    """The keys for requests to models.

    Attributes:
        mode: "full", or "fast" or "levels" for fewer calls (see ``Config.in_mode``).
        prompts: Tuned prompts: the folder that ``optimize`` wrote, or its ``prompts.json``.
        strict: Whether an image without a complete answer of the model is unscored.
        cache: Whether to reuse a model's earlier answers.
    """

    mode: Annotated[
        Literal["full", "fast", "levels"],
        Option(
            "--mode",
            "choose how often the model is called. With full, each stage calls it. With fast, there are at most two "
            "calls per image, and the other stages use only measurements. With levels, one call returns the "
            "probabilities of the five quality levels (default: full)",
        ),
        Effect.BY_CONTENT,
    ] = "full"
    prompts: Annotated[
        str | None,
        Option(
            "--prompts FILE",
            "use tuned prompts: the folder that `optimize` wrote, with its prompts and its fusion profile. With "
            "prompts.json in that folder, use only the prompts",
        ),
        MinLen(1),
        Effect.BY_CONTENT,
    ] = None
    strict: Annotated[
        bool,
        Option(
            "--strict",
            "use no part of an incomplete answer of the model, so that the image counts as unscored. By default, its "
            "score is marked and counted",
        ),
        Effect.ON_RESULTS,
    ] = False
    cache: Annotated[
        bool, Option("--no-cache", "send every request again instead of reusing cached answers"), Effect.NONE
    ] = True


@dataclass  # unfrozen: mypy takes the sections, which inherit it, for dataclasses that are not frozen
class RequestKeys:
    """The keys of requests to a model. Each section has its own; an option sets them for every section.

    Attributes:
        timeout: The time for one attempt, in seconds; by default that of the provider.
        max_tokens: The most tokens of an answer.
    """

    timeout: Annotated[
        float | None,
        Option(
            "--timeout SECONDS",
            "wait at most SECONDS for an answer of a model (default: 120; 600 for ollama, llamacpp and lmstudio)",
        ),
        Ge(SHORTEST),
        Effect.NONE,
    ] = None
    max_tokens: Annotated[
        int,
        Option(
            "--max-tokens N",
            "let an answer of a model have at most N tokens (default: 2048, or 512 for the final answer; more for "
            "models that reason)",
        ),
        Ge(1),
        Effect.ON_RESULTS,
    ] = 2048


@dataclass(frozen=True)
class SentKeys:
    """The keys for the copy of an image that a model receives.

    Attributes:
        max_side: The longest side of this copy, at least 32 pixels; by default images are not scaled.
        keep_metadata: Whether a JPEG, PNG or WebP is sent with its EXIF, XMP, IPTC, texts and thumbnails.
    """

    max_side: Annotated[
        int | None,
        Option(
            "--max-side PIXELS",
            "send a smaller copy to the model if the longer side of an image exceeds PIXELS. The model then assesses "
            "the copy, so its rating can change (default: no scaling)",
        ),
        Ge(SMALLEST_SENT),
        Effect.ON_RESULTS,
    ] = None
    keep_metadata: Annotated[
        bool,
        Option(
            "--keep-metadata",
            "send photos with their metadata, such as the GPS position. By default, it is taken out; the pixels stay "
            "unchanged",
        ),
        Effect.ON_RESULTS,
    ] = False


@dataclass(frozen=True)
class ImageKeys:
    """The keys for reading an image and its reference.

    Attributes:
        align: Whether to compare only what image and reference both show.
    """

    align: Annotated[
        bool,
        Option(
            "--align",
            "align image and reference first: detect and undo a shift, a crop or a change of scale, and compare the "
            "area that both show",
        ),
        Effect.ON_RESULTS,
    ] = False


@dataclass(frozen=True)
class ImageSettings(SentKeys, ImageKeys):
    """How image and reference are read and sent: one object, from the configuration to the code that loads them.

    A field of it is a key of the configuration and part of ``AgenticIQA.image_settings``.

    Attributes:
        max_pixels: The largest image in pixels (WebP: .6 of this); decoding needs 7 bytes per pixel (WebP: 16).
    """

    max_pixels: Annotated[int, Ge(1), Effect.NONE] = 205_000_000  # pixels of a phone's 200 megapixels


SECTION_KEYS = keys(RequestKeys)
KEYS = (*keys(AdapterKey), *keys(FusionKey), *keys(ModelKeys), *keys(SentKeys), *keys(ImageKeys))
