"""The page for rating photos: which photos, in which order, and its use in a browser."""

import csv
import io
import json
import subprocess
import tracemalloc
from collections import Counter
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.programs.images.files import printable_path
from agenticiqa.programs.images.own import is_own
from agenticiqa.programs.page import rating
from agenticiqa.programs.page.csv_text import csv_text
from agenticiqa.programs.page.rating import ScoredPhoto, Showing, address_for, chosen, rating_page, showings
from support.chromium import Input, needs_chromium, visit
from support.html_tags import from_elsewhere, read
from support.odd_names import FORMULAS, HIDDEN, ODD_NAMES

MARKED_NAMES = ["a #1.png", "b 100%.png", "c \"quoted\", 'so'.png", "d Ü ß.png", "e <b>&amp;.png", "under/f.png"]


def album_of(count: int) -> list[ScoredPhoto]:
    return [ScoredPhoto(1 + 4 * number / count, Path(f"album/{number:03}.jpg")) for number in range(count)]


@pytest.mark.parametrize(("there", "wanted"), [(300, 60), (60, 60), (61, 60), (5, 60), (1, 1)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_each_part_of_the_ranking_gives_one_photo(there: int, wanted: int, seed: int) -> None:
    album = album_of(there)
    found = chosen(album[::-1], wanted, seed)
    assert len({*found}) == len(found) == min(there, wanted)
    for part, photo in enumerate(found):
        first, end = there * part // len(found), there * (part + 1) // len(found)
        assert photo in album[first:end]


def test_more_photos_than_the_album_has_take_no_memory() -> None:
    album = [ScoredPhoto(score, Path(f"{score}.png")) for score in (1.0, 2.0, 3.0)]
    tracemalloc.start()
    try:
        assert chosen(album, 10**6, seed=0) == album
        assert len(showings(album, 10**6, seed=0)) == len(showings(album, 100, seed=0))
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_the_seed_determines_photos_and_order() -> None:
    album = album_of(300)
    assert showings(album, 60, 7) == showings(album[::-1], 60, 7)
    assert showings(album, 60, 7) != showings(album, 60, 8)
    middle = [photo.paths for photo in showings(album, 60, 7)[3:40]]
    assert middle not in (sorted(middle), sorted(middle)[::-1]), "not by score"
    assert {photo.paths for photo in showings(album, 60, 7)} != {photo.paths for photo in showings(album, 60, 8)}


@pytest.mark.parametrize(
    ("there", "wanted", "practice", "once", "twice"),
    [
        (300, 60, 3, 60, 6),
        (300, 300, 3, 300, 6),
        (63, 60, 3, 60, 6),
        (62, 60, 3, 60, 6),
        (12, 60, 3, 12, 4),
        (2, 60, 2, 2, 0),
        (1, 60, 1, 1, 0),
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_practice_comes_first_and_repeats_are_far_apart(
    there: int, wanted: int, practice: int, once: int, twice: int, seed: int
) -> None:
    order = showings(album_of(there), wanted, seed)
    first, rest = order[:practice], order[practice:]
    assert all(photo.is_practice for photo in first)
    assert not any(photo.is_practice for photo in rest)
    ranks = sorted(int(photo.paths[0].stem) / max(1, there - 1) for photo in first)
    assert len({*ranks}) == practice
    if there > 10:
        assert ranks == pytest.approx([0.05, 0.5, 0.95], abs=0.05)
    places: dict[Path, list[int]] = {}
    for place, photo in enumerate(rest):
        assert photo.repeat == len(places.setdefault(photo.paths[0], []))
        places[photo.paths[0]].append(place)
    assert Counter(map(len, places.values())) == Counter({1: once - twice, 2: twice}) - Counter()
    assert all(pair[1] - pair[0] >= once / 3 for pair in places.values() if len(pair) == 2)
    if there >= once + practice:
        assert not {photo.paths[0] for photo in first} & {*places}, "practice photos are not rated"


def test_a_photo_that_browsers_cannot_show_is_copied_without_loss(tmp_path: Path, monkeypatch: Any) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    (tmp_path / "album").mkdir()
    for name in ("a #1.tiff", "b.png"):
        Image.fromarray(pixels).save(tmp_path / "album" / name)
    page = tmp_path / "my page.html"
    address = address_for(tmp_path / "album/a #1.tiff", page)
    (copy,) = (tmp_path / "my page_files").iterdir()
    assert address == f"./my%20page_files/{copy.name}"
    assert np.array_equal(np.asarray(Image.open(copy)), pixels)
    assert is_own(copy), "a copy is never taken for a photo of the album"
    assert address_for(tmp_path / "album/b.png", page) == "./album/b.png"
    monkeypatch.setattr(rating, "LONGEST_WEBP", 59)
    assert address_for(tmp_path / "album/a #1.tiff", page) == "./album/a%20%231.tiff"


def make_page(folder: Path, names: list[str], size: tuple[int, int] = (60, 40), practice: int = 1) -> Path:
    """Write an album and its page: the first photos are for practice, and the first counted one comes again last."""
    order = [Showing((folder / "album" / name,), number < practice) for number, name in enumerate(names)]
    order.append(Showing(order[practice].paths, repeat=1))
    for number, showing in enumerate(order[:-1]):
        showing.paths[0].parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (20 * number % 256, 90, 200)).save(showing.paths[0])
    page = folder / "rate.html"
    page.write_text(rating_page(order, folder / "album", 0, page), encoding="utf-8")
    return page


def test_names_are_escaped_and_nothing_comes_from_elsewhere(tmp_path: Path) -> None:
    text = make_page(tmp_path, [*MARKED_NAMES, "</script><script>alert(1)</script>.png".replace("/", "")]).read_text()
    page = read(text)
    assert (page.tags.count("script"), page.handlers, from_elsewhere(text)) == (2, [], [])
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert [photo["images"][0] for photo in data["showings"]][:6] == MARKED_NAMES
    assert data["showings"][1]["addresses"] == ["./album/b%20100%25.png"]
    assert [photo["practice"] for photo in data["showings"]] == [True] + [False] * 7


def test_the_id_of_a_page_depends_on_album_photos_and_seed(tmp_path: Path) -> None:
    order, page = [Showing((tmp_path / name,)) for name in ("a.png", "b.png")], tmp_path / "rate.html"
    pages = [
        rating_page(order, tmp_path, 0, page),
        rating_page(order, tmp_path, 1, page),
        rating_page(order[::-1], tmp_path, 0, page),
        rating_page(order, tmp_path / "album", 0, page),
    ]
    ids = {json.loads(page.partition('id="data">')[2].partition("</script>")[0])["id"] for page in pages}
    assert len(ids) == 4
    assert rating_page(order, tmp_path, 0, page) == pages[0]


# In the browser.
SHOWN = "new Promise((done) => { const wait = () => shownAt === null ? setTimeout(wait, 10) : done(); wait(); })"
START = "document.getElementById('rater').value = 'Änne \"A\", B'; document.querySelector('#begin button').click();"
PLACE = "[place.textContent, decodeURI(stage.querySelector('img').src.split('/').pop())]"
CODES = {"Backspace": "Backspace"}


def press(key: str, *, shift: bool = False) -> list[Input | str]:
    code = CODES.get(key) or (f"Digit{key}" if key.isdigit() else f"Key{key.upper()}")
    event = {"key": "#" if shift else key, "code": code, "modifiers": 8 if shift else 0}
    return [*(("KeyEvent", {"type": kind, **event}) for kind in ("keyDown", "keyUp"))]


def rated(*keys: str) -> list[Input | str]:
    """Return the steps that rate one photo after the other, each when it is shown; ``3+`` is half a step higher."""
    steps: list[Input | str] = []
    for key in keys:
        steps += [SHOWN, *press(key[0], shift=key.endswith("+"))]
    return steps


def tap(selector: str) -> str:
    return f"document.querySelector('{selector}').click()"


def downloads_to(folder: Path) -> Input:
    return "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}


WAIT = "new Promise((done) => setTimeout(done, 500))"


@needs_chromium
@pytest.mark.slow
def test_keys_rate_photos_and_the_end_downloads_labels(tmp_path: Path) -> None:
    page = make_page(tmp_path, ["practice.png", *MARKED_NAMES])
    down = downloads_to(tmp_path)
    held: list[Input | str] = [("KeyEvent", {"type": "keyDown", "key": "1", "code": "Digit1", "autoRepeat": True})]
    seen = visit(page, down, START, SHOWN, *held, *rated("1", "3+", "5+", "2", "s", "5", "1+", "4"), WAIT, "end.hidden")
    assert seen.errors == []
    assert seen.values[-1] is False
    assert all(address.startswith(("file:", "data:", "blob:")) for address in seen.requests)
    text = (tmp_path / "labels.csv").read_bytes().decode()
    assert text.startswith("\ufeffimage,mos,rater,seconds,repeat\r\n")
    rows = [*csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))]
    expected = [3.5, 5, 2, None, 5, 1.5, 4]
    names = [*MARKED_NAMES, MARKED_NAMES[0]]
    assert [(row["image"], float(row["mos"])) for row in rows] == [
        (name, mos) for name, mos in zip(names, expected, strict=True) if mos is not None
    ], "without practice and skipped photos"
    assert {row["rater"] for row in rows} == {'Änne "A", B'}
    assert [row["repeat"] for row in rows] == ["0"] * 5 + ["1"]
    assert all(0 <= float(row["seconds"]) < 60 for row in rows)
    (tmp_path / "album/labels.csv").write_text(text.rpartition("\r\na #1.png")[0], encoding="utf-8")
    labels = read_labels(tmp_path / "album/labels.csv")
    assert [label.mos for label in labels] == [3.5, 5, 2, 5, 1.5]


@needs_chromium
@pytest.mark.slow
def test_the_page_writes_cells_as_the_program_does(tmp_path: Path) -> None:
    texts = [*FORMULAS, *HIDDEN, *ODD_NAMES, 'größer, "x"', "a;b", "x;\t=1"]
    seen = visit(make_page(tmp_path, ["practice.png", "a.png"]), *(f"cell({json.dumps(text)})" for text in texts))
    assert [*map(printable_path, seen.values)] == [csv_text([[text, 1]]).removesuffix(",1\r\n") for text in texts]


def test_the_page_has_names_that_can_be_read_back(tmp_path: Path) -> None:
    text = make_page(tmp_path, ["practice.png", "caf\udce9.png"]).read_text()
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert data["showings"][1]["images"] == [r"caf\xe9.png"]
    assert data["showings"][1]["addresses"] == ["./album/caf%E9.png"]


@needs_chromium
@pytest.mark.slow
def test_a_reload_continues_and_back_corrects(tmp_path: Path) -> None:
    page = make_page(tmp_path, ["practice.png", "a.png", "b.png", "c.png", "d.png"])
    steps = [START, *rated("1", "4", "2"), SHOWN, PLACE, ("Page.reload", {}), tap("#begin button"), SHOWN, PLACE]
    steps += [*press("Backspace"), *press("Backspace"), SHOWN, PLACE, *rated("1+"), SHOWN, PLACE, "rows()"]
    seen = visit(page, *steps)
    assert seen.errors == []
    places = [value for value in seen.values if isinstance(value, list)]
    assert places[:4] == [
        ["3 of 5", "c.png"],
        ["3 of 5", "c.png"],
        ["1 of 5, rated 4", "a.png"],
        ["3 of 5", "c.png"],
    ], "the corrected rating is followed by the first open one"
    assert [row[:2] for row in places[4]] == [["a.png", 1.5], ["b.png", 2]]
    other = visit(page, START.replace("Änne", "Ben"), SHOWN, "rows()")
    assert other.values[-1] == [], "another rater begins without ratings"


@needs_chromium
@pytest.mark.slow
def test_a_reload_shows_the_answers_so_far_and_a_corrected_name_keeps_them(tmp_path: Path) -> None:
    page = make_page(tmp_path, ["practice.png", "a.png", "b.png", "c.png"])
    texts = "['#kept', '#begin button', '#correct'].map((name) => document.querySelector(name))"
    texts += ".map((element) => element.hidden || element.textContent)"
    named = "nameField.value = '{}'; nameField.dispatchEvent(new Event('input'));".format
    steps = [texts, named("Nroa"), tap("#begin button"), *rated("1", "4", "2"), ("Page.reload", {}), texts]
    steps += [named("Nora"), texts, tap("#correct"), SHOWN, PLACE, "[...raters.keys()]", "rows()"]
    seen = visit(page, *steps)
    assert seen.errors == []
    kept = "Answers so far in this browser: Nroa 2 of 4."
    assert [value for value in seen.values if isinstance(value, list)] == [
        [True, "Start", True],
        [kept, "Continue", True],
        [kept, "Start", "Correct the name Nroa to Nora, and continue"],
        ["3 of 4", "c.png"],
        ["Nora"],
        [["a.png", 4, "Nora", seen.values[-1][0][3], 0], ["b.png", 2, "Nora", seen.values[-1][1][3], 0]],
    ]


@pytest.mark.parametrize("name", ["a b", "$(touch here)", "`touch here`", 'a"b', "it's", "-x", "$HOME", "a;touch here"])
def test_the_command_to_copy_names_the_file_and_runs_nothing_else(name: str, tmp_path: Path) -> None:
    order = [Showing((tmp_path / name / "a.png",))]
    text = rating_page(order, tmp_path / name, 0, tmp_path / "rate.html")
    command = unescape(text.partition("<pre>agenticiqa ")[2].partition("</pre>")[0])
    printed = subprocess.run(
        ["/bin/sh", "-c", rf"printf '%s\n' {command}"], cwd=tmp_path, capture_output=True, text=True
    )
    place = f"{'./' if name.startswith('-') else ''}{name}/labels.csv"
    assert printed.stdout.splitlines() == ["calibrate", "adapter", place, "--out", "mine.npz"]
    assert not (tmp_path / "here").exists()
    assert ("Command Prompt" in text) is (name != "-x")


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_has_five_buttons_and_no_sideways_scrolling(tmp_path: Path, dark: bool) -> None:
    page = make_page(tmp_path, ["practice.png", "a.png", "b.png"])
    box = "(() => { const b = document.querySelector('.scale button:nth-child(4)').getBoundingClientRect();"
    box += "return [b.left + b.width / 2, b.top + b.height / 2, b.width, b.height]; })()"
    first = visit(page, START, SHOWN, box, width=390, height=844, dark=dark)
    x, y, width, height = first.values[-1]
    assert min(width, height) >= 44, "large enough for a finger"
    touch = [("TouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})]
    touch += [("TouchEvent", {"type": "touchEnd", "touchPoints": []})]
    mouse = [
        ("MouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})
        for kind in ("mousePressed", "mouseReleased")
    ]
    overflow = "document.documentElement.scrollWidth - innerWidth"
    colors = "['#stage', '.bar', 'body'].map((name) => getComputedStyle(document.querySelector(name)).backgroundColor)"
    steps: list[Any] = [
        ("Emulation.setTouchEmulationEnabled", {"enabled": True}),
        overflow,
        START,
        SHOWN,
        *touch,
        WAIT,
        SHOWN,
    ]
    space = {"key": " ", "code": "Space", "text": " ", "windowsVirtualKeyCode": 32}
    steps += [*mouse, WAIT, *(("KeyEvent", {"type": kind, **space}) for kind in ("keyDown", "keyUp")), WAIT]
    steps += [overflow, colors, "answers.map((answer) => answer?.score ?? null)"]
    seen = visit(page, *steps, width=390, height=844, dark=dark)
    assert seen.errors == []
    assert (seen.values[1], seen.values[-3]) == (0, 0)
    assert seen.values[-2][0] == "rgb(128, 128, 128)", "the surround stays gray"
    assert (seen.values[-2][2] == "rgb(255, 255, 255)") is not dark
    assert seen.values[-1] == [4, 4, None, None], "the space bar presses no button again"


@needs_chromium
@pytest.mark.slow
def test_actual_pixels_of_a_large_photo_can_be_dragged_and_the_next_is_loaded(tmp_path: Path) -> None:
    page = make_page(tmp_path, ["practice.png", "a.png", "b.png"], size=(4000, 3000))
    size = "(() => { const box = stage.querySelector('img').getBoundingClientRect();"
    size += "return [box.width, box.height, stage.clientWidth, innerHeight]; })()"
    moved = "[stage.firstChild.scrollLeft, stage.firstChild.scrollTop]"
    ahead = "pictures.get(1)[0].complete && pictures.get(1)[0].naturalWidth"
    drag = [
        ("MouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "buttons": 1})
        for kind, x, y in (("mousePressed", 600, 400), ("mouseMoved", 500, 350), ("mouseReleased", 500, 350))
    ]
    seen = visit(
        page, START, SHOWN, size, *press("z"), size, moved, *drag, moved, WAIT, ahead, *rated("3"), SHOWN, size
    )
    assert seen.errors == []
    lists = [value for value in seen.values if isinstance(value, list)]
    assert lists[0][0] == lists[0][2] == 1200
    assert lists[1][:2] == [4000, 3000]
    assert [after - before for before, after in zip(lists[2], lists[3], strict=True)] == [100, 50]
    assert 4000 in seen.values
    assert lists[4][0] == 1200, "the next photo fills the window again"


@needs_chromium
@pytest.mark.slow
def test_a_browser_without_storage_is_asked_to_download(tmp_path: Path) -> None:
    names = [f"{number:03}.png" for number in range(300)]
    page = make_page(tmp_path, names)
    denied = "<script>Object.defineProperty(window, 'localStorage', {get() { throw new Error('denied'); }});</script>"
    page.write_text(page.read_text().replace("<body>", f"<body>{denied}"))
    seen = visit(
        page,
        "document.getElementById('memory').textContent",
        START,
        *rated(*"12345123451"[:10]),
        SHOWN,
        "notice.hidden",
        *rated("4"),
        SHOWN,
        "[notice.hidden, notice.textContent, place.textContent, left.textContent]",
        downloads_to(tmp_path),
        *press("d"),
        WAIT,
        "notice.hidden",
    )
    assert seen.errors == []
    assert seen.values[0].startswith("This browser keeps no answers")
    assert True in seen.values[2:-1], "nine counted ratings and one for practice"
    told = next(value for value in seen.values if isinstance(value, list))
    assert told[:3] == [False, told[1], "11 of 300"]
    assert told[1].startswith("This browser keeps no answers. 10 answers are not downloaded")
    assert told[3].endswith("left")
    assert seen.values[-1] is True
    assert len((tmp_path / "labels.csv").read_text(encoding="utf-8").splitlines()) == 11


@needs_chromium
@pytest.mark.slow
def test_a_photo_that_moved_can_only_be_skipped(tmp_path: Path) -> None:
    page = make_page(tmp_path, ["practice.png", "a.png", "b.png"])
    (tmp_path / "album/a.png").unlink()
    shown = "[stage.textContent, place.textContent]"
    seen = visit(page, START, *rated("3"), WAIT, shown, *press("4"), shown, *press("s"), SHOWN, shown)
    texts = [value for value in seen.values if isinstance(value, list)]
    assert texts[0] == texts[1]
    assert texts[0][0].startswith("This photo cannot be shown")
    assert texts[2] == ["", "2 of 3"]


@pytest.mark.parametrize(("there", "wanted", "practice", "once", "twice"), [(300, 60, 3, 60, 6), (5, 60, 3, 4, 1)])
def test_pairs_have_neighboring_scores(there: int, wanted: int, practice: int, once: int, twice: int) -> None:
    album = album_of(there)
    score_of = {photo.path: photo.score for photo in album}
    order = showings(album, wanted, 3, in_pairs=True)
    first, rest = order[:practice], order[practice:]
    assert [pair.is_practice for pair in order] == [True] * practice + [False] * (once + twice)
    assert len({frozenset(pair.paths) for pair in first}) == practice
    assert len({frozenset(pair.paths) for pair in rest}) == once
    seen: list[Showing] = []
    for pair in rest:
        before = [other.paths for other in seen if {*other.paths} == {*pair.paths}]
        assert before == ([pair.paths[::-1]] if pair.repeat else []), "the sides change at the second time"
        seen.append(pair)
    gaps = [abs(score_of[left] - score_of[right]) for left, right in (pair.paths for pair in rest)]
    assert 0 < max(gaps) <= 2.2 * 4 / min(once, there)
    better_left = sum(score_of[pair.paths[0]] > score_of[pair.paths[1]] for pair in rest)
    assert there < 10 or 20 < better_left < 46, "either side"
    assert showings(album[:1], wanted, 3, in_pairs=True) == []


def test_pairs_of_scenes_show_two_neighboring_copies_of_one_scene() -> None:
    album = [photo._replace(scene=f"original{number % 10}.png") for number, photo in enumerate(album_of(40))]
    scene_of = {photo.path: photo.scene for photo in album}
    order = showings(album, 12, 3, in_pairs=True)
    assert [pair.is_practice for pair in order] == [True] * 3 + [False] * (12 + 4)
    assert all(len({scene_of[path] for path in pair.paths}) == 1 for pair in order)
    assert len({frozenset(pair.paths) for pair in order}) == 15
    copies = [sorted(photo for photo in album if photo.scene == scene) for scene in {*scene_of.values()}]
    neighbors = {frozenset((one.path, other.path)) for each in copies for one, other in pairwise(each)}
    assert {frozenset(pair.paths) for pair in order} <= neighbors
    assert order == showings(album, 12, 3, in_pairs=True)
    assert order != showings(album, 12, 4, in_pairs=True)
    alone = [photo._replace(scene=str(photo.path)) for photo in album]
    assert showings(alone, 12, 3, in_pairs=True) == [], "no scene has two copies"


@needs_chromium
@pytest.mark.slow
def test_pairs_are_answered_by_arrows_or_as_equal(tmp_path: Path) -> None:
    paths = [tmp_path / f"album/{name}" for name in ("a, b.png", "c.png", "d.png")]
    paths[0].parent.mkdir()
    for number, path in enumerate(paths):
        Image.new("RGB", (60, 40), (90 * number, 90, 90)).save(path)
    a, c, d = paths
    order = [Showing((a, d), is_practice=True), *map(Showing, [(a, c), (c, d), (d, a), (c, a)])]
    page = tmp_path / "rate.html"
    page.write_text(rating_page(order, tmp_path / "album", 0, page), encoding="utf-8")
    keys = [("ArrowLeft", "ArrowLeft")] * 2 + [("ArrowRight", "ArrowRight"), ("ArrowDown", "ArrowDown"), (" ", "Space")]
    steps: list[Any] = [downloads_to(tmp_path), START, SHOWN, *press("4"), WAIT, "at"]
    boxes = "[...stage.querySelectorAll('img')].map((image) => Math.round(image.getBoundingClientRect().width))"
    for key, code in keys:
        steps += [SHOWN, *(("KeyEvent", {"type": kind, "key": key, "code": code}) for kind in ("keyDown", "keyUp"))]
    seen = visit(page, *steps[:6], boxes, *steps[6:], WAIT, "document.getElementById('summary').textContent")
    assert seen.errors == []
    assert 0 in seen.values, "digits do nothing"
    assert [596, 596] in seen.values
    assert seen.values[-1] == 'Änne "A", B, you gave 4 answers.'
    text = (tmp_path / "pairs.csv").read_text(encoding="utf-8-sig")
    rows = [*csv.DictReader(io.StringIO(text))]
    assert [(row["better"], row["worse"]) for row in rows] == [
        ("a, b.png", "c.png"),
        ("d.png", "c.png"),
        ("d.png", "a, b.png"),
        ("a, b.png", "d.png"),
        ("c.png", "a, b.png"),
        ("a, b.png", "c.png"),
    ]
    assert [*rows[0]] == ["better", "worse", "rater", "seconds"]
