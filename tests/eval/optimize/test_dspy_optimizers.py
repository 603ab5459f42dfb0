"""The cost of DSPy's optimizers: announced, reported, and counted by the server; and the effect of a useless writer."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.teleprompt import Teleprompter

from agenticiqa.eval.cli import main
from agenticiqa.eval.datasets import read_labels
from agenticiqa.eval.optimize.comparison import Tuned
from agenticiqa.eval.optimize.items import TuningQuestion
from agenticiqa.eval.optimize.search import KEPT_MONEY
from agenticiqa.eval.optimize.tuning import Budget, optimize
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.saving import SCORER
from agenticiqa.signatures.summarizer import ScoreQuality
from support.fake_server import bad_key, fake_server
from support.loopback import Body, Reply
from support.simulated_tuning import PHRASE, model_at, simulated_models, simulation

MakeLabels = Callable[..., Path]
TEXTS = ("new_instruction", "proposed_instruction", "instruction", "observations", "summary", "discussion")


class Greedy(Teleprompter):
    """Asks about each question a number of times, with another instruction each, and gives back its last program."""

    def __init__(self, times: int) -> None:
        self.times, self.failures = times, 0

    def compile(self, student: Any, *, trainset: list[dspy.Example], **more: Any) -> Any:
        for number in range(self.times):
            student = student.deepcopy()
            (predictor,) = student.predictors()
            text = f"Give final_answer and quality_reasoning. {number}"
            predictor.signature = predictor.signature.with_instructions(text)
            made = [student(**example.inputs()) for example in trainset]
            self.failures += sum("failure" in each for each in made)
        return student


def tuned_by(optimizer: Teleprompter, labels: Path, budget: int) -> tuple[Tuned, int]:
    """The outcome, and how many requests the server had."""
    asked = [
        TuningQuestion(row.image, "Which is strongest?", row.name, None, ("Noise", "Compression"), answer="B")
        for row in read_labels(labels)
    ]
    answer = {"final_answer": "A", "quality_reasoning": "By its grain."}
    with simulated_models(labels, answer=answer) as server:
        model = dspy.LM(f"openai/{model_at(server)}", api_base=server.url, api_key="x", cache=False)
        with dspy.context(lm=model):
            tuned = optimize(AgenticIQA(), asked, "answering", optimizer=optimizer, budget=Budget(budget))
        return tuned, len(server.of("answer"))


def test_no_optimizer_assesses_more_than_its_budget(make_labels: MakeLabels) -> None:
    """Of 15 questions 9 are tuned on: 9 and 9 are asked, of the second 9 three are within the budget."""
    greedy = Greedy(2)
    tuned, requests = tuned_by(greedy, make_labels(scenes=5), 12)
    assert (tuned.found.spent, tuned.found.proposals, tuned.found.used) == (12, 2, 9)
    assert tuned.found.ended == "the budget was spent"
    assert greedy.failures == 6
    assert requests == 12 + 2 * tuned.counts["held-out"] == tuned.spent["assessed"]


def test_an_optimizer_that_exceeds_its_budget_is_stopped(make_labels: MakeLabels) -> None:
    tuned, requests = tuned_by(Greedy(100), make_labels(scenes=5), 12)
    assert not tuned.found.tuned
    assert tuned.found.ended == "the budget was spent"
    assert requests == 12 + tuned.counts["held-out"]


# --- by the command, with the requests that the server counted -------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What the command printed, and the requests to both models."""

    status: int
    printed: str
    err: str
    judging: int
    writing: int
    tuned: frozenset[str]  # the predictors that the prompts are of

    def number(self, pattern: str) -> int:
        """The number that a pattern finds in what was printed."""
        (found,) = re.findall(pattern, self.printed)
        return int(found)


