"""Assessing in shards: the kinds of input, one row per image, and what a second run does."""

import json
import os
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agenticiqa.configs import Config
from agenticiqa.configs.options import Option
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.batch.columns import columns_of, row_of
from agenticiqa.programs.batch.job import Job, SharedQuestion
from agenticiqa.programs.cli.commands import COMMANDS
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.scale.open_shard import jobs_of
from agenticiqa.programs.scale.plan_shards import plan_shards
from agenticiqa.programs.scale.run_shards import NO_FILE, RunOfShards, assess_here, run_shards
from agenticiqa.programs.scale.shard_assessor import ShardAssessor, ShardOutcome, ShardRun
from agenticiqa.programs.scale.table import SCHEMA, ShardFolder
from support.data_sets import (
    csv_of_paths,
    json_lines_of_paths,
    saved_data_set,
    table_of_images,
    table_of_paths,
    tar_shards,
)
from support.instant import InstantIQA, instant
from support.options import with_option
from support.shards import QUESTION, png, run_of, write_tar


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "album"
    folder.mkdir()
    for number in range(10):
        (folder / f"{number}.png").write_bytes(png(20 * number))
    return folder


def scores(output: str = "scores") -> dict[str, float | None]:
    rows = [*ShardFolder(output).rows()]
    assert len({row["image"] for row in rows}) == len(rows)
    return {row["image"]: row.get("quality_score") for row in rows}


def expected(names: Sequence[str]) -> dict[str, float]:
    return {name: 1 + 4 * 20 * number / 255 for number, name in enumerate(names)}


def test_each_image_has_one_row_in_the_order_of_the_plan(album: Path) -> None:
    ended = run_of(["album"])
    assert [*scores()] == [f"album/{number}.png" for number in range(10)]
    assert scores() == pytest.approx(expected([f"album/{number}.png" for number in range(10)]))
    assert ended.figures == {"images": 10, "assessed": 10, "failed": 0, "unscored": 0, "incomplete": 0, "shards": 3}
    assert json.loads(Path("scores.run/_SUCCESS").read_text())["images"] == 10


def test_a_row_is_the_same_as_in_json_lines(album: Path) -> None:
    [(_, row)] = assess_many(AgenticIQA.offline(), [Job(album / "3.png")], 1, lambda result: result.to_dict())
    kept = {**row, "run_fingerprint": "0", "fusion": {"model": "x"}, "something_new": [1, 2]}
    table = pa.Table.from_pylist([{"place": 0, **columns_of(kept)}], SCHEMA)
    assert row_of(table.to_pylist()[0]) == kept
    failed = {"image": "a.png", "error": "no image", "query": "Good?"}
    assert row_of(pa.Table.from_pylist([{"place": 0, **columns_of(failed)}], SCHEMA).to_pylist()[0]) == failed


def in_memory(folder: Path) -> list[str]:
    fs = fsspec.filesystem("memory")
    fs.rm("/bucket", recursive=True) if fs.exists("/bucket") else None
    for number in range(5):
        fs.pipe_file(f"/bucket/{number}.png", png(20 * number))
    return [f"memory:///bucket/{number}.png" for number in range(5)]


def of_a_folder_with_brackets(write: Callable[[Path], list[str]], folder: Path) -> list[str]:
    """Write the same kind into a folder with brackets, and another kind into the folder that matches as a pattern."""
    for name in ("shoot 1", "shoot [1]"):
        (folder / name).mkdir()
    (folder / "shoot 1" / "other.png").write_bytes(png(255))
    write_tar(folder / "shoot 1" / "other.tar", {"other.png": png(255)})
    names = write(folder / "shoot [1]")
    return [name.replace("album/", "album/shoot [1]/") for name in names]


def photos(folder: Path) -> list[str]:
    for number in range(2):
        (folder / f"{number}.png").write_bytes(png(20 * number))
    return [f"album/{number}.png" for number in range(2)]


