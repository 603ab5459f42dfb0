"""DSPy's own optimizers: examples, metric and frozen predictors, without the package's search and in ``optimize``."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa import AgenticIQA
from agenticiqa.eval import read_labels
from agenticiqa.eval.optimize import TuningSettings, examples_of, freeze, metric, optimize
from agenticiqa.eval.optimize.dspy_optimizers import SPENT, Count, Student, _watched
from agenticiqa.eval.optimize.measurements import Measurements, Traced
from agenticiqa.eval.questions.task import Item
from agenticiqa.programs.backends.limits import Limits, RunLimits
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.saving import prompts_of, scoring_prompt
from support.dspy_matrix import Model
from support.fake_server import Server, fake_server
from support.snippets import snippets

MakeLabels = Callable[..., Path]
PAGE = Path(__file__).resolve().parents[3] / "docs" / "dspy.md"
RATED = {
    f"{name}.ask.predict" for name in ("executor.detect", "executor.analyze", "summarizer.score")
}  # the predictors that a rating asks


@pytest.fixture
def server() -> Iterator[Server]:
    with fake_server(Model()) as server:
        yield server


@pytest.fixture
def lm(server: Server) -> dspy.LM:
    return dspy.LM("openai/given", api_base=server.url, api_key="none", cache=False)


@pytest.fixture
def program(lm: dspy.LM) -> AgenticIQA:
    return AgenticIQA(lm=lm)


def counting() -> Count:
    return Count(9, Measurements("scoring"), RunLimits(), lambda: True)


def names(program: dspy.Module) -> set[str]:
    return {name for name, _ in program.named_predictors()}


# --- examples and metric ---------------------------------------------------------------------------------------------


def test_examples_have_the_inputs_of_the_program_and_the_label(make_labels: MakeLabels) -> None:
    labels = read_labels(make_labels(references=True))
    for label, example in zip(labels, examples_of(labels), strict=True):
        inputs = {"image": str(label.image), "query": example.query, "reference": str(label.reference)}
        assert dict(example.inputs()) == inputs
        assert dict(example.labels()) == {"mos": pytest.approx(1 + label.mos / 25)}
    assert [dict(each.labels()) for each in examples_of(labels, "detection")] == [{"distortion": "Compression"}] * 6
    item = Item("1", Path("a.png"), "Main flaw?", "scene", ("Blur", "Noise"), 1, Path("b.png"))
    (asked,) = examples_of([item], "answering")
    assert asked.options == {"A": "Blur", "B": "Noise"}
    assert (dict(asked.labels()), "reference" in asked) == ({"answer": "B"}, True)


@pytest.mark.parametrize(("mos", "mark"), [(5.0, 0.25), (2.0, 1.0), (1.0, 0.75)])
def test_the_mark_of_a_rating_is_its_closeness_to_the_mos(examples: Path, mos: float, mark: float) -> None:
    result = AgenticIQA.offline()(examples / "coffee_jpeg.jpg").copy(quality_score=2.0)
    gold = dspy.Example(image="coffee_jpeg.jpg", mos=mos).with_inputs("image")
    assert metric(gold, result) == metric(gold, result, []) == mark
    told = metric(gold, result, None, "summarizer.score.ask.predict", [])
    assert isinstance(told, dspy.Prediction)
    assert (told.score, set(told.keys())) == (mark, {"score", "feedback"})
    gap = {5.0: "harsh", 2.0: "close", 1.0: "kind"}[mos]
    assert re.match(
        rf"Observers rate it {mos:.1f} of 5, the answer expects 2\.1: ([\d.]* levels too )?{gap}\.", told.feedback
    )


def test_the_mark_of_other_questions_is_the_right_option_and_f1(examples: Path) -> None:
    result = AgenticIQA.offline()(examples / "chelsea_noise.png", "Is it noisy? A. Yes B. No")
    assert [metric(dspy.Example(answer=letter), result) for letter in "AB"] == [1.0, 0.0]
    assert metric(dspy.Example(answer="B"), result, None, "x", None).feedback.startswith("The answer was A, but B is")
    found = AgenticIQA.offline()(examples / "coffee_jpeg.jpg")
    assert [metric(dspy.Example(distortion=name), found) for name in ("Compression", "Noise")] == [1.0, 0.0]


def test_a_program_that_failed_has_the_mark_0() -> None:
    gold = dspy.Example(mos=3.0)
    for failed, why in ((None, "the program raised an error"), (dspy.Prediction(failure="the end"), "the end")):
        assert metric(gold, failed) == 0.0
        assert metric(gold, failed, None, "x", None).feedback == f"There was no usable answer: {why}"


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (dspy.Example(image="a.png"), "the example has no label: expected mos, answer, distortion"),
        (dspy.Example(mos=82), "the example has the MOS 82, expected 1 to 5: examples_of converts the labels"),
    ],
)
def test_an_example_without_a_usable_label_is_an_error(gold: dspy.Example, message: str) -> None:
    with pytest.raises(UserError, match=message):
        metric(gold, dspy.Prediction(failure="none"))


# --- frozen predictors -----------------------------------------------------------------------------------------------


def test_only_the_predictors_of_a_rating_are_tuned_by_default(program: AgenticIQA) -> None:
    frozen = freeze(program)
    assert names(frozen) == RATED
    assert len(names(program)) == 8
    assert names(freeze(program, "summarizer.score")) == {"summarizer.score.ask.predict"}
    assert names(freeze(frozen, ["planner", "replan"])) == {"planner.ask.predict", "replan.judge.predict"}
    with pytest.raises(UserError, match=r"begins with scorer; it has planner\.ask\.predict, "):
        freeze(program, "scorer")


def test_frozen_prompts_count_in_digests_and_are_loaded(program: AgenticIQA, tmp_path: Path) -> None:
    for _, predictor in program.named_predictors():
        predictor.signature = predictor.signature.with_instructions("Look twice.")
    frozen, other = freeze(program, "planner"), freeze(AgenticIQA(), "planner")
    assert prompts_of(frozen) == prompts_of(program) != prompts_of(other)
    assert scoring_prompt(frozen) == scoring_prompt(program) != scoring_prompt(other)
    assert scoring_prompt(program).is_tuned
    program.save(tmp_path / "all.json")
    frozen.save(tmp_path / "planner.json")
    assert json.loads((tmp_path / "planner.json").read_text()).keys() == {"planner.ask.predict", "metadata"}
    other.load(tmp_path / "all.json")
    assert prompts_of(other) == prompts_of(program)


def test_frozen_prompts_are_traced(program: AgenticIQA, examples: Path) -> None:
    assert set(Traced(freeze(program, "planner"))(image=examples / "coffee_jpeg.jpg").calls) >= RATED


def test_frozen_predictors_keep_their_model_and_get_a_new_one(program: AgenticIQA, lm: dspy.LM) -> None:
    copied = freeze(program, "summarizer.answer").reset_copy()
    asked = {question.stage: question.predictor.lm for question in copied.questions}
    assert asked.pop("answering") is None, "as DSPy resets what is tuned"
    assert {model.model for model in asked.values()} == {"openai/given"}
    copied.set_lm(lm)
    assert all(question.predictor.lm is lm for question in copied.questions)


# --- in optimize -----------------------------------------------------------------------------------------------------


def test_an_optimizer_of_dspy_gets_labels_and_its_worked_examples_are_compared(
    program: AgenticIQA, make_labels: MakeLabels
) -> None:
    seen = []

    def mine(gold: Any, result: Any, trace: Any = None) -> bool:
        seen.append(gold.mos)
        return abs(result.score - gold.mos) < 3

    labels = read_labels(make_labels(scenes=8))
    few = dspy.BootstrapFewShot(mine, max_bootstrapped_demos=2, max_labeled_demos=0)
    tuned = optimize(program, labels, TuningSettings(optimizer=few, budget=10))
    assert seen
    assert few.metric is mine, "the caller's optimizer is unchanged"
    assert [step.added for step in tuned.found.steps] == ["2 worked examples"]
    assert tuned.figures["fused"]["n"] == tuned.counts["held-out"]
    assert tuned.why != "no better prompts were found"
    assert tuned.found.spent == len(seen) <= 10
    assert all(not predictor.demos for _, predictor in program.named_predictors())


def test_labels_that_no_prompt_shows_are_no_change(program: AgenticIQA, make_labels: MakeLabels) -> None:
    settings = TuningSettings(optimizer=dspy.LabeledFewShot(k=2), budget=4)
    tuned = optimize(program, read_labels(make_labels(scenes=4)), settings)
    assert (tuned.found.steps, tuned.why) == ([], "no better prompts were found")
    assert tuned.spent["assessed"] == tuned.counts["held-out"] + 4, "nothing is assessed again"


@pytest.mark.parametrize("of_call", [False, True])
def test_a_search_keeps_within_limits_and_returns_what_it_has(
    of_call: bool, program: AgenticIQA, make_labels: MakeLabels
) -> None:
    limits = Limits(max_calls=20)
    settings = TuningSettings(optimizer=dspy.BootstrapFewShot(metric, max_labeled_demos=0), budget=40)
    if not of_call:
        program.limits = limits
    tuned = optimize(program, read_labels(make_labels(scenes=8)), settings, limits=limits if of_call else None)
    assert 0 < limits.calls == tuned.spent["calls"] == program.limits.calls <= 20
    assert "the limit of 20 calls" in tuned.found.ended or "within the limits" in tuned.found.ended


def test_a_compiled_program_is_tuned_again(program: AgenticIQA, lm: dspy.LM, make_labels: MakeLabels) -> None:
    labels = read_labels(make_labels(scenes=4))
    few = dspy.BootstrapFewShot(metric, max_bootstrapped_demos=1, max_labeled_demos=0)
    compiled = few.compile(program, trainset=examples_of(labels)[:1])
    compiled.set_lm(lm)
    student = Student(compiled, ["summarizer.score.ask.predict"], counting())
    assert names(student) == {"program.summarizer.score.ask.predict"}
    tuned = optimize(compiled, labels, TuningSettings(optimizer=few, budget=4))
    assert [step.added for step in tuned.found.steps] == ["1 worked examples"]


def test_the_student_keeps_the_model_that_an_optimizer_set(program: AgenticIQA, lm: dspy.LM, examples: Path) -> None:
    student = Student(program, ["summarizer.score"], counting()).reset_copy()
    (scorer,) = student.predictors()
    for given, asked in ((None, "openai/given"), (lm.copy(model="openai/rollout"), "openai/rollout")):
        scorer.lm = given
        student(image=examples / "coffee_jpeg.jpg", query="Rate it.")
        assert scorer.lm.model == asked


def test_the_budget_also_ends_a_search_with_another_stop() -> None:
    counted, mine = counting(), lambda state: False
    for given in (mine, [mine]):
        gepa = dspy.GEPA(
            metric, reflection_lm=dspy.LM("x/y"), max_metric_calls=9, gepa_kwargs={"stop_callbacks": given}
        )
        stops = _watched(gepa, counted).gepa_kwargs["stop_callbacks"]
        assert mine in stops
        assert [stop(None) for stop in stops] == [False, False]
        counted.ended = SPENT
        assert any(stop(None) for stop in stops)
        counted.ended = ""


@pytest.mark.parametrize("kind", [dspy.BootstrapFewShot, dspy.BootstrapFewShotWithRandomSearch, dspy.GEPA])
def test_a_metric_that_raises_is_an_error(kind: Any, program: AgenticIQA, lm: dspy.LM, make_labels: MakeLabels) -> None:
    def misspelled(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
        return float(gold.moss)

    more = {"reflection_lm": lm, "max_metric_calls": 20} if kind is dspy.GEPA else {}
    settings = TuningSettings(optimizer=kind(misspelled, **more), budget=10)
    with pytest.raises(AttributeError, match="moss"):
        optimize(program, read_labels(make_labels(scenes=4)), settings)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("reflect", "'reflect' needs a model that writes instructions: give one with reflection="),
        ("gepa", "'gepa' needs a model that writes instructions: give one with reflection="),
        ("mipro", "unknown optimizer 'mipro': choose reflect or gepa, or give one of DSPy"),
    ],
)
def test_a_search_by_name_is_known_and_has_a_model_that_writes_before_anything_is_asked(
    name: Any, message: str, program: AgenticIQA, make_labels: MakeLabels, server: Server
) -> None:
    with pytest.raises(UserError, match=message):
        optimize(program, read_labels(make_labels()), TuningSettings(optimizer=name))
    assert not server.requests


# --- the page --------------------------------------------------------------------------------------------------------


def test_the_page_lists_the_predictors() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.M)
    signatures = {name: each.signature.__name__ for name, each in AgenticIQA().named_predictors()}
    assert dict(rows) == signatures


@pytest.mark.slow
def test_the_page_tunes_with_plain_dspy(
    lm: dspy.LM, make_labels: MakeLabels, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    labels = make_labels(scenes=4)
    (labels.parent / "examples").symlink_to(labels.parent)
    monkeypatch.chdir(labels.parent)
    (block,) = [each for each in snippets(PAGE) if "dspy.GEPA(" in each.text]
    assert len([line for line in block.text.splitlines() if line.strip()]) <= 20
    before, model, after = block.text.partition('lm = dspy.LM("openai/gpt-4o")\n')
    assert model
    space: dict[str, Any] = {"lm": lm}
    monkeypatch.setattr(logging.getLogger("dspy"), "propagate", True)
    caplog.set_level(logging.INFO, logger="dspy")
    exec(compile(before + after, block.name, "exec"), space)
    for name in ("few_shot", "mipro", "gepa"):
        assert names(space[name]) == RATED
        space[name].set_lm(lm)
        assert space[name](labels.parent / "scene0.png").quality_score is not None
    assert all(predictor.demos for predictor in space["few_shot"].predictors())
    assert "Iteration 1: " in caplog.text
    assert "No valid predictions" not in caplog.text
    assert "Traceback" not in caplog.text
    again = AgenticIQA(lm=lm)
    again.load("tuned.json")
    instructions = {name: each.signature.instructions for name, each in space["gepa"].named_predictors()}
    assert {
        name: each.signature.instructions for name, each in again.named_predictors() if name in RATED
    } == instructions
