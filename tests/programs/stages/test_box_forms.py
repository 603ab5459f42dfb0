"""Boxes in the form of each model family: the requested form, and the measured pixels."""

import json
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agenticiqa.programs.backends.choice import Backend, without_place
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.images import LoadedImage, load
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.programs.stages.box_forms import box_form, boxes_for_prompt
from agenticiqa.programs.stages.locator import Locator
from support.engine import ScriptedEngine, scripted_lm
from support.fake_server import field_of

SIZE = (640, 480)
RIGHT_HALF = (320, 0, 640, 480)  # in pixels
THOUSANDTHS, FRACTIONS = [500, 0, 1000, 1000], [0.5, 0, 1, 1]
IN_28 = [322, 0, 644, 476]  # of 644 x 476, the size of 640 x 480 for Qwen2.5-VL: 23 x 17 patches


def image(size: tuple[int, int] = SIZE) -> LoadedImage:
    return load(Image.new("RGB", size, (90, 120, 90)))


def locate(model: str, *answers: Any, size: tuple[int, int] = SIZE, key: str = "box") -> tuple[Any, ScriptedEngine]:
    """Locate the cat with a model of that name that answers with these boxes in turn."""
    texts = [json.dumps({"location": {"regions": [{"region": "cat", key: box}]}}) for box in answers]
    lm, engine = scripted_lm(texts, name=model)
    return Locator(backend=Backend((lm,)))(image=image(size), regions=["cat"]), engine


FAMILIES = {
    "vllm/Qwen/Qwen2.5-VL-7B-Instruct at host:8000": (IN_28, "pixels of the image, which is 644 wide and 476 high"),
    "hosted_vllm/Qwen/Qwen2.5-VL-72B-Instruct-AWQ": (IN_28, "pixels of the image, which is 644 wide"),
    "ollama/qwen2.5vl:7b at host": (IN_28, "pixels of the image, which is 644 wide"),
    "llamacpp/Qwen2.5-VL-7B-Instruct-Q4_K_M.gguf at localhost:8080": (IN_28, "pixels of the image, which is 644 wide"),
    "vllm/TianheWu/VisualQuality-R1-7B at host": (IN_28, "pixels of the image, which is 644 wide"),
    "vllm/Qwen/Qwen3-VL-8B-Instruct at host": (THOUSANDTHS, "[left, top, right, bottom] in thousandths"),
    "vllm/Qwen/Qwen2-VL-7B-Instruct at host": (THOUSANDTHS, "[left, top, right, bottom] in thousandths"),
    "vllm/OpenGVLab/InternVL3-8B at host": (THOUSANDTHS, "[left, top, right, bottom] in thousandths"),
    "openai/glm-4.5v at host": (THOUSANDTHS, "[left, top, right, bottom] in thousandths"),
    "google/gemini-2.5-flash": ([0, 500, 1000, 1000], "[top, left, bottom, right] in thousandths"),
    "gemini/gemini-3-pro": ([0, 500, 1000, 1000], "[top, left, bottom, right] in thousandths"),
    "anthropic/claude-sonnet-4-5": ([*RIGHT_HALF], "pixels of the image, which is 640 wide and 480 high"),
    "vllm/moonshotai/Kimi-VL-A3B-Instruct at host": (FRACTIONS, "[left, top, right, bottom] in fractions"),
    "openai/qwen-vl-max at host": (THOUSANDTHS, "[left, top, right, bottom] in thousandths"),
    "openai/gpt-5": (THOUSANDTHS, "[left, top, right, bottom] in thousandths"),
    "vllm/some-model at host": (THOUSANDTHS, "[left, top, right, bottom] in thousandths"),
}


