"""Jobs are made from names: their order, references by name, stdin, and errors for invalid names."""

import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agenticiqa.programs.batch.find_jobs import find_jobs, read_jobs
from agenticiqa.programs.batch.job import Job, SharedQuestion, failed_row, failure_text
from agenticiqa.programs.errors import ImageError, ImageNotFound, ToolError, UserError
from agenticiqa.programs.scale.plan_shards import plan_shards


@pytest.fixture
def album(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("album/b.png", "album/a.jpg", "album/c.cr2", "originals/a.png", "originals/b.webp", "one.png"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    return Path("album")


def test_each_image_is_one_job_in_the_order_of_its_names(album: Path) -> None:
    found = find_jobs(["one.png", "album", "gone.png", "album/a.jpg"], "Sharp?")
    assert found.jobs == [Job(Path(name), "Sharp?") for name in ("one.png", "album/a.jpg", "album/b.png")]
    assert [type(problem) for problem in found.problems] == [ImageNotFound]
    assert found.skipped == {".cr2": 1}


@pytest.fixture
def cameras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    of_out = ("camA/1.jpg", "camB/1.jpg", "camC/1.jpg", "camA/2.jpg", "3.jpg", "camA/deep/4.jpg", "5.png", "6.jpg")
    of_ref = ("camA/1.png", "camB/1.png", "camB/2.png", "3.png", "camA/3.png", "camA/deep/4.webp", "5.png", "5.jpg")
    for name in [*(f"out/{name}" for name in of_out), *(f"ref/{name}" for name in of_ref)]:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()


REFERENCES = {
    "out/camA/1.jpg": "ref/camA/1.png",
    "out/camB/1.jpg": "ref/camB/1.png",
    "out/camA/2.jpg": "ref/camB/2.png",  # the only one of its name
    "out/3.jpg": "ref/3.png",
    "out/camA/deep/4.jpg": "ref/camA/deep/4.webp",
    "out/5.png": "ref/5.png",
}
PROBLEMS = {
    "out/camC/1.jpg: expected a reference named 1.* in ref, found 2: ref/camA/1.png, ref/camB/1.png",
    "out/6.jpg: expected a reference named 6.* in ref, found none",
}


def test_references_in_a_folder_have_the_same_path_in_it(cameras: None) -> None:
    names = sorted(map(str, Path("out").rglob("*.*")))
    for images in (["out"], names):
        found = find_jobs(images, "Sharp?", "ref")
        assert {str(job.image): str(job.reference) for job in found.jobs} == REFERENCES
        assert set(map(str, found.problems)) == PROBLEMS
    Path("rows.jsonl").write_text("".join(json.dumps({"image": name}) + "\n" for name in names))
    found = read_jobs("rows.jsonl", "Sharp?", "ref")
    assert {str(job.image): str(job.reference) for job in found.jobs} == REFERENCES


def test_references_have_the_closest_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "out/Zürich.jpg",
        "out/A.jpg",
        "out/b.jpg",
        "ref/ZU\u0308RICH.PNG",
        "ref/a.png",
        "ref/A.webp",
        "ref/B.png",
        "ref/b.PNG",
    ):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    found = find_jobs(["out"], "Sharp?", "ref")
    assert {str(job.image): str(job.reference) for job in found.jobs} == {
        "out/Zürich.jpg": "ref/ZU\u0308RICH.PNG",
        "out/A.jpg": "ref/A.webp",
        "out/b.jpg": "ref/b.PNG",
    }


def test_a_part_of_a_tree_is_compared_with_the_same_part(cameras: None) -> None:
    found = find_jobs(["out/camA"], "Sharp?", "ref/camA")
    assert {str(job.image): str(job.reference) for job in found.jobs} == {
        "out/camA/1.jpg": "ref/camA/1.png",
        "out/camA/deep/4.jpg": "ref/camA/deep/4.webp",
    }


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_only_a_line_feed_ends_a_line_of_json(album: Path, end: str) -> None:
    row = json.dumps({"image": "one.png", "query": f"Is it{end}sharp?"}, ensure_ascii=ord(end) < 32)
    Path("rows.jsonl").write_bytes(f"{row}\r\n{row.replace('sharp', 'soft')}\n\n".encode())
    assert [job.query for job in read_jobs("rows.jsonl", "").jobs] == [f"Is it{end}sharp?", f"Is it{end}soft?"]


def test_one_reference_is_used_for_all_images(album: Path) -> None:
    assert {job.reference for job in find_jobs(["album"], "Sharp?", "one.png").jobs} == {Path("one.png")}


@pytest.mark.parametrize("reference", ["gone.png", "https://x.org/a.png", "empty"])
def test_a_missing_reference_is_an_error(album: Path, reference: str) -> None:
    Path("empty").mkdir()
    with pytest.raises(ImageError, match=reference):
        find_jobs(["album"], "Sharp?", reference)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ImageError("broken", "a.png"), "a.png: broken"),
        (ToolError("no such\n  tool"), "a.png: no such tool"),
        (ImageError("broken", "r.png"), "a.png: r.png: broken"),
    ],
)
def test_a_failure_names_its_image_once(error: Exception, text: str) -> None:
    assert failure_text(Job(Path("a.png"), "Sharp?"), error) == text


