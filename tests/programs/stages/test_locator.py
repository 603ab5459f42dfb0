"""Questions about regions: how they are located, how boxes are used, and that each region is measured by itself."""

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dspy
import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.cli.card import card
from agenticiqa.programs.images import LoadedImage, load
from agenticiqa.programs.offline.stages import MeasuredAnalyst, MeasuredDetector, SaliencyLocator, TableSelector
from agenticiqa.programs.stages.analyst import Analyst
from agenticiqa.programs.stages.detector import Detector
from agenticiqa.programs.stages.evidence import format_evidence, gaps
from agenticiqa.programs.stages.executor import Executor
from agenticiqa.programs.stages.locator import Locator
from agenticiqa.programs.tools import TOOLS, Tool, toolbox
from agenticiqa.signatures.types import UNABLE, ExecutorOutput, PlannerOutput
from support.distortion_levels import blur, noise, scene
from support.engine import ScriptedEngine, scripted_backend
from support.fake_server import Answer, bad_json, by_stage, empty, field_of, images_of, stage_of

VEHICLE, LEFT, RIGHT = "vehicle", "left half", "right half"
BOX = [250, 125, 500, 875]  # in thousandths
OTHER_BOX = [100, 125, 300, 500]
ANALYSE = {
    "distortion_detection": False,
    "distortion_analysis": True,
    "tool_selection": False,
    "tool_execution": False,
}
EVERYTHING = dict.fromkeys(ANALYSE, True)


@pytest.fixture(scope="module")
def image() -> LoadedImage:
    return load(Image.fromarray(scene()))


@pytest.fixture(scope="module")
def halves() -> LoadedImage:
    """Return a scene with a heavily blurred left half and an unchanged right half."""
    sharp = scene()
    middle = sharp.shape[1] // 2
    return load(Image.fromarray(np.concatenate([blur(5, sharp)[:, :middle], sharp[:, middle:]], axis=1)))


def plan(*regions: str, flags: Mapping[str, bool] = ANALYSE, **changes: Any) -> PlannerOutput:
    return PlannerOutput.model_validate(
        {
            "query_type": "IQA",
            "query_scope": [*regions] or "Global",
            "distortion_source": "Inferred" if flags["distortion_detection"] else "Explicit",
            "distortions": None if flags["distortion_detection"] else {"Global": ["Blurs"]},
            "reference_mode": "No-Reference",
            "required_tool": None,
            "plan": flags,
            **changes,
        }
    )


def found(**boxes: Any) -> dict[str, Any]:
    return {"regions": [{"region": region, "box": box} for region, box in boxes.items()]}


def analyse(request: Any) -> dict[str, Any]:
    asked = json.loads(field_of(request, "distortion_set"))
    row = {"severity": "moderate", "explanation": "Soft."}
    return {"distortion_analysis": [{"region": r, "type": d, **row} for r, names in asked.items() for d in names]}


def detect(request: Any) -> dict[str, Any]:
    return {"distortion_set": {region: ["Noise"] for region in json.loads(field_of(request, "query_scope"))}}


def asking(location: Answer | list[Any], tools: Mapping[str, Tool] | None = None) -> tuple[Executor, ScriptedEngine]:
    """Return an Executor that asks a scripted model, except for the choice of tools, and the model's engine."""
    backend, engine = scripted_backend(by_stage({"location": location, "analysis": analyse, "detection": detect}))
    detector, analyst, locator = (stage(backend=backend) for stage in (Detector, Analyst, Locator))
    return Executor(detector, analyst, TableSelector(), tools or toolbox(), locator), engine


def offline() -> Executor:
    return Executor(MeasuredDetector(), MeasuredAnalyst(), TableSelector(), toolbox(), SaliencyLocator())


def execute(
    executor: Executor, image: LoadedImage, planned: PlannerOutput, reference: LoadedImage | None = None
) -> dspy.Prediction:
    return executor(image=image, query="Is it blurry?", plan=planned, reference=reference)


def stages(engine: ScriptedEngine) -> list[str]:
    return [stage_of(body) for body in engine.bodies]