@pytest.mark.parametrize("model", FAMILIES)
def test_a_box_is_asked_for_and_measured_in_the_form_of_the_family(model: str) -> None:
    box, asked = FAMILIES[model]
    located, engine = locate(model, box)
    assert located.boxes == {"cat": RIGHT_HALF}
    assert asked in field_of(engine.bodies[0], "form")
    assert len(engine.requests) == 1
    (note,) = located.remarks
    assert note.startswith("Box coordinates were read as ")
    assert ("format is unknown" in note) == any(name in model for name in ("gpt", "some-model", "vl-max"))
    fractions = [0, 0.5, 1, 1] if "gemini" in model else FRACTIONS
    assert locate(model, fractions)[0].boxes == {"cat": RIGHT_HALF}, "fractions are fractions in every form"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "size", "box", "pixels"),
    [
        # Scaled to 1568 on the longer side, as 56 x 28 patches are within the budget.
        ("anthropic/claude-sonnet-4-5", (3136, 1568), [784, 0, 1568, 784], (1568, 0, 3136, 1568)),
        ("anthropic/claude-opus-4-8", (3840, 2160), [0, 0, 1288, 724], (0, 0, 1920, 1080)),
        # 16,384 patches of 28 for vLLM, 4,096 for llama.cpp.
        ("vllm/Qwen2.5-VL-3B at h", (8000, 4000), [2520, 0, 5040, 2520], (4000, 0, 8000, 4000)),
        ("llamacpp/Qwen2.5-VL-3B at h", (8000, 4000), [1260, 0, 2520, 1260], (4000, 0, 8000, 4000)),
        ("vllm/Qwen2.5-VL-3B at h", (32, 32), [28, 0, 56, 56], (16, 0, 32, 32)),  # scaled up to four patches
        # A patch over the border, as a server may resize a little differently.
        ("vllm/Qwen2.5-VL-3B at h", SIZE, [322, 0, 650, 480], RIGHT_HALF),
    ],
)
def test_pixels_are_those_of_the_image_as_the_model_sees_it(
    model: str, size: tuple[int, int], box: list[int], pixels: tuple[int, ...]
) -> None:
    found = locate(model, box, size=size)[0].boxes["cat"]
    assert all(abs(edge - meant) <= 0.02 * max(size) for edge, meant in zip(found, pixels, strict=True))


def test_pixels_are_those_of_the_smaller_copy_that_was_sent() -> None:
    sent = image((1280, 960)).sent_within(640)
    assert (sent.size, sent.sent_size) == ((1280, 960), SIZE)
    lm, engine = scripted_lm(
        [json.dumps({"location": {"regions": [{"region": "cat", "box": IN_28}]}})], name="v/Qwen2.5-VL"
    )
    located = Locator(backend=Backend((lm,)))(image=sent, regions=["cat"])
    assert located.boxes == {"cat": (640, 0, 1280, 960)}
    assert "644 wide" in field_of(engine.bodies[0], "form")


@pytest.mark.parametrize(
    ("model", "wrong", "why"),
    [
        ("v/some-model", [320, 0, 640, 480], "ends exactly at the size of the image in pixels, 640 x 480"),
        ("v/some-model", [320, 0, 1640, 480], "lies outside of the image with its lower right corner at 1000, 1000"),
        ("v/some-model", [640, 0, 320, 480], "has no left < right"),
        ("v/Qwen3-VL", [100, 100, 1280, 960], "lies outside"),
        ("v/Qwen2.5-VL", THOUSANDTHS, "lies outside of the image with its lower right corner at 644, 476"),
        ("anthropic/claude-sonnet-4-5", [500, 0, 1000, 1000], "lies outside"),
        ("gemini/gemini-3-pro", [900, 10, 100, 20], "has no left < right and top < bottom"),
    ],
)
def test_a_contradictory_box_is_rejected_with_the_form(model: str, wrong: list[int], why: str) -> None:
    right = FAMILIES["google/gemini-2.5-flash"][0] if "gemini" in model else FRACTIONS
    located, engine = locate(model, wrong, right)
    correction = field_of(engine.bodies[1], "correction")
    assert why in correction
    assert field_of(engine.bodies[1], "form") in correction
    assert located.boxes == {"cat": RIGHT_HALF}