@pytest.fixture
def run(make_labels: MakeLabels, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run the command without a cache, so that each judgment is one request; ``writer`` answers for the reflection."""
    labels, numbers = make_labels(scenes=14, references=True), count()

    def run(optimizer: str, writer: Callable[[Body], Reply | str], *more: str) -> Outcome:
        judge = simulation(labels)

        def answered(request: Body) -> Reply | str:
            return writer(request) if request["model"].endswith("reflection") else judge(request)

        with fake_server(answered) as server:
            model = f"{model_at(server)}-{next(numbers)}"  # for DSPy's cache: a port may come again
            stage = {"backend": model, "api_base": server.url, "max_retries": 0}
            (tmp_path / "config.yaml").write_text(json.dumps({"summarizer": stage}))
            args = ["optimize", str(labels), "--config", str(tmp_path / "config.yaml"), "--optimizer", optimizer]
            args += ["--reflection-backend", f"{model}-reflection", "--reflection-api-base", server.url]
            status = main([*args, "--budget", "40", "--no-cache", "--out", str(tmp_path / model), *more])
            writing = sum(request["model"].endswith("reflection") for request in server.requests)
            saved = tmp_path / model / "prompts.json"
            state = json.loads(saved.read_text())["state"] if saved.exists() else ()
            judging = len(server.requests) - writing
            return Outcome(status, *capsys.readouterr(), judging, writing, frozenset(state))

    return run


def lesson(request: Body) -> str:
    text = f"{ScoreQuality.instructions}\nAlways {PHRASE}."
    advice = {"module_advice": {"program.summarizer.score.ask.predict": f"Always {PHRASE}."}}
    return json.dumps({**dict.fromkeys(TEXTS, text), "observations": "COMPLETE", **advice})


@pytest.mark.slow
def test_announced_reported_and_counted_agree_and_before_is_the_same_for_every_optimizer(
    run: Callable[..., Outcome],
) -> None:
    pytest.importorskip("optuna")
    before = set()
    for optimizer in ("reflect", "bootstrap", "gepa", "mipro", "simba"):
        done = run(optimizer, lesson, "--workers", "2")
        to_fit, to_compare = 0 if optimizer == "reflect" else 24, 18
        announced = 40 + 2 * to_fit + 2 * to_compare
        fusion = f", 2 x {to_fit} for the fusion profile" if to_fit else ""
        assert (
            f"Cost: 40 assessments{fusion} and 2 x {to_compare} for the comparison; about {announced} calls"
            in done.printed
        )
        assert 0 < done.number(r"Search: (\d+) assessments") <= 40
        assert done.number(r"Took \d+ s, (\d+) assessments") == done.judging <= announced, optimizer
        assert done.number(r"assessments, (\d+) calls") == done.judging + done.writing, optimizer
        before |= set(re.findall(r"fused score .*\n\s+SRCC: (.+?) ->.*\n.*: (.+?) ->", done.printed))
        assert done.tuned == {SCORER}, optimizer
        assert "Traceback" not in done.err
    assert len(before) == 1, before


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["mipro", "gepa", "simba"])
def test_a_writer_without_a_usable_answer_is_one_line_and_an_outage_is_no_outcome(
    run: Callable[..., Outcome], optimizer: str
) -> None:
    pytest.importorskip("optuna")
    done = run(optimizer, lambda request: "yes")
    assert done.status == 1
    assert f"End of the search: {optimizer} ended; it proposed no usable instruction" in done.printed
    assert "the original prompts are saved" in done.printed
    assert "Traceback" not in done.err
    assert len(done.printed.splitlines()) < 22
    done = run(optimizer, lambda request: bad_key())
    assert done.status == 1
    assert "no such key" in done.err.splitlines()[-1]
    assert "Saved" not in done.printed


@pytest.mark.slow
@pytest.mark.parametrize(("optimizer", "limit"), [("gepa", 12), ("gepa", 110), ("mipro", 110), ("bootstrap", 45)])
def test_a_limit_of_calls_holds_and_leaves_an_outcome(run: Callable[..., Outcome], optimizer: str, limit: int) -> None:
    pytest.importorskip("optuna")
    done = run(optimizer, lesson, "--max-calls", str(limit), "--workers", "2")
    assert done.judging + done.writing <= limit
    assert re.search(rf"End of the search: (the limit of {limit} calls is reached|{KEPT_MONEY})", done.printed)
    assert "Saved in" in done.printed
    assert "held-out questions could be compared" not in done.printed, "calls for the comparison are kept back"
