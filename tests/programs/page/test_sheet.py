"""The contact sheet: sorted, escaped, without external resources, and usable in a browser."""

import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images import load
from agenticiqa.programs.images.decoding import decode, open_bytes
from agenticiqa.programs.page.entry import (
    VERDICTS,
    Entry,
    SheetCard,
    distinct_names,
    entry_of,
    result_card,
    worst_first,
)
from agenticiqa.programs.page.findings import caveats_of
from agenticiqa.programs.page.ranked_images import comparison_page
from agenticiqa.programs.page.render import DIGIT_WIDE, aligned
from agenticiqa.programs.page.sheet import contact_sheet, link_to
from agenticiqa.programs.page.table import Table
from agenticiqa.programs.page.thumbnails import ThumbnailRequest, folder_beside, thumbnail, write_thumbnails
from support.chromium import needs_chromium, visit
from support.html_tags import from_elsewhere, read

HOSTILE = '"><script>alert(1)</script><img src=http://x.test/a onerror=alert(2)>.png'


def entry(image: str, score: float | None, distortion: str = "", **changes: Any) -> Entry:
    found = {
        "main_distortion": distortion,
        "severity": "severe",
        "distortions": [{"region": "center", "category": distortion, "strength": 3}],
        "explanation": f"{distortion} is seen",
    }
    return Entry(image, "ab" * 32, score, score, score, **({"level": "Poor"} | (found if distortion else {}) | changes))


def sheet(tmp_path: Path, *entries: Entry) -> str:
    cards, files = [result_card(each) for each in worst_first([*entries])], ["abc.webp"] * len(entries)
    return contact_sheet(cards, files, tmp_path / "sheet.html", "A title <b>", ["c.png: bad"])


def test_the_lowest_score_comes_first_and_missing_scores_last(tmp_path: Path) -> None:
    entries = [entry("b.png", 4.0), entry("none.png", None, final_answer="Unable to determine"), entry("a.png", 1.5)]
    assert [each.image for each in worst_first(entries)] == ["a.png", "b.png", "none.png"]
    text = sheet(tmp_path, *entries)
    assert text.index('alt="a.png"') < text.index('alt="b.png"') < text.index("Unable to determine")
    assert "c.png: bad" in text


def test_distortions_are_named_as_on_the_cards(tmp_path: Path) -> None:
    text = sheet(tmp_path, entry("a.png", 2.0, "Blurs", severity="severe"))
    assert '<option value="blur">blur (1)</option>' in text
    assert "<summary>severe blur, center</summary>" in text
    assert "Blurs" not in text.replace("Blurs is seen", "")


def test_a_card_has_its_own_title_caption_and_group(tmp_path: Path) -> None:
    refused = SheetCard(Entry("a.png", "ab" * 32, None), "refused", "too small, too wide", ["small", "aspect"])
    accepted = SheetCard(Entry("b.png", "cd" * 32, None), "accepted", "", ["accepted"])
    text = contact_sheet([refused, accepted], [None, None], tmp_path / "sheet.html", "Uploads", template=VERDICTS)
    assert '<option value="small">small (1)</option>' in text
    assert '<b>refused</b><div>too small, too wide</div><span class="soft small">a.png</span>' in text
    assert '<b>accepted</b><br><span class="soft small">b.png</span>' in text
    assert "Scores from" not in text
    assert "Excellent" not in text


def test_files_of_a_card_are_links_and_equal_names_have_their_folder(tmp_path: Path) -> None:
    files = {"map": str(tmp_path / "maps/1 a.png"), "reference": str(tmp_path / "original.png"), "more": "4"}
    june = replace(entry(str(tmp_path / "june/1.jpg"), 2.0, "Noise"), shown=files)
    text = sheet(tmp_path, june, entry(str(tmp_path / "july/1.jpg"), 3.0))
    line = '<br><a href="./maps/1%20a.png">map</a><br><a href="./original.png">reference</a><br>more: 4</span>'
    assert f'<span class="soft small">june/1.jpg{line}' in text
    assert '<span class="soft small">july/1.jpg</span>' in text
    assert "<details><summary>severe noise, center</summary>Noise is seen</details>" in text


