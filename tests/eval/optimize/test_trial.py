"""An optimizer whose every example failed ends with one line and saves nothing; README's lines run as they are."""

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa import AgenticIQA
from agenticiqa.eval import read_labels
from agenticiqa.eval.optimize import examples_of, freeze, metric
from agenticiqa.eval.optimize.for_dspy import RATED
from agenticiqa.eval.optimize.trial import EveryExampleFailed, Trial
from agenticiqa.programs.errors import ImageError, Unanswered, UserError
from support.chat_request import images_of
from support.dspy_matrix import Model
from support.fake_server import bad_json, fake_server
from support.loopback import Body, Reply, error_reply
from support.readme_tuning import run_readme_tuning

MakeLabels = Callable[..., Path]
NO_SERVER = "http://127.0.0.1:9/v1"  # the port "discard", where nothing listens


def given(address: str) -> dspy.LM:
    return dspy.LM("openai/given", api_base=address, api_key="none", cache=False, num_retries=0)


def tune(lm: dspy.LM, labels: Path, budget: int = 12) -> AgenticIQA:
    """Tune as README does, with few examples."""
    examples = examples_of(read_labels(labels))
    gepa = dspy.GEPA(metric, reflection_lm=lm, max_metric_calls=budget)
    tuned: AgenticIQA = gepa.compile(freeze(AgenticIQA(lm=lm)), trainset=examples[:3], valset=examples[3:6])
    return tuned


@pytest.mark.slow
def test_the_lines_of_readme_tune_and_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_server(Model()) as server:
        space = run_readme_tuning(server.url, tmp_path, monkeypatch)
    saved = json.loads((tmp_path / "tuned.json").read_text("utf-8"))
    assert saved.keys() == {"metadata", *(f"{name}.ask.predict" for name in RATED)}
    program = AgenticIQA()
    program.load(tmp_path / "tuned.json")
    of_program = [body for body in server.requests if "response_format" in body]
    assert of_program, "the schema is requested from a server that DSPy does not know"
    assert {mime for body in of_program for mime, _ in images_of(body)} == {"image/jpeg", "image/png"}
    assert space["program"].trial.failed == 0


@pytest.mark.slow
def test_the_lines_of_readme_end_if_the_server_refuses_every_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        fake_server(error_reply(400, {"error": {"message": "no such thing"}})) as server,
        pytest.raises(EveryExampleFailed, match=r"^every example failed \(\d+ of \d+\), .*no such thing"),
    ):
        run_readme_tuning(server.url, tmp_path, monkeypatch)
    assert len(server.requests) < 60
    assert not (tmp_path / "tuned.json").exists()


def test_gepa_ends_at_the_first_examples_if_no_server_is_there(make_labels: MakeLabels) -> None:
    with pytest.raises(EveryExampleFailed, match=r"^every example failed \(1 of 1\), .*Connection refused"):
        tune(given(NO_SERVER), make_labels(scenes=6))


def test_answers_that_are_all_unusable_are_searched_to_the_end_and_not_saved(
    make_labels: MakeLabels, tmp_path: Path
) -> None:
    with fake_server(bad_json()) as server:
        tuned = tune(given(server.url), make_labels(scenes=6), budget=6)
    with pytest.raises(UserError, match=r"^every example failed \(\d+ of \d+\).*nothing is saved$"):
        tuned.save(tmp_path / "tuned.json")
    with pytest.raises(UserError, match="nothing is saved"):
        tuned.save(tmp_path / "whole", save_program=True)
    assert not [*tmp_path.glob("tuned.json"), *tmp_path.glob("whole")]


def test_one_result_is_enough_to_save(make_labels: MakeLabels, tmp_path: Path) -> None:
    answers, is_down = Model(), False

    def script(body: Body) -> Reply | str:
        return error_reply(400, {"error": {"message": "no"}}) if is_down else answers(body)

    labels = make_labels(scenes=6)
    with fake_server(script) as server:
        program = freeze(AgenticIQA(lm=given(server.url)))
        program(labels.parent / "scene0.png")
        is_down = True
        for _ in range(30):
            with pytest.raises(dspy.LMError):
                program(labels.parent / "scene1.png")
    program.save(tmp_path / "tuned.json")
    assert (tmp_path / "tuned.json").exists()


def test_a_program_that_is_not_tuned_is_saved_after_a_failure(examples: Path, tmp_path: Path) -> None:
    program = AgenticIQA(lm=given(NO_SERVER))
    with pytest.raises(dspy.LMError):
        program(examples / "coffee_jpeg.jpg")
    program.save(tmp_path / "prompts.json")
    assert (tmp_path / "prompts.json").exists()


OUTCOMES: list[tuple[Any, int]] = [  # an outcome, and how often it may come before the search ends
    (dspy.LMAuthError("no such key", status=401), 1),
    (UserError("no language model is configured"), 1),
    (dspy.LMInvalidRequestError("no", status=400), 5 + 2 * 8),
]


@pytest.mark.parametrize(("error", "most"), OUTCOMES)
def test_a_search_ends_after_failures_that_would_repeat(error: Exception, most: int) -> None:
    with dspy.context(num_threads=8):
        trial = Trial()
    for _ in range(most - 1):
        trial.note(error)
    with pytest.raises(EveryExampleFailed, match=str(error)):
        trial.note(error)
    with pytest.raises(EveryExampleFailed):  # an example under way
        trial.note(RuntimeError("interrupted"))


@pytest.mark.parametrize("error", [Unanswered("planner", ["no"], "", None, []), ImageError("no image", "a.png")])
def test_a_search_goes_on_after_failures_of_single_examples(error: Exception) -> None:
    trial = Trial()
    for _ in range(50):
        trial.note(error)
    with pytest.raises(UserError, match=r"50 of 50"):
        trial.refuse_to_save()
    trial.note("a result")
    trial.refuse_to_save()


def test_copies_share_the_outcomes_and_a_saved_program_has_none() -> None:
    program = freeze(AgenticIQA())
    assert program.deepcopy().trial is program.trial is copy.deepcopy(program).trial
    program.trial = Trial(failed=3)
    assert pickle.loads(pickle.dumps(program.trial)).failed == 0
