"""The configuration: where it is read from, which values are refused with which message, and the shipped default."""

from importlib import resources
from pathlib import Path
from typing import Any

import litellm
import pytest
import yaml

from agenticiqa.configs import Config, ConfigError, PlannerConfig, Price, StageConfig, load_config
from agenticiqa.configs.backend_names import OF_LITELLM
from agenticiqa.programs.backends.providers import PROVIDERS as BACKENDS

STAGES = ("planner", "executor", "summarizer", "replan")


def write(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    """The one line with which a file is refused."""
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_the_shipped_default_is_offline_everywhere() -> None:
    config = load_config()
    assert config.is_offline
    assert all(getattr(config, stage).is_offline for stage in STAGES)
    assert all(getattr(config, stage).fallback_backend is None for stage in STAGES)


def test_the_shipped_default_has_the_defaults_of_the_schema() -> None:
    assert load_config() == Config()


DOCUMENTED = {
    "planner": (0.0, 0.1, 2048),
    "executor": (0.0, None, 2048),
    "summarizer": (0.0, None, 512),
    "replan": (0.0, None, 512),
}


def parameters(config: Config) -> dict[str, tuple[float | None, float | None, int]]:
    return {
        name: (stage.temperature, stage.top_p, stage.max_tokens)
        for name, stage in ((name, getattr(config, name)) for name in STAGES)
    }


def test_a_file_with_only_backends_gets_the_documented_parameters(tmp_path: Path) -> None:
    named = load_config(write(tmp_path, yaml.safe_dump({name: {"backend": "openai.gpt-4o"} for name in STAGES})))
    in_python = Config(**{name: StageConfig(backend="openai.gpt-4o") for name in STAGES})
    moved = load_config("model_backends").with_backend("vllm.m", "http://127.0.0.1:9/v1")
    for config in (Config(), load_config(), named, in_python, moved, Config().with_backend("openai.gpt-4o")):
        assert parameters(config) == parameters(config.in_mode()) == DOCUMENTED
        assert parameters(config.model_copy(update={"mode": "fast"}).in_mode()) == DOCUMENTED


def test_values_of_a_section_are_kept(tmp_path: Path) -> None:
    text = "planner: {top_p: null, temperature: 1}\nsummarizer: {max_tokens: 9}"
    expected = {**DOCUMENTED, "planner": (1.0, None, 2048), "summarizer": (0.0, None, 9)}
    config = load_config(write(tmp_path, text))
    assert parameters(config) == parameters(config.with_backend("openai.gpt-4o")) == expected
    own = StageConfig(backend="openai.gpt-4o", max_tokens=2048, price=Price(input=1, output=2))
    summarizer = Config(summarizer=own).summarizer
    assert (summarizer.max_tokens, summarizer.price) == (2048, own.price)


def test_the_shipped_default_has_no_key_and_no_address_in_it() -> None:
    text = (resources.files("agenticiqa.configs") / "model_backends.yaml").read_text(encoding="utf-8")
    assert {key for stage in STAGES for key in yaml.safe_load(text)[stage]} <= {
        *PlannerConfig.model_fields,
        "select",
        "rating",
    }
    assert "http" not in text
    assert "sk-" not in text


def test_the_shipped_default_lists_every_key_of_the_program_with_its_default() -> None:
    text = (resources.files("agenticiqa.configs") / "model_backends.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text).keys() - {"backend"} == Config.model_fields.keys()
    assert load_config("model_backends") == Config()


def test_a_given_path_comes_before_the_variable_and_the_variable_before_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, named = write(tmp_path, "attempts: 5"), write(tmp_path, "attempts: 7", "named.yaml")
    assert load_config().attempts == 3
    monkeypatch.setenv("AGENTICIQA_CONFIG", str(named))
    assert load_config().attempts == 7
    assert load_config(given).attempts == 5
    assert load_config(str(given)).attempts == 5
    assert load_config("model_backends").attempts == 3


def test_an_empty_variable_means_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTICIQA_CONFIG", "")
    assert load_config() == load_config("model_backends")


def test_a_missing_file_in_the_environment_variable_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTICIQA_CONFIG", str(tmp_path / "gone.yaml"))
    with pytest.raises(ConfigError, match=r"gone\.yaml: no such file"):
        load_config()


@pytest.mark.parametrize("text", ["", "# only a comment\n", "{}", "planner: {}"])
def test_missing_keys_have_their_defaults(tmp_path: Path, text: str) -> None:
    assert load_config(write(tmp_path, text)) == Config()


def test_an_unknown_key_is_reported_with_the_known_keys(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, "atempts: 2"))
    assert "unknown key 'atempts'" in message
    assert all(known in message for known in Config.model_fields)


def test_an_unknown_nested_key_is_reported_with_its_section_and_the_known_keys(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, "planner:\n  backed: offline\nfusion:\n  etta: 1\nreplan:\n  sees_images: true"))
    assert (
        "unknown key 'planner.backed', did you mean backend? Expected one of timeout, max_tokens, backend," in message
    )
    assert "sees_images" in message.split("planner.backed")[1].split(";")[0]
    assert "unknown key 'fusion.etta', did you mean eta? Expected one of eta" in message
    assert "unknown key 'replan.sees_images': expected one of timeout, max_tokens, backend," in message