@pytest.mark.parametrize(
    ("model", "box", "unit"),
    [
        ("openai/gpt-5", [320, 0, 640, 480], "pixels of 640 x 480"),
        ("v/some-model", [320, 0, 640, 480], "pixels of 640 x 480"),
        ("v/Qwen2.5-VL", THOUSANDTHS, "thousandths"),
        ("anthropic/claude-sonnet-4-5", THOUSANDTHS, "thousandths"),
    ],
)
def test_a_repeated_contradictory_box_is_read_in_the_other_form(model: str, box: list[int], unit: str) -> None:
    located, engine = locate(model, box)
    assert located.boxes == {"cat": RIGHT_HALF}
    assert len(engine.requests) == 2
    assert located.remarks == [
        f"Box coordinates were read as {unit} (because the model repeated them after a request for another format)."
    ]


def test_an_impossible_box_is_rejected_in_every_form() -> None:
    for box in ([640, 0, 320, 480], [0, 0, 3000, 4000]):
        with pytest.raises(Unanswered):
            locate("v/some-model", box)


def test_a_box_in_thousandths_may_end_at_the_image_size_in_pixels() -> None:
    assert locate("v/Qwen3-VL", [320, 0, 640, 480])[0].boxes == {"cat": (204, 0, 410, 231)}


def test_the_keys_of_each_model_family_are_read() -> None:
    assert locate("v/Qwen2.5-VL", IN_28, key="bbox_2d")[0].boxes == {"cat": RIGHT_HALF}
    assert locate("gemini/gemini-3-pro", [0, 500, 1000, 1000], key="box_2d")[0].boxes == {"cat": RIGHT_HALF}
    lm, engine = scripted_lm(
        ['[{"box_2d": [0, 500, 1000, 1000], "label": "cat"}]', '[{"box": [500, 0, 1000, 1000], "label": "cat"}]'],
        name="v/some-model",
    )
    assert Locator(backend=Backend((lm,)))(image=image(), regions=["cat"]).boxes == {"cat": RIGHT_HALF}
    assert "a box_2d may have y first" in field_of(engine.bodies[1], "correction")


def test_a_fallback_uses_the_form_of_the_first_model_and_the_note_states_this() -> None:
    first, _ = scripted_lm([dspy.LMTransportError("down", model="v/Qwen2.5-VL")], name="v/Qwen2.5-VL")
    text = json.dumps({"location": {"regions": [{"region": "cat", "box": IN_28}]}})
    second, engine = scripted_lm([text], name="anthropic/claude-sonnet-4-5")
    located = Locator(backend=Backend((first, second)))(image=image(), regions=["cat"])
    assert located.boxes == {"cat": RIGHT_HALF}
    assert "644 wide" in field_of(engine.bodies[0], "form")
    assert located.remarks == [
        "Box coordinates were read as pixels of 644 x 476 (the requested format; the model's own format is unknown)."
    ]


def test_without_a_box_there_is_no_note() -> None:
    located, _ = locate("v/some-model", None)
    assert (located.boxes, [*located.remarks]) == ({"cat": None}, [])


SIDES = st.integers(1, 5000)


@given(st.sampled_from([*FAMILIES]), SIDES, SIDES, st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_boxes_are_written_in_the_form_in_which_they_are_read(
    model: str, width: int, height: int, shares: list[float]
) -> None:
    size = (width, height)
    form = box_form(without_place(model), size)
    across, down = sorted(round(share * width) for share in shares[:2]), sorted(round(s * height) for s in shares[2:])
    box = (across[0], down[0], across[1], down[1])
    written = form.written(box, size)
    try:
        back = form.in_pixels(written, size)
    except ValueError:
        return  # a sliver, or a box that might be one in pixels
    if max(written) > 1 or form.unit == "fractions":
        assert all(abs(one - other) <= 1 + max(size) / 400 for one, other in zip(box, back, strict=True))


def test_without_boxes_the_prompt_has_none() -> None:
    assert boxes_for_prompt({"sky": None}, image(), "v/m") == boxes_for_prompt({}, image(), "v/m") == "none"


def test_prompts_of_families_differ_only_in_the_form() -> None:
    (question,) = (m for _, m in Locator().named_sub_modules() if isinstance(m, CheckedPredict))
    assert "thousandths" not in question.predictor.signature.instructions
    assert len({box_form(model.replace("@host", ""), SIZE).asked for model in FAMILIES}) == 5
