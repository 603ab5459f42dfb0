"""Write the page on which a person rates the photos of an album: which photos, in which order, and the HTML."""

import os
import random
import shlex
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from agenticiqa.programs.images.files import UNSEEN, digest, printable_path, sha256_of, write_atomically
from agenticiqa.programs.images.loading import load_pixels
from agenticiqa.programs.images.own import encode
from agenticiqa.programs.page.csv_text import BEFORE_FORMULA
from agenticiqa.programs.page.ranked_images import SHOWN_BY_BROWSERS
from agenticiqa.programs.page.render import inline, render
from agenticiqa.programs.page.sheet import link_to
from agenticiqa.programs.page.thumbnails import folder_beside, stem_of

PRACTICE_RANKS = (0.05, 0.5, 0.95)  # shares of the photos with a lower score
REPEATS = 6  # showings that come twice
LONGEST_WEBP = 16_383  # pixels of a side, a limit of the format


class ScoredPhoto(NamedTuple):
    """A photo of the album, with its predicted score on 1..5, and its scene: the name of its reference, if any."""

    score: float
    path: Path
    scene: str = ""


class Showing(NamedTuple):
    """One photo, or two side by side, at its place in the order of the page.

    Practice is not counted. ``repeat`` is 1 at the second time that the same photos are shown, else 0.
    """

    paths: tuple[Path, ...]
    is_practice: bool = False
    repeat: int = 0


def chosen(scored: Sequence[ScoredPhoto], count: int, seed: int) -> list[ScoredPhoto]:
    """Return ``count`` photos at random, stratified by score: one of each ``count`` equal parts of the ranking."""
    ranked, rng = sorted(scored), random.Random(seed)
    count = min(count, max(len(ranked), 1))
    ends = [len(ranked) * part // count for part in range(count + 1)]
    return [rng.choice(ranked[first:end]) for first, end in pairwise(ends) if first < end]


def pairs_of_scenes(scored: Sequence[ScoredPhoto], count: int, seed: int) -> list[tuple[ScoredPhoto, ScoredPhoto]]:
    """Return at most ``count`` pairs at random, each of two copies of one scene with neighboring scores."""
    scenes: dict[str, list[ScoredPhoto]] = {}
    for photo in sorted(scored):
        scenes.setdefault(photo.scene, []).append(photo)
    pairs = [pair for copies in scenes.values() for pair in pairwise(copies)]
    return random.Random(seed).sample(pairs, min(count, len(pairs)))


def showings(scored: Sequence[ScoredPhoto], count: int, seed: int, *, in_pairs: bool = False) -> list[Showing]:
    """Return ``count`` photos, or pairs, in the order in which the page shows them, which the seed determines.

    The photos of a pair have neighboring scores, and show one scene if the photos have scenes. Three practice photos
    that span the range of scores come first, or three pairs. They also come later only if the album has too few other
    photos. What is shown twice comes in the first and in the last third of the order, so that the rater has forgotten
    the first rating.
    """
    size, ranked, rng = 2 if in_pairs else 1, sorted(scored), random.Random(seed)
    practice = [*dict.fromkeys(ranked[round(share * (len(ranked) - 1))] for share in PRACTICE_RANKS if ranked)]
    others = [photo for photo in ranked if photo not in practice]
    wanted = count + size - 1
    photos = sorted(chosen(others if len(others) >= wanted else ranked, wanted, seed))
    shown = [rng.sample(photos[start : start + size], size) for start in range(len(photos) - size + 1)]
    rng.shuffle(practice)
    first: Sequence[tuple[ScoredPhoto, ...]] = [*combinations(practice, size)]
    if in_pairs and any(photo.scene for photo in scored):
        pairs = pairs_of_scenes(scored, count + len(PRACTICE_RANKS), seed)
        tried = min(len(PRACTICE_RANKS), len(pairs) // 4)
        first, shown = pairs[:tried], [rng.sample(pair, size) for pair in pairs[tried:]]
    rng.shuffle(shown)
    once = [Showing(tuple(photo.path for photo in each)) for each in shown]
    third = len(once) // 3
    twice = [Showing(each.paths[::-1], repeat=1) for each in rng.sample(once[:third], min(REPEATS, third))]
    last = once[len(once) - third :] + twice
    rng.shuffle(last)
    practiced = [Showing(tuple(photo.path for photo in each), is_practice=True) for each in first]
    return [*practiced, *once[: len(once) - third], *last]


def address_for(photo: Path, page: Path) -> str:
    """Return the address of a photo for the page, relative to it except on another drive of Windows.

    If browsers cannot show the format, a lossless WebP is written beside the page. Raises ImageError and OSError.
    """
    linked = link_to(os.fspath(photo), page) or photo.absolute().as_uri()
    if photo.suffix.lower() in SHOWN_BY_BROWSERS:
        return linked
    pixels = Image.fromarray(load_pixels(photo))
    if max(pixels.size) > LONGEST_WEBP:
        return linked  # some browsers show TIFF or HEIC
    folder, name = folder_beside(page), f"{stem_of(sha256_of(photo))}_full.webp"
    folder.mkdir(parents=True, exist_ok=True)
    # Without loss, quality and method change only the time and the size: 0 is the fastest.
    write_atomically(folder / name, encode(pixels, "WEBP", quality=0, method=0, lossless=True))
    return str(link_to(os.fspath(folder / name), page))


def rating_page(order: Sequence[Showing], album: Path, seed: int, page: Path) -> str:
    """Return the HTML of the file ``page``, which shows photos in this order and downloads a table of the ratings.

    The page stores ratings in the browser under its id, so another album, order or seed begins without ratings. Writes
    copies and raises as ``address_for``.
    """
    addresses = {
        path: address_for(path, page) for path in sorted({path for showing in order for path in showing.paths})
    }
    shown = [
        {
            "images": [printable_path(os.path.relpath(path, album).replace(os.sep, "/")) for path in showing.paths],
            "addresses": [addresses[path] for path in showing.paths],
            "practice": showing.is_practice,
            "repeat": showing.repeat,
        }
        for showing in order
    ]
    name, file = printable_path(album.resolve().name), "pairs.csv" if len(order[0].paths) == 2 else "labels.csv"
    place = f"{name}/{file}"
    names = {
        "title": f"Rate photos: {name}",
        "album": name,
        "file": file,
        "argument": shlex.quote(f"./{place}" if place.startswith("-") else place),
        "is_quoted": shlex.quote(place) != place,
    }
    csv = {"unseen": UNSEEN, "beforeFormula": BEFORE_FORMULA}
    data = {"id": digest([os.path.abspath(album), shown, seed]), "showings": shown, "csv": csv}
    return render("page/rate.html", {**names, **data, "own_style": inline("rate.css"), "script": inline("rate.js")})