@pytest.mark.parametrize("key", ["api_key", "headers", "token"])
def test_a_key_of_a_provider_is_refused_and_not_repeated(tmp_path: Path, key: str) -> None:
    message = refusal(write(tmp_path, f"planner:\n  backend: openai.gpt-4o\n  {key}: sk-secret"))
    assert f"planner.{key}" in message
    assert "sk-secret" not in message


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("planner:\n  temperature: 2.5", "planner.temperature"),
        ("planner:\n  temperature: warm", "planner.temperature"),
        ("planner:\n  temperature: .nan", "planner.temperature"),
        ("executor:\n  top_p: 0", "executor.top_p"),
        ("executor:\n  max_tokens: 0", "executor.max_tokens"),
        ("executor:\n  timeout: -1", "executor.timeout"),
        ("executor:\n  max_retries: -1", "executor.max_retries"),
        ("summarizer:\n  structured_outputs: maybe", "summarizer.structured_outputs"),
        ("summarizer: offline", "summarizer"),
        ("planner:\n  on_failure: shrug", "planner.on_failure"),
        ("attempts: 0", "attempts"),
        ("attempts: 11", "attempts"),
        ("max_replan_iterations: -1", "max_replan_iterations"),
        ("fusion:\n  eta: -1", "fusion.eta"),
        ("fusion:\n  eta: .inf", "fusion.eta"),
        ("fusion:\n  eta: 1.0e+308", "fusion.eta"),
        ("fusion:\n  model_error: -1", "fusion.model_error"),
        ("fusion:\n  model_error: 1.0e+200", "fusion.model_error"),
        ("planner:\n  timeout: .inf", "planner.timeout"),
        ("pyiqa: musiq", "pyiqa"),
        ("- planner", "the file"),
        ("offline", "the file"),
    ],
)
def test_a_wrong_value_is_reported_with_its_key(tmp_path: Path, text: str, where: str) -> None:
    assert f" {where}: " in refusal(write(tmp_path, text))


def test_all_errors_of_a_file_are_reported_together(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, "attempts: 0\nplanner:\n  timeout: 0\nspeed: 3"))
    assert all(part in message for part in ("attempts", "planner.timeout", "'speed'"))


def test_the_fusion_of_the_paper_can_be_configured_but_no_negative_value(tmp_path: Path) -> None:
    fusion = load_config(write(tmp_path, "fusion: {eta: 0, model_error: 0}")).fusion
    assert (fusion.eta, fusion.model_error) == (0, 0)
    for name in ("eta", "model_error"):
        assert f"fusion.{name}" in refusal(write(tmp_path, f"fusion: {{{name}: -0.1}}"))


def test_an_unknown_key_of_an_optional_section_is_reported_with_its_known_keys(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, "planner: {price: {input: 1, outptu: 2}}"))
    assert "unknown key 'planner.price.outptu', did you mean output? Expected one of input, output" in message


@pytest.mark.parametrize("text", ["planner: [", "a: b: c", "\t- x", "!!python/object/apply:os.system ['true']"])
def test_invalid_or_unsafe_yaml_is_refused(tmp_path: Path, text: str) -> None:
    assert "not valid YAML" in refusal(write(tmp_path, text))


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"\xff\xfe\x00\x81")
    assert "cannot be read" in refusal(path)


def test_a_missing_file_and_a_folder_are_reported(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "gone.yaml")
    assert "cannot be read: it is a folder" in refusal(tmp_path)


