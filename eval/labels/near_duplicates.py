"""Nearly equal images that count as different scenes, by a perceptual hash."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.programs.images.phash import near_pairs, phash

MOST_IMAGES = 20_000  # more are not compared

Watch = Callable[[Iterable[Path], int], Iterable[Path]]


def near_duplicates(
    labels: Sequence[LabeledImage], watch: Watch = lambda paths, total: paths
) -> list[tuple[Path, Path]] | None:
    """Pairs of nearly equal images that are of different contents, or of different splits.

    Where there is a reference it stands for its copies. ``watch`` wraps the files, for progress. ``None`` for more than
    ``MOST_IMAGES`` files, which are not compared.
    """
    use: dict[Path, set[tuple[str, str | None]]] = {}
    for label in labels:
        use.setdefault(label.reference or label.image, set()).add((label.content, label.split))
    if len(use) > MOST_IMAGES:
        return None
    hashes = {path: found for path in watch(use, len(use)) if (found := phash(path)) is not None}
    paths = list(hashes)
    return [
        (paths[a], paths[b]) for a, b in near_pairs(list(hashes.values())) if len(use[paths[a]] | use[paths[b]]) > 1
    ]


def near_duplicates_doubt(pairs: Sequence[tuple[Path, Path]] | None) -> str | None:
    """One line about what ``near_duplicates`` found; ``None`` if nothing."""
    if pairs is None:
        return f"among more than {MOST_IMAGES:,} images nearly equal ones are not looked for"
    if not pairs:
        return None
    a, b = pairs[0]
    return (
        f"nearly equal images count as different scenes or are in different splits ({len(pairs)} found, such as {a} "
        f"and {b}): if they show one scene, give them one content, or intervals are too narrow"
    )