def given_boxes(request: Any) -> dict[str, Any]:
    given, _, form = field_of(request, "boxes").partition("\n")
    assert form.startswith("Each is [left, top, right, bottom] in thousandths") == (given != "none")
    return {} if given == "none" else json.loads(given)


def pixels_of(box: list[int], image: LoadedImage) -> tuple[int, ...]:
    return tuple(round(edge * extent / 1000) for edge, extent in zip(box, (*image.size, *image.size), strict=True))


def test_the_locator_is_asked_once_before_the_boxes_are_used(image: LoadedImage) -> None:
    executor, engine = asking(found(vehicle=BOX))
    evidence = execute(executor, image, plan(VEHICLE)).evidence
    assert stages(engine) == ["location", "analysis"]
    assert field_of(engine.bodies[0], "regions") == '["vehicle"]'
    assert len(images_of(engine.bodies[0])) == 1
    assert given_boxes(engine.bodies[1]) == {VEHICLE: BOX}
    assert evidence.boxes == {VEHICLE: pixels_of(BOX, image)}
    assert str([*pixels_of(BOX, image)]) in format_evidence(evidence), "the answering model receives the box"


@pytest.mark.parametrize("planned", [plan(), plan(VEHICLE, query_type="Other", flags=dict.fromkeys(ANALYSE, False))])
def test_the_locator_is_not_asked_without_regions_or_sub_tasks(image: LoadedImage, planned: PlannerOutput) -> None:
    executor, engine = asking(found())
    assert execute(executor, image, planned).evidence.boxes in (None, {VEHICLE: None})
    assert "location" not in stages(engine)