@pytest.mark.parametrize(
    ("images", "names"),
    [
        (["a/1.jpg", "a/2.jpg"], ["1.jpg", "2.jpg"]),
        (["a/1.jpg", "1.jpg"], ["a/1.jpg", "1.jpg"]),
        (["a/x/1.jpg", "/b/x/1.jpg"], None),
        (["a/x/1.jpg", "b/x/1.jpg", "b/2.jpg"], ["a/x/1.jpg", "b/x/1.jpg", "2.jpg"]),
        (["a/1.jpg", "a/1.jpg", "<stdin>"], ["1.jpg", "<stdin>"]),
    ],
)
def test_distinct_names(images: list[str], names: list[str] | None) -> None:
    found = distinct_names(images)
    assert [*found] == [*dict.fromkeys(images)]
    assert len({*found.values()}) == len(found)
    assert names is None or [*found.values()] == names


def test_numbers_of_a_column_are_aligned_at_the_decimal_point() -> None:
    lines = [("PSNR", "29.41 dB", "40"), ("SSIM", "0.5 [0.4, 0.6]", "33 of 40"), ("MDSI", "-", "-")]
    first, second, third = aligned(lines)
    assert first[1] == ("29.41 dB", "", True)
    assert second[1] == (f"0.5{DIGIT_WIDE * 4}", "[0.4, 0.6]", True)
    assert (third[1], first[0]) == (("-", "", True), ("PSNR", "", False))
    assert first[2] == (f"40{DIGIT_WIDE * 6}", "", True)


@needs_chromium
@pytest.mark.slow
def test_two_images_of_a_comparison_overlap_at_the_width_of_the_window(tmp_path: Path) -> None:
    """A slider divides them, or they take turns; the files themselves are shown, as a copy would hide their damage."""
    for name, color in (("a.png", "red"), ("b.png", "blue"), ("reference.png", "white")):
        Image.new("RGB", (60, 40), color).save(tmp_path / name)
    shown = {"reference": str(tmp_path / "reference.png")}
    entries = [replace(entry(str(tmp_path / name), 3.0), shown=shown) for name in ("a.png", "b.png")]
    page = tmp_path / "page.html"
    table = Table(("", "a_b\x1b"), [("m", "1")], "Metrics")
    page.write_text(comparison_page(entries, [None, None], {}, [table], [], page))
    assert '<th scope="col" class="number">a_<wbr>b </th>' in page.read_text(), "long names break at an underscore"
    state = (
        "(() => {const [left, right] = document.querySelectorAll('.stage img');"
        " const box = left.getBoundingClientRect();"
        " return [left.src.split('/').pop(), right.src.split('/').pop(), box.width > innerWidth - 60, box.height > 500,"
        " getComputedStyle(right).clipPath]})()"
    )
    moved = "cut.value = 20; cut.dispatchEvent(new Event('input')); choices[1].value = choices[1].options[2].value;"
    moved += "choices[1].dispatchEvent(new Event('change'));"
    seen = visit(page, state, moved, state, "blink.click(); blink.getAttribute('aria-pressed')", state, width=1280)
    assert seen.errors == []
    assert seen.values[0] == ["a.png", "b.png", True, True, "inset(0px 0px 0px 50%)"]
    assert seen.values[2][1::3] == ["reference.png", "inset(0px 0px 0px 20%)"]
    assert (seen.values[3], seen.values[4][4]) == ("true", "inset(0px)")
    assert visit(page, "document.documentElement.scrollWidth - innerWidth", width=390).values == [0]


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("by", ["mouse", "finger", "keys"])
def test_the_divider_of_a_comparison_can_be_dragged(tmp_path: Path, by: str) -> None:
    """A browser drags a copy of an image by itself, which would stop the divider."""
    for name, color in (("a.png", "red"), ("b.png", "blue")):
        Image.new("RGB", (60, 40), color).save(tmp_path / name)
    entries, page = [entry(str(tmp_path / name), 3.0) for name in ("a.png", "b.png")], tmp_path / "page.html"
    page.write_text(comparison_page(entries, [None, None], {}, {}, [], page))
    if by == "mouse":
        steps = [("MouseEvent", {"type": "mousePressed", "x": 640, "y": 300, "buttons": 1, "button": "left"})]
        for x in range(620, 180, -20):
            steps.append(("MouseEvent", {"type": "mouseMoved", "x": x, "y": 300, "buttons": 1, "button": "left"}))
        steps.append(("MouseEvent", {"type": "mouseReleased", "x": 200, "y": 300, "buttons": 0, "button": "left"}))
        expected = 15
    elif by == "finger":
        steps = [("TouchEvent", {"type": "touchStart", "touchPoints": [{"x": 640, "y": 300}]})]
        steps += [
            ("TouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": 300}]}) for x in range(620, 180, -20)
        ]
        steps.append(("TouchEvent", {"type": "touchEnd", "touchPoints": []}))
        expected = 15
    else:
        press = {"x": 640, "y": 300, "button": "left", "clickCount": 1}
        steps = [("MouseEvent", {"type": kind, **press}) for kind in ("mousePressed", "mouseReleased")]
        key = {"key": "ArrowRight", "code": "ArrowRight", "windowsVirtualKeyCode": 39}
        steps += [("KeyEvent", {"type": kind, **key}) for kind in ("keyDown", "keyUp") * 4]
        expected = 54
    position = "[Number(cut.value), getComputedStyle(document.querySelectorAll('.stage img')[1]).clipPath]"
    seen = visit(page, *steps, position, width=1280)
    assert seen.errors == []
    value, clipped = seen.values[0]
    assert value == pytest.approx(expected, abs=1)
    assert clipped == f"inset(0px 0px 0px {value}%)"


