"""A tool is found by its name in any spelling, and run once per image, reference and curve."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools import TOOLS, find_tool, get_tool, run_tool, toolbox
from agenticiqa.programs.tools.tool_curves import ToolCurve
from agenticiqa.signatures.categories import OVERALL
from agenticiqa.signatures.types import GLOBAL
from support.distortion_levels import noise, scene
from support.images import loaded

KNOWN = ["SSIM", "MS_SSIM", "topiq-fr"]
LINE = ToolCurve((0, 0, 0, 1, 1), (0, 4), "a line")


@pytest.mark.parametrize("name", ["MS_SSIM", "ms ssim", "Ms-Ssim", "msssim", " MS SSIM "])
def test_a_tool_is_found_whatever_its_case_and_separators(name: str) -> None:
    assert find_tool(name, KNOWN) == "MS_SSIM"
    assert get_tool(name, TOOLS) is TOOLS["MS-SSIM"]
    assert find_tool("topiq", KNOWN) is find_tool("", KNOWN) is find_tool("SIM", KNOWN) is None
    with pytest.raises(ToolError, match=r"unknown tool 'LPIPS': expected .*SSIM"):
        get_tool("LPIPS", TOOLS)


def test_a_tool_runs_once_per_image_reference_and_curve_also_under_threads() -> None:
    calls: list[int] = []

    def measure(image: np.ndarray, reference: np.ndarray) -> float:
        calls.append(1)
        return float(np.abs(image.astype(float) - reference).mean())

    tool = replace(TOOLS["SSIM"], measure=measure, curve=LINE)
    image, first, second = (loaded(pixels) for pixels in (noise(2, scene(64, 64)), scene(64, 64), scene(64, 64, 3)))

    def run(subject: str) -> float | None:
        return run_tool(tool, image, first, region=GLOBAL, distortion=subject).raw

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(run, ["Noise", OVERALL] * 8))
    assert len(set(found)) == 1
    assert len(calls) == 1
    call = run_tool(tool, image, first, region="sky", distortion="Noise")
    assert (call.region, call.distortion, len(calls)) == ("sky", "Noise", 1)
    run_tool(tool, image, second, region=GLOBAL, distortion=OVERALL)
    assert len(calls) == 2
    run_tool(replace(tool, curve=replace(LINE, fitted_on="another")), image, first, region=GLOBAL, distortion="")
    assert len(calls) == 3


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.is_shared])
def test_kept_and_computed_values_are_equal(name: str) -> None:
    tool, image = toolbox()[name], loaded(noise(2, scene(200, 240)))
    assert tool.measure(image) == tool.measure(image.pixels)
    assert run_tool(tool, image, None, region=GLOBAL, distortion=OVERALL).raw == tool.measure(image.pixels)


def test_a_failing_tool_is_recorded_and_does_not_raise() -> None:
    def broken(image: np.ndarray) -> float:
        raise ZeroDivisionError("no edge")

    image, tool = loaded(scene(64, 64)), TOOLS["NIQE"]
    for made, error in (
        (replace(tool, measure=broken), "ZeroDivisionError: no edge"),
        (replace(tool, measure=lambda image: float("nan")), "NIQE returned nan, which is not a valid measurement"),
        (TOOLS["SSIM"], "SSIM needs a reference; give one"),
    ):
        call = run_tool(made, image, None, region=GLOBAL, distortion=OVERALL)
        assert (call.raw, call.calibrated, call.error) == (None, None, error)
