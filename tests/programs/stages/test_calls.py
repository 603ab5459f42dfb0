"""How many requests one image needs, which of them run in parallel, and what a second run costs."""

import io
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest
import yaml
from PIL import Image

from agenticiqa.configs import STAGES, Config, Price
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.limits import LimitReached, Limits, RunLimits
from agenticiqa.programs.backends.run_context import within
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.stages import side_by_side
from agenticiqa.programs.stages.executor import Executor
from agenticiqa.programs.tools.tool_curves import ToolCurve
from agenticiqa.signatures.types import PARSING_FAILED
from support.fake_server import (
    Script,
    bad_json,
    by_stage,
    cut_connection,
    fake_server,
    hang,
    images_of,
    server_error,
    stage_of,
)
from support.loopback import Body, Reply, error_reply
from support.scripted_answers import NONE, RATE, SCRIPT, analyse, plan, program_for

WHY = "Why is the sky noisy?"
OTHER = "Is this picture cheerful?"
PATIENCE = 20.0  # seconds until a test gives up on what should happen side by side


def meeting(stages: set[str], script: Callable[[Body], Reply | str]) -> Script:
    """Return a script that answers these stages only when all of them are in flight."""
    together = threading.Barrier(len(stages))

    def answer(request: Body) -> Reply | str:
        if stage_of(request) in stages:
            together.wait(PATIENCE)
        return script(request)

    return answer


def measuring(program: AgenticIQA, measure: Callable[[Any], float], **changes: Any) -> AgenticIQA:
    """Return the program, each of whose tools measures in this way."""
    assert isinstance(program.executor, Executor)
    tools = program.executor.toolbox
    program.executor.toolbox = {name: replace(card, measure=measure, **changes) for name, card in tools.items()}
    return program