def test_a_reference_that_does_not_match_is_a_caveat() -> None:
    caveats = caveats_of(["gray"], None, "The image is shifted.")
    assert entry_of({"image": "a.png", "caveats": caveats}).caveat == "less certain: gray; The image is shifted."
    assert caveats_of([], None, "") == []
    assert entry_of({"image": "a.png"}).caveat == ""


def test_a_large_difference_between_model_and_tools_is_a_caveat() -> None:
    assert caveats_of([], 2.34, "") == ["model and tools differ by 2.3 levels"]


def test_hostile_names_and_texts_are_escaped(tmp_path: Path) -> None:
    text = sheet(tmp_path, entry(HOSTILE, 2.0, "Noise", explanation=HOSTILE), entry("x", None, final_answer=HOSTILE))
    page = read(text)
    assert page.tags.count("script") == 1, "our own"
    assert page.tags.count("img") == 2, "the two thumbnails"
    assert page.handlers == []
    assert from_elsewhere(text) == []
    assert "A title &lt;b&gt;" in text


def test_addresses_outside_the_page_are_detected() -> None:
    """The check for external resources detects them."""
    page = (
        '<script src="https://cdn.test/a.js"></script><img src="//x.test/b"><a href="javascript:0"><img src="c.webp">'
    )
    assert from_elsewhere(page) == ["https://cdn.test/a.js", "//x.test/b", "javascript:0"]


def test_links_are_relative_to_the_page_without_a_scheme(tmp_path: Path) -> None:
    assert link_to(str(tmp_path / "a b#.png"), tmp_path / "out" / "sheet.html") == "./../a%20b%23.png"
    assert str(link_to("javascript:alert(1)", Path("sheet.html"))).startswith("./")
    assert link_to("<stdin>", Path("sheet.html")) is None
    assert link_to(os.fsdecode(b"a\xff.png"), Path("sheet.html")) == "./a%FF.png"


def test_the_entry_of_a_row_names_the_main_distortion_and_its_place() -> None:
    found = {"type": "Noise", "severity": "severe", "explanation": "grain"}
    slight = {"type": "Blurs", "severity": "slight", "explanation": "soft"}
    part = {"type": "Noise", "severity": "severe", "place": "center", "box": [0, 0, 9, 9], "share": 0.2}
    evidence = {"distortion_analysis": {"Global": [slight, found]}, "local_damage": {"Global": [part]}}
    row = {"image": "a.png", "quality_score": 2.0, "score_interval": {"80": [1.5, 2.5]}, "executor_evidence": evidence}
    assert entry_of(row).finding == "severe noise, center"
    assert (entry_of(row).low, entry_of(row).high) == (1.5, 2.5)
    none = {"distortion_analysis": {"Global": [found | {"severity": "none"}]}}
    assert entry_of({"image": "a.png", "final_answer": "B", "executor_evidence": none}).finding == ""


