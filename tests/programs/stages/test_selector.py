"""Which tools a model chooses from."""

import json

from agenticiqa.programs.stages.protocols import Selected
from agenticiqa.programs.stages.selector import Selector
from agenticiqa.programs.tools import toolbox
from support.engine import scripted_backend
from support.fake_server import by_stage, field_of
from support.scripted_answers import select

TOOLS = toolbox()


def test_a_model_chooses_from_the_tools_that_follow_the_distortions() -> None:
    backend, engine = scripted_backend(by_stage({"selection": select}))
    found = Selector(backend=backend)(
        {"Global": ["Noise"]}, [TOOLS["BLUR-EXTENT"], TOOLS["NOISE-SIGMA"], TOOLS["NIQE"]]
    )
    (request,) = engine.bodies
    assert [line.split()[0] for line in field_of(request, "available_tools").splitlines()] == ["NOISE-SIGMA", "NIQE"]
    assert json.loads(field_of(request, "distortion_set")) == {"Global": ["Noise"]}
    assert found.selected_tools == {"Global": {"Noise": "NOISE-SIGMA"}}


def test_without_a_tool_that_suits_no_model_is_asked() -> None:
    """As in a tiny image, which only tools for single distortions can measure."""
    backend, engine = scripted_backend(by_stage({"selection": select}))
    assert Selector(backend=backend)({"Global": ["Contrast"]}, [TOOLS["NOISE-SIGMA"]]) == Selected({})
    assert engine.bodies == []
