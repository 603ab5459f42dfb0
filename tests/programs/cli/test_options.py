"""How options change a configuration, and which values are refused."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.configs import STAGES, Config, ConfigError, PlannerConfig, Price, StageConfig, SummarizerConfig
from agenticiqa.configs.options import KEYS, SECTION_KEYS, Option
from agenticiqa.programs.backends.limits import Limits
from agenticiqa.programs.backends.providers import PROVIDERS, SLOW, TIMEOUT
from agenticiqa.programs.cli.arguments import AssessOptions, RunOptions
from agenticiqa.programs.cli.commands import COMMANDS
from agenticiqa.programs.cli.options import config_from, described, limits_from, workers_from
from agenticiqa.programs.cli.parser import parse
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.page.forms import FORMS

PRICE = Price(input=1.0, output=2.0)


def config(planner: Price | None, others: Price | None, **changes: Any) -> Config:
    """Every stage asks a model, at these prices."""
    stage = StageConfig(backend="vllm.test", price=others)
    asking = {"planner": PlannerConfig(backend="vllm.test", price=planner), "executor": stage, "replan": stage}
    return Config(**asking, summarizer=stage, **changes)


def options(*arguments: str) -> AssessOptions:
    """Return the options of ``assess`` with these arguments."""
    _, found = parse(["assess", *arguments], COMMANDS)
    assert isinstance(found, AssessOptions)
    return found


def chosen(*arguments: str) -> Config:
    """Return the configuration of a run of ``assess`` with these arguments."""
    return config_from(options("a.png", *arguments))


def limits(given: Config, **keys: float) -> Limits:
    return limits_from(RunOptions(), given.model_copy(update=keys)).own


def test_limits_come_from_the_options_and_the_configuration(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("max_calls: 7\nmax_usd: 0.5\n")
    for arguments, expected in ((), (7, 0.5)), (("--max-calls", "0"), (0, 0.5)), (("--max-usd", "2"), (7, 2.0)):
        found = limits_from(RunOptions(), chosen("--config", str(mine), *arguments))
        assert (found.own.max_calls, found.own.max_usd, found.in_flight) == (*expected, None)
    assert limits_from(RunOptions(workers=100), Config()).in_flight == 100


@pytest.mark.parametrize(("planner", "others"), [(None, PRICE), (PRICE, None)])
def test_a_limit_in_usd_needs_the_price_of_every_model_that_is_asked(
    planner: Price | None, others: Price | None
) -> None:
    with pytest.raises(
        UserError, match=r"^--max-usd needs a price, which is not known for vllm\.test: .*--price IN,OUT"
    ):
        limits(config(planner, others), max_usd=1.0)


def test_a_limit_in_usd_needs_no_price_that_is_known() -> None:
    assert limits(Config(), max_usd=1.0).max_usd == 1.0, "nothing is asked offline"
    assert limits(Config().with_backend("openai.gpt-4o"), max_usd=1.0).max_usd == 1.0
    fallback = StageConfig(backend="openai.gpt-4o", fallback_backend="vllm.b", fallback_api_base="http://h/v1")
    with pytest.raises(UserError, match=r"not known for vllm\.b:"):
        limits(Config(summarizer=fallback), max_usd=1.0)


def test_a_stage_that_the_profile_omits_needs_no_price() -> None:
    given = config(PRICE, None, mode="fast").model_copy(
        update={"summarizer": StageConfig(backend="vllm.test", price=PRICE)}
    )
    assert limits(given, max_usd=1.0).max_usd == 1.0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--align", "--no-cache"], {"align": True, "cache": False, "max_side": 64}),
        (["--max-side", "99", "--batch"], {"align": False, "cache": False, "max_side": 99}),
        (["--mode", "fast"], {"align": False, "cache": True, "max_side": 64, "mode": "fast"}),
    ],
)
def test_an_option_sets_its_key_and_no_other(given: list[str], expected: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("max_side: 64")
    found = chosen("--config", str(tmp_path / "mine.yaml"), *given)
    assert expected.items() <= found.model_dump().items()


def test_assess_has_an_option_for_every_such_key() -> None:
    taken = {option.name for option in COMMANDS["assess"].options if option.key}
    declared = {
        name for name, field in Config.model_fields.items() if any(isinstance(m, Option) for m in field.metadata)
    }
    declared.add("fusion")  # the option names a file, the key may also be a section
    of_sections = {option.name for option in SECTION_KEYS}
    assert taken == declared | of_sections
    assert declared == {option.name for option in KEYS}
    assert of_sections <= StageConfig.model_fields.keys()


LEVELS = "levels: {backend: vllm.levels, api_base: 'http://h/v1'}"
SECTION = "summarizer: {backend: vllm.a, api_base: 'http://h/v1', timeout: 5, max_tokens: 7}"


def test_a_key_of_the_sections_is_set_in_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(f"{SECTION}\n{LEVELS}")
    plain = chosen("--config", str(tmp_path / "mine.yaml")).summarizer
    assert (plain.timeout, plain.max_tokens) == (5, 7)
    found = chosen("--config", str(tmp_path / "mine.yaml"), "--timeout", "30", "--max-tokens", "99")
    assert {section.timeout for section in found.sections.values()} == {30}
    assert {name: section.max_tokens for name, section in found.sections.items()} == {
        **dict.fromkeys(STAGES, 99),
        "levels": 1,
    }
    levels = chosen(*HOST, "--mode", "levels", "--timeout", "30", "--max-tokens", "99").in_mode().levels
    assert levels is not None
    assert (levels.timeout, levels.max_tokens) == (30, 1)


def test_the_help_names_the_servers_of_the_table() -> None:
    helps = {option.name: option.help for option in COMMANDS["assess"].options}
    slow = [name for name, row in PROVIDERS.items() if row.timeout == SLOW]
    single = [name for name, row in PROVIDERS.items() if row.at_a_time == 1]
    for names, text in ((slow, helps["timeout"]), (single, helps["workers"])):
        assert f"{', '.join(names[:-1])} and {names[-1]}" in text
    assert f"default: {TIMEOUT:g}; {SLOW:g} for" in helps["timeout"]
    assert f"default: {StageConfig().max_tokens}, or {SummarizerConfig().max_tokens} for" in helps["max_tokens"]


@pytest.mark.parametrize("option", ["--timeout", "--max-tokens"])
def test_a_limit_of_zero_is_refused(option: str) -> None:
    with pytest.raises(UserError, match=rf"^{option} must be at least"):
        chosen(*HOST, option, "0")


@pytest.mark.parametrize(("backend", "workers"), [("vllm.X", 4), ("llamacpp.X", 1), ("ollama.X", 1), ("lmstudio.X", 1)])
def test_a_server_of_one_slot_gets_one_image_at_a_time_unless_the_user_says_otherwise(
    backend: str, workers: int
) -> None:
    given = options("a.png", "--backend", backend, "--api-base", "http://127.0.0.1:9/v1")
    assert workers_from(given, config_from(given)) == workers
    given = replace(given, workers=7)
    assert workers_from(given, config_from(given)) == limits_from(given, config_from(given)).in_flight == 7


HOST = ("--backend", "vllm.X", "--api-base", "http://127.0.0.1:9/v1")


def test_address_key_and_price_of_a_model_are_options() -> None:
    found = chosen(*HOST, "--api-key-env", "MINE", "--price", "1,2").sections
    assert {(s.backend, s.api_base, s.api_key_env, s.price) for s in found.values()} == {
        ("vllm.X", "http://127.0.0.1:9/v1", "MINE", Price(input=1, output=2))
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--api-base", "http://h/v1"], "--api-base needs --backend"),
        (["--api-key-env", "MINE"], "--api-key-env needs --backend"),
        (["--price", "1,2"], "--price needs --backend: name its model, or set price in the configuration"),
        ([*HOST, "--price", "1"], "backend vllm.X: price: '1' is not IN,OUT in USD per million tokens, such as 2.5,10"),
        ([*HOST, "--price", "1,-2"], "backend vllm.X: price.output: Input should be greater than or equal to 0"),
    ],
)
def test_a_wrong_option_of_a_model_is_one_line(arguments: list[str], said: str) -> None:
    with pytest.raises((UserError, ConfigError)) as caught:
        chosen(*arguments)
    assert str(caught.value).startswith(said)


def test_an_address_from_the_environment_is_part_of_the_configuration_that_workers_get(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gw.example/v1")
    found = chosen("--backend", "openai.gpt-4o").planner
    assert (found.api_base, found.api_key_env) == ("https://gw.example/v1", "OPENAI_API_KEY")
    assert chosen("--backend", "vllm.X", "--api-base", "http://h/v1").planner.api_base == "http://h/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "no-address")
    replaced = chosen("--backend", "openai.X", "--api-base", "http://h/v1")
    assert described(replaced.planner) == "openai.X at h/v1", "the variable is not used"


READ_WITH_SHARDS = ("sharded", "overview", "views", "options", "output_paths", "main")


def test_every_option_is_read_by_the_code_of_its_command() -> None:
    """One that is only declared would be accepted without any effect."""
    root = Path(__file__).parents[3]
    code = {path.stem: path.read_text(encoding="utf-8") for path in (root / "programs/cli").glob("*.py")}
    texts = [*code.values(), *(path.read_text(encoding="utf-8") for path in (root / "eval/commands").glob("*.py"))]
    with_shards = [code[name] for name in READ_WITH_SHARDS]
    for name, command in COMMANDS.items():
        for option in command.options:
            sources = with_shards if name == "assess" and option.with_shards else texts
            is_read = any(re.search(rf"\bargs\.{option.name}\b", text) for text in sources)
            assert is_read or option.key or option.name in FORMS, f"{name} {option.form}: no code reads its value"
    program = "".join(path.read_text(encoding="utf-8") for path in (root / "programs").rglob("*.py"))
    for key in (*KEYS, *SECTION_KEYS):
        assert re.search(rf"\.{key.name}\b", program), f"{key.form}: no code of the program reads {key.name}"


def test_an_option_needs_one_that_its_command_has() -> None:
    for name, command in COMMANDS.items():
        forms = [option.form for option in command.options]
        for needed in filter(None, (option.needs for option in command.options)):
            assert any(needed.split()[0] == form.split()[0] for form in forms), f"{name}: {needed}"
