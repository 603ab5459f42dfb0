"""What works with ``assess --jsonl`` works with ``assess --parquet``, as a user calls them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.errors import NoScore
from agenticiqa.programs.scale.shard_assessor import MOST_FAILURES
from agenticiqa.programs.scale.table import store_at
from support.instant import InstantIQA, make_instant
from support.shards import png, write_tar

STORES = {"lines": ["--jsonl", "scores.jsonl"], "shards": ["--parquet", "scores", "--shard-images", "4"]}

PLACES = {"lines": "scores.jsonl", "shards": "scores"}


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nine gray images and a broken one, of which a program without computations assesses the first nine."""
    monkeypatch.chdir(tmp_path)
    make_instant(monkeypatch)
    (tmp_path / "album").mkdir()
    for number in range(9):
        (tmp_path / "album" / f"{number}.png").write_bytes(png(20 * number))
    (tmp_path / "album" / "broken.png").write_bytes(b"none")
    return tmp_path / "album"


def assess(store: str, *words: str) -> int:
    return main(["assess", "album", "--workers", "1", *STORES[store], *words])


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--csv", "-"], 1),
        (["--csv", "t.csv", "--html", "sheet.html", "--worst", "2"], 1),
        (["--fail-under", "3"], 1),
        (["--fail-under", "0"], 2),
        (["--csv", "-", "--worst", "2"], 2),
    ],
)
def test_overviews_are_the_same(words: list[str], status: int, album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for store in STORES:
        assert assess(store, *words) == status
        said = capsys.readouterr()
        about = [
            line for line in said.err.splitlines() if "written to" in line or "fail-under" in line or "below" in line
        ]
        files = [*map(Path, ("t.csv", "sheet.html"))]
        shown.append((said.out, about, [file.read_text() for file in files if file.exists()]))
    assert shown[0] == shown[1]
    assert "album/0.png" in "".join([shown[0][0], *shown[0][1], *shown[0][2]]) or status == 2


def test_an_overview_of_shards_has_the_results_of_earlier_runs(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (album / "broken.png").unlink()
    assert assess("shards") == 0
    assert assess("shards", "--csv", "-", "--fail-under", "2") == 4
    shown = capsys.readouterr()
    assert shown.out.count("album/") == 9
    assert "4 of 9 images score below 2" in shown.err


def images_in(store: str) -> list[str]:
    return sorted(row["image"] for row in store_at(PLACES[store]).rows())


@pytest.mark.parametrize("store", STORES)
def test_a_limited_run_is_continued_without_assessing_an_image_twice(
    store: str, album: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (album / "broken.png").unlink()
    assessed: list[str] = []
    forward = InstantIQA.forward
    monkeypatch.setattr(
        AgenticIQA, "forward", lambda self, image, **given: assessed.append(image) or forward(self, image, **given)
    )
    for limit, images in ((6, 6), (2, 6), (7, 7), (None, 9), (2, 9)):
        words = ["--resume", *([] if limit is None else ["--limit", str(limit)]), "--csv", "-"]
        capsys.readouterr()
        assert assess(store, *(words[1:] if not assessed else words)) == 0
        assert capsys.readouterr().out.count("album/") == (limit or 9)
        assert images_in(store) == [f"album/{number}.png" for number in range(images)]
        assert Path("scores.run/_SUCCESS").exists() == (store == "shards" and images == 9)
    assert len(assessed) == 9


def test_a_limit_counts_the_images_in_tar_files(album: Path) -> None:
    for name in ("a", "b", "c"):
        write_tar(album / f"{name}.tar", {f"{number}.png": png(number) for number in range(3)})
    tars = ["assess", "album/a.tar", "album/b.tar", "album/c.tar", "--parquet", "scores"]
    assert main([*tars, "--limit", "4"]) == 0
    assert images_in("shards") == [*(f"album/a.tar/{number}.png" for number in range(3)), "album/b.tar/0.png"]
    assert main(tars) == 0
    assert len(images_in("shards")) == 9


def test_a_file_of_jobs_gives_the_same_questions(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"image": "0.png", "query": "Main flaw?", "options": ["Blur", "Noise"]}, {"image": "1.png", "mos": 3}]
    (album / "jobs.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for store in STORES:
        assert main(["assess", "--jobs", "album/jobs.jsonl", "--workers", "1", *STORES[store]]) == 0
    keys = ("image", "query", "options")
    lines, shards = (
        [{key: row.get(key) for key in keys} for row in store_at(place).rows()] for place in PLACES.values()
    )
    assert lines == shards
    assert len(lines) == 2
    assert "mos" not in Path("scores.run/plan.jsonl").read_text()
    capsys.readouterr()
    assert main(["assess", "--jobs", "album/0.png", *STORES["shards"]]) == 2
    assert "with --parquet, --jobs reads pipes, and files with the suffix .csv or .jsonl" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="needs pipes as files")
def test_a_pipe_of_jobs_gives_the_same_rows_and_is_continued(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"image": "album/0.png", "query": "Main flaw?", "options": ["Blur", "Noise"]}
    text = "".join(f"{json.dumps(row)}\n" for row in (asked, {"image": "album/1.png"}, {"image": "gone.png"}))

    def command(store: str, *more: str) -> int:
        ends = os.pipe()
        os.write(ends[1], text.encode())
        os.close(ends[1])
        try:
            return main(["assess", "--jobs", f"/dev/fd/{ends[0]}", "--workers", "1", *STORES[store], *more])
        finally:
            os.close(ends[0])

    assert [command(store) for store in STORES] == [1] * len(STORES)
    keys = ("image", "query", "options", "quality_score")
    lines, shards = (
        [{key: row.get(key) for key in keys} for row in store_at(place).rows()] for place in PLACES.values()
    )
    assert lines == shards
    assert len(lines) == 2
    assert "gone.png: expected an image" in capsys.readouterr().err
    other = os.dup(0)  # the next pipe has another number
    assert command("shards") == 1
    os.close(other)
    assert "1 of 1 shards (1 shards were already finished)" in capsys.readouterr().err


def test_a_dry_run_reads_every_kind_of_image_and_writes_nothing(
    album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tar(album / "a.tar", {f"{number}.png": png(number) for number in range(3)} | {"b.cr2": b""})
    names = ["assess", "album/a.tar", "album/*.png", "--backend", "openai.gpt-4o", "--parquet", "scores", "--dry-run"]
    assert main(names) == 1
    shown = capsys.readouterr()
    assert "12 questions about 12 images, for openai.gpt-4o:" in shown.out
    assert "album/broken.png: expected an image, found text" in shown.err
    assert "skipped 1 .cr2" in shown.err
    assert main([*names, "--limit", "2"]) == 0
    assert "2 questions about 2 images" in capsys.readouterr().out
    assert not Path("scores").exists()


def test_the_first_failures_are_printed_and_assessed_again_on_request(
    album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(MOST_FAILURES):
        (album / f"zero{number}.png").write_bytes(b"")
    assert assess("shards") == 1
    lines = capsys.readouterr().err.splitlines()
    failures = [line for line in lines if line.startswith("agenticiqa: album/")]
    assert len(failures) == MOST_FAILURES
    assert failures[0].startswith("agenticiqa: album/broken.png: expected an image, found text")
    assert "9 assessed, 11 failed; scores has 5 of 5 shards" in lines
    assert "the same command with --resume to assess these images again" in lines[-1]


def test_images_that_failed_or_have_no_score_are_assessed_again_on_request(
    album: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (album / "broken.png").unlink()
    forward, state = InstantIQA.forward, {"is_ill": True, "is_gone": False, "asked": 0}

    def ill(self: AgenticIQA, image: Any, *args: Any, **given: Any) -> Any:
        state["asked"] += 1
        number = int(Path(image).stem)
        if (number == 2 and state["is_ill"]) or (number == 3 and state["is_gone"]):
            raise NoScore("no score")
        result = forward(self, image, *args, **given)
        if number == 3 and state["is_ill"]:
            result.quality_score = result.summarizer_result.quality_score = None
        return result

    monkeypatch.setattr(AgenticIQA, "forward", ill)
    assert assess("shards") == 1
    said = capsys.readouterr().err
    assert "1 of 8 images have no score or answer" in said
    assert "album/2.png: no score" in said
    state.update(asked=0)
    assert assess("shards") == 1
    assert (state["asked"], capsys.readouterr().err.count("with --resume")) == (0, 2)
    state.update(is_gone=True)
    assert assess("shards", "--resume", "--limit", "3") == 1
    assert (state["asked"], len(images_in("shards"))) == (0, 9), "a limit does not shorten a finished shard"
    capsys.readouterr()
    assert assess("shards", "--resume") == 1
    assert "1 of 8 images have no score" in capsys.readouterr().err, "an error does not replace a result"
    assert state["asked"] == 2
    state.update(is_ill=False, is_gone=False)
    assert assess("shards", "--resume") == 0
    assert state["asked"] == 4
    assert not [row for row in store_at("scores").rows() if "error" in row or row["quality_score"] is None]


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (["--shard-images", "4"], "--parquet DIR"),
        (["--engine", "ray"], "--parquet DIR"),
        (["--parquet", "scores", "--in-flight", "4"], "--engine ray"),
    ],
)
def test_an_option_without_the_one_that_it_needs_is_refused(
    words: list[str], needed: str, album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", "album", *words]) == 2
    flag, value = words[-2:]
    assert capsys.readouterr().err == f"agenticiqa: {flag} {value} needs {needed}: add it, or leave out {flag}\n"