def test_an_unknown_shipped_name_is_reported() -> None:
    with pytest.raises(ConfigError, match="no configuration of that name is shipped"):
        load_config("model_backend")


def test_with_backend_moves_every_stage_and_changes_nothing_else(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "attempts: 4\nplanner:\n  sees_images: false\n  timeout: 9"))
    moved = config.with_backend("vllm.qwen", "http://127.0.0.1:8000/v1")
    assert {(getattr(moved, stage).backend, getattr(moved, stage).api_base) for stage in STAGES} == {
        ("vllm.qwen", "http://127.0.0.1:8000/v1")
    }
    assert (moved.attempts, moved.planner.sees_images, moved.planner.timeout) == (4, False, 9)
    assert config.is_offline
    assert not moved.is_offline
    assert moved.with_backend("offline").is_offline


def test_with_backend_keeps_no_address_no_key_no_price_and_no_fallback() -> None:
    config = load_config({"backend": "vllm.a", "api_base": "http://a/v1", "api_key_env": "K", "price": "1,2"})
    named = Config(planner=PlannerConfig(fallback_backend="openai.gpt-4o")).with_backend("offline").planner
    assert named.fallback_backend is None
    for backend, address in (("openai.gpt-4o", None), ("vllm.a", "http://a/v1")):
        moved = config.with_backend(backend, address).planner
        assert (moved.backend, moved.api_base, moved.api_key_env, moved.price) == (backend, address, None, None)


def test_a_configuration_cannot_be_changed_by_accident() -> None:
    with pytest.raises(ValueError, match="frozen"):
        StageConfig().backend = "openai.gpt-4o"


