"""A backend is asked once what it supports, by the first question, and a failed probe leaves nothing behind."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.capabilities import (
    DAYS_KEPT,
    Capabilities,
    cache_folder,
    name_of,
    save_capabilities,
    saved_capabilities,
)
from agenticiqa.programs.backends.discovery import Discovery, known_capabilities
from agenticiqa.programs.backends.ledger import keeping
from agenticiqa.programs.backends.limits import LimitReached, Limits, within
from support.fake_server import Server, able, by_stage, fake_server, images_of, server_error, stage_of
from support.judging import ASSESSMENT
from support.loopback import Body, Reply, error_reply
from support.provider_base import spoken, tokens

pytestmark = pytest.mark.slow

TODAY = datetime.now(UTC).date()
ABLE = Capabilities(True, True, 20, "enforced", False, True, "test", TODAY.isoformat())
SCORED = spoken(json.dumps({"assessment": ASSESSMENT}), {"Fair": {"Fair": -0.4, "Good": -1.5}})
SCRIPT = by_stage({"assessment": SCORED})
PROBES = 4  # requests


def able_with_logprobs(body: Body) -> Reply:
    answer = able(body)
    return replace(answer, logprobs=tokens(answer.content or "") if body.get("logprobs") else None)


@contextmanager
def server_of(probes: Any = able_with_logprobs) -> Iterator[Server]:
    with fake_server(SCRIPT, probes=probes) as server:
        yield server


def stage(server: Server, **changes: Any) -> StageConfig:
    return StageConfig(**{"backend": "vllm.test", "api_base": server.url, "max_retries": 0, "timeout": 5.0, **changes})


def program(server: Server, **changes: Any) -> AgenticIQA:
    """Only the score is asked for."""
    return AgenticIQA.from_config(Config(summarizer=stage(server, **changes)))


def questions(server: Server) -> list[Body]:
    return [body for body in server.requests if stage_of(body) == "assessment"]


def probes(server: Server) -> int:
    return len(server.requests) - len(questions(server))


def test_the_question_that_causes_the_probe_uses_what_it_finds(photo: Path) -> None:
    with server_of() as server:
        cold, warm = program(server)(photo), program(server)(photo)
    assert probes(server) == PROBES
    (asked,) = questions(server)
    assert (asked["top_logprobs"], asked["response_format"]["type"]) == (20, "json_schema")
    assert cold.summarizer_result == warm.summarizer_result
    assert cold.summarizer_result.probability_source == "logprobs"
    assert cold.usage_by_stage["probe"]["calls"] == PROBES
    assert "probe" not in warm.usage_by_stage
    known = {"structured_outputs": ["json_schema"], "logprobs": 20, "found": TODAY.isoformat()}
    for result in (cold, warm):
        assert result.capabilities == {"vllm/test": {**known, "image_formats": ["jpeg", "png", "webp"]}}
        assert json.loads(json.dumps(result.to_dict()))["capabilities"] == result.capabilities


@pytest.mark.parametrize("form", ["json_schema", "json_object", "off"])
@pytest.mark.parametrize("logprobs", [True, False])
def test_what_the_configuration_says_needs_no_probe(photo: Path, form: str, logprobs: bool) -> None:
    with server_of() as server:
        result = program(server, structured_outputs=form, logprobs=logprobs)(photo)
    assert probes(server) == 0
    (used,) = result.capabilities.values()
    assert used == {
        "structured_outputs": [form],
        "logprobs": 20 if logprobs else 0,
        "image_formats": ["jpeg", "png", "webp"],
        "found": None,
    }


def test_building_a_program_sends_nothing() -> None:
    with server_of() as server:
        program(server)
    assert server.requests == []
    assert not cache_folder().exists()


def test_first_questions_at_the_same_time_wait_for_one_probe(photo: Path) -> None:
    with server_of() as server:
        judge = program(server)
        with ThreadPoolExecutor(8) as pool:
            scores = {result.quality_score for result in pool.map(lambda _: program(server)(photo), range(8))}

        async def together() -> list[Any]:
            return list(await asyncio.gather(*(judge.acall(photo) for _ in range(8))))

        scores |= {result.quality_score for result in asyncio.run(together())}
    assert probes(server) == PROBES
    assert len(scores) == 1


def test_a_probe_does_not_hold_up_the_event_loop(photo: Path) -> None:
    may_answer = threading.Event()

    def waiting(body: Body) -> Reply:
        assert may_answer.wait(10), "the event loop stood still while a probe was under way"
        return able_with_logprobs(body)

    async def judge_beside(server: Server) -> Any:
        judging = asyncio.create_task(program(server).acall(photo))
        while not server.requests:
            await asyncio.sleep(0.01)
        may_answer.set()
        return await judging

    with server_of(waiting) as server:
        assert asyncio.run(judge_beside(server)).summarizer_result.probability_source == "logprobs"


@pytest.mark.parametrize("status", [500, 503, 429])
def test_an_outage_is_an_outage_and_the_next_question_finds_out(photo: Path, status: int) -> None:
    down = threading.Event()
    down.set()

    def flaky(body: Body) -> Reply:
        return error_reply(status, {"error": "down"}) if down.is_set() else able_with_logprobs(body)

    with server_of(flaky) as server:
        judge = program(server)
        with pytest.raises(dspy.LMError) as outage:
            judge(photo)
        assert dspy.is_retryable_lm_error(outage.value)
        assert questions(server) == []
        assert not cache_folder().exists()
        down.clear()
        assert judge(photo).summarizer_result.probability_source == "logprobs"


def test_a_fallback_takes_over_from_a_backend_that_cannot_be_probed(photo: Path) -> None:
    with server_of(lambda _: server_error()) as down, server_of() as up:
        result = program(down, fallback_backend="vllm.spare", fallback_api_base=up.url)(photo)
    assert result.answered_by == {"scoring": ["vllm/spare"]}
    assert [*result.capabilities] == ["vllm/spare"]
    assert result.summarizer_result.probability_source == "logprobs"
    assert result.usage_by_stage["probe"]["calls"] == 1 + PROBES


def test_what_every_image_is_refused_for_is_not_saved(photo: Path, caplog: pytest.LogCaptureFixture) -> None:
    def blind(body: Body) -> Reply:
        return error_reply(413, {"error": "too large"}) if images_of(body) else able_with_logprobs(body)

    with server_of(blind) as server:
        judge = program(server)
        first, asked = judge(photo), len(server.requests)
        judge(photo, "Rate the quality of this image.")
        assert len(server.requests) == asked + 1, "this process does not ask again"
        assert known_capabilities(name_of(stage(server)))
        assert saved_capabilities(name_of(stage(server))) is None
    assert "refuses every image; this is not saved" in caplog.text
    assert first.summarizer_result.probability_source == "logprobs"


def test_a_finding_of_an_earlier_version_that_no_image_is_taken_does_not_count() -> None:
    save_capabilities("vllm/m", replace(ABLE, images=False, several_images=False, logprobs=0))
    assert known_capabilities("vllm/m") is None


@pytest.mark.parametrize(("days", "is_known"), [(0, True), (DAYS_KEPT, True), (DAYS_KEPT + 1, False), (-5, False)])
def test_a_finding_expires_and_the_log_says_so(
    photo: Path, days: int, is_known: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    found = replace(ABLE, when=(TODAY - timedelta(days)).isoformat())
    with server_of() as server:
        save_capabilities(name_of(stage(server)), found)
        program(server)(photo)
    assert probes(server) == (0 if is_known else PROBES)
    assert (f"was found on {found.when}" in caplog.text) is not is_known


def test_another_model_behind_the_same_address_is_found_out_anew(photo: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = replace(ABLE, model="the-old-one", logprobs=0, when=(TODAY - timedelta(3)).isoformat())
    with server_of() as server:
        save_capabilities(name_of(stage(server)), before)
        judge = program(server)
        judge(photo)
        assert probes(server) == 0
        assert "it answers as 'test' now, and was 'the-old-one'" in caplog.text
        result = judge(photo, "Rate the quality of this image.")
        assert probes(server) == PROBES
        assert result.summarizer_result.probability_source == "logprobs"
        save_capabilities(name_of(stage(server)), replace(before, when=TODAY.isoformat()))
        AgenticIQA.from_config(Config(summarizer=stage(server), cache=False))(photo)
    assert probes(server) == PROBES, "at most once a day: a gateway may have several models"


def test_requests_of_a_probe_count_towards_the_limits_of_the_run(photo: Path) -> None:
    limits = Limits(max_calls=PROBES)
    with server_of() as server, within(limits), keeping(), pytest.raises(LimitReached):
        program(server)(photo)
    assert (limits.calls, probes(server), questions(server)) == (PROBES, PROBES, [])


def test_the_limit_of_one_run_is_not_that_of_another_that_waits() -> None:
    begun, count = threading.Event(), [0]

    def probe() -> Capabilities:
        count[0] += 1
        if count[0] == 1:
            begun.set()
            threading.Event().wait(0.2)
            raise LimitReached("the limit of 1 calls is reached")
        return ABLE

    discovery = Discovery("vllm@host//m", probe)
    with ThreadPoolExecutor(2) as pool:
        limited = pool.submit(discovery.find)
        assert begun.wait(10)
        other = pool.submit(discovery.find)
        assert isinstance(limited.exception(10), LimitReached)
        assert other.result(10) == ABLE
    assert count == [2]


def test_those_that_wait_for_a_probe_share_its_outage() -> None:
    begun, count = threading.Event(), [0]

    def probe() -> Capabilities:
        count[0] += 1
        begun.set()
        threading.Event().wait(0.2)
        raise dspy.LMServerError("down")

    discovery = Discovery("vllm@host//m", probe)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(discovery.find)
        assert begun.wait(10)
        waiting = [pool.submit(discovery.find) for _ in range(2)]
        assert all(isinstance(each.exception(10), dspy.LMServerError) for each in (first, *waiting))
    assert count[0] == 1
    with pytest.raises(dspy.LMServerError):
        discovery.find()
    assert count[0] == 2