def test_the_row_of_a_missing_file_has_its_whole_name() -> None:
    """The name is a field of the error, so that it may contain the characters that end it in the message."""
    (problem,) = find_jobs(["a: b.png"], "Sharp?").problems
    row = failed_row(problem)
    assert row["image"] == "a: b.png"
    assert row["error"].startswith("expected an image, but there is no such file")


# --- rows of a file --------------------------------------------------------------------------------------------------


def rows(*written: Any, file: str = "album/questions.jsonl") -> str:
    Path(file).write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in written))
    return file


def test_each_row_is_one_job_with_paths_relative_to_its_file(album: Path) -> None:
    file = rows(
        {"image": "b.png", "query": "Which?", "options": ["Blur", "Noise"], "id": 7},
        "",
        {"image": "a.jpg", "reference": "../originals/a.png", "resize_reference": True},
        {"image": "a.jpg", "query": None, "options": {"A": "Yes", "B": "No"}},
        {"image": "b.png", "query": "Which?", "options": {"A": "Blur", "B": "Noise"}},
    )
    found = read_jobs(file, "Sharp?")
    assert found.jobs == [
        Job(album / "b.png", "Which?", options=["Blur", "Noise"]),
        Job(album / "a.jpg", "Sharp?", Path("album/../originals/a.png"), resize_reference=True),
        Job(album / "a.jpg", "Sharp?", options=["Yes", "No"]),
    ]


def test_the_arguments_are_defaults_for_rows(album: Path) -> None:
    file = rows({"image": "a.jpg"}, {"image": "a.jpg", "query": "Is it noisy?"})
    found = read_jobs(file, "Sharp?", "originals", resize_reference=True, options=["Yes", "No"])
    reference = Path("originals/a.png")
    assert found.jobs == [
        Job(album / "a.jpg", "Sharp?", reference, True, ["Yes", "No"]),
        Job(album / "a.jpg", "Is it noisy?", reference, True),
    ]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("{", "line 2: expected a JSON object, such as {"),
        ("[1]", "line 2: expected a JSON object"),
        ({"query": "Sharp?"}, "line 2: the key 'image' is missing; expected a row such as"),
        ({"image": "a.jpg", "question": "Sharp?"}, "line 2: unknown key 'question': rename it to 'query'"),
        ({"image": "a.jpg", "choices": ["a", "b"]}, "line 2: unknown key 'choices': rename it to 'options'"),
        ({"image": 5}, "line 2: image is a int, expected a str"),
        ({"image": ""}, "line 2: image is empty, expected a path"),
        ({"image": "a.jpg", "query": ["Sharp?"]}, "line 2: query is a list, expected a str"),
        ({"image": "a.jpg", "resize_reference": "yes"}, "line 2: resize_reference is a str, expected a bool"),
        ({"image": "a.jpg", "options": ["Blur"]}, "line 2: the number of options is 1: give 2 to 26"),
        ({"image": "a.jpg", "options": "Blur"}, "line 2: options must be a list"),
        ({"image": "a.jpg", "query": " "}, "line 2: the question is empty; write one"),
        ({"image": "a.jpg", "query": "b" * 5000}, "line 2: the question has 5000 characters; shorten it to 4000"),
        ({"image": "a.jpg", "query": "b.png"}, "line 2: the question is the name of an image file"),
    ],
)
def test_an_invalid_row_is_named(album: Path, row: Any, words: str) -> None:
    file = rows({"image": "a.jpg"}, row)
    with pytest.raises(UserError) as caught:
        read_jobs(file, "Sharp?")
    assert str(caught.value).startswith(f"{file}: {words}")
    assert "\n" not in str(caught.value)


