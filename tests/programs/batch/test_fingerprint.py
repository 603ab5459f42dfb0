"""The fingerprint of a run depends on the settings that determine its results, and on no others."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import dspy
import pytest

from agenticiqa import configs
from agenticiqa.configs import STAGES, Config, StageConfig
from agenticiqa.configs.options import Effect, Follows
from agenticiqa.configs.schema import FusionConfig
from agenticiqa.programs.batch.plan_run import run_settings
from agenticiqa.programs.images.files import digest


class Sharp(dspy.Module):
    """A program with one predictor."""

    def __init__(self, instruction: str = "Is it sharp?") -> None:
        super().__init__()
        self.ask = dspy.Predict(dspy.Signature("image -> answer", instruction))


def fingerprint(program: dspy.Module | None = None, **config: Any) -> str:
    return digest(run_settings(program or Sharp(), Config.model_validate(config)))


VLLM = {"backend": "vllm.some-model", "api_base": "http://10.0.0.1:8000/v1"}
ALL: Mapping[str, Any] = dict.fromkeys(STAGES, VLLM)

# What changed, the configuration before and after, and whether an image is assessed again.
CHANGES: list[tuple[str, Mapping[str, Any], Mapping[str, Any], bool]] = [
    ("nothing", {}, {}, False),
    ("eta of the fusion", {}, {"fusion": {"eta": 1.0}}, True),
    ("error of the model", {}, {"fusion": {"model_error": 0.0}}, True),
    ("tool_curves", {}, {"tool_curves": "table5"}, True),
    ("largest side", {}, {"max_side": 640}, True),
    ("metrics of pyiqa", {}, {"pyiqa": ["topiq_nr"]}, True),
    ("replans", {}, {"max_replan_iterations": 0}, True),
    ("attempts", {}, {"attempts": 1}, True),
    ("model", {}, {"planner": VLLM}, True),
    ("temperature", {"planner": VLLM}, {"planner": {**VLLM, "temperature": 1.0}}, True),
    ("images of the planner", {"planner": VLLM}, {"planner": {**VLLM, "sees_images": False}}, True),
    ("mode", ALL, {**ALL, "mode": "fast"}, True),
    (
        "the settings of a profile in words",
        {"planner": VLLM, "summarizer": VLLM, "max_replan_iterations": 0},
        {**ALL, "mode": "fast"},
        False,
    ),
    ("address", {"planner": VLLM}, {"planner": {**VLLM, "api_base": "http://10.0.0.2:9000/v1"}}, False),
    ("timeout", {"planner": VLLM}, {"planner": {**VLLM, "timeout": 5.0}}, False),
    ("network retries", {"planner": VLLM}, {"planner": {**VLLM, "max_retries": 0}}, False),
    ("price", {"planner": VLLM}, {"planner": {**VLLM, "price": {"input": 1, "output": 2}}}, False),
    ("name of the key", {"planner": VLLM}, {"planner": {**VLLM, "api_key_env": "MY_KEY"}}, False),
    ("cache", {}, {"cache": False}, False),
    ("largest image", {}, {"max_pixels": 9}, False),
    ("settings of offline stages", {}, {"planner": {"sees_images": False}, "executor": {"temperature": 1.0}}, False),
]


@pytest.mark.parametrize(("before", "after", "again"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_an_image_is_assessed_again_if_a_setting_of_its_result_changed(
    before: Mapping[str, Any], after: Mapping[str, Any], again: bool
) -> None:
    assert (fingerprint(**before) != fingerprint(**after)) == again
    assert len(fingerprint(**after)) == 16


class Limited(Config):
    """A configuration with two more keys, which nothing else knows."""

    lowest: Annotated[int | None, Effect.NONE] = None
    contrast: Annotated[float, Effect.ON_RESULTS] = 1


def test_an_added_key_is_recorded_as_it_declares() -> None:
    plain, limited, changed = (run_settings(Sharp(), config) for config in (Config(), Limited(lowest=9), Limited()))
    assert limited == changed == {**plain, "config": {**plain["config"], "contrast": 1.0}}
    assert digest(run_settings(Sharp(), Limited(contrast=2))) != digest(changed)


@pytest.mark.parametrize("section", [Config, StageConfig, FusionConfig])
def test_a_key_without_a_declared_effect_is_refused_when_its_class_is_defined(section: type) -> None:
    with pytest.raises(TypeError, match=r"^Mine\.lowest declares no effect on results: annotate it with a member of"):
        type("Mine", (section,), {"__annotations__": {"lowest": int}, "lowest": 1})


def test_a_key_that_follows_an_unknown_key_is_refused_when_its_class_is_defined() -> None:
    with pytest.raises(TypeError, match=r"^Mine has no key server, which another key follows$"):

        class Mine(StageConfig):
            port: Annotated[int | None, Effect.NONE, Follows(("server",))] = None


# Another value of each key that is recorded by what it names or sets; None where a test of its own needs its files.
BY_CONTENT: Mapping[str, Any] = {
    **ALL,
    "levels": {**VLLM, "prompt": "q-align"},
    "mode": None,  # a row of CHANGES
    "tool_curves": "table5",
    "adapter": None,  # tests/eval/commands/test_calibrate_adapter.py
    "prompts": None,  # the next test
}


def test_every_key_that_is_recorded_by_content_is_recorded() -> None:
    assert BY_CONTENT.keys() == Config.keys_with(Effect.BY_CONTENT)
    assert FusionConfig.keys_with(Effect.BY_CONTENT) == {"profile"}  # tests/programs/fusion/test_configured.py
    for key, value in BY_CONTENT.items():
        assert value is None or fingerprint(**{key: value}) != fingerprint(), key


def test_prompts_and_worked_examples_count() -> None:
    shown = Sharp()
    shown.ask.demos = [dspy.Example(image="a.png", answer="yes")]
    assert len({fingerprint(Sharp()), fingerprint(Sharp("Is it noisy?")), fingerprint(shown)}) == 3


def test_tool_curves_count_by_their_numbers_and_not_by_the_name_of_their_file(tmp_path: Path) -> None:
    shipped = Path(configs.__file__).parent / "tool_curves" / "default.yaml"
    copy = tmp_path / "mine.yaml"
    shutil.copy(shipped, copy)
    assert fingerprint(tool_curves=str(copy)) == fingerprint()
    first = shipped.read_text().partition("betas: [")[2].partition(",")[0]
    for old, new in ((f"betas: [{first},", f"betas: [{float(first) * 1.0001},"), ("residual: 0.", "residual: 1.")):
        copy.write_text(shipped.read_text().replace(old, new, 1))
        assert fingerprint(tool_curves=str(copy)) != fingerprint(), "a residual is the weight of a tool in the fusion"


def test_the_settings_are_plain_json_without_any_address() -> None:
    settings = run_settings(Sharp(), Config.model_validate({"planner": VLLM}))
    text = json.dumps(settings)
    assert json.loads(text) == settings
    assert "10.0.0.1" not in text
    assert set(settings) == {"version", "config", "tool_curves", "prompts", "asked"}


def test_the_order_of_keys_does_not_count() -> None:
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": [1, 2], "a": 1}) != digest({"a": 1, "b": [2, 1]})
