"""Many images in processes: the results are the same as without, also if a process stops."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from PIL import Image

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch import assess_many as module
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.worker import NotStarted, WorkerStopped
from agenticiqa.programs.errors import ImageError, ImageNotFound, UserError
from support.elsewhere import row

pytestmark = pytest.mark.slow

QUERY = "Rate the quality."
Assessed = dict[str, Any]


@pytest.fixture(scope="module")
def album(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return six different small images: soft shapes under noise."""
    folder = tmp_path_factory.mktemp("album")
    random = np.random.default_rng(7)
    paths = [folder / f"{number}.png" for number in range(6)]
    for path in paths:
        shapes = Image.fromarray(random.integers(0, 256, (9, 12, 3), dtype=np.uint8)).resize((120, 90))
        noisy = np.asarray(shapes) + random.normal(0, random.uniform(0, 20), (90, 120, 3))
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(path)
    return paths


@pytest.fixture(autouse=True)
def processes_pay_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use processes from four images on, so that tests need few images."""
    monkeypatch.setattr(module, "IMAGES_PER_PROCESS", 2)


def assessed(
    images: list[Path], workers: int, then: Callable[[dspy.Prediction], Any] = row, program: AgenticIQA | None = None
) -> Assessed:
    jobs = [Job(image, QUERY) for image in images]
    outcomes = assess_many(program or AgenticIQA.offline(), jobs, workers, then)
    return {job.image.stem: outcome for job, outcome in outcomes}


def untimed(outcomes: Assessed) -> dict[str, str]:
    """Return the rows with all digits, but without times."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(inner) for key, inner in value.items() if key not in ("timings_ms", "ms")}
        return [without(inner) for inner in value] if isinstance(value, list) else value

    return {name: repr(without(outcome)) for name, outcome in outcomes.items()}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Replace processes: everything is pickled, but called in this process."""
    processes: list[bytes] = []

    class Near:
        def __init__(self, function: bytes) -> None:
            self.function = function
            processes.append(function)

        def __call__(self, job: Job) -> Any:
            if job.image.stem == "deadly":
                raise WorkerStopped("fell over")
            if job.image.stem == "hopeless":
                raise NotStarted("no room")
            return pickle.loads(pickle.dumps(pickle.loads(self.function)(job)))

        def close(self) -> None:
            pass

    monkeypatch.setattr(module, "Worker", Near)
    return processes


def test_the_results_do_not_depend_on_the_workers_or_the_run(album: list[Path]) -> None:
    alone = untimed(assessed(album, 1))
    assert len(set(alone.values())) == len(album)
    assert untimed(assessed(album, 2)) == untimed(assessed(album, 3)) == untimed(assessed(album[::-1], 1)) == alone


def test_a_failure_in_a_process_affects_one_image_and_equals_the_failure_here(album: list[Path]) -> None:
    """The files are damaged, missing, or end the process."""
    folder = album[0].parent
    (folder / "cut.png").write_bytes(album[0].read_bytes()[:900])
    (folder / "fatal.png").write_bytes(album[0].read_bytes())
    bad = [folder / f"{name}.png" for name in ("cut", "missing", "fatal")]
    outcomes = assessed([*bad, *album], 2)
    assert {name for name, outcome in outcomes.items() if isinstance(outcome, Exception)} == {"cut", "missing", "fatal"}
    assert len(outcomes) == len(album) + 3
    here = assessed(bad[:2], 1)
    assert [(type(outcomes[name]), str(outcomes[name])) for name in here] == [(type(e), str(e)) for e in here.values()]
    assert isinstance(outcomes["missing"], ImageNotFound)
    assert isinstance(outcomes["fatal"], ImageError)
    assert "fatal.png: the worker process" in str(outcomes["fatal"])
    assert "fewer workers" in str(outcomes["fatal"])


@pytest.mark.usefixtures("made")
def test_without_postprocessing_the_complete_result_is_returned(album: list[Path]) -> None:
    (job, result), *_ = list(assess_many(AgenticIQA.offline(), [Job(path, QUERY) for path in album], 2))
    assert isinstance(result, dspy.Prediction)
    assert result.image.source == str(job.image)
    assert np.array_equal(result.image.pixels, np.asarray(Image.open(job.image)))


@pytest.mark.parametrize(
    ("images", "workers", "processes"),
    [(6, 1, 0), (1, 2, 0), (3, 2, 0), (4, 2, 2), (6, 2, 2), (5, 8, 2), (6, 8, 3)],
)
def test_no_more_processes_than_worthwhile_are_started(
    album: list[Path], made: list[bytes], images: int, workers: int, processes: int
) -> None:
    assert len(assessed(album[:images], workers)) == images
    assert len(made) == processes


def test_a_few_slow_images_continue_in_processes(
    album: list[Path], made: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LONG_SECONDS", 0.0)
    assert len(assessed(album[:3], 2)) == 3
    assert made
    made.clear()
    assert len(assessed(album[:1], 2)) == 1
    assert not made


class Mine(AgenticIQA):
    """A program of the user's own."""


def test_programs_that_cannot_be_sent_to_processes_run_in_threads(
    album: list[Path], made: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = vars(AgenticIQA.offline())
    mine = Mine(parts["planner"], parts["executor"], parts["summarizer"], parts["replan"])
    assert len(assessed(album, 2, program=mine)) == len(album)
    assert len(assessed(album, 2, lambda result: result.to_dict())) == len(album)
    with dspy.context(callbacks=[dspy.utils.callback.BaseCallback()]):
        assert len(assessed(album, 2)) == len(album)
    monkeypatch.setattr(row, "__module__", "__main__")
    monkeypatch.setitem(vars(__import__("__main__")), "row", row)
    assert len(assessed(album, 2)) == len(album)
    assert not made


def test_a_program_that_asks_a_model_runs_in_threads(album: list[Path], made: list[bytes]) -> None:
    asking = Config.model_validate({"replan": {"backend": "vllm.model", "api_base": "http://127.0.0.1:1/v1"}})
    assessed(album, 2, program=AgenticIQA.from_config(asking))
    assert not made


@pytest.mark.usefixtures("made")
def test_a_process_that_cannot_be_started_is_reported_in_one_line(album: list[Path]) -> None:
    hopeless, deadly = album[0].with_stem("hopeless"), album[0].with_stem("deadly")
    outcomes = assessed([hopeless, deadly, *album], 2)
    assert isinstance(outcomes["hopeless"], UserError)
    assert not isinstance(outcomes["hopeless"], ImageError)
    assert str(outcomes["hopeless"]) == "no worker process could be started (no room); use one worker"
    assert isinstance(outcomes["deadly"], ImageError)
    assert len(outcomes) == len(album) + 2


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("workers", [1, 2])
def test_an_image_that_exceeds_the_memory_is_one_failure(
    album: list[Path], workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = AgenticIQA.forward

    def greedy(self: AgenticIQA, image: Path, *args: Any, **kwargs: Any) -> dspy.Prediction:
        if image.stem == "3":
            raise MemoryError
        return forward(self, image, *args, **kwargs)

    monkeypatch.setattr(AgenticIQA, "forward", greedy)
    outcomes = assessed(album, workers)
    assert isinstance(outcomes.pop("3"), ImageError)
    assert len(outcomes) == len(album) - 1
    assert not any(isinstance(outcome, Exception) for outcome in outcomes.values())