def test_a_place_in_the_frame_needs_no_model(image: LoadedImage) -> None:
    executor, engine = asking(found(vehicle=BOX))
    evidence = execute(executor, image, plan(LEFT, VEHICLE)).evidence
    assert field_of(engine.bodies[0], "regions") == '["vehicle"]'
    assert evidence.boxes == {LEFT: (0, 0, image.width // 2, image.height), VEHICLE: pixels_of(BOX, image)}
    executor, engine = asking(found())
    assert execute(executor, image, plan(LEFT)).evidence.boxes == {LEFT: (0, 0, image.width // 2, image.height)}
    assert stages(engine) == ["analysis"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (found(vehicle=[250, 100, 1600, 900]), "outside of the image"),
        (found(vehicle=[-5, 100, 500, 900]), "greater than or equal to 0"),
        (found(vehicle=[500, 100, 250, 900]), "left < right"),
        (found(vehicle=[250, 900, 500, 100]), "top < bottom"),
        (found(vehicle=[250, 100, 500]), "at least 4 items"),
        (found(car=BOX), "must not have car"),
        (found(vehicle=BOX, sky=None), "must not have sky"),
        ({"regions": [*found(vehicle=BOX)["regions"], *found(vehicle=OTHER_BOX)["regions"]]}, "more than once"),
    ],
)
def test_an_impossible_box_is_rejected_with_the_reason(image: LoadedImage, wrong: dict[str, Any], why: str) -> None:
    executor, engine = asking([wrong, found(vehicle=BOX)])
    result = execute(executor, image, plan(VEHICLE))
    assert stages(engine) == ["location", "location", "analysis"]
    assert why in field_of(engine.bodies[1], "correction")
    assert result.evidence.boxes == {VEHICLE: pixels_of(BOX, image)}
    assert len(result.rejected_answers["localization"]) == 1


@pytest.mark.parametrize(
    ("said", "calls", "others"),
    [
        (found(vehicle=None, sky=BOX), 1, ["sky"]),
        (found(vehicle=[1, 1, 1, 1]), 3, []),
        (found(), 1, []),
        (bad_json(), 1, []),
        (empty(), 1, []),
    ],
    ids=["it is not there", "its box is never one", "no region", "prose", "nothing"],
)
def test_without_a_box_the_whole_image_is_measured_with_a_note(
    image: LoadedImage, said: Answer, calls: int, others: list[str]
) -> None:
    executor, engine = asking(said)
    planned = plan(VEHICLE, *others, required_tool="NIQE", flags={**ANALYSE, "tool_execution": True})
    result = execute(executor, image, planned)
    assert stages(engine) == ["location"] * calls + ["analysis"]
    boxes = dict.fromkeys(others, BOX)
    assert given_boxes(engine.bodies[-1]) == boxes
    assert result.evidence.boxes == {VEHICLE: None, **dict.fromkeys(others, pixels_of(BOX, image))}
    assert "No box was found for vehicle: the whole image was measured." in result.evidence.notes
    assert [call.box is None for call in result.evidence.tool_log] == [True, *[False] * len(others)]
    assert len(result.rejected_answers.get("localization", ())) == (0 if others else calls)
    assert (result.evidence.failures, gaps(planned, result.evidence)) == ({}, []), "it is no reason to plan again"


def test_a_locator_that_found_no_box_is_not_asked_again(image: LoadedImage) -> None:
    executor, engine = asking([found(vehicle=None), found(sky=BOX), found(sky=BOX, sea=None), found(sea=BOX)])

    def after(earlier: ExecutorOutput | None, *regions: str) -> ExecutorOutput:
        asked = {"image": image, "query": "Is it blurry?", "plan": plan(*regions), "reference": None}
        evidence: ExecutorOutput = executor(**asked, earlier=earlier).evidence
        return evidence

    none = after(None, VEHICLE, LEFT)
    assert after(none, "sky", VEHICLE, RIGHT).boxes == {
        "sky": None,
        VEHICLE: None,
        LEFT: (0, 0, image.width // 2, image.height),
        RIGHT: (image.width // 2, 0, *image.size),
    }
    assert stages(engine).count("location") == 1
    some = after(after(after(None, "sky"), "sky", "sea"), "sea")
    box = pixels_of(BOX, image)
    assert some.boxes == {"sky": box, "sea": box}, "the model gave a box for the sky"
    assert stages(engine).count("location") == 4


def test_regions_are_located_in_the_reference_if_there_is_one(image: LoadedImage) -> None:
    executor, engine = asking(found(vehicle=BOX))
    reference = load(Image.fromarray(scene()))
    noisy = load(Image.fromarray(noise(5, scene())))
    execute(executor, noisy, plan(VEHICLE, reference_mode="Full-Reference"), reference)
    assert [data for _, data in images_of(engine.bodies[0])] == [reference.data]


def spying(seen: list[tuple[np.ndarray, ...]], smallest: int = 1) -> dict[str, Tool]:
    """Return a toolbox of one full-reference tool that keeps its inputs."""

    def measure(*given: np.ndarray) -> float:
        seen.append(given)
        return 0.9

    return {"SPY": replace(TOOLS["SSIM"], name="SPY", measure=measure, smallest=smallest)}


@pytest.mark.parametrize(
    ("box", "smallest", "side"),
    [
        ([200, 200, 800, 800], 1, None),
        ([500, 500, 502, 502], 1, 96),
        ([0, 0, 2, 2], 1, 96),
        ([997, 997, 1000, 1000], 1, 96),
        ([500, 500, 502, 502], 120, 120),
    ],
)
def test_a_full_reference_tool_gets_the_same_crop_of_both_images(
    image: LoadedImage, box: list[int], smallest: int, side: int | None
) -> None:
    seen: list[tuple[np.ndarray, ...]] = []
    executor, _ = asking(found(vehicle=box), toolbox() | spying(seen, smallest))
    other = load(Image.fromarray(255 - scene()))
    planned = plan(
        VEHICLE,
        required_tool="SPY",
        reference_mode="Full-Reference",
        flags={**ANALYSE, "tool_execution": True},
    )
    evidence = execute(executor, image, planned, other).evidence
    (call,) = evidence.tool_log
    left, top, right, bottom = call.box
    assert (right - left, bottom - top) == (side, side) if side else call.box == evidence.boxes[VEHICLE]
    ((distorted, pristine),) = seen
    assert np.array_equal(distorted, image.pixels[top:bottom, left:right])
    assert np.array_equal(pristine, 255 - distorted)
    assert any(f"{right - left} x {bottom - top}" in note or str([*call.box]) in note for note in evidence.notes)


def test_each_half_is_analyzed_and_measured_by_itself(halves: LoadedImage) -> None:
    planned = plan(LEFT, RIGHT, required_tool="EDGE-SHARPNESS", flags={**EVERYTHING, "tool_selection": False})
    evidence = execute(offline(), halves, planned).evidence
    assert "Blurs" in evidence.distortion_set[LEFT]
    assert "Blurs" not in evidence.distortion_set[RIGHT]
    worse, better = ({score for _, score in evidence.quality_scores[half].values()} for half in (LEFT, RIGHT))
    assert max(worse) < min(better)
    assert set(evidence.measurements) == {LEFT, RIGHT}
    assert evidence.measurements[LEFT]["blur_extent"] > evidence.measurements[RIGHT]["blur_extent"]


def test_the_blurred_half_gets_the_worse_score(halves: LoadedImage) -> None:
    program = AgenticIQA.offline()
    left, right, both = (
        program(halves, f"Rate the quality of the {what}.") for what in (LEFT, RIGHT, "left half and the right half")
    )
    assert left.plan.query_scope == [LEFT]
    assert left.quality_score < both.quality_score < right.quality_score
    assert left.quality_score < right.quality_score - 0.4
    assert "whole image" not in left.quality_reasoning


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Is the left half blurry? A. Yes B. No", "A"),
        ("Is the right half blurry? A. Yes B. No", "B"),
        ("Which half is blurry?", "The left half"),
        ("Are the left half and the right half blurry? A. Yes B. No", UNABLE),
        ("Is the right half noisy and is the left half blurry?", UNABLE),
        ("Is the left half blurry or the right half noisy?", UNABLE),
    ],
)
def test_a_question_about_halves(halves: LoadedImage, question: str, answer: str) -> None:
    assert AgenticIQA.offline()(halves, question).final_answer == answer


def test_offline_without_a_box_the_whole_image_is_measured_with_a_note(halves: LoadedImage) -> None:
    program = AgenticIQA.offline()
    sky, whole = program(halves, "Rate the quality of the sky."), program(halves, "Rate the quality of the image.")
    assert sky.executor_evidence.boxes == {"sky": None}
    assert "No box was found for sky: the whole image was measured." in sky.executor_evidence.notes
    assert "The tools measured the whole image, because no box was found for sky." in sky.quality_reasoning
    assert sky.summarizer_result.quality_probs == whole.summarizer_result.quality_probs


def test_the_subject_is_located_offline() -> None:
    """A disc on plain ground is the subject; people and other things have no box."""
    rows, columns = np.mgrid[:384, :512]
    disc = (rows - 180) ** 2 + (columns - 300) ** 2 < 90**2
    picture = np.where(disc[..., None], np.tile(scene(), (2, 2, 1)), np.array([90, 140, 90], np.uint8))
    photo = load(Image.fromarray(picture))
    result = AgenticIQA.offline()(photo, "How sharp is the main subject? Use EDGE-SHARPNESS.")
    left, top, right, bottom = result.executor_evidence.boxes["main subject"]
    assert abs(left - 210) + abs(top - 90) + abs(right - 390) + abs(bottom - 270) < 40
    assert all(call.box == (left, top, right, bottom) for call in result.executor_evidence.tool_log)
    assert str([left, top, right, bottom]) in " ".join(result.executor_evidence.notes)
    row = json.loads(json.dumps(result.to_dict()))
    assert row["executor_evidence"]["boxes"]["main subject"] == [left, top, right, bottom]
    console = Console(file=io.StringIO(), width=150)
    console.print(card(row))
    assert f"in main subject, {right - left} x {bottom - top} pixels" in console.file.getvalue()  # type: ignore[attr-defined]
    boxes = SaliencyLocator()(image=photo, regions=["foreground", "background", "face"]).boxes
    assert boxes["foreground"] == (left, top, right, bottom)
    assert boxes["background"] is not None
    assert boxes["face"] is None
    assert SaliencyLocator()(image=photo, regions=["woman"]).boxes == {"woman": None}