def test_the_table_selects_the_tools_of_a_rating_unless_a_model_is_to(photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        program = program_for(server, executor={"select": "table"})
        result = program(photo, RATE)
        assert sorted(server.stages()) == ["analysis", "assessment", "detection", "plan"]
        assert result.executor_evidence.overall_tools == ("LEARNED-IQA",)
        server.requests.clear()
        program(photo, "Which distortions does the image have?")
    assert "selection" in server.stages(), "a question that asks for no rating is left to the model"


def test_a_full_rating_has_four_requests_in_sequence(photo: Path) -> None:
    with fake_server(meeting({"analysis", "selection"}, by_stage(SCRIPT))) as server:
        program = program_for(server)
        result = program(photo, RATE)
    asked = server.stages()
    assert sorted(asked) == ["analysis", "assessment", "detection", "plan", "selection"]
    assert asked[:2] == ["plan", "detection"]  # then the two that met, then the last
    assert asked[-1] == "assessment"
    assert result.quality_score is not None


def test_a_doubt_is_decided_while_the_score_is_requested(photo: Path) -> None:
    doubtful = {**SCRIPT, "analysis": analyse("severe")}
    with fake_server(meeting({"decision", "assessment"}, by_stage(doubtful))) as server:
        as_it_is = ToolCurve((0, 1, 0, 1, 0), (1, 5), "as it is")
        result = measuring(program_for(server), lambda pixels: 4.6, curve=as_it_is)(photo, RATE)
    assert sorted(server.stages()[:4]) == ["analysis", "detection", "plan", "selection"]
    assert sorted(server.stages()[4:]) == ["assessment", "decision"]
    assert "Contradictory evidence" in result.quality_reasoning
    assert result.usage_by_stage["replan"]["calls"] == 1


def test_needed_tools_run_while_the_planner_is_asked_and_each_runs_once(photo: Path) -> None:
    measured, runs = threading.Event(), []

    def measure(pixels: Any) -> float:
        runs.append(1)
        measured.set()
        return 3.0

    def script(request: Body) -> Reply | str:
        if stage_of(request) == "plan":
            assert measured.wait(PATIENCE), "nothing was measured while the planner was asked"
        return by_stage(SCRIPT)(request)

    with fake_server(script) as server:
        result = measuring(program_for(server), measure)(photo, RATE)
    log = result.executor_evidence.tool_log
    assert {call.raw for call in log} == {3.0}
    assert len(runs) == len({call.tool for call in log})


@pytest.mark.parametrize("query", ["Rate the quality.", RATE, OTHER, WHY])
def test_the_fast_profile_asks_at_most_twice(photo: Path, query: str) -> None:
    other = plan(flags=NONE, query_type="Other")
    noisy = plan("sky", distortion_source="Explicit", distortions=[{"region": "sky", "distortions": ["Noise"]}])
    script = {**SCRIPT, "plan": {OTHER: other, WHY: noisy}.get(query, plan())}
    with fake_server(by_stage(script)) as server:
        result = program_for(server, mode="fast")(photo, query)
    last = "answer" if query in (OTHER, WHY) else "assessment"
    assert server.stages() == ([last] if query == "Rate the quality." else ["plan", last])
    assert result.backend == "planner=vllm.test, executor=offline, summarizer=vllm.test, replan=offline"
    assert result.iteration_count == 0


SAMPLING = ("temperature", "top_p", "max_tokens")


def test_stages_with_only_a_backend_send_the_documented_parameters(photo: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    with fake_server(by_stage(SCRIPT)) as server:
        file.write_text(yaml.safe_dump({name: {"backend": "vllm.test", "api_base": server.url} for name in STAGES}))
        AgenticIQA.from_config(file)(photo, RATE)
        AgenticIQA.from_config(Config().with_backend("vllm.test", server.url))(photo, OTHER)
    sent = {stage_of(body): {name: body.get(name) for name in SAMPLING} for body in server.requests}
    assert sent.pop("plan")["top_p"] == 0.1
    limits = {stage: body["max_tokens"] for stage, body in sent.items()}
    assert sent == {stage: {"temperature": 0.0, "top_p": None, "max_tokens": limits[stage]} for stage in sent}
    assert limits.keys() == {"detection", "analysis", "selection", "assessment", "answer"}
    assert all(0 < limit < 512 for limit in limits.values()), "what the schema of each request allows"


def test_hosted_models_get_the_documented_limits_of_tokens(photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        AgenticIQA.from_config(Config().with_backend("openai.test", server.url))(photo, RATE)
    limits = {stage_of(body): body["max_completion_tokens"] for body in server.requests}
    assert limits == {"plan": 2048, "detection": 2048, "analysis": 2048, "assessment": 512}


def test_usage_by_stage_adds_up_to_the_total(photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        price = Price(input=1.0, output=100.0)
        result = program_for(server, **{name: {"price": price} for name in ("planner", "executor", "summarizer")})(
            photo, RATE
        )
    stages = result.to_dict()["usage_by_stage"]
    first, second, *side_by_side, last = stages
    assert (first, second, last) == ("planner", "distortion_detection", "scoring")
    assert set(side_by_side) == {"distortion_analysis", "tool_selection"}
    for used in stages.values():
        assert (used["calls"], used["cached"], used["retries"]) == (1, 0, 0)
        assert (used["input_tokens"], used["output_tokens"]) == (10, 5)
        assert used["usd"] == pytest.approx((10 * 1.0 + 5 * 100.0) / 1e6)
    (model,) = result.usage.values()
    assert model["prompt_tokens"] == 50
    assert list(result.usage) == ["vllm/test"]


def test_a_second_run_costs_nothing(photo: Path, tmp_path: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        first = program_for(server)(photo, RATE)
        asked = len(server.requests)
        elsewhere = tmp_path / "copy.jpg"  # it is the content that counts
        elsewhere.write_bytes(photo.read_bytes())
        second = program_for(server)(elsewhere, RATE)
    assert len(server.requests) == asked
    assert {(used["calls"], used["cached"]) for used in second.usage_by_stage.values()} == {(0, 1)}
    assert second.quality_score == first.quality_score
    assert second.usage == {}
    assert {used["usd"] for used in first.usage_by_stage.values()} == {None}, "no price was configured"
    with fake_server(by_stage(SCRIPT)) as other:
        program_for(other)(photo, RATE)
        uncached = program_for(other, cache=False)(photo, RATE)
    assert len(other.requests) == 2 * asked, "another server has answers of its own"
    assert {used["cached"] for used in uncached.usage_by_stage.values()} == {0}


@pytest.mark.parametrize("engine_of", ["ours", "DSPy's own", pytest.param("LiteLLM's", marks=pytest.mark.slow)])
def test_only_a_stage_without_a_usable_answer_is_asked_again(photo: Path, engine_of: str) -> None:
    def result() -> Assessment:
        program = program_for(server) if engine_of == "ours" else AgenticIQA()
        with dspy.context(lm=lm):
            return program(photo, RATE)

    rating = SCRIPT["assessment"]
    with fake_server(by_stage({**SCRIPT, "assessment": [*[bad_json()] * 3, *[bad_json(), rating]]})) as server:
        engine = {"engine": "litellm"} if engine_of == "LiteLLM's" else {}
        lm = dspy.LM("openai/gpt-4o", api_base=server.url, api_key="none", **engine)
        assert result().quality_reasoning == PARSING_FAILED
        others = len(server.requests) - 3
        healed = result()
        assert len(server.requests) == others + 3 + 2
        replayed = result()
        assert len(server.requests) == others + 3 + 2, "an exchange that came to an answer is replayed whole"
    assert healed.quality_score is not None
    assert (replayed.quality_score, replayed.rejected_answers) == (healed.quality_score, healed.rejected_answers)
    assert len(healed.rejected_answers["scoring"]) == 1


def test_another_image_question_or_setting_is_not_answered_from_the_cache(photo: Path, tmp_path: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        program_for(server)(photo, RATE)
        one = len(server.of("assessment"))
        changed = tmp_path / "changed.jpg"
        header = b"JFIF\0\1\1"  # then the resolution: the pixels are the same
        changed.write_bytes(photo.read_bytes().replace(header + b"\0\0\1\0\1", header + b"\1\0\x48\0\x48"))
        program_for(server)(changed)
        program_for(server)(photo, "Rate the quality, please.")
        program_for(server, summarizer={"seed": 5})(photo, RATE)
        program_for(server, summarizer={"temperature": 0.5})(photo, RATE)
        program_for(server, summarizer={"max_tokens": 99})(photo, RATE)
    assert len(server.of("assessment")) == one + 5


def test_the_usd_limit_is_never_exceeded(photo: Path) -> None:
    price = Price(input=100.0, output=100.0)
    stages = {name: {"price": price, "max_tokens": 100} for name in ("planner", "executor", "summarizer", "replan")}
    said = by_stage(SCRIPT)
    with fake_server(lambda request: Reply(str(said(request)), usage=(900, 100))) as server:
        program = program_for(server, cache=False, **stages)
        with (
            within(RunLimits(Limits(max_usd=1.5))) as limits,
            pytest.raises(LimitReached, match="would exceed the limit"),
        ):
            list(map(program, [photo] * 1000))
    assert 0 < limits.own.usd <= 1.5
    assert limits.own.usd == pytest.approx(len(server.requests) * 1000 * 100 / 1e6)
    assert len(server.requests) > 5


UNKNOWN_PRICES = {
    "no usage": Reply(usage=(0, 0)),
    "only half of the usage": Reply(usage=(900, 0)),
    "cut off in mid-body": cut_connection(),
    "no answer in time": hang(),
    "a fault of the server": server_error(),
}


@pytest.mark.slow
@pytest.mark.parametrize("reply", UNKNOWN_PRICES.values(), ids=UNKNOWN_PRICES)
def test_a_request_of_unknown_cost_counts_at_its_highest_price(photo: Path, reply: Reply) -> None:
    price, most_tokens = Price(input=0.0, output=1000.0), 100
    stage = {"price": price, "max_tokens": most_tokens, "timeout": 0.3}
    said = by_stage(SCRIPT)
    with fake_server(lambda request: replace(reply, content=str(said(request)))) as server:
        program = program_for(server, cache=False, **dict.fromkeys(STAGES, stage))
        with within(RunLimits(Limits(max_usd=1.0))) as limits:
            for _ in range(100):
                try:
                    program(photo, RATE)
                except LimitReached:
                    break
                except (dspy.LMError, Unanswered):
                    continue
            else:
                pytest.fail("the limit was never reached")
    assert len(server.requests) == 1.0 / (most_tokens * 1000 / 1e6)
    assert limits.own.usd == pytest.approx(1.0)


def test_a_request_that_was_not_sent_or_was_refused_costs_nothing(photo: Path) -> None:
    stages = {name: {"price": Price(input=100.0, output=100.0)} for name in STAGES}
    with fake_server(error_reply(400, {"error": {"message": "no such parameter"}})) as server:
        program = program_for(server, cache=False, **stages)
        with within(RunLimits(Limits(max_usd=1.0))) as limits, pytest.raises(dspy.LMInvalidRequestError):
            program(photo, RATE)
    assert server.requests
    with within(limits), pytest.raises(dspy.LMTransportError):
        program(photo, RATE)
    assert limits.own.usd == 0


def test_images_are_sent_unchanged_unless_max_side_is_set(photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        as_it_is = program_for(server)(photo, RATE)
        sent = [data for request in server.requests for _, data in images_of(request)]
        smaller = program_for(server, max_side=100)(photo, RATE)
        small = [data for request in server.requests[5:] for _, data in images_of(request)]
    assert set(sent) == {photo.read_bytes()}
    assert {max(Image.open(io.BytesIO(data)).size) for data in small} == {100}
    assert any("max_side" in note for note in smaller.executor_evidence.notes)
    assert not any("max_side" in note for note in as_it_is.executor_evidence.notes)
    assert smaller.image.size == as_it_is.image.size  # measured as it is
    assert [call.raw for call in smaller.executor_evidence.tool_log] == [
        call.raw for call in as_it_is.executor_evidence.tool_log
    ]


def test_offline_only_analysis_and_tools_run_in_parallel(photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model decides about a replan in parallel, and no tool runs during planning by rules."""
    pools: list[int] = []

    def counted(workers: int) -> ThreadPoolExecutor:
        pools.append(workers)
        return ThreadPoolExecutor(workers)

    monkeypatch.setattr(side_by_side, "ThreadPoolExecutor", counted)
    program = AgenticIQA.offline()
    program(photo, RATE)
    assert pools == [1]
    program(photo, OTHER)
    assert pools == [1]
