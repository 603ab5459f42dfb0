"""Limits of calls and USD in Python: of a program, a call or a configuration, and what is kept at a limit."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa import AgenticIQA, LimitReached, Limits, UserError, assess_many, build_graph
from agenticiqa.configs import Config
from agenticiqa.eval import evaluate
from agenticiqa.programs.errors import WrongArgument
from support.fake_server import Server, by_stage, fake_server
from support.loopback import Body, Reply
from support.scripted_answers import RATE, SCRIPT, config_for
from support.shards import png

CALLS = 5  # of a rating in this script


@pytest.fixture
def album(tmp_path: Path) -> list[Path]:
    """Six images."""
    paths = [tmp_path / f"{number}.png" for number in range(6)]
    for number, path in enumerate(paths):
        path.write_bytes(png(number))
    return paths


def limited(server: Server, limits: Limits | None = None, **changes: Any) -> AgenticIQA:
    """Return a program on this server that repeats no answer from the cache."""
    return AgenticIQA(config=config_for(server, cache=False, **changes), limits=limits)


def test_a_call_beyond_the_limit_raises_and_sends_nothing(photo: Path) -> None:
    limits = Limits(max_calls=CALLS + 2)
    with fake_server(by_stage(SCRIPT)) as server:
        program = limited(server, limits)
        program(photo, RATE)
        with pytest.raises(LimitReached, match="the limit of 7 calls is reached"):
            program(photo, RATE)
        assert program.limits is limits
        assert len(server.requests) == limits.calls == CALLS + 2


@pytest.mark.parametrize("copied", [dspy.Module.deepcopy, dspy.Module.reset_copy])
def test_copies_of_a_program_share_its_limits(copied: Callable[[Any], Any], photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        program = limited(server, max_calls=CALLS + 1)
        copied(program)(photo, RATE)
        with pytest.raises(LimitReached):
            program(photo, RATE)
        assert len(server.requests) == program.limits.calls == CALLS + 1


def test_threads_share_the_limits_of_a_program(photo: Path) -> None:
    def outcome(_: int) -> object:
        try:
            return program(photo, RATE)
        except LimitReached as limit:
            return limit

    with fake_server(by_stage(SCRIPT)) as server:
        program = limited(server, max_calls=7)
        with ThreadPoolExecutor(4) as pool:
            outcomes = [*pool.map(outcome, range(4))]
        assert len(server.requests) == 7
    assert sum(isinstance(each, LimitReached) for each in outcomes) >= 3


@pytest.mark.slow  # LangGraph takes 2 s to load
def test_the_graph_has_the_limits_of_its_program(photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        graph = build_graph(limited(server, max_calls=2))
        with pytest.raises(LimitReached):
            graph.invoke({"query": RATE, "image_path": str(photo)})
        assert len(server.requests) == 2


@pytest.mark.parametrize("of_call", [False, True])
def test_assess_many_yields_the_results_so_far_and_raises(of_call: bool, album: list[Path]) -> None:
    limits = Limits(max_calls=2 * CALLS + 1)
    with fake_server(by_stage(SCRIPT)) as server:
        program = limited(server) if of_call else limited(server, limits)
        outcomes = assess_many(program, album, 1, limits=limits if of_call else None)
        results = [result for _, result in islice(outcomes, 2)]
        with pytest.raises(LimitReached):
            next(outcomes)
        assert len(server.requests) == limits.calls == program.limits.calls == 2 * CALLS + 1
        assert [result.quality_score is not None for result in results] == [True, True]
        limits.max_calls = None  # a higher limit
        assert len([*assess_many(program, album[:1], 1)]) == 1, "the end of a run is not that of the program"


def test_a_frame_of_the_results_so_far_comes_with_the_limit(album: list[Path]) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        results = assess_many(limited(server), album, 1, limits=Limits(max_calls=2 * CALLS + 1))
        with pytest.raises(LimitReached) as limit:
            results.to_frame()
    assert limit.value.results["quality_score"].notna().tolist() == [True, True]


def test_few_calls_finish_images_and_do_not_only_begin_them(album: list[Path]) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        program, finished = limited(server, max_calls=2 * CALLS), []
        with pytest.raises(LimitReached):
            finished.extend(job for job, _ in assess_many(program, album))
        assert len(finished) == 2


def test_a_call_keeps_within_its_own_limits_and_those_of_the_program(album: list[Path]) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        program = limited(server, max_calls=3)
        with pytest.raises(LimitReached, match="of 3 calls"):
            list(assess_many(program, album, 1, limits=Limits(max_calls=100)))
        assert len(server.requests) == 3


def test_evaluate_raises_with_the_evaluation_so_far(album: list[Path]) -> None:
    labels = [(path, float(number % 5)) for number, path in enumerate(album)]
    with fake_server(by_stage(SCRIPT)) as server:
        with pytest.raises(LimitReached) as limit:
            evaluate(limited(server), labels, limits=Limits(max_calls=3 * CALLS))
        assert len(server.requests) == 3 * CALLS
        assert [Path(row["name"]).name for row in limit.value.results.rows] == ["0.png", "1.png", "2.png"]
        assert limit.value.results.summary["systems"][0]["n"] == 3
        with pytest.raises(LimitReached) as limit:
            evaluate(limited(server, max_calls=0), labels)
        assert limit.value.results.rows == []


def test_a_limit_in_usd_holds_in_threads(album: list[Path]) -> None:
    answers = by_stage(SCRIPT)

    def billed(body: Body) -> Reply:
        return Reply(str(answers(body)), usage=(900, 100))

    with fake_server(billed) as server:
        program = AgenticIQA(
            backend="vllm.test",
            api_base=server.url,
            price="1,2",
            limits=Limits(max_usd=0.012),
            config=Config(cache=False),
        )
        with pytest.raises(LimitReached, match=r"would exceed the limit of 0\.012 USD"):
            list(assess_many(program, album))
        assert program.limits.usd == pytest.approx(0.0011 * len(server.requests))
        assert 0.003 < program.limits.usd <= 0.012


def test_a_limit_in_usd_needs_prices_before_anything_is_sent(album: list[Path]) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        for given in (Limits(max_usd=1), None):
            with pytest.raises(WrongArgument, match=r"max_usd needs the price of vllm/test .*price='IN,OUT'"):
                limited(server, given, max_usd=1.0)
        with pytest.raises(WrongArgument, match="max_usd needs the price"):
            list(assess_many(limited(server), album, limits=Limits(max_usd=1)))
        assert server.requests == []


def test_a_model_of_the_caller_has_a_limit_of_calls(photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        lm = dspy.LM("openai/test", api_base=server.url, api_key="k", cache=False)
        program = AgenticIQA(lm=lm, limits=Limits(max_calls=2))
        with pytest.raises(LimitReached, match="of 2 calls"):
            program(photo, RATE)
        assert len(server.requests) == program.limits.calls == 2
        with pytest.raises(WrongArgument, match="max_usd needs the price of openai/test"):
            AgenticIQA(lm=lm, limits=Limits(max_usd=1))
        with pytest.raises(WrongArgument, match="max_usd needs the price of the model of DSPy"):
            AgenticIQA(limits=Limits(max_usd=1))


def test_answers_from_the_cache_of_a_callers_model_need_no_call(photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        lm = dspy.LM("openai/cached-by-limits", api_base=server.url, api_key="k")
        AgenticIQA(lm=lm)(photo, RATE)
        program = AgenticIQA(lm=lm, limits=Limits(max_calls=0))
        assert program(photo, RATE).quality_score is not None
        assert program.limits.calls == 0


def test_limits_are_no_part_of_a_saved_program_and_go_to_no_other_process(tmp_path: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        program = limited(server, max_calls=3)
        with pytest.raises(UserError, match="cannot be sent to another process"):
            pickle.dumps(program)
        program.save(tmp_path / "saved", save_program=True)
        assert not dspy.load(str(tmp_path / "saved"), allow_pickle=True).limits.is_set
        assert program.limits.is_set
    pickle.dumps(AgenticIQA(config=Config(max_calls=3)))  # an offline program has none


@pytest.mark.parametrize("wrong", [{"max_usd": -1}, {"max_calls": float("nan")}, {"max_calls": True}, {"max_usd": "1"}])
def test_wrong_limits_are_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(WrongArgument, match=f"^{name}=.*at least 0, or None"):
        Limits(**wrong)


def test_limits_without_effect_are_refused(album: list[Path]) -> None:
    with pytest.raises(WrongArgument, match="every stage works offline"):
        AgenticIQA(config=Config(), limits=Limits(max_calls=1))
    with pytest.raises(UserError, match="for a program"):
        evaluate("NIQE", [(album[0], 1.0), (album[1], 2.0)], limits=Limits(max_calls=1))
