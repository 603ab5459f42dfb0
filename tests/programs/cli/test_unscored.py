"""``assess`` without a usable answer of a model: counted, reported, with its own exit status, and assessed again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.eval.cli import main as every_command
from agenticiqa.eval.report.page.kept_run import read_run
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.cli.status import OK, SOME_FAILED, UNSCORED
from agenticiqa.signatures.types import FROM_REJECTED
from support.fake_server import Server, bad_json, by_stage, fake_server, stage_of
from support.files import json_lines
from support.images import album_of_squares
from support.loopback import Body, Reply
from support.scripted_answers import RATE, SCRIPT, plan, program_for

pytestmark = pytest.mark.slow

IMAGES = 3


class Ill:
    """Gives words in place of JSON, to the stages in ``unusable``, until it is well."""

    def __init__(self, *unusable: str) -> None:
        self.unusable, self.healthy = unusable, by_stage(SCRIPT)

    def __call__(self, request: Body) -> Reply | str:
        return bad_json() if stage_of(request) in self.unusable else self.healthy(request)

    def get_well(self) -> None:
        self.unusable = ()


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small images, each different, in a folder of the current one; DSPy's cache is on disk."""
    monkeypatch.chdir(tmp_path)
    new_process()
    return album_of_squares(tmp_path / "album", IMAGES)


@pytest.fixture
def ill() -> Ill:
    return Ill("assessment", "answer")


@pytest.fixture
def server(ill: Ill) -> Iterator[Server]:
    with fake_server(ill) as running:
        yield running


def new_process() -> None:
    """Nothing is left of DSPy's cache but what is on disk."""
    dspy.configure_cache(disk_cache_dir="answers", enable_memory_cache=True)


def assess(server: Server, *arguments: str) -> int:
    new_process()
    to = ["--backend", "vllm.test", "--api-base", server.url, "--workers", "1"]
    return main(["assess", "album", "--jsonl", "rows.jsonl", *to, *arguments])


def rows() -> list[dict[str, Any]]:
    return json_lines(Path("rows.jsonl"))


def summary() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Path("rows.jsonl.summary.json").read_text())
    return content


@pytest.mark.parametrize("query", [RATE, "Why is it soft?"])
def test_images_without_a_score_or_answer_are_reported_and_assessed_again(
    album: Path, ill: Ill, server: Server, capsys: pytest.CaptureFixture[str], query: str
) -> None:
    assert assess(server, "--query", query) == UNSCORED
    shown = capsys.readouterr().err
    line = "agenticiqa: 3 of 3 images have no score or answer, because the model gave no usable answer; "
    assert shown.count(line + "run the same command with --resume to assess them again\n") == 1
    assert (summary()["assessed"], summary()["unscored"]) == (3, 3)
    assert [row["quality_score"] for row in rows()] == [None] * 3

    asked = len(server.requests)
    assert assess(server, "--query", query, "--resume") == UNSCORED
    assert len(server.requests) == asked + 3 * IMAGES, "three attempts each; the other stages are replayed"
    assert (
        "0 of 3 images were already assessed; assessed again: 3 without a score or an answer" in capsys.readouterr().err
    )

    ill.get_well()
    assert assess(server, "--query", query, "--resume") == OK
    assert "have no score" not in capsys.readouterr().err
    assert [row["rejected_answers"] for row in rows()] == [{}] * IMAGES
    assert (summary()["assessed"], summary()["unscored"], summary()["rows"], summary()["replaced_rows"]) == (3, 0, 3, 0)

    asked = len(server.requests)
    assert assess(server, "--query", query, "--resume") == OK
    assert len(server.requests) == asked
    assert "3 of 3 images were already assessed\n" in capsys.readouterr().err


def test_a_failed_image_decides_the_status_over_an_unscored_one(album: Path, server: Server) -> None:
    (album / "broken.png").write_bytes(b"none")
    assert assess(server) == SOME_FAILED
    assert (summary()["assessed"], summary()["unscored"], len(summary()["failed"])) == (3, 3, 1)


