"""The shipped tool curves: full-reference tools agree at both ends; those for one distortion give no false alarms."""

import numpy as np
import pytest

from agenticiqa.eval.research.distort import distort
from agenticiqa.programs.images import load
from agenticiqa.programs.tools import TOOLS, toolbox
from agenticiqa.programs.tools.tool_curves import usable

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def crops(examples):
    """The middles of the example photos, 256 pixels a side."""
    photos = [load(examples / f"{name}.webp").pixels for name in ("astronaut", "chelsea", "coffee")]
    return [photo[20:276, 100:356] for photo in photos]


FULL_REFERENCE = [name for name, card in TOOLS.items() if card.kind == "FR"]


@pytest.mark.parametrize("name", FULL_REFERENCE)
def test_full_reference_tools_of_the_shipped_profile_agree_at_both_ends(name, crops):
    card = toolbox()[name]
    assert all(card.curve(card.measure(photo, photo)) >= 4.5 for photo in crops)
    worst = [
        np.mean([card.curve(card.measure(distort(photo, kind, 5), photo)) for photo in crops])
        for kind in ("gaussian_blur", "white_noise", "jpeg")
    ]
    assert min(worst) <= 2.1
    assert np.mean(worst) <= 2.3
    assert name not in ("FR-FUSION", "HaarPSI", "FSIM") or max(worst) <= 2.25


NOTHING_WRONG = {
    "NOISE-SIGMA": 0.0,
    "BLOCKINESS": 1.0,
    "EXPOSURE-ERROR": 0.0,
    "BLUR-EXTENT": 0.2,
    "EDGE-SHARPNESS": 0.8,
}


@pytest.mark.parametrize(("name", "raw"), NOTHING_WRONG.items())
def test_tools_for_one_distortion_rate_images_without_it_as_excellent(name, raw):
    assert usable(name, "default")(raw) >= 4.5
