"""How an option of the command line is declared, and the options that are keys of the configuration as well.

A key is declared once, as a field of one of the classes below: ``Config`` inherits it, and the commands that list the
class take it as an option. Plain Python, as --help has no use for pydantic.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_type_hints

from annotated_types import Ge, MinLen

SMALLEST_SENT = 32  # pixels


@dataclass(frozen=True)
class Option:
    """An option or argument of a command.

    ``form`` is what the help shows, as in ``--max-side PIXELS``; without dashes it is an argument. ``dest`` is the name
    of its value, by default that of the flag. A switch is of ``type`` bool. With ``choices`` the value is one of them;
    with ``several`` the option can be given more than once, and its value is a list. ``key`` says that it sets the key
    ``dest`` of the configuration.
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

    @property
    def flags(self) -> tuple[str, ...]:
        """``--max-side``; none of an argument."""
        return tuple(word for word in self.form.split() if word.startswith("-"))

    @property
    def unset(self) -> Any:
        """The value of an option that is not given; ``None`` of a key, which stays as the configuration has it."""
        return False if self.type is bool and not (self.key or self.several) else self.default

    @property
    def metavar(self) -> str:
        """What stands for its value, ``PIXELS``; empty for a switch."""
        return self.form if not self.flags else " ".join(self.form.split()[len(self.flags) :])

    @property
    def name(self) -> str:
        """The name of its value."""
        return self.dest or self.flags[-1].removeprefix("--").replace("-", "_")


@dataclass(frozen=True)
class Group:
    """Options with a title of their own in the help, or of which at most ``one_of`` can be given."""

    options: "Options"
    title: str | None = None
    about: str | None = None
    one_of: bool = False
    required: bool = False


Options: TypeAlias = "tuple[Option | Group, ...]"


def flat(options: Options) -> Iterator[Option]:
    """Yield the options, also those in groups."""
    for each in options:
        if isinstance(each, Group):
            yield from flat(each.options)
        else:
            yield each


def keys(fields: type) -> tuple[Option, ...]:
    """Return the options that the fields of a class declare, with their types; unless given, none changes a key."""
    found = []
    for name, hint in get_type_hints(fields, include_extras=True).items():
        (option,) = (each for each in hint.__metadata__ if isinstance(each, Option))
        kind = next(each for each in (*get_args(hint.__origin__), hint.__origin__) if each is not type(None))
        choices = get_args(hint.__origin__) if isinstance(kind, str) else ()
        least = next((each.ge for each in hint.__metadata__ if isinstance(each, Ge)), None)
        kinds: dict[str, Any] = {"type": str if choices else kind, "choices": choices, "at_least": least}
        found.append(replace(option, dest=name, key=True, **kinds))
    return tuple(found)


@dataclass
class AdapterKey:
    """The adapter of the learned scorer."""

    adapter: Annotated[
        str | None, Option("--adapter FILE", "score by your own labels: what calibrate --adapt wrote"), MinLen(1)
    ] = None


@dataclass
class ModelKeys:
    """How models are asked."""

    profile: Annotated[
        Literal["full", "fast", "levels"],
        Option(
            "--profile",
            "fast: at most two calls to a model per image, measurements instead of the others; levels: one, for the "
            "probabilities of five words, and no agent (default: full)",
        ),
    ] = "full"
    max_side: Annotated[
        int | None,
        Option(
            "--max-side PIXELS",
            "send scaled-down copies of larger images to a model, which changes their quality (default: no scaling)",
        ),
        Ge(SMALLEST_SENT),
    ] = None
    prompts: Annotated[
        str | None,
        Option(
            "--prompts FILE",
            "tuned prompts: the folder that optimize wrote, whose fusion profile is used too, or its prompts.json",
        ),
        MinLen(1),
    ] = None
    cache: Annotated[bool, Option("--no-cache", "do not reuse a model's earlier answers")] = True


@dataclass
class ImageKeys:
    """How an image and its reference are read."""

    align: Annotated[
        bool,
        Option(
            "--align",
            "compare what image and reference both show: a shift, a crop or another scale is found and undone",
        ),
    ] = False


KEYS = (*keys(AdapterKey), *keys(ModelKeys), *keys(ImageKeys))
