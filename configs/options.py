"""The declaration of a command-line option, and the options that are also keys of the configuration.

A key is declared once, as a field of one of the classes below. ``Config`` inherits it, and each command that lists the
class accepts it as an option. The module is plain Python, so that --help does not load pydantic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, replace
from dataclasses import fields as dataclass_fields
from enum import Enum, auto
from inspect import get_annotations
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

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


@dataclass(frozen=True)
class Follows:
    """The mark of a key of a section that means something only together with another key, such as an address.

    A section that sets one of the ``leaders`` itself does not take over this key from the top of the configuration.
    """

    leaders: tuple[str, ...]


class Of(Enum):
    """The mark of a key that is replaced or taken over together with others.

    Attributes:
        SERVER: The key is about the server, so that the section ``levels`` takes it over.
        PROFILE: A fusion profile sets the value instead.
    """

    SERVER = auto()
    PROFILE = auto()


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
class Group:
    """Options under one title in the help; with ``one_of``, at most one of them can be given."""

    title: str | None = None
    about: str | None = None
    one_of: bool = False
    required: bool = False


@dataclass(frozen=True)
class Option:
    """An option or argument of a command, in the annotation of the field that holds its value.

    ``form`` is shown in the help, such as ``--max-side PIXELS``; a form without dashes is an argument. ``nargs`` is
    that of argparse, for an argument. The value is one of ``choices``, if given. A ``counted`` switch can be repeated,
    and one with ``negatable`` has a second form with "no". ``writes`` is set for each option that names or asks for an
    output: such places are checked before the first image, and two outputs on stdout are refused.

    ``needs`` is the form of another option, such as ``--parquet DIR``, without which this one has no effect; it is then
    refused.

    ``with_shards`` says that the option has its effect in ``assess --parquet``, too, where neither all images nor all
    results are in memory. Any other option of ``assess`` is refused there. A key always has its effect, because it may
    also stand in the configuration.

    The other attributes follow from the field: its ``name``; the ``type`` of its value, or of each in a list, by which
    a switch is a bool; its ``default``; whether it is ``required``; the bound ``at_least`` from ``Ge``; ``groups``, the
    outermost first; and ``key``, whether it sets the key of this name in the configuration. With ``several`` the
    option can be repeated, and its value is a list.
    """

    form: str
    help: str
    nargs: str | int | None = None
    choices: tuple[str, ...] = ()
    counted: bool = False
    negatable: bool = False
    writes: Writes | None = None
    needs: str = ""
    with_shards: bool = False
    name: str = ""
    type: Any = str
    default: Any = None
    required: bool = False
    several: bool = False
    at_least: float | None = None
    groups: tuple[Group, ...] = ()
    key: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags, such as ``--max-side``; empty for an argument."""
        return tuple(word for word in self.form.split() if word.startswith("-"))

    @property
    def metavar(self) -> str:
        """The placeholder of the value, such as ``PIXELS``; empty for a switch."""
        return self.form if not self.flags else " ".join(self.form.split()[len(self.flags) :])


@dataclass(frozen=True)
class Keys:
    """Keys of the configuration that a command has as options, in the annotation of the field before them."""

    declared_in: tuple[type, ...]
    groups: tuple[Group, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Arguments:
    """The options and arguments of a command: a subclass declares one in the annotation of each field.

    Attributes:
        argv: All words of the command line.
        keys: The keys of the configuration that options set, by name; an option that is not given sets none.
    """

    argv: Sequence[str] = ()
    keys: Mapping[str, Any] = field(default_factory=dict)


def options_of(arguments: type[Arguments]) -> tuple[Option, ...]:
    """Return the options of a command: those that the class adds, then those of its bases, in their order.

    A field that the class declares anew, with another help or group, keeps its place.
    """
    hints, options = get_type_hints(arguments, include_extras=True), []
    defaults = {each.name: _default(each) for each in dataclass_fields(arguments)}
    added = {base: get_annotations(base).keys() - _inherited(base) for base in arguments.__mro__}
    names = [name for base in arguments.__mro__ for name in get_annotations(base) if name in added[base]]
    for name in names:
        marks = getattr(hints[name], "__metadata__", ())
        groups = tuple(mark for mark in marks if isinstance(mark, Group))
        for mark in marks:
            if isinstance(mark, Keys):
                options += [replace(key, groups=mark.groups) for each in mark.declared_in for key in keys(each)]
            elif isinstance(mark, Option):
                option, default = _of_field(mark, name, hints[name]), defaults[name]
                known: dict[str, Any] = {"required": True} if default is MISSING else {"default": default}
                options.append(replace(option, groups=groups, **known))
    return tuple(options)


def _inherited(arguments: type) -> set[str]:
    return {name for base in arguments.__mro__[1:] for name in get_annotations(base)}


def _default(of: Field[Any]) -> Any:
    return of.default if of.default_factory is MISSING else of.default_factory()


def keys(declared_in: type) -> tuple[Option, ...]:
    """Return the options for the keys that the fields of a class declare; they have no default."""
    hints = get_type_hints(declared_in, include_extras=True)
    return tuple(
        replace(_of_field(mark, name, hint), key=True, with_shards=True)
        for name, hint in hints.items()
        for mark in hint.__metadata__
        if isinstance(mark, Option)
    )


def _of_field(option: Option, name: str, hint: Any) -> Option:
    """Return an option with what the annotation of its field says."""
    kind = next(part for part in (*get_args(hint.__origin__), hint.__origin__) if part is not type(None))
    choices = option.choices
    if get_origin(hint.__origin__) is Literal:
        kind, choices = str, get_args(hint.__origin__)
    several = list in (get_origin(hint.__origin__), get_origin(kind))
    if get_origin(kind) is list:
        (kind,) = get_args(kind)
    least: Any = next((mark.ge for mark in hint.__metadata__ if isinstance(mark, Ge)), None)
    return replace(option, name=name, type=kind, choices=choices, several=several, at_least=least)


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


@dataclass(frozen=True)
class LimitKeys:
    """The keys that limit the requests to models.

    Attributes:
        max_calls: The most calls; by default there is no limit.
        max_usd: The most US dollars; by default there is no limit.
    """

    max_calls: Annotated[
        int | None,
        Option("--max-calls N", "stop before more than N calls to a model (default: no limit)"),
        Ge(0),
        Effect.NONE,
    ] = None
    max_usd: Annotated[
        float | None,
        Option("--max-usd M", "stop before the cost exceeds M US dollars (default: no limit)"),
        Ge(0),
        Effect.NONE,
    ] = None


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
        Of.SERVER,
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
KEYS = (
    *keys(AdapterKey),
    *keys(FusionKey),
    *keys(ModelKeys),
    *keys(SentKeys),
    *keys(ImageKeys),
    *keys(LimitKeys),
)