def with_brackets_in_memory(folder: Path) -> list[str]:
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/bracket/shoot 1/other.png", png(255))
    for number in range(2):
        fs.pipe_file(f"/bracket/shoot [1]/{number}.png", png(20 * number))
    return [f"memory:///bracket/shoot [1]/{number}.png" for number in range(2)]


KINDS: dict[str, tuple[str, Callable[[Path], list[str]]]] = {
    "tar": ("album/a.tar", tar_shards),
    "glob of tar": ("album/*.tar", tar_shards),
    "paths": ("album/paths.parquet", table_of_paths),
    "bytes": ("album/images.parquet", table_of_images),
    "csv": ("album/paths.csv", csv_of_paths),
    "json lines": ("album/paths.jsonl", json_lines_of_paths),
    "data set": ("album/saved", saved_data_set),
    "address": ("memory://bucket", in_memory),
    "glob of addresses": ("memory://bucket/*.png", in_memory),
    **{
        f"{write.__name__} in brackets": (name, partial(of_a_folder_with_brackets, write))
        for name, write in {
            "album/shoot [1]": photos,
            "album/shoot [1]/": tar_shards,
            "album/shoot [1]/images.parquet": table_of_images,
        }.items()
    },
    "address with brackets": ("memory://bracket/shoot [1]", with_brackets_in_memory),
    "glob in an address with brackets": ("memory://bracket/shoot [1]/*.p[n]g", with_brackets_in_memory),
    "glob": ("album/?.png", lambda folder: [f"album/{number}.png" for number in range(10)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_image_of_every_kind_of_input_has_its_row(kind: str, album: Path) -> None:
    name, make = KINDS[kind]
    names = make(album)
    ended = run_of([name], images=2)
    assert not ended.problems
    assert [*scores()] == names
    assert scores() == pytest.approx(expected(names))


def test_an_image_that_cannot_be_assessed_has_a_row_with_its_error(album: Path) -> None:
    (album / "broken.png").write_bytes(b"none")
    Path("rows.csv").write_text("image,query\nalbum/1.png,\ngone.png,\nhttps://example.org/a.png,\n")
    ended = run_of(["album/broken.png", "rows.csv"])
    rows = {row["image"]: row for row in ShardFolder("scores").rows()}
    assert "found text that begins with 'none'" in rows["album/broken.png"]["error"]
    assert "no such file" in rows["gone.png"]["error"]
    assert "web addresses are not fetched" in rows["https://example.org/a.png"]["error"]
    assert (ended.figures["assessed"], ended.figures["failed"]) == (1, 3)


def test_an_image_in_the_index_but_not_in_the_tar_has_a_row(album: Path) -> None:
    write_tar(album / "00000.tar", {"000.png": png(0), "002.png": png(40)})
    index = {"key": ["000", "001", "002", "003"], "status": ["success", "success", "success", "failed_to_download"]}
    pq.write_table(pa.table(index), album / "00000.parquet")
    run_of(["album/00000.tar"])
    rows = [*ShardFolder("scores").rows()]
    assert [row["image"] for row in rows] == [
        "album/00000.tar/000.png",
        "album/00000.tar/002.png",
        "album/00000.tar/001",
    ]
    assert "missing in the tar" in rows[-1]["error"]


@pytest.mark.parametrize("cut", [700, 1024, 1536])
def test_a_truncated_tar_is_set_aside_and_named(cut: int, album: Path) -> None:
    write_tar(album / "a.tar", {f"{number}.png": png(number) for number in range(3)})
    whole = (album / "a.tar").read_bytes()
    (album / "a.tar").write_bytes(whole[:cut])
    write_tar(album / "b.tar", {"0.png": png(0)})
    ended = run_of(["album/a.tar", "album/b.tar"])
    assert list(ended.set_aside) == [0]
    assert "album/a.tar" in ended.set_aside[0]
    assert scores()["album/b.tar/0.png"] == 1
    assert not Path("scores.run/_SUCCESS").exists()
    (album / "a.tar").write_bytes(whole)
    assert run_of(["album/a.tar", "album/b.tar"]).figures["assessed"] == 4


def test_finished_shards_are_not_assessed_again(album: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_of(["album"])
    before = {path: path.read_bytes() for path in Path("scores").iterdir()}
    monkeypatch.setattr(InstantIQA, "forward", None)  # nothing can be assessed
    ended = run_of(["album"])
    assert ended.assessed_before == 3
    assert {path: path.read_bytes() for path in Path("scores").iterdir()} == before


def test_progress_counts_images(album: Path) -> None:
    """As soon as each is assessed; those of an earlier run count, too. How many a tar file has is not known before."""
    seen: list[tuple[int | None, list[int]]] = []

    def watched(names: Sequence[str], limit: int | None = None) -> None:
        def watch(outcomes: Iterator[ShardOutcome], images: int | None) -> Iterator[ShardOutcome]:
            seen.append((images, []))
            for outcome in outcomes:
                seen[-1][1].append(outcome.images)
                yield outcome

        run = ShardRun(Config(), {}, QUESTION, names[0] + ".scores", 1, tuple(names), make=instant)
        run_shards(run, assess_here, 4, watch, limit)

    watched(["album"], limit=6)
    watched(["album"])
    write_tar(album / "a.tar", {f"{number}.png": png(number) for number in range(6)})
    watched(["album/a.tar"])
    assert [images for images, _ in seen] == [6, 6, None], "the second run has 6 images in shards without all rows"
    assert [sum(counts) for _, counts in seen] == [6, 6, 6]
    assert [sorted(counts) for _, counts in seen] == [[0, 0, *[1] * 6], [0, *[1] * 4, 2], [0, *[1] * 6]]


def test_a_shard_with_changed_images_is_assessed_again(album: Path) -> None:
    run_of(["album"])
    (album / "5.png").write_bytes(png(255))
    os.utime(album / "5.png", (1, 1))
    (album / "9.png").unlink()
    assert run_of(["album"]).assessed_before == 1
    assert scores()["album/5.png"] == 5
    assert len(scores()) == 9
    for number in range(8, 3, -1):
        (album / f"{number}.png").unlink()
    assert run_of(["album"]).figures["shards"] == 1
    assert len(scores()) == 4


def of_one_photo(album: Path, image: bytes, _: bytes) -> str:
    (album / "photo.png").write_bytes(image)
    return "album/photo.png"


def of_one_row(album: Path, image: bytes, reference: bytes) -> str:
    (album / "photo.png").write_bytes(image)
    (album / "reference.png").write_bytes(reference)
    (album / "rows.csv").write_text("image,reference\nphoto.png,reference.png\n")
    return "album/rows.csv"


def of_one_tar(album: Path, image: bytes, _: bytes) -> str:
    write_tar(album / "photo.tar", {"photo.png": image})
    return "album/photo.tar"


def of_one_table(album: Path, image: bytes, _: bytes) -> str:
    pq.write_table(pa.table({"image": [image]}), album / "photo.parquet", compression="none")
    return "album/photo.parquet"


@pytest.mark.parametrize("write", [of_one_photo, of_one_row, of_one_tar, of_one_table])
@pytest.mark.parametrize("after", [(20, 30), (10, 40)], ids=["image", "reference"])
def test_a_photo_that_changed_with_equal_size_and_time_is_assessed_again(
    write: Callable[[Path, bytes, bytes], str], after: tuple[int, int], album: Path
) -> None:
    def made(image: int, reference: int) -> RunOfShards:
        name = write(album, *(png(gray) for gray in (image, reference)))
        for file in album.iterdir():
            os.utime(file, (1, 1))
        return run_of([name])

    assert len({len(png(gray)) for gray in (10, 20, 30, 40)}) == 1
    made(10, 30)
    assert made(10, 30).assessed_before == 1
    changes = after[0] != 10 or write is of_one_row
    assert made(*after).assessed_before == (0 if changes else 1)
    assert [*scores().values()] == pytest.approx([1 + 4 * after[0] / 255])


def test_a_member_of_a_tar_is_an_image_by_what_follows_its_last_dot(album: Path) -> None:
    names = ["22.05.png", "photo v2.0.PNG", "./deep/0003.left.png", "no suffix"]
    others = {"b/y.cr2": b"", "z.JXL": b"", "photo.bak": png(0), "._m.png": png(0), "0.json": b"{}"}
    write_tar(album / "a.tar", {name: png(0) for name in names} | others)
    ended = run_of(["album/a.tar"])
    assert sorted(scores()) == sorted(f"album/a.tar/{name}" for name in names)
    [problem] = ended.problems
    assert {word for word in problem.split() if word.startswith(".")} == {".cr2,", ".jxl,", ".bak"}
    assert run_of(["album/a.tar"]).problems == [problem]  # also if all shards are finished


def test_a_tar_without_images_is_reported(album: Path) -> None:
    write_tar(album / "a.tar", {"readme.txt": b"none"})
    assert run_of(["album/a.tar"]).problems == ["album/a.tar: expected images in this file, found none"]


@pytest.mark.parametrize(
    ("blocked", "message"),
    [
        ("scores", "needs a folder, but this is a file"),
        ("scores.run/_SUCCESS/", "needs a file, but this is a folder"),
        ("scores.run/run.json/", "needs a file, but this is a folder"),
        ("scores/shard-00001.parquet/", "needs a file, but this is a folder"),
        ("scores/shard-00000.parquet", "has shards but no scores.run/run.json"),
        ("/proc/none/scores", "cannot be written there"),
    ],
)
def test_outputs_are_checked_before_the_first_image(
    blocked: str, message: str, album: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(AgenticIQA, "forward", None)  # nothing can be assessed
    if blocked.endswith("/"):
        Path(blocked).mkdir(parents=True)
    elif not blocked.startswith("/"):
        Path(blocked).parent.mkdir(exist_ok=True)
        Path(blocked).touch()
    assert main(["assess", "album", "--parquet", blocked if blocked.startswith("/") else "scores"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "works"),
    [
        (["--listing", "t.txt"], False),
        (["--save-maps", "maps"], False),
        (["--batch"], False),
        (["--raw-csv"], True),
        (["--resume", "--max-side", "64", "--no-cache", "--timeout", "9"], True),
    ],
)
def test_an_option_of_assess_that_is_not_declared_for_shards_is_refused_with_them(
    words: list[str], works: bool, album: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    added = Option("--listing FILE", "write a table; the declaration of a new output says no more")
    monkeypatch.setitem(COMMANDS, "assess", with_option(COMMANDS["assess"], added))
    Path("scores").touch()  # the next error of a run whose options are accepted
    assert main(["assess", "album", "--parquet", "scores", *words]) == 2
    refused = f"{words[0]} does not work with --parquet: leave it out, or use --jsonl"
    accepted = "scores: --parquet needs a folder, but this is a file; name another folder"
    assert capsys.readouterr().err == f"agenticiqa: {accepted if works else refused}\n"


def test_linked_members_of_a_tar_are_images_or_counted(album: Path) -> None:
    write_tar(album / "a.tar", {"0.png": png(0)})
    with tarfile.open(album / "a.tar", "a") as tar:
        for name, target in (("1.png", "0.png"), ("2.png", "gone.png")):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.LNKTYPE, target
            tar.addfile(link)
    assert run_of(["album/a.tar"]).problems == ["skipped 1 broken link"]
    assert sorted(scores()) == ["album/a.tar/0.png", "album/a.tar/1.png"]


def test_results_in_the_folder_of_the_photos_are_no_input(album: Path) -> None:
    run_of(["album"], "album/scores")
    assert run_of(["album"], "album/scores").assessed_before == 3


def test_a_folder_belongs_to_one_command(album: Path) -> None:
    run_of(["album"])
    for key, changes in {
        "question.query": {"question": SharedQuestion("Is it noisy?")},
        "settings.version": {"settings": {"version": "2"}},
    }.items():
        with pytest.raises(UserError, match=f"scores: the earlier run used {key}"):
            run_of(["album"], **changes)
    with pytest.raises(UserError, match=r'used names \["album"\], not \["album/1.png"\]'):
        run_of(["album/1.png"])


def test_an_interrupted_run_keeps_finished_rows(album: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assessed: list[str] = []
    forward = InstantIQA.forward

    def interrupted(self: InstantIQA, image: Any, **given: Any) -> Any:
        if len(assessed) == 6:
            raise KeyboardInterrupt
        assessed.append(str(image))
        return forward(self, image, **given)

    monkeypatch.setattr(InstantIQA, "forward", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_of(["album"])
    kept = scores()
    assert 4 <= len(kept) <= 6
    again: list[str] = []
    monkeypatch.setattr(
        InstantIQA, "forward", lambda self, image, **given: again.append(image) or forward(self, image, **given)
    )
    run_of(["album"])
    assert len(scores()) == 10
    assert not {str(image) for image in again} & kept.keys()


def test_two_runs_cannot_write_to_one_folder(album: Path) -> None:
    run = ShardRun(Config(), {}, QUESTION, "scores", 1, ("album",), make=instant)

    def engine(run: ShardRun, todo: Sequence[Any]) -> Any:
        with pytest.raises(UserError, match="is writing to it"):
            run_shards(run, assess_here, 4)
        return assess_here(run, todo)

    assert run_shards(run, engine, 4).figures["assessed"] == 10


def test_a_worker_that_stops_twice_is_reported(album: Path) -> None:
    """As on a cluster, the shard has no outcome and no file."""

    def engine(run: ShardRun, todo: Sequence[Any]) -> Any:
        return assess_here(run, [each for each in todo if each.number != 1])

    run = ShardRun(Config(), {}, QUESTION, "scores", 1, ("album",), make=instant)
    ended = run_shards(run, engine, 4)
    assert ended.set_aside == {1: NO_FILE}
    assert len(scores()) == 6


def test_a_worker_of_a_cluster_assesses_the_given_lines_of_the_plan(album: Path) -> None:
    def engine(run: ShardRun, todo: Sequence[Any]) -> Any:
        outcomes = ShardAssessor(run)({"start": [each.start for each in todo], "end": [each.end for each in todo]})
        found = [json.loads(text) for text in outcomes["outcome"]]
        assert [outcome["number"] for outcome in found] == [0, 1, 2]
        assert sum(outcome["images"] for outcome in found) == 10
        return iter(())  # outcomes do not count, only files

    run = ShardRun(Config(), {}, QUESTION, "scores", 1, ("album",), make=instant)
    assert run_shards(run, engine, 4).figures["assessed"] == 10
    assert [*scores().values()] == pytest.approx([*expected([*scores()]).values()])


def test_shards_are_written_to_an_address(album: Path) -> None:
    fsspec.filesystem("memory").store.clear()
    assert run_of(["album"], "memory://results/scores").figures["assessed"] == 10
    assert ShardFolder("memory://results/scores").shards() == [0, 1, 2]
    assert run_of(["album"], "memory://results/scores").assessed_before == 3


def test_shards_are_cut_by_images_and_by_bytes(album: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenticiqa.programs.scale.plan_shards.BYTES", 3 * (album / "1.png").stat().st_size)
    sizes = [len([*jobs_of(shard, QUESTION, Counter())]) for shard in plan_shards(["album"], QUESTION, [])]
    assert max(sizes) <= 3
    assert sum(sizes) == 10


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("https://example.org/a.tar", "web addresses are not fetched"),
        ("nowhere.tar", "no such file"),
        ("album/*.gif", "no file matches"),
        ("nope://bucket/a.tar", "Protocol not known"),
        ("words.csv", "expected a column image or path, found word"),
        ("words.jsonl", "words.jsonl: line 2: image is a int, expected a str"),
    ],
)
def test_a_wrong_name_is_reported_in_one_line(name: str, message: str, album: Path) -> None:
    Path("words.csv").write_text("word\na\n")
    Path("words.jsonl").write_text('{"image": "a.png"}\n{"image": 1}\n')
    with pytest.raises(UserError, match=message):
        run_of([name])
