import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageOps

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.images.borders import assessed_part
from agenticiqa.programs.images.loading import load
from agenticiqa.programs.images.regions import crop
from agenticiqa.programs.offline.measured.distortions import findings_of
from agenticiqa.programs.offline.reference import load_assessed
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.tools.numerics.predicted_mos import PredictedMOS
from agenticiqa.programs.tools.outside_training import widened

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
Box = tuple[int, int, int, int]
WIDTH, HEIGHT = 450, 300


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    with Image.open(EXAMPLES / "coffee.webp") as opened:
        return opened.convert("RGB").resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def box_of(picture: Image.Image) -> Box | None:
    part = assessed_part(np.asarray(picture))
    return part.box if part else None


def as_jpeg(picture: Image.Image, quality: int) -> Image.Image:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return Image.open(file).convert("RGB")


@pytest.mark.parametrize("color", ["black", "white", "gray", (120, 30, 60)])
@pytest.mark.parametrize(
    "border", [40, (0, 50, 0, 50), (30, 0, 30, 0), (20, 30, 40, 90)], ids=["frame", "letterbox", "pillars", "uneven"]
)
def test_borders_of_one_color_are_excluded(photo: Image.Image, border: int | Box, color: str) -> None:
    left, top = (border, border) if isinstance(border, int) else border[:2]
    framed = ImageOps.expand(photo, border, color)
    whole = (left, top, left + WIDTH, top + HEIGHT)
    assert box_of(framed) == whole
    found = box_of(as_jpeg(framed, 60))
    assert found is not None
    assert np.abs(np.subtract(found, whole)).max() <= 1


def test_a_bar_on_one_side_is_excluded_unless_it_may_be_a_sky(photo: Image.Image) -> None:
    assert box_of(ImageOps.expand(photo, (0, 0, 0, 60), "black")) == (0, 0, WIDTH, HEIGHT)
    assert box_of(ImageOps.expand(photo, (0, 60, 0, 0), "white")) is None


def test_parts_of_the_picture_are_not_excluded(photo: Image.Image) -> None:
    assert box_of(photo) is None
    assert box_of(Image.new("RGB", (400, 300), "white")) is None
    assert box_of(Image.fromarray(np.tile(np.linspace(90, 200, 400).astype(np.uint8), (300, 1))).convert("RGB")) is None
    cut_out = Image.new("RGB", (500, 400), "white")
    shape = Image.new("L", photo.size, 0)
    ImageDraw.Draw(shape).ellipse((90, 20, 360, 280), fill=255)
    cut_out.paste(photo, (20, 30), shape)
    assert box_of(cut_out) is None
    skyline = photo.copy()
    draw = ImageDraw.Draw(skyline)
    draw.rectangle((0, 0, WIDTH, 90), fill="white")
    draw.rectangle((0, 60, 70, 90), fill="brown")
    assert box_of(skyline) is None
    noise = np.random.default_rng(0).normal(60, 12, (420, WIDTH, 3)).clip(0, 255).astype(np.uint8)
    noise[60:360] = np.asarray(photo)
    assert box_of(Image.fromarray(noise)) is None
    stamp = ImageOps.expand(photo.resize((100, 100)), 120, "black")
    assert box_of(stamp) is None  # less than a third of each side


def test_boxes_and_crops_refer_to_the_whole_picture(photo: Image.Image) -> None:
    damaged = photo.copy()
    damaged.paste(photo.crop((300, 150, 450, 300)).filter(ImageFilter.GaussianBlur(6)), (300, 150))
    alone, framed = load(damaged), load_assessed(ImageOps.expand(damaged, (40, 60), "black"), None).image
    assert framed.size == (530, 420)
    assert framed.assessed_box == (40, 60, 490, 360)
    assert framed.assessed is framed.assessed is crop(framed, None)
    assert framed.assessed.same_pixels(alone)
    assert np.array_equal(crop(framed, (0, 0, 200, 200)).pixels, framed.pixels[:200, :200])
    before, after = findings_of(alone), findings_of(framed)
    parts = [(before[name].local, after[name].local) for name in before if before[name].local]
    assert parts
    for part, moved in parts:
        assert part
        assert moved
        assert moved.box == tuple(np.add(part.box, (40, 60, 40, 60)))


@pytest.fixture(scope="module")
def results(photo: Image.Image) -> dict[str, Assessment]:
    program, framed = AgenticIQA.offline(), ImageOps.expand(photo, 45, "black")
    return {
        "alone": program(photo),
        "framed": program(framed),
        "beside its reference": program(framed, reference=ImageOps.expand(photo.filter(ImageFilter.BLUR), 45, "black")),
        "small": program(photo.resize((225, 150))),
    }


def test_a_framed_photo_has_the_score_of_the_photo_and_a_note(results: dict[str, Assessment]) -> None:
    alone, framed = results["alone"], results["framed"]
    assert framed.quality_score == alone.quality_score
    assert framed.summarizer_result.score_interval == alone.summarizer_result.score_interval
    notes = framed.to_dict()["executor_evidence"]["notes"]
    shown = "Only the box [45, 45, 495, 345] (left, top, right, bottom in pixels), 450 x 300, was assessed: "
    assert [note.startswith(shown) for note in notes] == [True]
    assert [call.box for call in framed.executor_evidence.tool_log or []] == [(45, 45, 495, 345)]
    assert not alone.executor_evidence.notes


def test_with_a_reference_nothing_is_excluded(results: dict[str, Assessment]) -> None:
    compared = results["beside its reference"]
    assert compared.image.assessed_box is None
    assert not any("borders" in note for note in compared.executor_evidence.notes)


def test_a_small_photo_gets_a_warning_and_a_wider_interval(results: dict[str, Assessment]) -> None:
    small, alone = results["small"], results["alone"]
    assert small.outside_training == ["small"]
    assert alone.outside_training == []
    shown = "The photo has only 225 x 150 pixels. Damage is less visible at this size"
    assert shown in small.quality_reasoning
    low, _ = small.summarizer_result.score_interval["95"]
    assert small.quality_score - low >= 1.96 * 1.1
    assert widened(PredictedMOS(3.0, 0.75), small.outside_training).spread == 1.1
