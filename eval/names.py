"""Names that users write on the command line, shared by the parsers and the code that they start."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Literal, TypeVar, get_args

T = TypeVar("T")

GROUPS = ("distortion", "level", "generator", "split")  # columns of labels that figures are broken down by
Part = Literal["planner", "detection", "analysis", "replan", "regions"]  # parts of the program that --ablate leaves out
PARTS: tuple[Part, ...] = get_args(Part)
TABLE_FORMS = ("markdown", "latex", "csv")
SCORER_FORMS = "the name of an embedded metric (agenticiqa tools), pyiqa:METRIC, or module:function"
MOS_RANGE_HELP = (
    "the scores that mean 1 and 5 (default: of 0..1, 1..5 and 0..100 the first that holds them all, if they fill a "
    "quarter of it)"
)
TUNED_STAGES = ("scoring", "answering", "planning", "detection", "all")
OPTIMIZERS = ("reflect", "gepa", "mipro", "simba", "bootstrap")


def plain(name: str) -> str:
    """Return a name without case, blanks and punctuation: "Image Name" and "image_name" are "imagename"."""
    return re.sub(r"[\W_]+", "", name).lower()


def named(name: str, known: Mapping[str, T]) -> T | None:
    """Return what has this name, whatever its case, blanks and hyphens; ``None`` without."""
    names = {plain(each): each for each in known}
    return known[name] if name in known else known.get(names.get(plain(name), ""))


def unknown_text(name: str, known: Iterable[str]) -> str:
    """Return what to say of a name that is none of the known ones: those that are like it, and all of them."""
    names, wanted = {plain(each): each for each in known}, plain(name)
    like = [each for each in names if wanted and (each.startswith(wanted) or wanted.startswith(each))]
    like = like or get_close_matches(wanted, names)
    meant = f" (did you mean {' or '.join(names[each] for each in like)}?)" if like else ""
    return f"no data set is named {name!r}{meant}; there are: {', '.join(names.values())}"
