"""Many images are assessed in parallel: each has its own outcome, none is lost, and no wait is in vain."""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import dspy
import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs.backends.limits import Halted, LimitReached
from agenticiqa.programs.backends.run_context import current
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import ImageNotFound, NoScore, Unanswered, Unforeseen, UserError
from agenticiqa.programs.images import name_of


class Pretend(dspy.Module):
    """A program with a given outcome."""

    questions = ()

    def __init__(self, judge: Callable[[Path], object]) -> None:
        super().__init__()
        self.judge = judge

    def forward(
        self,
        image: Path,
        query: str,
        reference: Path | None,
        resize_reference: bool,
        options: dict[str, str] | None,
    ) -> dspy.Prediction:
        said, given = self.judge(image), (query, reference, resize_reference, options)
        return dspy.Prediction(said=said, given=given)


def jobs(count: int) -> list[Job]:
    return [Job(Path(f"{number}.png"), "How good?") for number in range(count)]


def assessed(program: dspy.Module, todo: list[Job], workers: int = 3) -> dict[Job, object]:
    return dict(assess_many(program, todo, workers))


@pytest.mark.parametrize("count", [0, 1, 7, 20])
@pytest.mark.parametrize("workers", [1, 3, 8])
def test_every_job_comes_back_once_with_its_own_result(count: int, workers: int) -> None:
    todo = jobs(count)
    seen = list(assess_many(Pretend(lambda image: image.stem), todo, workers))
    assert sorted(job.image.stem for job, _ in seen) == sorted(job.image.stem for job in todo)
    assert all(not isinstance(result, Exception) and result.said == job.image.stem for job, result in seen)


def test_by_default_four_workers_ask_a_model() -> None:
    together = threading.Barrier(4, timeout=10)
    outcomes = assess_many(Pretend(lambda image: together.wait() >= 0), jobs(8))
    assert [outcome.said for _, outcome in outcomes] == [True] * 8


def test_all_fields_of_a_job_reach_the_program() -> None:
    job = Job(Path("a.png"), "Sharp?", Path("r.png"), resize_reference=True, options=["Yes", "No"])
    (result,) = assessed(Pretend(str), [job]).values()
    assert isinstance(result, dspy.Prediction)
    assert (result.said, *result.given) == ("a.png", "Sharp?", Path("r.png"), True, {"A": "Yes", "B": "No"})


