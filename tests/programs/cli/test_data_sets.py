"""Data sets as inputs of commands: recognized, assessed as a folder is, and read only when their images are needed."""

import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import datasets
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agenticiqa.eval.cli import main as eval_main
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.find_jobs import find_jobs
from agenticiqa.programs.batch.plan_run import hash_of
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.data_sets.tables import RowImage
from agenticiqa.programs.images.sources import StoredImage, picklable
from agenticiqa.programs.pictures.draw import picture_paths
from agenticiqa.programs.scale.table import ShardFolder
from support.data_sets import (
    csv_of_paths,
    json_lines_of_paths,
    saved_data_set,
    table_of_images,
    table_of_paths,
    tar_shards,
)
from support.files import json_lines
from support.instant import make_instant
from support.shards import png, write_tar

COPIES = Path(__file__).resolve().parents[3] / "examples" / "copies"


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with five gray images, and a program without computations."""
    monkeypatch.chdir(tmp_path)
    make_instant(monkeypatch)
    (tmp_path / "album").mkdir()
    for number in range(5):
        (tmp_path / "album" / f"{number}.png").write_bytes(png(20 * number))
    return tmp_path / "album"


def tar_without_suffix(folder: Path) -> list[str]:
    names = tar_shards(folder)
    (folder / "a.tar").rename(folder / "archive")
    return [name.replace("a.tar", "archive") for name in names]


def table_without_suffix(folder: Path) -> list[str]:
    names = table_of_images(folder)
    (folder / "images.parquet").rename(folder / "rows.dat")
    return [name.replace("images.parquet", "rows.dat") for name in names]


def folder_of_tars(folder: Path) -> list[str]:
    (folder / "tars").mkdir()
    return [name.replace("album/", "album/tars/") for name in tar_shards(folder / "tars")]


def at_an_address(folder: Path) -> list[str]:
    tar_shards(folder)
    fsspec.filesystem("memory").pipe_file("/set/a.tar", (folder / "a.tar").read_bytes())
    return [f"memory:///set/a.tar/{number}.png" for number in range(2)]


def images_at_an_address(folder: Path) -> list[str]:
    fs = fsspec.filesystem("memory")
    for number in range(2):
        fs.pipe_file(f"/images/{number}.png", png(20 * number))
    return [f"memory:///images/{number}.png" for number in range(2)]


def list_at_an_address(folder: Path) -> list[str]:
    images_at_an_address(folder)
    fsspec.filesystem("memory").pipe_file("/images/list.csv", b"image\n0.png\n1.png\n")
    return [f"memory://images/{number}.png" for number in range(2)]


KINDS: dict[str, tuple[str, Callable[[Path], list[str]]]] = {
    "tar": ("album/a.tar", tar_shards),
    "tar without a suffix": ("album/archive", tar_without_suffix),
    "pattern of tar": ("album/*.tar", tar_shards),
    "folder of tar": ("album/tars", folder_of_tars),
    "Parquet": ("album/images.parquet", table_of_images),
    "Parquet without a suffix": ("album/rows.dat", table_without_suffix),
    "Parquet of paths": ("album/paths.parquet", table_of_paths),
    "split": ("album/saved", saved_data_set),
    "csv": ("album/paths.csv", csv_of_paths),
    "json lines": ("album/paths.jsonl", json_lines_of_paths),
    "tar at an address": ("memory://set/*.tar", at_an_address),
    "images at an address": ("memory://images/*.png", images_at_an_address),
    "csv at an address": ("memory://images/list.csv", list_at_an_address),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_data_set_is_assessed_as_a_folder_is(
    kind: str, album: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, make = KINDS[kind]
    names = make(album)
    assert main(["assess", name, "--workers", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["image"] for row in rows] == names
    scores = [1 + 4 * 20 * number / 255 for number in range(len(names))]
    assert [row["quality_score"] for row in rows] == pytest.approx(scores)
    assert main(["assess", name, "--workers", "1", "--jsonl", "s.jsonl", "--limit", "1"]) == 0
    assert main(["assess", name, "--workers", "1", "--jsonl", "s.jsonl", "--resume", "--csv", "-"]) == 0
    assert capsys.readouterr().out.count("\n") == len(names) + 1
    assert main(["assess", name, "--dry-run", "--backend", "openai.gpt-4o", "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)
    assert (cost["questions"], cost["refused"]) == (len(names), [])
    assert cost["stages"][-1]["bytes"] > len(png(0)) or "://" in name or "path" in name
    monkeypatch.setattr(AgenticIQA, "forward", None)
    assert main(["assess", name, "--jsonl", "s.jsonl", "--resume"]) == 0, "nothing was assessed again"


def test_images_are_read_only_when_they_are_needed(album: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [*tar_shards(album), *table_of_images(album), *saved_data_set(album)]
    with monkeypatch.context() as patched:
        for each in StoredImage.__subclasses__():
            patched.setattr(each, "read_content", None)
        jobs = find_jobs(["album/a.tar", "album/images.parquet", "album/saved"], "Good?").jobs
        assert [job.name for job in jobs] == names
    assert len({*jobs}) == len(jobs)
    sent = [picklable(job.image) for job in reversed(jobs)]
    assert [hash_of(image) for image in sent] == [hash_of(job.image) for job in reversed(jobs)]


def test_rows_are_read_in_any_order_and_after_a_change(album: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grays = [*range(0, 250, 5)]
    pq.write_table(pa.table({"image": [png(gray) for gray in grays]}), "rows.parquet", row_group_size=20)
    images = [RowImage(f"rows.parquet#{row}", "rows.parquet", "image", row) for row in range(len(grays))]
    for order in (range(50), range(49, -1, -1), (0, 19, 20, 49, 3)):
        assert [images[row].read_content() for row in order] == [png(grays[row]) for row in order]
    pq.write_table(pa.table({"image": [png(7)]}), "rows.parquet")
    assert images[0].read_content() == png(7)
    assert hash_of(images[49]) is None


def test_outputs_show_images_of_a_data_set(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [*table_of_images(album), *tar_shards(album)]
    sets = ["album/images.parquet", "album/a.tar"]
    assert main(["assess", *sets, "--workers", "1", "--html", "sheet.html"]) == 0
    page = Path("sheet.html").read_text()
    assert page.count("<img ") == len(names)
    assert 'href="./album' not in page, "there is no file to open"
    paths = picture_paths(Path("maps"), names)
    assert [*map(str, paths.values())] == [
        *(f"maps/album/images.parquet#{number}.png" for number in range(5)),
        *(f"maps/album/a.tar/{number}.png" for number in range(2)),
    ]
    capsys.readouterr()
    assert main(["assess", "album/*.tar", "--jsonl", "album/a.tar"]) == 2
    assert "would overwrite a file that the command reads" in capsys.readouterr().err


def test_questions_and_originals_of_rows_are_used(album: Path) -> None:
    columns = {"image": [png(0), png(9)], "query": ["Noisy?", None], "reference": ["1.png", None]}
    pq.write_table(pa.table(columns), album / "asked.parquet")
    first, second = find_jobs(["album/asked.parquet"], "Good?").jobs
    assert (first.query, first.reference) == ("Noisy?", "album/1.png")
    assert (second.query, second.reference) == ("Good?", None)
    (album / "originals").mkdir()
    for name in ("0.png", "1.png"):
        (album / "originals" / name).write_bytes(png(1))
    tar_shards(album)
    jobs = find_jobs(["album/a.tar"], "Good?", "album/originals").jobs
    assert [str(job.reference) for job in jobs] == ["album/originals/0.png", "album/originals/1.png"]


@pytest.mark.parametrize("written", [r"album\1.png", r"C:\me\album\1.png", '"album/1.png"'])
@pytest.mark.parametrize("cell", [str, lambda path: {"bytes": None, "path": path}], ids=["text", "struct"])
def test_tables_with_paths_of_windows_and_in_quotes(cell: Callable[[str], object], written: str, album: Path) -> None:
    table = pa.table({"image": [cell(written), cell("C:\\gone.png")], "reference": [r"album\2.png", None]})
    pq.write_table(table, "paths.parquet")
    datasets.Dataset(table).save_to_disk("saved")
    for data in ("paths.parquet", "saved"):
        assert main(["assess", data, "--jsonl", f"{data}.jsonl"]) == 1
        assert main(["assess", data, "--parquet", f"{data}.scores"]) == 1
        (row,) = json_lines(Path(f"{data}.jsonl"))
        first, gone = ShardFolder(f"{data}.scores").rows()
        assert row["quality_score"] == first["quality_score"] == 1 + 4 * 20 / 255
        assert Path(row["reference"]) == Path(first["reference"]) == Path("album/2.png")
        assert "no such file" in gone["error"]


def test_damaged_files_are_reported_after_their_images(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (album / "tars").mkdir()
    write_tar(album / "tars" / "a.tar", {f"{number}.png": png(number) for number in range(3)})
    (album / "tars" / "a.tar").write_bytes((album / "tars" / "a.tar").read_bytes()[:1500])
    write_tar(album / "tars" / "b.tar", {"0.png": png(0)})
    write_tar(album / "tars" / "c.tar", {"readme.txt": b""})
    (album / "tars" / "d.parquet").write_bytes(b"none")
    found = find_jobs(["album/tars"], "Good?")
    assert [job.name for job in found.jobs] == ["album/tars/a.tar/0.png", "album/tars/b.tar/0.png"]
    first, second, third = map(str, found.problems)
    assert first.startswith("album/tars/a.tar: ")
    assert second == "album/tars/c.tar: expected images in this file, found none"
    assert third.startswith("album/tars/d.parquet: cannot be read (Parquet ")
    assert main(["assess", "album/tars", "--jsonl", "s.jsonl"]) == 1
    assert "\n" not in first + second + third
    Path("a.tar.gz").write_bytes(b"")
    [problem] = find_jobs(["a.tar.gz"], "Good?").problems
    assert "a.tar.gz: compressed tar files are not read; decompress it first" in str(problem)


@pytest.mark.parametrize(
    ("columns", "words", "message"),
    [
        (["jpg", "__key__"], [], ""),
        (["webp"], [], ""),
        (["IMG"], [], ""),
        (["photo"], [], "expected a column image or path, found photo; name one with --image-column"),
        (["photo"], ["--image-column", "Photo"], ""),
        (
            ["image"],
            ["--image-column", "x"],
            "there is no column 'x', found image; name one of them with --image-column",
        ),
        (["url"], [], "found url; web addresses are not fetched: download the images, for example with img2dataset"),
    ],
)
def test_the_column_of_images_is_found_or_named(
    columns: list[str], words: list[str], message: str, album: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({name: [png(0)] for name in columns}), "t.parquet")
    for command in (["assess"], ["gate"], ["measure", "piqe"], ["assess", "--parquet", "scores"]):
        status = main([*command, "t.parquet", *words])
        said = capsys.readouterr()
        assert status == (2 if message else 0 if command[0] in ("assess",) else status)
        assert (f"t.parquet: {message}" in said.err) if message else ("column" not in said.err)


def test_a_named_column_of_a_list(album: Path) -> None:
    (album / "list.csv").write_text("id,photo\n1,0.png\n2,1.png\n")
    for file in ("album/list.csv", "memory://lists/list.csv"):
        fsspec.filesystem("memory").pipe_file("/lists/list.csv", (album / "list.csv").read_bytes())
        jobs = find_jobs([file], "Good?", column="photo").jobs
        assert [Path(job.name).name for job in jobs] == ["0.png", "1.png"]


def test_data_sets_beside_photos_are_counted(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tar_shards(album)
    assert main(["assess", "album", "--parquet", "scores"]) == 2
    assert "contains both images and Parquet or tar files" in capsys.readouterr().err
    (album / "a.tar").rename(album / "b.tar")
    found = find_jobs(["album"], "Good?")
    assert len(found.jobs) == 5
    assert found.not_assessed == ["skipped 1 .tar (name a .tar file to assess the images in it)"]


def test_photos_need_no_reader_of_data_sets(album: Path) -> None:
    code = """
