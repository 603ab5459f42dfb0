"""Fusion profiles in a configuration: which model and tools they fit, and what is reported if they do not."""

import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

from agenticiqa.configs import Config, ConfigError, FusionConfig, load_config
from agenticiqa.eval.cli import main
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.plan_run import run_settings
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.fusion.configured import curves_digest
from agenticiqa.programs.fusion.formula import ScoreFusion, default_fusion
from agenticiqa.programs.fusion.interval import FusedScore, backend_shown, fused_score
from agenticiqa.programs.fusion.profile import write_fusion_profile
from agenticiqa.programs.images.files import digest
from agenticiqa.programs.saving import scoring_prompt
from agenticiqa.programs.tools import toolbox
from agenticiqa.signatures.types import ExecutorOutput
from support.fake_server import by_stage, fake_server, server_error
from support.profiles import TYPICAL, Halfway
from support.scripted_answers import SCRIPT
from support.simulated_tuning import SCORER

SERVER = "http://127.0.0.1:9/v1"  # no request is sent
TOOLS = ("LEARNED-IQA",)


def written(folder: Path, **changes: Any) -> Path:
    """Write a profile for vllm.test to a file."""
    known = {"backend": "vllm.test", "toolset": TOOLS, "curves": curves_digest(TOOLS, toolbox())}
    write_fusion_profile(folder / "profile.yaml", TYPICAL.model_copy(update={**known, "model_error": 0.7, **changes}))
    return folder / "profile.yaml"


def configured(folder: Path, backend: str = "vllm.test", **changes: Any) -> Config:
    """Write a configuration that names the profile."""
    return Config(fusion=str(folder / "profile.yaml"), **changes).with_backend(backend, SERVER)


def test_a_profile_is_used_from_the_folder_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "settings"
    folder.mkdir()
    written(folder)
    stage = {"backend": "vllm.test", "api_base": SERVER}
    (folder / "mine.yaml").write_text(yaml.safe_dump({"summarizer": stage, "fusion": "profile.yaml"}))
    monkeypatch.chdir(tmp_path)
    for name in (folder / "mine.yaml", "settings/mine.yaml"):
        program = AgenticIQA.from_config(name)
        assert program.summarizer.fusion.profile.model_error == 0.7
        assert program.summarizer.fusion.model_error == 0.7
    monkeypatch.chdir(folder)
    assert AgenticIQA.from_config("mine.yaml").summarizer.fusion.profile.backend == "vllm.test"