@pytest.mark.parametrize("given", ["album/", "album/*.png", "album/b.png"])
@pytest.mark.parametrize("kind", [str, Path])
def test_one_name_is_a_folder_a_pattern_or_a_file(
    given: str, kind: type[str] | type[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "album").mkdir()
    for name in ("a.png", "b.png", "notes.txt"):
        (tmp_path / "album" / name).touch()
    found = {job.name for job, _ in assess_many(Pretend(str), kind(given))}
    assert found == {"album/b.png"} if given.endswith("b.png") else {"album/a.png", "album/b.png"}


@pytest.mark.parametrize(
    "given",
    [b"bytes", Image.new("RGB", (9, 9)), np.zeros((9, 9, 3), np.uint8), Job("a.png"), "data:image/png;base64,AA=="],
)
def test_one_image_in_memory_or_one_job_is_not_taken_apart(given: Any) -> None:
    assert len([*assess_many(Pretend(name_of), given)]) == 1


def test_a_name_without_images_is_an_error() -> None:
    with pytest.raises(ImageNotFound, match=r"missing"):
        next(assess_many(Pretend(str), "missing/"))


@pytest.mark.parametrize(
    "error",
    [UserError("mend it"), ImageNotFound("gone"), NoScore("none"), Unanswered("planner", ["x"]), dspy.LMError("down")],
)
def test_one_failure_is_yielded_and_the_other_jobs_continue(error: Exception) -> None:
    def judge(image: Path) -> str:
        if image.stem == "1":
            raise error
        return "good"

    outcomes = {job.image.stem: outcome for job, outcome in assessed(Pretend(judge), jobs(4)).items()}
    assert outcomes["1"] is error
    assert all(isinstance(outcomes[other], dspy.Prediction) for other in "023")


def test_an_unexpected_exception_affects_only_its_image(caplog: pytest.LogCaptureFixture) -> None:
    def judge(image: Path) -> str:
        return "good" if image.stem != "1" else str(1 / 0)

    with caplog.at_level(logging.INFO, "agenticiqa"):
        outcomes = {job.image.stem: outcome for job, outcome in assessed(Pretend(judge), jobs(4)).items()}
    assert isinstance(outcomes["1"], Unforeseen)
    assert str(outcomes["1"]).endswith(
        "ZeroDivisionError: division by zero; run with -v to see where, and please report it"
    )
    assert "Traceback" in caplog.text
    assert all(isinstance(outcomes[other], dspy.Prediction) for other in "023")


def test_an_exception_in_postprocess_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(assess_many(Pretend(lambda image: "good"), jobs(3), 2, lambda result: 1 / 0))


def test_results_are_yielded_when_they_are_finished() -> None:
    released = threading.Event()

    def judge(image: Path) -> bool:
        return image.stem != "0" or released.wait(10)

    outcomes = assess_many(Pretend(judge), jobs(3), 2)
    assert next(outcomes)[0].image.stem == "1"
    released.set()
    assert len(list(outcomes)) == 2


def test_at_most_two_jobs_per_worker_are_taken_in_advance() -> None:
    taken: list[int] = []

    def endless() -> Iterator[Job]:
        for number in range(1000):
            taken.append(number)
            yield Job(Path(f"{number}.png"), "How good?")

    outcomes = assess_many(Pretend(str), endless(), 3)
    for count in range(1, 20):
        next(outcomes)
        assert len(taken) <= count + 2 * 3
    outcomes.close()


def test_when_the_caller_stops_jobs_that_have_not_begun_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    released = threading.Event()

    def judge(image: Path) -> None:
        begun.append(image.stem)
        if image.stem != "0":
            released.wait(10)

    shut_down = ThreadPoolExecutor.shutdown

    def release_once_it_stops(pool: ThreadPoolExecutor, wait: bool = True, *, cancel_futures: bool = False) -> None:
        shut_down(pool, wait=False, cancel_futures=cancel_futures)
        released.set()
        shut_down(pool, wait=wait)

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", release_once_it_stops)
    outcomes = assess_many(Pretend(judge), jobs(50), 2)
    assert next(outcomes)[0].image.stem == "0"
    outcomes.close()
    assert "3" not in begun


def test_workers_get_dspys_settings_and_keep_no_images() -> None:
    def judge(image: Path) -> tuple[object, ...]:
        return dspy.settings.max_errors, dspy.settings.trace, dspy.settings.disable_history

    with dspy.context(max_errors=41, trace=[]):
        (result,) = assessed(Pretend(judge), jobs(1)).values()
        assert dspy.settings.trace == []
    assert isinstance(result, dspy.Prediction)
    assert result.said == (41, None, True)


def test_an_interruption_is_raised_after_the_jobs_under_way_are_yielded(monkeypatch: pytest.MonkeyPatch) -> None:
    """At Ctrl-C while waiting, running jobs are finished and yielded; jobs that have not begun are dropped."""
    release = threading.Event()

    class Interrupted(SimpleQueue[object]):
        def get(self, block: bool = True, timeout: float | None = None) -> object:
            release.set()
            raise KeyboardInterrupt

    monkeypatch.setattr("agenticiqa.programs.batch.in_threads.SimpleQueue", Interrupted)
    jobs = [Job(Path(f"{number}.png"), "?") for number in range(4)]
    outcomes = assess_many(Pretend(lambda image: release.wait(5) and image.name), jobs, workers=1)
    finished: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        finished.extend(str(says(outcome)) for _, outcome in outcomes)
    assert finished[0] == "0.png"
    assert len(finished) < 4


def test_an_outcome_can_end_the_run_after_the_jobs_under_way() -> None:
    both_begun = threading.Barrier(2, timeout=10)
    ended = threading.Event()

    def judge(image: Path) -> str:
        if image.stem == "0":
            both_begun.wait()
            return "enough"
        if image.stem == "1":
            both_begun.wait()
            assert current().limits.halted.wait(10), "the others must send nothing more"
            ended.set()
        return image.stem

    outcomes = list(assess_many(Pretend(judge), jobs(50), 2, stop_when=lambda outcome: says(outcome) == "enough"))
    assert ended.is_set()
    assert [says(outcome) for _, outcome in outcomes][:1] == ["enough"]
    assert "1" in {says(outcome) for _, outcome in outcomes}
    assert len(outcomes) <= 4


def test_a_limit_ends_the_run_without_outcomes_that_only_report_it() -> None:
    both_begun = threading.Barrier(2, timeout=10)

    def judge(image: Path) -> str:
        both_begun.wait()
        if image.stem == "0":
            raise LimitReached("no more")
        current().limits.halted.wait(10)
        raise Halted("interrupted")

    with pytest.raises(LimitReached, match="no more"):
        assert list(assess_many(Pretend(judge), jobs(2), 2)) == []


def says(outcome: object) -> object:
    return outcome.said if isinstance(outcome, dspy.Prediction) else outcome