import sys
from agenticiqa.programs.batch.find_jobs import find_jobs
print(len(find_jobs(['album'], '').jobs), [name for name in ('pyarrow', 'datasets', 'fsspec') if name in sys.modules])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stdout == "5 []\n"


@pytest.mark.slow
def test_the_gate_of_a_data_set_and_of_its_results_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    photos = {path.name: path.read_bytes() for path in sorted(COPIES.iterdir())[:6]}
    write_tar(tmp_path / "a.tar", photos)
    Path("policy.yaml").write_text("min_short_side: 100\nmin_effective_side: 150\nmin_jpeg_quality: 40\nmin_score: 2\n")
    assert main(["assess", "a.tar", "--jsonl", "s.jsonl"]) == 0
    assert main(["assess", "a.tar", "--parquet", "scores"]) == 0
    verdicts = []
    for place in ("a.tar", "s.jsonl", "scores"):
        capsys.readouterr()
        assert main(["gate", place, "--policy", "policy.yaml", "--csv", "-"]) == 4
        verdicts.append([line.split(",")[:2] for line in sorted(capsys.readouterr().out.splitlines())])
    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert {verdict for _, verdict in verdicts[0]} == {"accepted", "true", "false"}


def test_a_list_of_paths_is_no_file_of_results(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    json_lines_of_paths(album)
    assert main(["gate", "album/paths.jsonl", "--csv", "-"]) == 4
    assert capsys.readouterr().out.count("small") == 5


def test_copies_in_a_data_set_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    copies = [path.read_bytes() for path in sorted(COPIES.iterdir())[:2]]
    pq.write_table(pa.table({"photo": copies}), "copies.parquet")
    words = ["compare", "copies.parquet", "--image-column", "photo", "--html", "copies.html", "--csv", "copies.csv"]
    assert eval_main(words) == 0
    page = Path("copies.html").read_text()
    assert page.count('<img src="copies_files/') >= 2
    assert f",{len(copies[0])}," in Path("copies.csv").read_text()


def test_members_of_one_name_are_images_of_their_own(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for mode, gray in (("w", 20), ("a", 60)):
        with tarfile.open("a.tar", mode) as tar:
            (album / "0.png").write_bytes(png(gray))
            tar.add(album / "0.png", "0.png")
    command = ["assess", "a.tar", "--jsonl", "rows.jsonl"]
    assert main(command) == main([*command, "--resume"]) == 0
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert [row["image"] for row in rows] == ["a.tar/0.png", "a.tar/0.png#2"]
    assert main(["assess", "a.tar", "--parquet", "scores"]) == 0
    assert pq.read_table("scores")["image"].to_pylist() == ["a.tar/0.png", "a.tar/0.png#2"]


def test_a_pattern_of_data_sets_without_a_match_is_named(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["assess", "nothing/*.tar"], ["gate", "nothing/*.parquet"]):
        assert main(command) == 2
        assert f"{command[1]}: no file matches this pattern" in capsys.readouterr().err


def test_a_column_without_images_is_named_with_what_it_has(album: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"image": [[png(20)]]}), "lists.parquet")
    assert main(["assess", "lists.parquet"]) != 0
    assert "the column has a list, expected the bytes or the path of an image" in capsys.readouterr().err