def test_a_profile_excludes_other_fusion_keys_and_is_optional(tmp_path: Path) -> None:
    (tmp_path / "both.yaml").write_text("fusion: {profile: p.yaml, eta: 1}")
    with pytest.raises(ConfigError, match=r"fusion: .*remove eta"):
        load_config(tmp_path / "both.yaml")
    (tmp_path / "number.yaml").write_text("fusion: 3")
    with pytest.raises(ConfigError, match="fusion: "):
        load_config(tmp_path / "number.yaml")
    assert Config(fusion={"eta": 1.0}).fusion.profile is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"backend": "openai.gpt-4o"}, "fitted for openai.gpt-4o, but vllm.test gives the score"),
        ({"toolset": ("TOPIQ",)}, "fitted with unavailable tools (TOPIQ)"),
        ({"curves": "0123456789abcdef"}, "fitted with other tool curves of LEARNED-IQA"),
    ],
)
def test_a_profile_of_another_model_or_of_other_tools_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    written(tmp_path, **changes)
    with pytest.raises(UserError, match="agenticiqa calibrate fusion") as refused:
        AgenticIQA.from_config(configured(tmp_path))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_profile_of_tuned_prompts_is_used_with_these_and_refused_with_others(tmp_path: Path) -> None:
    """The folder that ``optimize`` writes brings its profile, unless a configuration names another one."""
    plain = configured(tmp_path).model_copy(update={"fusion": FusionConfig()})
    program = AgenticIQA.from_config(plain)
    scorer = dict(program.named_predictors())[SCORER]
    scorer.signature = scorer.signature.with_instructions("Weigh the blur.")
    tuned = tmp_path / "tuned"
    program.save(tuned / "prompts.json")
    written(tmp_path, prompt=scoring_prompt(program).digest, tuned=True, model_error=0.4)
    with pytest.raises(UserError, match="fitted with another tuned scoring prompt"):
        AgenticIQA.from_config(configured(tmp_path))
    later = AgenticIQA(backend="vllm.test", api_base=SERVER, fusion=tmp_path / "profile.yaml")
    later.load(tuned)
    assert scoring_prompt(later) == scoring_prompt(program)
    (tmp_path / "profile.yaml").rename(tuned / "fusion.yaml")
    stage = {"backend": "vllm.test", "api_base": SERVER}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"summarizer": stage, "prompts": "tuned/"}))
    loaded = AgenticIQA.from_config(tmp_path / "mine.yaml")
    assert loaded.summarizer.fusion.model_error == 0.4
    assert dict(loaded.named_predictors())[SCORER].signature.instructions == "Weigh the blur."
    with_both = plain.model_copy(update={"prompts": str(tuned)})
    assert re.fullmatch("[0-9a-f]{16}", run_settings(loaded, with_both)["config"]["fusion"]["profile"])
    assert "prompts" not in run_settings(loaded, with_both)["config"]
    by_hand = with_both.model_copy(update={"fusion": FusionConfig(eta=1, model_error=0)})
    assert AgenticIQA.from_config(by_hand).summarizer.fusion.profile is None
    assert AgenticIQA.from_config(with_both.without_fusion()).summarizer.fusion.profile is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        ("a: [", "not valid YAML"),
        ("tools: {}", "unknown key 'tools'"),
        ("tool_error: 0.5", "model_error"),
        ("{tool_error: 1.0e-200, model_error: 0.4}", "tool_error: Input should be greater than or equal to 0.001"),
        ("{tool_error: 0.5, model_error: 1.0e-300}", "model_error"),
        ("{tool_error: 0.5, model_error: 0.4, tool_spread: 1.0e-300}", "tool_spread"),
        ("{tool_error: 0.5, model_error: 0.4, quality_std: 1.0e+200}", "quality_std"),
        ("{tool_error: 0.5, model_error: 0.4, model_slope: 1.0e+308}", "model_slope"),
    ],
)
def test_a_missing_or_damaged_profile_is_reported_in_one_line(
    tmp_path: Path, content: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "profile.yaml").write_text(content)
    stage = {"backend": "vllm.test", "api_base": SERVER}
    config = tmp_path / "mine.yaml"
    config.write_text(yaml.safe_dump({"summarizer": stage, "fusion": "profile.yaml"}))
    assert main(["assess", "examples/chelsea_noise.png", "--config", str(config)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error
    assert "profile.yaml" in error
    assert main(["assess", "examples/chelsea_noise.png", "--config", str(config), "--dry-run"]) == 2


LEVELS = {"backend": "vllm.test", "api_base": SERVER}


@pytest.mark.parametrize(
    ("changes", "others"),
    [({}, {"levels": LEVELS}), ({"levels": LEVELS}, {"levels": {**LEVELS, "prompt": "q-align"}})],
)
def test_only_another_prompt_of_the_score_causes_a_warning(
    changes: dict[str, Any], others: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config, other = (Config(**keys).with_backend("vllm.test", SERVER) for keys in (changes, others))
    prompt, of_other = (scoring_prompt(AgenticIQA.from_config(each)) for each in (config, other))
    assert (prompt.is_tuned, of_other.is_tuned) == (False, False)
    written(tmp_path, prompt=prompt.digest)
    with caplog.at_level(logging.WARNING):
        for each in (config, Config(summarizer=config.summarizer, levels=config.levels)):
            AgenticIQA.from_config(each.model_copy(update={"fusion": configured(tmp_path).fusion}))
        assert not caplog.records
        AgenticIQA.from_config(other.model_copy(update={"fusion": configured(tmp_path).fusion}))
    (said,) = (record.getMessage() for record in caplog.records)
    assert f"fitted with another scoring prompt ({prompt.digest}, now {of_other.digest})" in said


def test_offline_a_profile_is_not_used(tmp_path: Path) -> None:
    written(tmp_path)
    offline = Config(fusion=str(tmp_path / "profile.yaml"))
    assert AgenticIQA.from_config(offline).summarizer.fusion.profile is None


def test_a_profile_is_identified_by_its_content(tmp_path: Path) -> None:
    def fingerprint(folder: Path) -> str:
        config = configured(folder)
        return digest(run_settings(AgenticIQA.from_config(config), config))

    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    written(one)
    written(two)
    assert fingerprint(one) == fingerprint(two)
    written(two, model_error=0.8)
    assert fingerprint(one) != fingerprint(two)


def test_a_backend_is_named_as_in_a_configuration() -> None:
    for backend in ("vllm.test", "vllm.Qwen/Qwen2.5-VL-7B-Instruct", "ollama.llava:7b"):
        program = AgenticIQA.from_config(Config().with_backend(backend, SERVER))
        assert [backend_shown(lm.model) for lm in program.questions[0].backend.lms] == [backend]


def test_a_profile_for_other_tools_is_not_used_and_this_is_reported() -> None:
    profile = TYPICAL.model_copy(update={"toolset": ("LEARNED-IQA",), "model_error": 0.4})
    p = {1: 0.0, 2: 0.0, 3: 0.1, 4: 0.2, 5: 0.7}

    def fused(tool: str) -> FusedScore:
        evidence = ExecutorOutput(quality_scores={"Global": {"Overall": (tool, 2.5), "Blurs": ("SSIM", 1.5)}})
        return fused_score(ScoreFusion(profile=profile), evidence, p, "logprobs")

    assert fused("LEARNED-IQA").score == ScoreFusion(profile=profile).fuse_scores([2.5], p)
    assert "profile" not in fused("LEARNED-IQA").how
    assert fused("HaarPSI").score == default_fusion().fuse_scores([2.5], p)
    assert "the fusion profile is not used: it was fitted with other tools (LEARNED-IQA)" in fused("HaarPSI").how
    assert fused("LEARNED-IQA").arithmetic == fused("LEARNED-IQA").how.partition(" The model")[0]
    assert fused("HaarPSI").arithmetic is None, "so that a card, which omits arithmetic, still reports it"


def test_an_answer_of_a_fallback_model_uses_the_default_fusion(tmp_path: Path) -> None:
    written(tmp_path, model_error=0.4)
    photo = np.asarray(Image.open("examples/chelsea_noise.png"))
    nothing = {"distortion_set": [{"region": "Global", "distortions": []}]}
    answers = by_stage({**SCRIPT, "detection": nothing})
    with fake_server(server_error()) as broken, fake_server(answers) as healthy:
        fallback = {"fallback_backend": "vllm.other", "fallback_api_base": healthy.url}
        known = {"structured_outputs": "json_schema", "logprobs": False, "max_retries": 0}
        stage = {"backend": "vllm.test", "api_base": broken.url, **fallback, **known}
        file = str(tmp_path / "profile.yaml")
        with_fallback = Config.model_validate({"summarizer": stage, "fusion": file})
        result = AgenticIQA.from_config(with_fallback)(photo)
        by_itself = Config.model_validate({"summarizer": {**stage, "api_base": healthy.url}, "fusion": file})
        of_its_own = AgenticIQA.from_config(by_itself)(photo)
    assert result.answered_by["scoring"] == ["vllm/other"]
    assert "the fusion profile is not used: it was fitted for vllm.test, not vllm.other" in result.quality_reasoning
    assert of_its_own.answered_by["scoring"] == ["vllm/test"]
    assert "fusion profile" not in of_its_own.quality_reasoning
    assert result.quality_score != of_its_own.quality_score


def test_the_option_fusion_replaces_the_errors() -> None:
    section = FusionConfig(eta=2, mean="plain")
    assert section.with_errors(FusionConfig(profile="p.yaml")) == FusionConfig(profile="p.yaml")
    assert section.with_errors(FusionConfig.model_validate("paper")) == FusionConfig(eta=1, model_error=0, mean="plain")


def test_another_rule_of_a_user_is_another_run() -> None:
    described = [Halfway(weight).settings for weight in (0.5, 0.75)]
    assert described[0] != described[1]
    assert described[0]["rule"] != ScoreFusion().settings["rule"]
