"""Which columns hold what: by the names that the field uses, or by those that are given."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agenticiqa.programs.errors import UserError

IMAGE = ("image", "img", "image_path", "img_path", "image_name", "file_name", "filename")
MOS = ("mos", "score", "mean_opinion_score")
DMOS = "dmos"
OTHERS = ("reference", "mos_std", "distortion", "level", "split", "source", "content")
DECLARE = "add --lower-is-better if more damage scores higher, or --no-lower-is-better if not"


@dataclass(frozen=True)
class Declared:
    """What is said of labels beside them: the columns of image and score, the direction and the ends of the scale.

    ``lower_is_better`` is ``None`` where nothing is said, and then higher is better.
    """

    image: str | None = None
    mos: str | None = None
    lower_is_better: bool | None = None
    mos_range: tuple[float, float] | None = None


def columns_of(title: str, found: Collection[str], declared: Declared) -> Mapping[str, str]:
    """The column for each of image, mos and what else there is of ``OTHERS``, whatever the case of its letters.

    Raises UserError, with the columns found, where image or mos has none, and for a column dmos, which runs either way
    (KADID-10k's is higher for better images), without a declared direction.
    """
    by_lower_case = {name.lower(): name for name in reversed(list(found))}
    columns = {name: by_lower_case[name] for name in OTHERS if name in by_lower_case}
    for wanted, names, given in (("image", IMAGE, declared.image), ("mos", (*MOS, DMOS), declared.mos)):
        if given is not None and given not in found:
            raise UserError(f"{title}: there is no column {given!r}; columns in it: {', '.join(found)}")
        name = given or next((by_lower_case[name] for name in names if name in by_lower_case), None)
        if name is not None:
            columns[wanted] = name
    absent = [name for name in ("image", "mos") if name not in columns]
    if absent:
        raise UserError(
            f"{title}: expected the columns image and mos, found {', '.join(found) or 'an empty file'}; add "
            f"{' and '.join(absent)}, or name the column with {' and '.join(f'--{name}-column' for name in absent)}"
        )
    if columns["mos"].lower() == DMOS and declared.lower_is_better is None:
        raise UserError(f"{title}: a column {columns['mos']} runs either way: {DECLARE}")
    return columns


def text_of(cell: Any) -> str:
    """A cell as text, empty for an absent one."""
    return "" if cell is None else str(cell).strip()
