"""Pictures of assessments: damage is shown at its position, on the same scale for every image."""

import errno
import io
import json
import re

import numpy as np
import pytest
from matplotlib.axes import Axes
from PIL import Image

from agenticiqa.eval.research.distort import distort
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.fusion.formula import interval_text
from agenticiqa.programs.images import load
from agenticiqa.programs.pictures import draw, heatmap
from agenticiqa.programs.pictures.canvas import Canvas
from agenticiqa.programs.pictures.draw import draw_assessment, picture_paths
from agenticiqa.programs.pictures.heatmap import blend, drawn_damage, heatmaps
from agenticiqa.programs.tools import TOOLS
from agenticiqa.signatures.types import ToolCall
from support.distortion_levels import scene

pytestmark = pytest.mark.slow

SIDE = 256


@pytest.fixture(scope="module")
def program():
    return AgenticIQA.offline()


@pytest.fixture(scope="module")
def photo(examples):
    return load(examples / "astronaut.webp").pixels[:SIDE, 60 : 60 + SIDE]


def image(pixels):
    return Image.fromarray(np.ascontiguousarray(pixels))


def quadrant_damaged(photo, kind):
    """The photo with its lower right quarter under an extreme distortion."""
    pixels = photo.copy()
    half = SIDE // 2
    pixels[half:, half:] = distort(photo[half:, half:], kind, 5)
    return pixels


def redness(pixels):
    """How much redder than blue, in gray levels: 0 for gray."""
    return float(np.mean(pixels[..., 0].astype(float) - pixels[..., 2]))


def quarters(pixels):
    height, width = pixels.shape[0] // 2, pixels.shape[1] // 2
    return pixels[height:, width:], [pixels[:height, :width], pixels[:height, width:], pixels[height:, :width]]


