"""The depth of the call stack above a request, the size of contexts, and limits in threads of DSPy."""

import re
import traceback
from pathlib import Path

import dspy
import httpx
import pytest

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends import ledger
from agenticiqa.programs.backends.ledger import Limits, within
from agenticiqa.programs.backends.transport import Transport
from support.fake_server import by_stage, fake_server
from support.scripted_answers import RATE, SCRIPT

ROOT = Path(__file__).parents[3]
INSTALLED = str(Path(ledger.__file__).parents[1])
MOST_FRAMES, MOST_IN_CONTEXT = 10, 6
WHY = "Why does this photo look good or bad?"


def program(url: str) -> AgenticIQA:
    model = {"backend": "vllm.test", "api_base": url, "max_retries": 0}
    return AgenticIQA.from_config(
        {"planner": model, "executor": {**model, "select": "model"}, "summarizer": model, "replan": model}
    )


@pytest.mark.parametrize("query", [RATE, WHY])
def test_few_stack_frames_lie_between_the_call_and_the_request(
    query: str, photo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From ``AgenticIQA.__call__`` to the call of the client, in every stage."""
    depths: list[int] = []
    sent = Transport.handle_request

    def note(transport: Transport, request: httpx.Request) -> httpx.Response:
        ours = [frame for frame in traceback.extract_stack() if frame.filename.startswith(INSTALLED)]
        calls = [number for number, frame in enumerate(ours) if frame.name == "__call__"]
        depths.append(sum(frame.name != "handle_request" for frame in ours[calls[0] :]))
        return sent(transport, request)

    monkeypatch.setattr(Transport, "handle_request", note)
    with fake_server(by_stage(SCRIPT)) as server:
        program(server.url)(photo, query)
    assert len(depths) == len(server.requests) >= 2
    assert max(depths) <= MOST_FRAMES


def test_contexts_stay_small() -> None:
    sources = [path.read_text(encoding="utf-8") for top in ("programs", "eval") for path in (ROOT / top).rglob("*.py")]
    found = {name for source in sources for name in re.findall(r"\w+: ContextVar\[|(?<=\()agenticiqa_\w+(?==)", source)}
    assert 3 <= len(found) <= MOST_IN_CONTEXT, found


def test_a_limit_applies_in_threads_of_dspy(photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server, within(Limits(max_calls=5)) as limits:
        judge = program(server.url)
        questions = [(judge, {"image": photo, "query": f"{WHY} {number}"}) for number in range(4)]
        in_parallel = dspy.Parallel(
            num_threads=3, max_errors=9, return_failed_examples=True, disable_progress_bar=True, provide_traceback=False
        )
        _, failed, errors = in_parallel(questions)
        assert (limits.calls, len(server.requests)) == (5, 5)
    assert {type(error).__name__ for error in errors} == {"LimitReached"}
    assert len(failed) == len(errors) >= 1