def test_a_file_without_rows_or_that_cannot_be_read_is_an_error(album: Path) -> None:
    for file, words in ((rows(""), "expected at least one row"), ("gone.jsonl", "cannot be read"), ("album", "cannot")):
        with pytest.raises(UserError, match=words):
            read_jobs(file, "Sharp?")
    Path("latin.jsonl").write_bytes(b'{"image": "\xe9.png"}')
    with pytest.raises(UserError, match=r"^latin\.jsonl: .*it is not UTF-8"):
        read_jobs("latin.jsonl", "Sharp?")


def test_rows_come_from_stdin_too(album: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"image": "one.png"}\n')))
    assert read_jobs("-", "Sharp?").jobs == [Job(Path("one.png"), "Sharp?")]


@pytest.mark.parametrize(
    ("text", "jobs"),
    [
        ("a.jpg\nb.png\r\n\na.jpg\n", [Job(Path("album/a.jpg"), "Q"), Job(Path("album/b.png"), "Q")]),
        ("my photo, no. 2.jpg\n", [Job(Path("album/my photo, no. 2.jpg"), "Q")]),
        ("\ufeffimage\na.jpg\n", [Job(Path("album/a.jpg"), "Q")]),
        (
            "id;path;query\n1;a.jpg;Sharp?\n2;b.png;\n",
            [Job(Path("album/a.jpg"), "Sharp?"), Job(Path("album/b.png"), "Q")],
        ),
        (
            'image,options,query,reference,resize_reference\n"a.jpg","[""Yes"", ""No""]","Is\nit?",b.png,true\n',
            [Job(Path("album/a.jpg"), "Is\nit?", Path("album/b.png"), True, ["Yes", "No"])],
        ),
        (
            "sep=;\nIMAGE;Reference;Resize_Reference\na.jpg;b.png;TRUE\nA.JPG;B.png;False\n",
            [
                Job(Path("album/a.jpg"), "Q", Path("album/b.png"), True),
                Job(Path("album/a.jpg"), "Q", Path("album/b.png")),
            ],
        ),
    ],
    ids=["paths", "a path with blanks", "one column", "semicolons", "all columns", "a spreadsheet"],
)
@pytest.mark.parametrize("name", ["rows.csv", "rows.txt"])
def test_rows_may_be_csv_or_paths(album: Path, text: str, jobs: list[Job], name: str) -> None:
    if name.endswith(".csv") and "image" not in text and "path" not in text:
        pytest.skip("it has no column of images")
    (album / "my photo, no. 2.jpg").touch()
    (album / name).write_text(text)
    assert read_jobs(f"album/{name}", "Q").jobs == jobs


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("rows.csv", "name,mos\na.jpg,3\n", "expected a column image or path, found name, mos"),
        ("rows.csv", "image,options\na.jpg,Blur|Noise\n", "line 2: options is 'Blur|Noise', expected JSON such as"),
        ("rows.csv", "image,query\n,Sharp?\n", "line 2: image is empty"),
        ("rows.txt", "Dear all,\n", "expected JSON lines such as"),
    ],
)
def test_other_files_are_refused(album: Path, name: str, text: str, words: str) -> None:
    (album / name).write_text(text)
    with pytest.raises(UserError, match=re.escape(f"album/{name}: {words}")):
        read_jobs(f"album/{name}", "Q")