def test_a_store_that_is_unreachable_is_one_line(
    album: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*args: object) -> bool:
        raise RuntimeError("name not known")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "isdir", refused)
    assert main(["assess", "memory://bucket/train.parquet"]) == 2
    assert "cannot be listed (name not known); check the address" in capsys.readouterr().err


def test_an_address_that_is_unreachable_fails_alone(
    album: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    images_at_an_address(album)
    fs, read = type(fsspec.filesystem("memory")), fsspec.filesystem("memory").cat_file

    def unreachable(self: object, path: str, *args: object, **given: object) -> bytes:
        if path.endswith("1.png"):
            raise TimeoutError("no answer")
        return bytes(read(path, **given))

    monkeypatch.setattr(fs, "cat_file", unreachable)
    images = "memory://images/*.png"
    for command in (["assess", images, "--html", "sheet.html"], ["measure", "rms-contrast", images], ["gate", images]):
        assert main(command) in (1, 4)
        said = capsys.readouterr()
        assert "1.png" in said.err + said.out
        assert "could not be read in 3 tries (TimeoutError: no answer)" in said.err + said.out


@pytest.mark.parametrize("place", ["album", "a.tar", "memory://nas/album"])
@pytest.mark.parametrize("options", [(), ("--parquet", "out")], ids=["lines", "shards"])
def test_system_folders_are_left_out_unless_asked_for(
    album: Path, capfd: pytest.CaptureFixture[str], place: str, options: tuple[str, ...]
) -> None:
    files = {"0.png": png(9), "#recycle/1.png": png(20), "sub/@eaDir/2.png/XL.png": png(30)}
    write_tar(Path("a.tar"), files)
    for name, content in files.items():
        Path("album", name).parent.mkdir(parents=True, exist_ok=True)
        Path("album", name).write_bytes(content)
        fsspec.filesystem("memory").pipe(f"/nas/album/{name}", content)
    assert main(["assess", place, *options, "--limit", "9"]) == 0
    assert "2 images in system folders (--system-folders assesses them)" in capfd.readouterr().err
    more = ("--parquet", "out2") if options else ()
    assert main(["assess", place, "--system-folders", *more]) == 0
    assert "system" not in capfd.readouterr().err


@pytest.mark.parametrize("written", ["shoot [1]/*.png", "shoot%20%5B1%5D/*.png", "shoot [1]/[0]?png", "shoot [1]"])
@pytest.mark.parametrize("scheme", ["file://", "file://localhost", "file:"])
def test_a_file_uri_may_be_a_pattern_below_a_folder_named_like_one(scheme: str, written: str, album: Path) -> None:
    for folder in ("shoot [1]", "shoot 1"):
        (album / folder).mkdir()
        (album / folder / "0.png").write_bytes(png(20))
    uri = f"{scheme}{album}/{written}"
    assert [str(job.image) for job in find_jobs([uri], "Good?").jobs] == [f"{album}/shoot [1]/0.png"]
    assert main(["assess", uri, "--parquet", "scores"]) == 0
    assert [row["image"] for row in ShardFolder("scores").rows()] == [f"{album}/shoot [1]/0.png"]