def test_thumbnails_are_upright_small_and_reused(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned
    Image.new("RGB", (900, 600), "red").save(tmp_path / "a.jpg", exif=exif)
    (tmp_path / "b.jpg").write_text("no image")
    with Image.open(io.BytesIO(thumbnail(tmp_path / "a.jpg"))) as small:
        assert (small.format, small.size) == ("WEBP", (267, 400))
    folder = folder_beside(tmp_path / "sheet.html")
    wanted = [ThumbnailRequest(tmp_path / "a.jpg", "a" * 64), ThumbnailRequest(tmp_path / "b.jpg", "b" * 64)]
    assert [*write_thumbnails(wanted, folder)] == ["aaaaaaaaaaaa.webp", None]
    (tmp_path / "a.jpg").unlink()
    assert [*write_thumbnails(wanted[:1], folder)] == ["aaaaaaaaaaaa.webp"]


@pytest.mark.parametrize("suffix", ["bmp", "tiff", "png", "webp", "jpg", "gif"])
def test_a_thumbnail_shows_the_measured_pixels(tmp_path: Path, suffix: str) -> None:
    path, rng = tmp_path / f"a.{suffix}", np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 256, (40, 60, 4), dtype=np.uint8)).convert("P").convert("RGB").save(path)
    pixels = decode("a", open_bytes("a", path.read_bytes()), 10_000).pixels
    assert np.array_equal(pixels, load(path).pixels)
    with pytest.raises(ImageError, match="2400; scale the image"):
        decode("a", open_bytes("a", path.read_bytes()), 1_000)


@needs_chromium
@pytest.mark.slow
def test_the_sheet_works_in_a_browser(tmp_path: Path) -> None:
    """From disk: no error, nothing requested from elsewhere, no sideways scrolling on a phone; dark; the filter."""
    page, entries = tmp_path / "sheet.html", []
    for number in range(40):
        image = tmp_path / f"{'long_name_' * 8}{number}.png"
        Image.fromarray(np.full((30, 50, 3), 6 * number, np.uint8)).save(image)
        entries.append(entry(str(image), 1 + number / 10, "Noise" if number % 4 else "Blurs"))
    wanted = [ThumbnailRequest(each.image, f"{number:064x}"[::-1]) for number, each in enumerate(entries)]
    thumbnails = [*write_thumbnails(wanted, folder_beside(page))]
    cards = [result_card(each) for each in (*entries, entry(HOSTILE, 3.0))]
    page.write_text(contact_sheet(cards, [*thumbnails, None], page, HOSTILE))
    overflow = "document.documentElement.scrollWidth - innerWidth"
    chosen = (
        "group.value = 'blur'; group.dispatchEvent(new Event('input'));"
        "const first = document.getElementById('shown').textContent;"
        "level.value = '2'; level.dispatchEvent(new Event('input')); order.value = '-1';"
        "order.dispatchEvent(new Event('change')); const second = document.getElementById('shown').textContent;"
        "group.value = level.value = ''; document.getElementById('name').value = 'NAME_7.';"
        "level.dispatchEvent(new Event('input')); [first, second, document.getElementById('shown').textContent]"
    )
    broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).length"
    phone = visit(page, overflow, broken, chosen, width=390, height=844)
    assert phone.errors == []
    assert phone.values[:2] == [0, 0]
    assert phone.values[2] == [
        "10 of 41 shown, worst first",
        "10 of 41 shown, best first",
        "1 of 41 shown, best first",
    ], "by distortion, also by level, and by name"
    assert all(address.startswith(("file:", "data:")) for address in phone.requests)
    assert sum(address.endswith(".webp") for address in phone.requests) >= 4
    dark = visit(page, "getComputedStyle(document.body).backgroundColor", dark=True)
    assert dark.values == ["rgb(21, 24, 28)"]