@pytest.mark.parametrize("text", ["a.png,3\nb.png,4\n", "3,a.png\n4,b.png\n", "a.png;r.png\nb.png;r.png\n"])
def test_a_table_without_a_header_is_one_error(text: str, tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "r.png"):
        (tmp_path / name).touch()
    file = tmp_path / "rows.csv"
    file.write_text(text)
    message = r"rows.csv: expected column names in the first line, found .*png"
    with pytest.raises(UserError, match=message):
        read_jobs(str(file), "")
    with pytest.raises(UserError, match=message):
        list(plan_shards([str(file)], SharedQuestion("Rate it."), []))


def test_equal_rows_count_once_and_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    (tmp_path / "rows.csv").write_text("image,query\na.png,Noisy?\na.png,Sharp?\na.png,Noisy?\na.png,Noisy?\n")
    pq.write_table(pa.table({"image": ["a.png"] * 3}), tmp_path / "rows.parquet")
    assert len(read_jobs(str(tmp_path / "rows.csv"), "").jobs) == 2
    for name, jobs in {"rows.csv": 2, "rows.parquet": 1}.items():
        found = find_jobs([str(tmp_path / name)], "")
        assert len(found.jobs) == jobs
        assert found.not_assessed == ["skipped 2 rows that equal another one"]


def test_paths_with_commas_are_listed(tmp_path: Path) -> None:
    (tmp_path / "b,2.png").touch()
    (tmp_path / "list.txt").write_text("a,1.png\nb,2.png\n")
    found = read_jobs(str(tmp_path / "list.txt"), "")
    assert [Path(job.name).name for job in found.jobs] == ["b,2.png"]
    assert len(found.problems) == 1


PATHS = {
    "relative": r"set\deep\a b.png",
    "absolute": r"C:\Users\me\set\deep\a b.png",
    "copied as path": r'"D:\set\deep\a b.png"',
    "in quotes": "'set/deep/a b.png'",
    "with slashes": "C:/data/set/deep/a b.png",
}


@pytest.mark.parametrize("form", ["lines", "list.csv", "list.jsonl"])
@pytest.mark.parametrize("written", PATHS)
def test_lists_with_paths_of_windows_and_in_quotes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here/set/deep").mkdir(parents=True)
    Path("here/set/deep/a b.png").touch()
    path, file = PATHS[written], Path("here", form)
    if form == "lines":
        file.write_text(f"{path}\n")
    elif form == "list.jsonl":
        file.write_text(json.dumps({"image": path}))
    else:
        file.write_text("image,note\n{},x\n".format('"' + path.replace('"', '""') + '"'))
    expected = str(Path("here/set/deep/a b.png"))
    assert [job.name for job in read_jobs(str(file), "").jobs] == [expected]
    if form != "lines":
        (shard,) = plan_shards([str(file)], SharedQuestion("Rate it."), [])
        assert [entry["image"] for entry in shard.entries] == [expected]


def test_an_ambiguous_windows_path_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.png", "one/b.png", "two/b.png"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    Path("list.txt").write_text("C:\\x\\a.png\nC:\\x\\b.png\nD:\\y\\a.png\nC:\\x\\gone.png\n")
    found = read_jobs("list.txt", "")
    assert "files were found by name below ., such as a.png for C:\\x\\a.png" in caplog.text
    assert [job.name for job in found.jobs] == ["a.png"]
    assert ["several files" in str(problem) for problem in found.problems] == [True, True, False]


def test_a_list_of_find_print0_is_read_from_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ["a,b.png", "c d\ne.png", '"f".png']
    for name in names:
        Path(name).touch()
    ends = os.pipe()
    os.write(ends[1], "\0".join([*names, ""]).encode())
    os.close(ends[1])
    try:
        assert [str(job.image) for job in read_jobs(f"/dev/fd/{ends[0]}", "").jobs] == names
        with pytest.raises(UserError, match="read only once"):
            read_jobs(f"/dev/fd/{ends[0]}", "")
    finally:
        os.close(ends[0])
