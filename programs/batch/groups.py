"""Near duplicates in a folder: bursts, re-encodings and copies of other sizes, and the best of each group.

Nothing is moved or deleted: a group only says which photo is worth keeping, and why.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from agenticiqa.programs.images.phash import near_pairs

K = TypeVar("K", bound=Hashable)

AS_GOOD = 0.15  # of 1..5: a smaller difference of two scores says less than the number of pixels
SMALLER = 0.75  # share of the pixels, below which a copy looks sharper than the photo that it was made from,
FLATTERED = 0.5  # by up to this


@dataclass(frozen=True)
class AlbumPhoto:
    """What decides between near duplicates: hash, score in 1..5 if there is one, pixels, bytes, a short name."""

    hash: int
    score: float | None
    pixels: int
    bytes: int
    name: str


def grouped(candidates: Mapping[K, AlbumPhoto]) -> list[list[K]]:
    """The groups of two and more, in each the one to keep first, the others by score.

    Each photo is in one group at most: the best of those left, with all that differ from it in few bits. So a chain of
    frames that slowly changes is no group as a whole.
    """
    keys = list(candidates)
    near: dict[K, list[K]] = {key: [] for key in keys}
    for first, second in near_pairs([candidates[key].hash for key in keys]):
        near[keys[first]].append(keys[second])
        near[keys[second]].append(keys[first])
    groups, left = [], set(keys)
    for key in sorted(keys, key=lambda each: _score(candidates[each]), reverse=True):
        members = [key, *(other for other in near[key] if other in left)] if key in left else []
        left.difference_update(members)
        if len(members) > 1:
            good = [each for each in members if _is_as_good(candidates[each], candidates[key])]
            best = max(good, key=lambda each: (candidates[each].pixels, candidates[each].bytes))
            others = sorted(members, key=lambda each: _score(candidates[each]), reverse=True)
            groups.append([best, *(each for each in others if each != best)])
    return groups


def reasons(group: list[AlbumPhoto]) -> list[str]:
    """Why the first one of a group is kept, and for each other one why it is not."""
    best = group[0]
    scored = [each.score for each in group[1:] if each.score is not None]
    rivals = f", the others {min(scored):.2f} to {max(scored):.2f}" if len(scored) > 1 else ""
    rivals = f", the other {scored[0]:.2f}" if len(scored) == 1 else rivals
    kept = f"best of {len(group)}: {_shown(best)}{rivals}"
    return [kept, *(f"near copy of {best.name}: {_less(each, best)}" for each in group[1:])]


def _is_as_good(other: AlbumPhoto, top: AlbumPhoto) -> bool:
    allowance = FLATTERED if top.pixels < SMALLER * other.pixels else AS_GOOD
    return _score(other) >= _score(top) - allowance


def _less(other: AlbumPhoto, best: AlbumPhoto) -> str:
    if other.pixels < SMALLER * best.pixels:
        return f"smaller, {other.pixels / 1e6:.2g} for {best.pixels / 1e6:.2g} megapixels"
    if _score(other) < _score(best) - AS_GOOD:
        return f"{_shown(other)} for {_score(best):.2f}"
    return f"as good, {other.bytes:,} for {best.bytes:,} bytes" if other.bytes != best.bytes else "as good"


def _score(candidate: AlbumPhoto) -> float:
    return candidate.score or 0.0


def _shown(candidate: AlbumPhoto) -> str:
    return "no score" if candidate.score is None else f"score {candidate.score:.2f}"