PROVIDERS = resources.files("agenticiqa.configs") / "providers"
EXAMPLES = sorted(entry.name.removesuffix(".yaml") for entry in PROVIDERS.iterdir() if entry.name.endswith(".yaml"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_provider_example_is_a_valid_configuration(name: str) -> None:
    config = load_config(f"providers/{name}")
    assert not config.is_offline
    assert name == "hybrid" or {getattr(config, stage).backend.partition(".")[0] for stage in STAGES} == {name}


def sections_of(config: Config) -> dict[str, dict[str, Any]]:
    """Return the values that were set in each section."""
    return {name: section.model_dump(exclude_unset=True) for name, section in config.sections.items()}


def test_keys_at_the_top_apply_to_all_stages_and_a_section_overrides_them(tmp_path: Path) -> None:
    text = """
backend: openai/gpt-4o
api_base: https://gw.example/v1
api_key_env: GATEWAY_KEY
price: 2.5,10
temperature: 0.5
max_tokens: 16000
fallback_backend: openai.gpt-4o-mini
mode: fast
planner: {sees_images: false}
executor: {backend: offline}
summarizer: {temperature: 0}
replan: {backend: vllm.X, api_base: "http://127.0.0.1:8000/v1"}
"""
    config = load_config(write(tmp_path, text))
    server = {"backend": "openai.gpt-4o", "api_base": "https://gw.example/v1", "api_key_env": "GATEWAY_KEY"}
    model = {**server, "price": {"input": 2.5, "output": 10.0}, "fallback_backend": "openai.gpt-4o-mini"}
    assert sections_of(config) == {
        "planner": {**model, "temperature": 0.5, "max_tokens": 16000, "sees_images": False},
        "executor": {"backend": "offline", "temperature": 0.5, "max_tokens": 16000},
        "summarizer": {**model, "temperature": 0, "max_tokens": 16000},
        "replan": {
            "backend": "vllm.X",
            "api_base": "http://127.0.0.1:8000/v1",
            "temperature": 0.5,
            "max_tokens": 16000,
        },
    }
    assert config.mode == "fast"
    as_object = {**yaml.safe_load(text), "planner": PlannerConfig(sees_images=False)}
    assert load_config(as_object) == config, "an object that names no model does not make its stage offline"


def test_the_same_model_at_another_address_gets_no_key_of_the_first() -> None:
    config = load_config(
        {"backend": "vllm.X", "api_base": "http://a/v1", "api_key_env": "K", "replan": {"api_base": "http://b/v1"}}
    )
    assert sections_of(config)["replan"] == {"backend": "vllm.X", "api_base": "http://b/v1"}
    assert config.planner.api_key_env == "K"


def test_another_fallback_gets_no_address_and_no_key_of_the_first() -> None:
    fallback = {"fallback_api_base": "http://a/v1", "fallback_api_key_env": "K"}
    sections = {"planner": {"fallback_api_base": "http://b/v1"}, "executor": {"fallback_backend": "openai.B"}}
    config = load_config({"backend": "vllm.X", "fallback_backend": "vllm.Y", **fallback, **sections})
    first = {"backend": "vllm.X"}
    assert sections_of(config) == {
        "planner": {**first, "fallback_backend": "vllm.Y", "fallback_api_base": "http://b/v1"},
        "executor": {**first, "fallback_backend": "openai.B"},
        "summarizer": {**first, "fallback_backend": "vllm.Y", **fallback},
        "replan": {**first, "fallback_backend": "vllm.Y", **fallback},
    }


def test_a_levels_section_takes_over_the_server_and_no_parameter_that_its_prompt_excludes() -> None:
    top = {"backend": "vllm.X", "api_base": "http://a/v1", "api_key_env": "K", "max_tokens": 500, "timeout": 9}
    levels = load_config({**top, "levels": {"prompt": "q-align"}}).levels
    assert levels is not None
    assert (levels.backend, levels.api_base, levels.api_key_env) == ("vllm.X", "http://a/v1", "K")
    assert (levels.timeout, levels.max_tokens, levels.prompt) == (9, 1, "q-align")
    assert load_config(top).levels is None
    assert load_config({**top, "levels": {}}).levels == levels.model_copy(update={"prompt": "q-realign"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("temperature: 9", "temperature: Input should be less than or equal to 2"),
        ("price: 2.5", "price: Input should be a valid dictionary or instance of Price"),
        ("price: '2.5'", "price: '2.5' is not IN,OUT in USD per million tokens, such as 2.5,10"),
        ("price: 2.5,1,0", "price: '2.5,1,0' is not IN,OUT in USD per million tokens, such as 2.5,10"),
        ("price: 2.5,-1", "price.output: Input should be greater than or equal to 0"),
        ("backnd: openai.gpt-4o", "unknown key 'backnd', did you mean backend?"),
        ("backend: openai.gpt-4o\nplanner: offline", "planner: Input should be a valid dictionary"),
    ],
)
def test_a_wrong_key_at_the_top_is_reported_once(tmp_path: Path, text: str, said: str) -> None:
    message = refusal(write(tmp_path, text))
    assert message.count(said) == 1
    assert ";" not in message


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("openai/gpt-4o", "openai.gpt-4o"),
        ("openai/openai/gpt-4o", "openai.openai/gpt-4o"),
        ("gemini/gemini-2.5-flash", "google.gemini-2.5-flash"),
        ("hosted_vllm/Qwen/Qwen2.5-VL-7B", "vllm.Qwen/Qwen2.5-VL-7B"),
        ("ollama_chat/llava", "ollama.llava"),
        ("lm_studio/m", "lmstudio.m"),
        ("vllm.Qwen/Qwen2.5-VL-7B", "vllm.Qwen/Qwen2.5-VL-7B"),
        ("offline", "offline"),
        ("dspy", "dspy"),
    ],
)
def test_the_spelling_of_dspy_and_litellm_is_accepted(spelled: str, name: str) -> None:
    stage = StageConfig(backend=spelled, fallback_backend=spelled)
    assert (stage.backend, stage.fallback_backend) == (name, name)
    assert Config().with_backend(spelled).planner.backend == name


def test_names_of_litellm_stand_for_providers_that_have_other_names() -> None:
    assert {*OF_LITELLM.values()} < {*BACKENDS}
    assert not {*OF_LITELLM} & {*BACKENDS}
    of_theirs = {OF_LITELLM.get(name, name) for name in litellm.provider_list}
    unknown = [name for name, row in BACKENDS.items() if row.key_env and name not in of_theirs]
    assert unknown == [], "LiteLLM, whose prices are used, has another name for it: add that to OF_LITELLM"


def test_files_that_a_configuration_names_lie_beside_it(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("{}")
    path = tmp_path / "config.yaml"
    path.write_text("adapter: a.npz\nprompts: tuned\nfusion: profile.yaml\ntool_curves: mine.yaml\n")
    config = load_config(path)
    files = (config.adapter, config.prompts, config.fusion.profile, config.tool_curves)
    assert files == tuple(str(tmp_path / name) for name in ("a.npz", "tuned", "profile.yaml", "mine.yaml"))
    path.write_text("tool_curves: table5\n")
    assert load_config(path).tool_curves == "table5"
