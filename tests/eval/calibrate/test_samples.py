"""The images that a tool is measured on for its calibration, and the values that become points."""

from dataclasses import replace
from pathlib import Path

import pytest

from agenticiqa.eval.calibrate.samples import (
    MAX_REFERENCES,
    Sample,
    anchor_samples,
    level_samples,
    points_of,
    rated_samples,
)
from agenticiqa.eval.datasets import LabeledImage, MosScale
from agenticiqa.eval.research.distort import DISTORTION_LEVELS, KINDS
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools import TOOLS
from agenticiqa.signatures.types import OVERALL

FULL = replace(TOOLS["SSIM"], good_at=(OVERALL,))
NOISE = replace(TOOLS["NOISE-SIGMA"], good_at=("Noise",))
NOISE_KINDS = [name for name, kind in KINDS.items() if kind.category == "Noise"]


def label(name: str, reference: str | None, mos: float = 50) -> LabeledImage:
    path = Path(reference) if reference else None
    return LabeledImage(name, Path(name), path, mos, None, None, None, None, None, (path or Path(name)).name)


def test_a_full_reference_tool_is_measured_on_labels_with_a_reference() -> None:
    items = [label("a.png", "r.png", 25), label("b.png", None)]
    assert rated_samples(items, MosScale(0, 100), full_reference=True) == [
        Sample(Path("a.png"), Path("r.png"), "r.png", 2.0)
    ]
    assert [sample.reference for sample in rated_samples(items, MosScale(0, 100), full_reference=False)] == [None, None]


def test_the_anchors_are_references_undistorted_and_at_the_worst_level_of_the_tools_distortions() -> None:
    items = [label(f"{number}.png", f"r{number:02}.png") for number in range(30)]
    anchors = anchor_samples(replace(FULL, good_at=("Noise",)), items)
    assert {sample.image for sample in anchors} == {sample.reference for sample in anchors}
    assert len({sample.image for sample in anchors}) == MAX_REFERENCES
    assert {(sample.kind, sample.level) for sample in anchors} == {(None, 0), (NOISE_KINDS[0], DISTORTION_LEVELS[-1])}
    seen = {KINDS[str(sample.kind)].category for sample in anchor_samples(FULL, items) if sample.level}
    assert seen == {"Blurs", "Noise", "Compression"}
    assert anchor_samples(NOISE, items) == []


def test_photos_are_distorted_at_each_level_by_the_tools_own_distortions() -> None:
    samples = level_samples(NOISE, [Path("photo.png")])
    assert [(s.quality, s.level) for s in samples if s.kind in (None, NOISE_KINDS[0])] == [
        (pytest.approx(5 - 0.8 * level), level) for level in (0, *DISTORTION_LEVELS)
    ]
    assert {sample.kind for sample in samples} == {None, *NOISE_KINDS}
    sharpness = level_samples(replace(NOISE, good_at=("Sharpness",)), [Path("photo.png")])
    assert "gaussian_blur" in {sample.kind for sample in sharpness}


def anchored(worst: dict[str, list[float]]) -> dict[Sample, float]:
    """The values of two rated images, of three undistorted references, and at the worst level of kinds."""
    path = Path("r.png")
    raw = {Sample(Path("a.png"), path, "r.png", 2.0): 0.5, Sample(Path("b.png"), path, "r.png", 4.0): 0.8}
    raw |= {Sample(Path(f"{n}.png"), path, "r.png", level=0): value for n, value in enumerate((0.97, 0.98, 1.0))}
    for kind, values in worst.items():
        for number, value in enumerate(values):
            raw[Sample(Path(f"{number}.png"), path, "r.png", kind=kind, level=DISTORTION_LEVELS[-1])] = value
    return raw


def test_the_anchors_of_a_tool_are_the_medians_by_kind() -> None:
    points = points_of(FULL, anchored({"white_noise": [0.1, 0.2, 0.6], "jpeg": [0.3]}), "somewhere")
    assert (points.raw.tolist(), points.quality.tolist(), points.perfect) == ([0.5, 0.8], [2, 4], 0.98)
    assert points.worst == (0.3, 0.2)
    assert (
        "with 3 undistorted references and their extreme distortions (jpeg, white_noise) as end points" in points.origin
    )


@pytest.mark.parametrize(("higher_is_better", "floor"), [(True, 0.475), (False, 0.175)])
def test_a_tool_without_particular_distortions_has_one_lower_anchor(higher_is_better: bool, floor: float) -> None:
    raw = anchored({"white_noise": [0.1, 0.2], "jpeg": [0.4, 0.7]})
    tool = replace(FULL, good_at=(), higher_is_better=higher_is_better)
    assert points_of(tool, raw, "somewhere").worst == pytest.approx((floor,))


def climbing(**reach: float) -> dict[Sample, float]:
    """NOISE-SIGMA's values on a photo at every level of kinds, from 0 in equal steps to what each reaches."""
    path = Path("photo.png")
    raw = {Sample(path, None, "photo.png", 5.0, None, 0): 0.0}
    for kind, highest in reach.items():
        for level in DISTORTION_LEVELS:
            raw[Sample(path, None, "photo.png", 5 - 0.8 * level, kind, level)] = highest * level / DISTORTION_LEVELS[-1]
    return raw


def test_only_kinds_that_a_tool_follows_with_enough_range_become_points() -> None:
    first, second, third = NOISE_KINDS[:3]
    points = points_of(NOISE, climbing(**{first: 10, second: 7, third: 6}), "photos")
    assert points.origin == f"photos ({first}, {second})"
    assert sorted(points.raw) == sorted(
        [0, *(10 * n / 5 for n in DISTORTION_LEVELS), *(7 * n / 5 for n in DISTORTION_LEVELS)]
    )
    with pytest.raises(ToolError, match="does not correlate with the level of any distortion"):
        points_of(NOISE, climbing(**{first: -10}), "photos")