def test_without_a_file_resume_is_not_mentioned(
    album: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["album/00.png", "--json", "--backend", "vllm.test", "--api-base", server.url]
    assert main(["assess", *arguments]) == UNSCORED
    out, err = capsys.readouterr()
    assert "agenticiqa: 1 of 1 images have no score or answer, because the model gave no usable answer\n" in err
    assert json.loads(out)["final_answer"] == "Unable to determine"


@pytest.mark.parametrize(
    ("stage", "answer"),
    [
        ("analysis", None),
        ("detection", None),
        ("assessment", {"quality_level": "Poor", "quality_reasoning": "Soft edges."}),
    ],
)
def test_incomplete_results_are_assessed_again_once(
    album: Path, server: Server, ill: Ill, capsys: pytest.CaptureFixture[str], stage: str, answer: Any
) -> None:
    ill.unusable = (stage,) if answer is None else ()
    ill.healthy = by_stage({**SCRIPT, "assessment": answer} if answer else SCRIPT)
    assert assess(server) == OK, "they have a score"
    assert assess(server, "--resume") == OK
    shown = capsys.readouterr().err
    assert "assessed again: 3 without a usable model answer in one step" in shown
    assert len(rows()) == 2 * IMAGES, "both rows of an image are kept, and show that it was assessed twice"
    asked = len(server.requests)
    assert assess(server, "--resume") == OK
    assert len(server.requests) == asked, "a model that cannot do better is not asked for ever"
    assert "3 of 3 images were already assessed\n" in capsys.readouterr().err


def test_a_score_is_not_lost_to_a_worse_answer(
    album: Path, server: Server, ill: Ill, capsys: pytest.CaptureFixture[str]
) -> None:
    """A score from a part of an answer is requested once more; now the server gives nothing."""
    ill.get_well()
    ill.healthy = by_stage({**SCRIPT, "assessment": {"quality_reasoning": "Soft edges everywhere."}})
    assert assess(server) == OK
    before = [(row["image"], row["quality_score"], row["probability_source"]) for row in rows()]
    assert {source for _, _, source in before} == {"uniform"}
    ill.unusable = ("assessment",)
    capsys.readouterr()
    assert assess(server, "--resume", "--csv", "t.csv") == OK, "each image still has its score"
    shown = capsys.readouterr().err
    assert "assessed again: 3 without a usable model answer in one step" in shown
    assert "; 3 images kept the earlier result, because the new one was worse" in shown
    assert "removed" not in shown
    assert "have no score" not in shown
    assert [(row["image"], row["quality_score"], row["probability_source"]) for row in rows()] == before * 2
    assert (summary()["kept_earlier"], summary()["unscored"], summary()["incomplete"]) == (3, 0, 3)
    assert [line.split(",")[1] for line in Path("t.csv").read_text().splitlines()[1:]].count("") == 0

    asked = len(server.requests)
    assert assess(server, "--resume") == OK
    assert len(server.requests) == asked, "it was asked again once"


def test_evaluate_does_not_lose_a_score_to_a_worse_answer(album: Path, server: Server, ill: Ill) -> None:
    """The report counts the usage of both attempts."""
    Path("labels.csv").write_text("".join(["image,mos\n", *(f"album/{n:02}.png,{n + 1}\n" for n in range(IMAGES))]))
    asking = ["--backend", "vllm.test", "--api-base", server.url, "--workers", "1", "--out", "run"]
    ill.get_well()
    ill.healthy = by_stage({**SCRIPT, "assessment": {"quality_reasoning": "Soft edges everywhere."}})
    assert every_command(["evaluate", "labels.csv", *asking]) == OK
    before = [row["quality_score"] for row in json_lines(Path("run/results.jsonl"))]
    ill.unusable = ("assessment",)
    for _ in range(2):
        new_process()
        assert every_command(["evaluate", "labels.csv", *asking]) == OK
        assert [row["quality_score"] for row in json_lines(Path("run/results.jsonl"))] == before * 2
        assert json.loads(Path("run/report.json").read_text())["unscored"] == 0
    assert read_run(Path("run")).spent["scoring"].calls == 2 * 3 * IMAGES


PARTS: list[Any] = [
    {"quality_level": "Poor", "quality_reasoning": "Soft edges."},  # a level without probabilities
    {"quality_level": "Bad", "quality_probs": {"5": 1}, "quality_reasoning": "Soft."},  # a contradiction
    {"quality_probs": {"1": 0.1, "2": 0.9}},  # probabilities without a level
]


@pytest.mark.parametrize("said", PARTS)
def test_scores_from_incomplete_answers_are_counted_and_unscored_if_strict(
    album: Path, server: Server, ill: Ill, capsys: pytest.CaptureFixture[str], said: Any
) -> None:
    ill.get_well()
    ill.healthy = by_stage({**SCRIPT, "assessment": said})
    assert assess(server) == OK
    assert "agenticiqa: 3 scores from incomplete answers of the model; a run with" in capsys.readouterr().err
    assert (summary()["incomplete"], summary()["unscored"]) == (3, 0)
    marked = rows()
    assert all(row["probability_source"] in FROM_REJECTED for row in marked)
    assert all("no complete answer" in row["quality_reasoning"] for row in marked)

    assert assess(server, "--strict", "--resume", "--fail-under", "5") == UNSCORED
    shown = capsys.readouterr().err
    assert "3 of 3 images have no score or answer" in shown
    assert "incomplete answers" not in shown
    assert (summary()["incomplete"], summary()["unscored"]) == (0, 3)
    assert {row["final_answer"] for row in rows()[-3:]} == {"Unable to determine"}


def test_a_strict_run_uses_complete_answers(album: Path, server: Server, ill: Ill) -> None:
    ill.get_well()
    assert assess(server, "--strict") == OK
    assert {row["probability_source"] for row in rows()} == {"quality_probs"}


@pytest.mark.parametrize(("strict", "status", "counted"), [([], OK, (3, 0)), (["--strict"], UNSCORED, (0, 3))])
def test_scores_from_incomplete_answers_are_counted_in_parquet_runs(
    album: Path,
    server: Server,
    ill: Ill,
    capsys: pytest.CaptureFixture[str],
    strict: list[str],
    status: int,
    counted: tuple[int, int],
) -> None:
    ill.get_well()
    ill.healthy = by_stage({**SCRIPT, "assessment": PARTS[0]})
    asking = ["--backend", "vllm.test", "--api-base", server.url]
    assert main(["assess", "album", "--parquet", "shards", *asking, *strict]) == status
    figures = json.loads(Path("shards.run/_SUCCESS").read_text())
    assert (figures["incomplete"], figures["unscored"]) == counted
    assert ("3 scores from incomplete answers" in capsys.readouterr().err) == (not strict)


def test_a_comparison_of_images_counts_scores_from_incomplete_answers(
    album: Path, server: Server, ill: Ill, capsys: pytest.CaptureFixture[str]
) -> None:
    ill.get_well()
    ill.healthy = by_stage({**SCRIPT, "assessment": PARTS[0]})
    both = ["compare", "album/00.png", "album/01.png", "--backend", "vllm.test", "--api-base", server.url]
    assert every_command(both) == OK
    assert "2 scores from incomplete answers" in capsys.readouterr().err
    assert every_command([*both, "--strict"]) == UNSCORED


def test_assess_many_marks_unscored_results(album: Path, server: Server, ill: Ill) -> None:
    def unscored(program: AgenticIQA) -> list[bool]:
        outcomes = assess_many(program, [album / "00.png", album / "01.png"], workers=1)
        return [outcome.is_unscored for _, outcome in outcomes if not isinstance(outcome, Exception)]

    assert unscored(program_for(server)) == [True, True]
    ill.get_well()
    assert unscored(program_for(server)) == [False, False]


def test_words_instead_of_a_score_are_unscored_only_without_an_accepted_plan(
    album: Path, server: Server, ill: Ill
) -> None:
    ill.healthy = by_stage({**SCRIPT, "plan": plan(query_type="Other", distortion_source="Explicit")})
    ill.get_well()
    assert assess(server, "--query", RATE) == UNSCORED
    assert {row["query_type"] for row in rows()} == {"explanation"}
    ill.healthy = by_stage({**SCRIPT, "plan": plan(query_type="Other")})
    assert assess(server, "--query", RATE, "--resume") == OK, "the model says that it is about something else"
    assert {row["query_type"] for row in rows()} == {"explanation"}
    asked = len(server.requests)
    assert assess(server, "--query", RATE, "--resume") == OK
    assert len(server.requests) == asked


def test_an_offline_answer_of_unable_to_determine_counts_as_an_answer(album: Path) -> None:
    result = AgenticIQA.offline()(album / "00.png", "What is the man holding?", options=["Umbrella", "Camera"])
    assert (result.final_answer, result.is_unscored) == ("Unable to determine", False)
