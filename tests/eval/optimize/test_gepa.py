"""The cost of DSPy's optimizers: announced, reported, and counted by the server; and the effect of a useless writer."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from agenticiqa.eval.cli import main
from agenticiqa.eval.optimize.search import KEPT_MONEY
from agenticiqa.signatures.summarizer import ScoreQuality
from support.fake_server import bad_key, fake_server
from support.loopback import Body, Reply
from support.simulated_tuning import PHRASE, SCORER, model_at, simulation

MakeLabels = Callable[..., Path]
TEXTS = ("new_instruction", "proposed_instruction", "instruction", "observations", "summary", "discussion")


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
            # Without log-probabilities: a server that reports none is asked for one rating more.
            stage = {"backend": model, "api_base": server.url, "max_retries": 0, "logprobs": False}
            (tmp_path / "config.yaml").write_text(json.dumps({"summarizer": stage}))
            args = ["optimize", str(labels), "--config", str(tmp_path / "config.yaml"), "--optimizer", optimizer]
            args += ["--reflection-backend", f"{model}-reflection", "--reflection-api-base", server.url]
            status = main([*args, "--budget", "40", "--no-cache", "--out", str(tmp_path / model), *more])
            writing = sum(request["model"].endswith("reflection") for request in server.requests)
            saved = tmp_path / model / "prompts.json"
            state = json.loads(saved.read_text()).keys() - {"metadata"} if saved.exists() else ()
            judging = len(server.requests) - writing
            return Outcome(status, *capsys.readouterr(), judging, writing, frozenset(state))

    return run


def lesson(request: Body) -> str:
    text = f"{ScoreQuality.instructions}\nAlways {PHRASE}."
    advice = {"module_advice": {"program.summarizer.score.ask.predict": f"Always {PHRASE}."}}
    return json.dumps({**dict.fromkeys(TEXTS, text), "observations": "COMPLETE", **advice})


@pytest.mark.slow
def test_announced_reported_and_counted_agree_and_before_is_the_same_for_both(run: Callable[..., Outcome]) -> None:
    before = set()
    for optimizer, to_fit in (("reflect", 0), ("gepa", 24)):
        done = run(optimizer, lesson, "--workers", "2")
        announced = 40 + 2 * to_fit + 2 * 18
        fusion = f", 2 x {to_fit} for the fusion profile" if to_fit else ""
        cost = f"Cost: 40 assessments{fusion} and 2 x 18 for the comparison; about {announced} calls"
        assert cost in done.printed
        assert 0 < done.number(r"Search: (\d+) assessments") <= 40
        assert done.number(r"Took \d+ s, (\d+) assessments") == done.judging <= announced, optimizer
        assert done.number(r"assessments, (\d+) calls") == done.judging + done.writing, optimizer
        before |= set(re.findall(r"fused score .*\n\s+SRCC: (.+?) ->.*\n.*: (.+?) ->", done.printed))
        assert done.tuned == {SCORER}, optimizer
        assert "Traceback" not in done.err
    assert len(before) == 1, before


@pytest.mark.slow
def test_a_writer_without_a_usable_answer_is_one_line_and_an_outage_is_no_outcome(run: Callable[..., Outcome]) -> None:
    done = run("gepa", lambda request: "yes")
    assert done.status == 1
    assert "End of the search: GEPA ended; it changed no prompt" in done.printed
    assert "the original prompts are saved" in done.printed
    assert "Traceback" not in done.err
    assert len(done.printed.splitlines()) < 22
    done = run("gepa", lambda request: bad_key())
    assert done.status == 1
    assert "no such key" in done.err.splitlines()[-1]
    assert "Saved" not in done.printed


@pytest.mark.slow
@pytest.mark.parametrize("limit", [12, 110])
def test_a_limit_of_calls_holds_and_leaves_an_outcome(run: Callable[..., Outcome], limit: int) -> None:
    done = run("gepa", lesson, "--max-calls", str(limit), "--workers", "2")
    assert done.judging + done.writing <= limit
    assert re.search(rf"End of the search: (the limit of {limit} calls is reached|{KEPT_MONEY})", done.printed)
    assert "Saved in" in done.printed
    assert "held-out scenes could be compared" not in done.printed, "calls for the comparison are kept back"
