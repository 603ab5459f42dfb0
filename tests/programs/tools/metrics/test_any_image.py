"""Every image gives a finite value or a one-line refusal, with the same bits every time, and no crash."""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools import TOOLS, toolbox
from support.distortion_levels import scene

pytestmark = pytest.mark.slow

NO_REFERENCE = [tool for tool in TOOLS.values() if tool.kind == "NR"]


def filled(size: tuple[int, int], content: str) -> np.ndarray:
    image = np.zeros((*size, 3), np.uint8)
    if content == "noise":
        image[:] = np.random.default_rng(0).integers(0, 256, image.shape, dtype=np.uint8)
    elif content == "gray noise":
        image[:] = np.random.default_rng(0).integers(0, 256, (*size, 1), dtype=np.uint8)
    elif content == "scene":
        image[:] = scene(*size)
    elif content == "stripes":
        image[:, ::2] = 255
    elif content == "one pixel":
        image[size[0] // 2, size[1] // 2] = 255
    else:
        image[:] = {"black": 0, "white": 255, "gray": 119, "red": (200, 30, 30)}[content]
    return image


CONTENTS = st.sampled_from(["black", "white", "gray", "red", "noise", "gray noise", "scene", "stripes", "one pixel"])
SIDES = st.one_of(st.integers(1, 40), st.integers(180, 300), st.sampled_from([8, 16, 32, 96, 192, 448]))
SIZES = st.one_of(
    st.tuples(SIDES, SIDES), st.sampled_from([(8, 8), (1, 1), (8, 4000), (4000, 8), (1, 5000), (200, 2000)])
)


@pytest.mark.parametrize("name", [tool.name for tool in NO_REFERENCE])
@pytest.mark.filterwarnings("error")
@settings(max_examples=30, deadline=None, derandomize=True)
@given(size=SIZES, content=CONTENTS)
def test_every_tool_gives_a_finite_value_or_refuses_in_one_line(name, size, content):
    tool = toolbox()[name]
    image = filled(size, content)
    before = image.copy()
    value, refusal = None, ""
    try:
        value = tool.measure(image)
    except ToolError as error:
        refusal = str(error)
    if value is None:
        assert refusal
        assert "\n" not in refusal
        assert min(size) < tool.smallest or (name in ("NIQE", "BRISQUE") and content not in ("noise", "scene"))
    else:
        assert type(value) is float
        assert np.isfinite(value)
        assert 1 <= tool.curve(value) <= 5
    assert np.array_equal(image, before)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(size=SIZES, content=CONTENTS)
@example(size=(40, 300), content="scene")
def test_the_offline_program_scores_any_image_and_records_each_tool_that_refused(size, content):
    result = AgenticIQA.offline()(Image.fromarray(filled(size, content)), "Rate the quality with NIQE.")
    assert 1 <= result.quality_score <= 5
    calls = result.executor_evidence.tool_log
    assert "NIQE" in [call.tool for call in calls]
    refused = [call for call in calls if call.error is not None]
    assert [call.raw is None for call in calls] == [call in refused for call in calls]
    assert refused or min(size) >= TOOLS["NIQE"].smallest
    for call in refused:
        assert "\n" not in call.error
        assert any(call.error in note for note in result.executor_evidence.notes)


@pytest.mark.parametrize("content", ["black", "scene"])
def test_large_images_read_in_parts_are_scored_too(content):
    image = np.tile(filled((300, 400), content), (5, 4, 1))
    for tool in NO_REFERENCE:
        try:
            assert np.isfinite(tool.measure(image))
        except ToolError:
            assert content == "black"


def digest() -> str:
    """Return a digest of all values of the no-reference tools for an image with effects of bands, parts and borders."""
    image = scene(400, 700)
    values = [tool.measure(image) for tool in NO_REFERENCE]
    maps = [tool.map(image) for tool in NO_REFERENCE if tool.map]
    return hashlib.sha256(b"".join(np.asarray(each, float).tobytes() for each in (values, *maps))).hexdigest()


@pytest.mark.slow
def test_the_bits_are_the_same_in_every_run_thread_and_process():
    alone = digest()
    with ThreadPoolExecutor(4) as pool:
        assert {future.result() for future in [pool.submit(digest) for _ in range(4)]} == {alone}
    code = "import test_any_image; print(test_any_image.digest())"
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "2")
    environment["PYTHONPATH"] = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == alone
