"""Callbacks, copies and pickles of the program, and what it imports of DSPy; the rest is in ``test_dspy_matrix.py``."""

import ast
import copy
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.clients.base_lm import GLOBAL_HISTORY
from PIL import Image

from agenticiqa.configs import STAGES, Config, ConfigError, Price
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.call_log import explain_empty_history
from agenticiqa.programs.errors import BackendError, StateError, UserError, WrongArgument
from agenticiqa.programs.stages.executor import Executor
from agenticiqa.programs.stages.planner import Planner
from agenticiqa.signatures.summarizer import Answer, AnswerQuestion
from support.engine import scripted_lm
from support.fake_server import by_stage, fake_server, text_of
from support.scripted_answers import SCRIPT, program_for

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def photo(examples: Path) -> Path:
    return examples / "coffee_jpeg.jpg"


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda program: program.deepcopy(), lambda program: program.reset_copy()]
)
def test_a_copy_has_stages_of_its_own(copied: Callable[[AgenticIQA], AgenticIQA]) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        program = program_for(server, planner={"on_failure": "rules"})
        other = copied(program)
    assert [name for name, _ in other.named_predictors()] == [name for name, _ in program.named_predictors()]
    assert not {id(part) for _, part in other.named_predictors()} & {id(part) for _, part in program.named_predictors()}
    planner, executor = other.planner, other.executor
    assert isinstance(planner, Planner)
    assert isinstance(executor, Executor)
    assert planner.prefetch == executor.prefetch
    assert planner.ask.backend is program.planner.ask.backend
    assert executor is not program.executor


class Verdict(dspy.Signature):
    """Say what you see."""

    image: dspy.Image = dspy.InputField()
    verdict: str = dspy.OutputField()


class Text(dspy.Signature):
    """Say what you see."""

    image: dspy.Image = dspy.InputField()
    planner_output: str = dspy.OutputField()


@pytest.mark.parametrize(
    ("signature", "field"), [(Verdict, "verdict: str"), (Text, "planner_output: str")], ids=["name", "type"]
)
def test_a_signature_with_another_output_field_is_refused_by_name(
    photo: Path, signature: type[dspy.Signature], field: str
) -> None:
    program = AgenticIQA()
    program.planner.ask.predict = dspy.Predict(signature)
    lm, engine = scripted_lm(["never asked"])
    with dspy.context(lm=lm), pytest.raises(StateError) as raised:
        program(photo)
    assert "planner: " in str(raised.value)
    assert "no output field planner_output: PlanAnswer" in str(raised.value)
    assert f"output fields are {field}" in str(raised.value)
    assert engine.requests == []


def test_a_predictor_beside_the_one_that_is_asked_is_refused() -> None:
    program = AgenticIQA()
    with pytest.raises(StateError, match=r"set ask\.predict"):
        program.planner.predict = dspy.Predict(Verdict)
    assert not any(name == "planner.predict" for name, _ in program.named_predictors())


def test_a_subclass_of_the_answer_may_take_its_place(photo: Path) -> None:
    class MyAnswer(Answer):
        pass

    signature = AnswerQuestion.with_updated_fields("answer", type_=MyAnswer).with_instructions("As an editor.")
    with fake_server(by_stage(SCRIPT)) as server:
        program = program_for(server)
        program.summarizer.answer.ask.predict = dspy.Predict(signature)
        assert program(photo, "Is it cheerful?").final_answer
        assert any("As an editor." in text_of(request) for request in server.requests)


def test_a_model_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    program = AgenticIQA(lm="openai/gpt-4o")
    assert {lm.model for question in program.questions for lm in question.models} == {"openai/gpt-4o"}
    assert all(isinstance(question.models[0], dspy.LM) for question in program.questions)
    monkeypatch.setenv("MY_KEY", "sk-mine")
    program = AgenticIQA(backend="vllm/X", api_base="http://127.0.0.1:9/v1", api_key_env="MY_KEY", price="1,2")
    assert program.backend == "vllm.X"
    engines = [question.models[0].engine for question in program.questions]  # type: ignore[attr-defined]
    assert {(engine.wire.address, engine.wire.key) for engine in engines} == {("http://127.0.0.1:9/v1", "sk-mine")}
    assert {engine.price for engine in engines} == {Price(input=1, output=2)}


