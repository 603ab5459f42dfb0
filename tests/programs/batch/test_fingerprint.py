"""The fingerprint of a run depends on the settings that determine its results, and on no others."""

import json
import shutil
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa import configs
from agenticiqa.configs import Config
from agenticiqa.programs.batch.plan_run import run_settings
from agenticiqa.programs.images.files import digest


class Sharp(dspy.Module):
    """A program with one predictor."""

    def __init__(self, instruction: str = "Is it sharp?") -> None:
        super().__init__()
        self.ask = dspy.Predict(dspy.Signature("image -> answer", instruction))


def fingerprint(program: dspy.Module | None = None, **config: Any) -> str:
    return digest(run_settings(program or Sharp(), Config.model_validate(config)))


def test_the_same_settings_have_the_same_fingerprint() -> None:
    assert fingerprint() == fingerprint()
    assert len(fingerprint()) == 16


VLLM = {"backend": "vllm.some-model", "api_base": "http://10.0.0.1:8000/v1"}


@pytest.mark.parametrize(
    "config",
    [
        {"fusion": {"eta": 1.0}},
        {"fusion": {"model_error": 0.0}},
        {"calibration": "table5"},
        {"max_side": 640},
        {"pyiqa": ["topiq_nr"]},
        {"max_replan_iterations": 0},
        {"attempts": 1},
        {"planner": VLLM},
        {"planner": {**VLLM, "sees_images": False}},
    ],
    ids=lambda config: next(iter(config)),
)
def test_settings_that_may_change_a_result_change_the_fingerprint(config: dict[str, Any]) -> None:
    without = fingerprint(planner=VLLM) if "sees_images" in config.get("planner", {}) else fingerprint()
    assert fingerprint(**config) != without


@pytest.mark.parametrize(
    "stage",
    [
        {"api_base": "http://10.0.0.2:9000/v1"},
        {"timeout": 5.0},
        {"max_retries": 0},
        {"price": {"input": 1, "output": 2}},
        {"api_key_env": "MY_KEY"},
    ],
    ids=lambda stage: next(iter(stage)),
)
def test_connection_settings_do_not_change_the_fingerprint(stage: dict[str, Any]) -> None:
    assert fingerprint(planner={**VLLM, **stage}) == fingerprint(planner=VLLM)
    assert fingerprint(cache=False) == fingerprint()


def test_settings_that_an_offline_stage_ignores_do_not_count() -> None:
    assert fingerprint(planner={"sees_images": False}, executor={"temperature": 1.0}) == fingerprint()
    assert fingerprint(planner={**VLLM, "temperature": 1.0}) != fingerprint(planner=VLLM)


def test_a_profile_counts_with_its_resolved_settings() -> None:
    model = dict.fromkeys(configs.STAGES, VLLM)
    fast = {"planner": VLLM, "summarizer": VLLM, "max_replan_iterations": 0}
    assert fingerprint(profile="fast", **model) == fingerprint(**fast) != fingerprint(**model)


def test_prompts_and_worked_examples_count() -> None:
    shown = Sharp()
    shown.ask.demos = [dspy.Example(image="a.png", answer="yes")]
    assert len({fingerprint(Sharp()), fingerprint(Sharp("Is it noisy?")), fingerprint(shown)}) == 3


def test_a_calibration_counts_by_its_curves_and_not_by_its_name(tmp_path: Path) -> None:
    shipped = Path(configs.__file__).parent / "calibration" / "default.yaml"
    copy = tmp_path / "mine.yaml"
    shutil.copy(shipped, copy)
    assert fingerprint(calibration=str(copy)) == fingerprint()
    first = shipped.read_text().partition("betas: [")[2].partition(",")[0]
    copy.write_text(shipped.read_text().replace(f"betas: [{first},", f"betas: [{float(first) * 1.0001},", 1))
    assert fingerprint(calibration=str(copy)) != fingerprint()


def test_the_settings_are_plain_json_without_any_address() -> None:
    settings = run_settings(Sharp(), Config.model_validate({"planner": VLLM}))
    text = json.dumps(settings)
    assert json.loads(text) == settings
    assert "10.0.0.1" not in text
    assert set(settings) == {"version", "config", "calibration", "prompts", "asked"}


def test_the_order_of_keys_does_not_count() -> None:
    assert digest({"a": 1, "b": [1, 2]}) == digest({"b": [1, 2], "a": 1}) != digest({"a": 1, "b": [2, 1]})