@pytest.mark.parametrize(("kind", "compared"), [("jpeg", True), ("gaussian_blur", True), ("white_noise", False)])
def test_the_damaged_quarter_is_the_reddest(program, photo, kind, compared, tmp_path):
    result = program(image(quadrant_damaged(photo, kind)), reference=image(photo) if compared else None)
    drawn = heatmaps(result)[-1]
    damaged, rest = quarters(heatmap.paint(result.image.pixels, drawn, (320, 320)))
    assert redness(damaged) > 2 * max(map(redness, rest)) + 5, drawn.tool
    draw_assessment(result, tmp_path / "drawn.png")
    with Image.open(tmp_path / "drawn.png") as picture:
        assert picture.format == "PNG"
        # The last map fills the right of the picture, below the score and above the tables.
        width, height = picture.size
        right = np.asarray(picture.convert("RGB"))[height // 4 : height // 2, -width // 3 :]
        assert redness(right) > 0


@pytest.mark.parametrize("kind", ["white_noise", "gaussian_blur"])
def test_damage_in_a_part_is_shown_by_the_detectors_map_and_framed(program, photo, kind):
    result = program(image(quadrant_damaged(photo, kind)))
    (part,) = result.executor_evidence.local_damage["Global"]
    assert part.place == "bottom right quarter"
    assert draw._boxes(result.executor_evidence) == {part.type: part.box}
    drawn = heatmaps(result)[-1]
    assert (drawn.tool, drawn.subject) == (heatmap.DETECTOR, part.type)
    damaged, rest = quarters(heatmap.paint(result.image.pixels, drawn, (320, 320)))
    assert redness(damaged) > 2 * max(map(redness, rest)) + 5
    assert result.quality_score < program(image(photo)).quality_score - 0.3


def test_an_undistorted_image_stays_gray_beside_its_reference(program, photo):
    (drawn,) = heatmaps(program(image(photo), reference=image(photo)))
    assert redness(heatmap.paint(photo, drawn, (SIDE, SIDE))) < 3
    assert drawn.absolute, "nothing is not scaled up to something"


def test_maps_come_from_the_chosen_tools_overall_quality_first(program, photo):
    result = program(image(distort(photo, "white_noise", 5)), reference=image(photo))
    overall, noise = heatmaps(result)
    chosen = {call.tool for call in result.executor_evidence.tool_log}
    assert (overall.subject, noise.subject) == ("Overall", "Noise")
    assert noise.chosen
    assert {overall.tool, noise.tool} <= chosen


def test_a_tool_for_the_distortion_is_drawn_if_the_chosen_tool_measures_overall_quality(program, photo):
    result = program(image(distort(photo, "white_noise", 5)))
    overall, noise = heatmaps(result)
    chosen = {call.tool for call in result.executor_evidence.tool_log}
    assert (overall.tool, noise.tool) == ("LEARNED-IQA", "NOISE-SIGMA")
    assert overall.chosen == (overall.tool in chosen)
    assert noise.chosen == (noise.tool in chosen)


def test_a_chosen_tool_without_a_map_is_replaced_by_the_best_tool_with_one_and_noted(program, photo, monkeypatch):
    result = program(image(distort(photo, "jpeg", 5)))
    without = {name: card for name, card in heatmap.toolbox().items() if name != "BLOCKINESS"}
    monkeypatch.setattr(heatmap, "toolbox", lambda: without)
    assert "BLOCKINESS" not in [drawn.tool for drawn in heatmaps(result)]
    monkeypatch.setattr(heatmap, "toolbox", lambda: {})
    assert [drawn.tool for drawn in heatmaps(result)] == [heatmap.DETECTOR]
    assert heatmaps(program(image(scene(40, 60)))) == []


@pytest.fixture
def written(monkeypatch):
    """Each text that is written on a canvas, with its size in points and the width of the canvas in inches."""
    texts = {}
    write = Canvas.write

    def recorded(canvas, x, y, text, *, size=10.5, **style):
        texts[text] = size, canvas.width
        return write(canvas, x, y, text, size=size, **style)

    monkeypatch.setattr(Canvas, "write", recorded)
    return texts


def test_a_picture_has_the_interval_and_a_legend_in_legible_letters(program, photo, tmp_path, written):
    """At 830 pixels of width a letter of 9 points is 8 pixels high or more."""
    result = program(image(distort(photo, "white_noise", 5)))
    draw_assessment(result, tmp_path / "map.png")
    assert interval_text(result.score_interval) in written
    assert {"none", "extreme"} <= {*written}, "the ends of the legend, in words"
    assert {"1 Bad", "2 Poor", "3 Fair", "4 Good", "5 Excellent"} <= {*written}
    assert "damage map: noise (NOISE-SIGMA)" in written
    assert "overall quality" in written
    assert min(size / 72 * 830 / width for size, width in written.values()) >= 8


def test_the_tables_have_the_evidence_and_the_weight_of_each_tool(program, photo, tmp_path, written):
    result = program(image(distort(photo, "jpeg", 5)), reference=image(photo))
    draw_assessment(result, tmp_path / "map.png")
    ((item, *_),) = result.executor_evidence.distortion_analysis.values()
    assert item.explanation.startswith(next(text for text in written if text[:9] == item.explanation[:9]))
    assert {"tool", "measures", "raw", "1 to 5", "weight", "distortion", "severity"} <= {*written}
    assert {f"{100 * call.weight:.3g} %" for call in result.executor_evidence.tool_log} <= {*written}
    assert any(text.startswith("\u25cf") and text.endswith(item.severity) for text in written)


def test_a_picture_of_an_answer_shows_the_question_and_that_nothing_was_analyzed(program, photo, tmp_path, written):
    draw_assessment(program(image(photo), query="Is the cat happy?"), tmp_path / "map.png")
    assert {"Is the cat happy?", "Unable to determine", "not analyzed", "no tool was run"} <= {*written}
    assert "none found" not in written


def test_a_text_that_is_too_long_loses_its_middle_and_many_rows_end_with_their_number(
    program, photo, tmp_path, written
):
    result = program(image(photo))
    call = ToolCall(tool=60 * "name", region="Global", distortion="Noise", raw=1.0, calibrated=2.0, ms=1)
    result.executor_evidence.tool_log += 60 * [call]
    draw_assessment(result, tmp_path / "map.png")
    assert "and 50 more" in written
    drawn = Canvas(3, 1, 100)
    assert drawn.write(0.5, 0.5, "x" + 60 * "y" + "z", room=2) <= 2.5
    (text,) = drawn.figure.texts
    assert re.fullmatch(r"xy+\.\.\.y+z", text.get_text())
    assert drawn.write(0.5, 0.5, "short", room=2) < 1.5


def test_a_picture_without_a_map_is_drawn_with_a_note(program, tmp_path, monkeypatch):
    monkeypatch.setattr(heatmap, "toolbox", lambda: {})
    draw_assessment(program(image(scene(40, 60))), tmp_path / "small.png")
    assert (tmp_path / "small.png").stat().st_size > 5000


@pytest.mark.parametrize("size", [(8, 8), (20, 700), (700, 20), (240, 1300)])
def test_images_of_any_size_are_drawn_in_a_picture_2200_pixels_wide(program, size, tmp_path):
    result = program(image(scene(*size)), query="Is it noisy?")
    draw_assessment(result, tmp_path / "drawn.png")
    with Image.open(tmp_path / "drawn.png") as picture:
        assert picture.width == 2200
        assert 800 < picture.height <= 2400


def test_a_large_pair_is_compared_at_a_stated_size(program, photo):
    large = image(photo).resize((2000, 2000))
    (drawn,) = heatmaps(program(large, reference=large))
    assert drawn.size == (1600, 1600)
    assert heatmap.paint(np.asarray(large), drawn, (300, 300)).shape == (300, 300, 3)


def test_regions_are_framed_and_named_in_different_colors(program, photo, tmp_path):
    result = program(image(photo), query="How sharp is the left half, and how sharp the bottom right corner?")
    evidence = result.executor_evidence
    call = ToolCall(tool="X", region="a very long name of a region, longer than fits", distortion="Noise", ms=1)
    evidence.tool_log.append(call.model_copy(update={"box": (10, 10, 90, 90), "raw": 1.0, "calibrated": 2.0}))
    boxes = draw._boxes(evidence)
    assert next(iter(boxes.values())) == (10, 10, 90, 90)
    assert len(boxes) == 3
    draw_assessment(result, tmp_path / "drawn.png")
    pixels = np.asarray(Image.open(tmp_path / "drawn.png").convert("RGB")).reshape(-1, 3)
    for color in draw.BOX_COLORS[: len(boxes)]:
        wanted = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
        assert (np.abs(pixels.astype(int) - wanted).max(axis=1) < 8).sum() > 200, color


def test_names_of_regions_move_down_only_if_they_would_overlap(program, photo, tmp_path, monkeypatch):
    named = {}
    monkeypatch.setattr(Axes, "annotate", lambda axes, text, at, **style: named.update({text: at}))
    result = program(image(photo), query="Is it sharp?")
    right = SIDE * 2 // 3
    boxes = {
        "first": (0, 40, 60, 90),
        "second": (5, 45, 50, 99),
        "beside": (right, 40, right + 9, 60),
        "low": (0, 200, 9, 230),
    }
    for region, box in boxes.items():
        call = ToolCall(tool="X", region=region, distortion="Noise", raw=1.0, calibrated=2.0, ms=1, box=box)
        result.executor_evidence.tool_log.append(call)
    draw_assessment(result, tmp_path / "drawn.png")
    assert {region: named[region] for region in ("first", "beside", "low")} == {
        "first": (0, 40.0),
        "beside": (right, 40.0),
        "low": (0, 200.0),
    }
    left, top = named["second"]
    assert left == 5
    assert top > 45


def test_text_with_formula_signs_and_unusual_letters_is_drawn_unchanged(program, photo, tmp_path):
    source = tmp_path / "a $\\nosuch$ photo_{2} \\alpha.png"  # between its two dollar signs is no formula
    image(photo).save(source)
    draw_assessment(program(source), tmp_path / "drawn.png")
    with Image.open(tmp_path / "drawn.png") as picture:
        assert picture.format == "PNG"


@pytest.mark.parametrize(
    ("side", "shape"), [(1, (300, 451)), (2, (301, 451)), (32, (100, 150)), (96, (384, 512)), (16, (9, 500))]
)
def test_a_map_of_cells_is_drawn_at_the_position_of_its_cells(side, shape):
    height, width = shape
    cells = np.zeros((-(-height // side), -(-width // side)))
    cells[:, cells.shape[1] // 2 :] = 1
    edge = (cells.shape[1] // 2) * side
    drawn = drawn_damage(cells, (width, height), (width, height))
    assert drawn.shape == shape
    halfway = np.flatnonzero(drawn[0] > 0.5)[0]
    assert abs(halfway - edge) <= max(2, side / 8)


def test_colors_run_from_the_gray_of_the_image_to_dark_red():
    shares = np.linspace(0, 1, 50)[None]
    colors = blend(np.full(shares.shape, 130.0), shares)[0].astype(float)
    assert (colors[0] == 130).all()
    assert (np.diff(heatmap.STOPS @ [0.299, 0.587, 0.114]) < 0).all(), "distinguishable without color vision, too"
    assert (np.diff(colors[:, 0] - colors[:, 2])[:30] > -1).all()
    assert colors[-1, 0] > 2 * colors[-1, 1]


WITH_MAP = [name for name, card in TOOLS.items() if card.map]
SHOWS = {"BLUR-EXTENT": ["gaussian_blur"], "NOISE-SIGMA": ["white_noise"], "BLOCKINESS": ["jpeg"]}
SHOWS |= {"EXPOSURE-ERROR": ["brighten"], "PIQE": ["jpeg", "white_noise"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WITH_MAP if TOOLS[name].map_end])
def test_the_scale_ends_near_extreme_distortions(name, photo):
    card = TOOLS[name]
    found = []
    for kind in SHOWS.get(name, ["gaussian_blur", "white_noise", "jpeg"]):
        bad = distort(photo, kind, 5)
        damage = card.map(bad, photo) if card.kind == "FR" else card.map(bad)
        found.append(np.percentile(drawn_damage(damage, (SIDE, SIDE), (400, 400)), 90))
    assert card.map_end / 3 < np.mean(found) < 3 * card.map_end


def test_every_map_has_its_own_scale():
    assert all(TOOLS[name].map_end for name in WITH_MAP), "without, a map's colors end at the worst place of each image"


def test_an_image_in_memory_is_drawn_and_its_picture_named_by_its_kind(program, photo, tmp_path):
    buffer = io.BytesIO()
    image(photo).save(buffer, "PNG")
    paths = picture_paths(tmp_path, [buffer.getvalue(), photo, "b/upload.png"])
    assert {name: path.name for name, path in paths.items()} == {
        "<bytes>": "bytes.png",
        "<array>": "array.png",
        "b/upload.png": "upload.png",
    }
    for source in (buffer.getvalue(), photo):
        row = draw.draw_to_dict(paths, program(source))
        assert paths[row["image"]].is_file()


@pytest.fixture
def album(tmp_path):
    """Two made-up images of one name in two folders."""
    paths = [tmp_path / folder / f"b.{suffix}" for folder, suffix in (("a", "bmp"), ("c", "png"))]
    for number, path in enumerate(paths):
        path.parent.mkdir()
        image(scene(64, 80, number)).save(path)
    return [str(path) for path in paths]


def test_save_maps_draws_each_image_and_can_be_repeated(album, tmp_path, capsys):
    maps = tmp_path / "new" / "maps"
    for _ in range(2):
        assert main(["assess", *album, "--save-maps", str(maps), "--json"]) == 0
        printed = capsys.readouterr()
        assert [row["map"] for row in json.loads(printed.out)] == [f"{maps}/a/b.png", f"{maps}/c/b.png"]
        assert f"Pictures were saved in {maps}" in printed.err
        assert sorted(path for path in maps.rglob("*.png")) == [maps / "a/b.png", maps / "c/b.png"]


def test_no_pictures_are_announced_if_nothing_was_assessed(tmp_path, capsys):
    (tmp_path / "empty.jpg").touch()
    assert main(["assess", str(tmp_path / "empty.jpg"), "--save-maps", str(tmp_path / "maps")]) == 2
    assert "Pictures" not in capsys.readouterr().err


def test_a_failed_picture_changes_the_status_but_keeps_the_result(album, tmp_path, capsys, monkeypatch):
    def broken(result, path):
        raise ToolError("no ink\nleft")

    monkeypatch.setattr(draw, "draw_assessment", broken)
    assert main(["assess", album[0], "--save-maps", str(tmp_path / "maps"), "--json"]) == 1
    printed = capsys.readouterr()
    row = json.loads(printed.out)
    assert row["quality_score"]
    assert row["map"] is None
    warning = [line for line in printed.err.splitlines() if "could not be drawn" in line]
    assert len(warning) == 1
    assert "no ink left" in warning[0]


def test_a_picture_without_space_on_the_disk_is_named_once(album, tmp_path, capsys, monkeypatch):
    def full(result, path):
        raise OSError(errno.ENOSPC, "No space left on device", str(path), None, "another name")

    monkeypatch.setattr(draw, "draw_assessment", full)
    assert main(["assess", album[0], "--save-maps", str(tmp_path / "maps")]) == 1
    picture, printed = tmp_path / "maps" / "a" / "b.png", capsys.readouterr().err
    assert f"could not be drawn: {picture} cannot be written (No space left on device)\n" in printed
    assert "saved" not in printed


def test_a_folder_that_cannot_be_made_and_a_photo_that_would_be_overwritten_are_reported_first(album, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["assess", album[0], "--save-maps", str(tmp_path / "file")]) == 2
    assert main(["assess", album[1], "--save-maps", str(tmp_path)]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 2
    assert "Traceback" not in errors