def test_the_backend_argument_is_used(photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    program = AgenticIQA(backend="openai.gpt-4o")
    assert program.backend == "openai.gpt-4o"
    assert {lm.model for question in program.questions for lm in question.models} == {"openai/gpt-4o"}
    offline = AgenticIQA.offline()
    mixed = AgenticIQA(offline.planner, offline.executor, backend="openai.gpt-4o")
    assert {question.stage for question in mixed.questions} == {"scoring", "answering", "replan"}
    assert {lm.model for question in mixed.questions for lm in question.models} == {"openai/gpt-4o"}
    assert AgenticIQA(backend="offline")(photo).final_answer == offline(photo).final_answer
    for wrong, why in (
        ("gpt-4o", "did you mean openai.gpt-4o"),
        ("vllm.qwen", "needs the address"),
        ("openai.", "names no model"),
    ):
        with pytest.raises(BackendError, match=why):
            AgenticIQA(backend=wrong)
    with pytest.raises(WrongArgument, match=r"backend=.* has no effect"):
        AgenticIQA(offline.planner, offline.executor, offline.summarizer, offline.replan, backend="openai.gpt-4o")


def test_a_model_given_as_lm_is_asked_in_every_stage(photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        lm = dspy.LM("openai/test", api_base=server.url, api_key="k", cache=False)
        program, offline = AgenticIQA(lm=lm), AgenticIQA.offline()
        assert {id(model) for question in program.questions for model in question.models} == {id(lm)}
        mixed = AgenticIQA(offline.planner, offline.executor, lm=lm)
        result = mixed(photo)
    assert set(server.stages()) == {"assessment"}
    assert result.backend == "openai/test"


class NoStage(dspy.Module):
    def forward(self, image: Any) -> None:
        """Take fewer arguments than any stage receives."""


OFFLINE = AgenticIQA.offline()
NO_STAGES: list[tuple[dict[str, Any], str]] = [
    ({"planner": scripted_lm([])[0]}, r"planner must be a stage.*AgenticIQA\(lm=\.\.\.\)"),
    ({"summarizer": scripted_lm([])[0]}, r"summarizer must be a stage.*AgenticIQA\(lm=\.\.\.\)"),
    ({"planner": "openai.gpt-4o"}, r"AgenticIQA\(backend=\.\.\.\)"),
    ({"planner": Path("mine.yaml")}, "from_config"),
    ({"planner": {"planner": {}}}, "from_config"),
    ({"executor": Executor}, "an object that accepts image, query, plan, reference"),
    ({"executor": OFFLINE.planner}, "that accepts image, query, plan, reference"),
    ({"replan": OFFLINE.planner}, "that accepts plan, evidence"),
    ({"planner": NoStage()}, "that accepts image, query, reference, feedback"),
    ({"planner": 3}, "got int"),
    ({"lm": 3}, "lm is of type int: give a dspy.LM, or its name"),
    ({"lm": scripted_lm([])[0], "backend": "openai.gpt-4o"}, "give only one of them"),
    ({**{name: getattr(OFFLINE, name) for name in STAGES}, "lm": scripted_lm([])[0]}, "leave it out"),
]


@pytest.mark.parametrize(("given", "why"), NO_STAGES)
def test_arguments_that_are_not_stages_or_models_are_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(WrongArgument, match=why):
        AgenticIQA(**given)


@pytest.mark.parametrize("config", [None, Config()])
@pytest.mark.parametrize(
    "given",
    [{"backend": "offline", "price": "1,2"}, {"api_base": "http://h/v1"}, {"lm": "openai/m", "api_key_env": "K"}],
)
def test_settings_of_a_model_without_its_name_are_refused(given: dict[str, Any], config: Config | None) -> None:
    with pytest.raises(ConfigError, match="api_base, api_key_env and price need backend"):
        AgenticIQA(**given, config=config)


def test_a_configuration_given_to_the_constructor_is_used_whole(photo: Path) -> None:
    lm, _ = scripted_lm(["{}"])
    fast = AgenticIQA(lm=lm, config=Config(mode="fast", max_side=64, max_replan_iterations=3, keep_history=True))
    assert {question.stage for question in fast.questions} == {"planner", "scoring", "answering"}
    assert (fast.image_settings.max_side, fast.max_replan_iterations, fast.keep_history) == (64, 0, True)
    assert AgenticIQA(config=Config(adapter=None)).backend == "offline"
    with pytest.raises(StateError, match="missing"):
        AgenticIQA(lm=lm, config=Config(prompts="missing"))


@pytest.mark.parametrize(
    "reference",
    ["ref.webp", "photos/ref.JPG", "a.heic", Path("ref.webp"), b"...", Image.new("RGB", (8, 8))],
    ids=["webp", "jpg", "heic", "path", "bytes", "pil"],
)
def test_a_reference_given_as_the_question_is_reported(photo: Path, reference: Any) -> None:
    with pytest.raises(UserError, match="did you mean reference="):
        AgenticIQA.offline()(photo, reference)


def test_a_question_may_end_in_the_name_of_a_file(photo: Path) -> None:
    assert AgenticIQA.offline()(photo, "Is it sharper than ref.webp").query == "Is it sharper than ref.webp"


def test_a_configuration_may_be_a_mapping(photo: Path) -> None:
    program = AgenticIQA.from_config({"max_side": 64, "planner": {"backend": "offline"}})
    assert (program.image_settings.max_side, program.backend) == (64, "offline")
    with pytest.raises(ConfigError, match=r"\(a mapping\): unknown key 'planer', did you mean planner\?"):
        AgenticIQA.from_config({"planer": {}})


def test_results_can_be_compared_as_numbers(photo: Path, examples: Path) -> None:
    program = AgenticIQA.offline()
    worse, better, words = program(photo), program(examples / "coffee.webp"), program(photo, "Is it noisy?")
    assert float(worse) == worse.quality_score
    assert worse < better
    assert better >= 3 > worse
    assert max([worse, better], key=float) is better
    with pytest.raises(ValueError, match="has no score; only a question that asks for a rating"):
        float(words)


# Documented by DSPy: its pages on caching, callbacks and GEPA import these from modules below ``dspy``.
DOCUMENTED = {
    ("dspy.clients", "Cache"),
    ("dspy.clients", "DISK_CACHE_DIR"),
    ("dspy.clients", "DISK_CACHE_LIMIT"),
    ("dspy.teleprompt.gepa", "InstructionProposer"),
    ("dspy.utils.callback", "BaseCallback"),
}
PRIVATE = {("dspy.clients.execution", "IGNORED_CACHE_KEYS"), ("dspy.clients.execution", "prepare")}


def test_one_module_imports_private_names_of_dspy() -> None:
    """Each such name is a reason for the upper limit of the version; the comment in pyproject.toml names the reason."""
    found: dict[tuple[str, str], set[str]] = {}
    for folder in ("configs", "eval", "programs", "signatures"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith("dspy."):
                    for each in node.names:
                        found.setdefault((str(node.module), each.name), set()).add(file.name)
                elif isinstance(node, ast.Import):
                    assert not any(each.name.startswith("dspy.") for each in node.names), file
    assert found.keys() == DOCUMENTED | PRIVATE
    assert {name for each in PRIVATE for name in found[each]} == {"answer_cache.py"}


def test_without_a_history_inspect_history_prints_how_to_keep_one(photo: Path) -> None:
    GLOBAL_HISTORY.clear()
    explain_empty_history.cache_clear()
    with fake_server(by_stage(SCRIPT)) as server:
        program = program_for(server)
        for _ in range(2):
            program(photo)
        assert len(GLOBAL_HISTORY) == 1
        for show in (dspy.inspect_history, program.inspect_history):
            show(file=(shown := io.StringIO()))
            assert "set program.keep_history = True" in shown.getvalue()
        program.keep_history = True
        program(photo)
        for show in (dspy.inspect_history, program.inspect_history):
            show(file=(shown := io.StringIO()))
            assert "keep_history" not in shown.getvalue()
            assert "Respond with" in shown.getvalue()
