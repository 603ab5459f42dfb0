"""Names that users write on the command line, shared by the parsers and the code that they start."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Literal, TypeVar, get_args

from agenticiqa.configs.spelling import SIMILARITY

T = TypeVar("T")

GROUPS = ("distortion", "level", "generator", "split")  # columns of labels by which figures are grouped
SCORER_FORMS = (
    "the name of an embedded metric (see agenticiqa tools), pyiqa:METRIC, module:function, or scores that you have: "
    "column:NAME of the labels, or file:TABLE (file:TABLE:COLUMN) with an image in each row"
)
MOS_RANGE_HELP = (
    "map LOW to 1 (bad) and HIGH to 5 (excellent). Default: the first of 0..1, 1..5 and 0..100 that contains all "
    "scores. If the scores cover less than a quarter of it, give this option"
)
Stage = Literal["scoring", "answering", "detection", "all"]
Optimizer = Literal["reflect", "gepa"]
OPTIMIZERS: tuple[Optimizer, ...] = get_args(Optimizer)


def plain(name: str) -> str:
    """Return a name in lower case without blanks and punctuation: "Image Name" and "image_name" give "imagename"."""
    return re.sub(r"[\W_]+", "", name).lower()


def named(name: str, known: Mapping[str, T]) -> T | None:
    """Return the entry with this name, ignoring case, blanks and hyphens; ``None`` if there is none."""
    names = {plain(key): key for key in known}
    return known[name] if name in known else known.get(names.get(plain(name), ""))


def unknown_text(name: str, known: Iterable[str]) -> str:
    """Return a message about an unknown name: the most similar known names, and all known names."""
    names, wanted = {plain(key): key for key in known}, plain(name)
    similar = [key for key in names if wanted and (key.startswith(wanted) or wanted.startswith(key))]
    similar = similar or get_close_matches(wanted, names, cutoff=SIMILARITY)
    suggestion = f" (did you mean {' or '.join(names[key] for key in similar)}?)" if similar else ""
    return f"no data set is named {name!r}{suggestion}; known names: {', '.join(names.values())}"
