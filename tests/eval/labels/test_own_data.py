"""The user's own data: the same labels in each form, declarations about them, and one-line errors."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import datasets
import openpyxl
import pytest
from PIL import Image

from agenticiqa.eval.cli import main
from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.labels.own_data import Declared, read_own
from agenticiqa.eval.labels.sources import open_rows
from agenticiqa.eval.tasks.labeled_set import labeled_images
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import sha256_of
from support import archives
from support.files import rows_of

MOS = {"a.png": 3.5, "b.png": 1.25, "c.png": 4.0}
SPLIT = {"a.png": "train", "b.png": "test", "c.png": "train"}
COLUMNS = datasets.Features(image=datasets.Image(), mos=datasets.Value("float64"), split=datasets.Value("string"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    archives.images(tmp_path / "set", MOS)
    monkeypatch.setenv("AGENTICIQA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "set"


def rows(**names: str) -> list[dict[str, object]]:
    """Return the rows of the set, with other names for the columns image, mos and split."""
    keys = [names.get(name, name) for name in ("image", "mos", "split")]
    return [dict(zip(keys, (name, MOS[name], SPLIT[name]), strict=True)) for name in MOS]


def table(folder: Path, name: str = "labels.csv", delimiter: str = ",", **names: str) -> Path:
    lines = [list(rows(**names)[0]), *(row.values() for row in rows(**names))]
    (folder / name).write_text("".join(delimiter.join(map(str, line)) + "\n" for line in lines))
    return folder / name


def json_lines(folder: Path) -> Path:
    (folder / "labels.jsonl").write_text("".join(json.dumps(row) + "\n\n" for row in rows(image="filename")))
    return folder / "labels.jsonl"


def parquet_of_paths(folder: Path) -> Path:
    datasets.Dataset.from_list(rows()).to_parquet(folder / "labels.parquet")
    return folder / "labels.parquet"


def parquet_of_images(folder: Path) -> Path:
    found = [
        row | {"image": {"bytes": (folder / str(row["image"])).read_bytes(), "path": row["image"]}} for row in rows()
    ]
    datasets.Dataset.from_list(found, features=COLUMNS).to_parquet(folder / "images.parquet")
    return folder / "images.parquet"


def saved(folder: Path) -> Path:
    datasets.Dataset.from_parquet(str(parquet_of_images(folder))).save_to_disk(folder / "saved")
    return folder / "saved"


def saved_by_split(folder: Path) -> Path:
    """Save the two splits one after the other."""
    whole = datasets.Dataset.from_parquet(str(parquet_of_images(folder))).remove_columns("split")
    parts = datasets.DatasetDict(train=whole.select([0, 2]), test=whole.select([1]))
    parts.save_to_disk(folder / "parts")
    return folder / "parts"


def json_file(folder: Path, content: object, indent: int | None = None) -> Path:
    (folder / "labels.json").write_text(json.dumps(content, indent=indent))
    return folder / "labels.json"


def sheet(folder: Path) -> Path:
    book = openpyxl.Workbook()
    for line in ([None] * 3, ["Image", "MOS", "split"], *(list(row.values()) for row in rows()), [None] * 3):
        book.active.append(line)
    book.save(folder / "labels.xlsx")
    return folder / "labels.xlsx"


def indented_objects(folder: Path) -> Path:
    (folder / "labels.jsonl").write_text("\n".join(json.dumps(row, indent=1) for row in rows()))
    return folder / "labels.jsonl"


def by_column(*, of: Callable[[list[object]], object]) -> dict[str, object]:
    return {name: of([row[name] for row in rows()]) for name in rows()[0]}


FORMS: dict[str, Callable[[Path], Path]] = {
    "csv": table,
    "tsv": lambda folder: table(folder, "labels.tsv", "\t"),
    "jsonl": json_lines,
    "json list": lambda folder: json_file(folder, rows()),
    "indented json list": lambda folder: json_file(folder, rows(), indent=2),
    "json with a list": lambda folder: json_file(folder, {"info": {}, "images": rows()}, indent=2),
    "json columns": lambda folder: json_file(folder, by_column(of=list), indent=2),
    "json of pandas": lambda folder: json_file(folder, by_column(of=lambda x: dict(enumerate(x)))),
    "indented objects": indented_objects,
    "xlsx": sheet,
    "parquet": parquet_of_paths,
    "parquet with images": parquet_of_images,
    "folder": lambda folder: table(folder, "metadata.csv", image="file_name").parent,
    "saved": saved,
    "saved by split": saved_by_split,
}


def read(data: Path, split: str | None = None, declared: Declared | None = None) -> list[LabeledImage]:
    return labeled_images(data, None, split, declared).labels


def refused(data: Path, declared: Declared | None = None, split: str | None = None) -> str:
    with pytest.raises(UserError) as caught:
        read(data, split, declared)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_labels_and_the_original_bytes_of_images(form: str, folder: Path) -> None:
    labels = read(FORMS[form](folder))
    assert {label.name: label.mos for label in labels} == MOS
    assert {label.name: label.split for label in labels} == SPLIT
    assert all(sha256_of(label.image) == sha256_of(folder / label.name) for label in labels)
    assert [label.name for label in read(FORMS[form](folder), "test")] == ["b.png"]


def test_embedded_images_are_written_once_and_only_those_of_the_split(folder: Path) -> None:
    data = parquet_of_images(folder)
    (label,) = read(data, "test")
    assert label.image.parent == Path(os.environ["AGENTICIQA_CACHE"]) / "images"
    assert len(list(label.image.parent.iterdir())) == 1
    written = label.image.stat().st_mtime_ns
    assert read(data, "test") == [label]
    assert label.image.stat().st_mtime_ns == written
    assert len(read(data)) == len(list(label.image.parent.iterdir())) == 3


def test_bytes_without_a_path_are_named_by_their_row(folder: Path) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 40), "red").save(buffer, "JPEG")
    datasets.Dataset.from_list([{"img": buffer.getvalue(), "score": 2.0}]).to_parquet(folder / "plain.parquet")
    (label,) = read(folder / "plain.parquet")
    assert (label.name, label.image.suffix, label.mos) == ("plain.parquet#0", ".jpg", 2)
    data = datasets.Dataset.from_list([{"img": b"no image", "score": 2.0}])
    data.save_to_disk(folder / "plain")
    datasets.DatasetDict(train=data, test=data).save_to_disk(folder / "parts")
    assert [label.name for label in read(folder / "plain")] == ["plain#0"]
    assert [label.name for label in read(folder / "parts", "test")] == ["parts/test#0"]
    (label,) = read_own(open_rows([{"image": buffer.getvalue(), "mos": 2.0}]), Declared())[0]
    assert label.name == "row 1"


@pytest.mark.parametrize("scorer", [["--scorer", "column:mine"], ["--scorer", "EDGE-SHARPNESS"], []])
def test_an_embedded_image_that_cannot_be_read_is_one_failed_row(
    scorer: list[str], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [(folder / name).read_bytes() for name in MOS]
    cells[1] = b"no image"
    table = [{"img": cell, "mos": mos, "mine": mos} for cell, mos in zip(cells, MOS.values(), strict=True)]
    datasets.Dataset.from_list(table).to_parquet(folder / "plain.parquet")
    status = main(["evaluate", str(folder / "plain.parquet"), "--workers", "1", "--out", str(tmp_path), *scorer])
    first, damaged, last = rows_of(tmp_path)
    assert [row["name"] for row in (first, damaged, last)] == [f"plain.parquet#{number}" for number in range(3)]
    assert not {"error"} & {*first, *last}
    if scorer[1:] == ["column:mine"]:
        assert (status, damaged["quality_score"]) == (0, 1.25), "no image is decoded"
    else:
        assert status == 1
        assert damaged["error"].startswith("ImageError: plain.parquet#1: expected an image, found text")
        assert "images/" not in capsys.readouterr().err, "no file of the cache is named"


def test_columns_have_usual_or_declared_names(folder: Path) -> None:
    assert len(read(table(folder, image="img_path", mos="MOS"))) == 3
    assert len(read(table(folder, image="Filename", mos="Score"))) == 3
    data = table(folder, image="photo", mos="liked")
    message = refused(data)
    assert "no image and no mos column found (columns: photo, liked, split)" in message
    assert "--image-column and --mos-column" in message
    assert [label.mos for label in read(data, None, Declared("photo", "liked"))] == [*MOS.values()]
    assert "no column 'rating' found (columns: photo, liked, split)" in refused(data, Declared("photo", "rating"))


def test_dmos_needs_a_declared_direction(folder: Path) -> None:
    data = table(folder, mos="DMOS")
    assert "the direction of column DMOS is unclear; add --lower-is-better" in refused(data)
    assert [x.mos for x in read(data, None, Declared(lower_is_better=False))] == [3.5, 1.25, 4.0]
    assert [x.mos for x in read(data, None, Declared(lower_is_better=True))] == [2.5, 4.75, 2.0]  # on 1..5


def test_the_scale_of_a_mirrored_label_is_that_of_all_rows(folder: Path) -> None:
    archives.images(folder, ["d.png"])
    with table(folder).open("a") as file:
        file.write("d.png,80,train\n")
    (label,) = read(folder, "test", Declared(lower_is_better=True))
    assert label.mos == 100 - 1.25
    (label,) = read(folder, "test", Declared(lower_is_better=True, mos_range=(0, 90)))
    assert label.mos == 90 - 1.25
    assert "1 scores, such as 80, are not between 0 and 70" in refused(folder, Declared(mos_range=(0, 70)))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.jsonl", '{"image": "a.png"', "JSONL, UTF-8"),
        ("x.jsonl", "[1]\n", "row 1 is not a JSON object"),
        ("x.jsonl", "1\n", "line 1 is not a JSON object"),
        ("x.json", '[{"image": "a.png"', "JSON, UTF-8"),
        ("x.json", "[" * 9999, "nested too deeply"),
        ("x.xlsx", "no sheet", "x.xlsx is not an .xlsx file"),
        ("x.csv", b"\xd0\xcf\x11\xe0", "save the table as CSV in UTF-8, or as .xlsx"),
        ("x.csv", "image,mos\na.png,1e308\n", "line 2: mos is '1e308', expected a number or a level"),
        ("x.jsonl", '{"image": "a.png", "mos": "sharp"}', "line 1: mos is 'sharp', expected a number or a level"),
        ("x.csv", "image,mos\na.png,Good\nb.png,3\n", "line 3: mos is '3', but line 2 has a level"),
        ("x.csv", "image,mos,note\na.png,3,\n,,lost\n", "line 3: the column image is empty"),
        ("x.csv", 'image,mos,note\na.png,3,"12\nb.png,2,\n', "line 2: a quotation mark"),
        ("x.csv", "image mos\na.png 3\n", "(columns: image mos). Separate the cells"),
        (
            "x.csv",
            "image,other,mos\na.png,c.png,3\n",
            "column other has images, too. If they are the references, add --ref",
        ),
        ("x.jsonl", '{"image": 7, "mos": 1}', "found a int"),
        ("x.parquet", "no parquet", "PARQUET"),
        ("x.csv", "image,mos\n", "found none"),
        ("x.csv", "", "the file is empty"),
    ],
)
def test_unreadable_tables_are_refused(folder: Path, name: str, text: str | bytes, message: str) -> None:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert message in refused(folder / name)


def test_a_folder_without_labels_and_one_with_an_absent_split_are_refused(folder: Path) -> None:
    assert "no labels found in this folder: add one of labels.csv, metadata.csv" in refused(folder)
    assert "splits found: test, train" in refused(saved_by_split(folder), split="dev")


def test_an_unreachable_hub_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert "COMMIT (40 digits) of a cached copy" in refused(Path("hub:owner/name@main"))


def test_column_options_are_refused_for_data_sets_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archives.kadid10k(tmp_path)
    assert main(["evaluate", "kadid10k", "--root", str(tmp_path), "--lower-is-better"]) == 2
    assert "the columns, direction and scale of kadid10k are fixed" in capsys.readouterr().err


def test_evaluate_takes_embedded_images(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = ["evaluate", str(saved(folder)), "--workers", "1", "--out", str(run)]
    assert main(command) == main(command) == 0
    found = rows_of(run)
    assert [row["name"] for row in found] == [*MOS]
    assert [row["image_sha256"] for row in found] == [sha256_of(folder / name) for name in MOS]


REFERENCE_NAMES = [
    *("ref_img", "ref_img_path", "ref_name", "ref", "reference_path", "pristine", "Ref_Img", "hq", "target"),
    *("source", "gt_image", "GT", "original", "clean", "img_ref", "my_hq_files"),
]


@pytest.mark.parametrize("column", ["reference", *REFERENCE_NAMES])
def test_usual_names_of_reference_columns_are_recognized(folder: Path, column: str) -> None:
    data = folder / "labels.csv"
    data.write_text(f"dist_img,{column},mos\na.png,c.png,3.5\nb.png,c.png,1.25\n")
    assert [label.reference for label in read(data)] == [folder / "c.png", folder / "c.png"]


def test_a_reference_column_without_files_is_reported_and_ignored(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "labels.csv").write_text("image,ref_name,mos\na.png,I01,3.5\nb.png,I02,1.25\n")
    assert {label.reference for label in read(folder / "labels.csv")} == {None}
    assert "column ref_name is ignored, as its cells, such as I01, are not images" in caplog.text
    (folder / "labels.csv").write_text("image,reference,mos\na.png,I01,3.5\nb.png,I02,1.25\n")
    assert "2 of 4 files are missing" in refused(folder / "labels.csv")


def test_ignored_columns_that_look_like_known_ones_are_reported(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "labels.csv").write_text(
        "image,mos,refs,is_train,dist_level,preference,levels_of_zinc,MOS_std,offset\n"
        "a.png,3.5,4,1,2,0,0,0.5,0\nb.png,1.25,4,0,3,0,0,0.5,0\n"
    )
    read(folder / "labels.csv")
    reported = {record.getMessage().partition("column ")[2] for record in caplog.records}
    assert reported == {
        "is_train is ignored; if it is the split, rename it to split",
        "dist_level is ignored; if it is the level, rename it to level",
        "levels_of_zinc is ignored; if it is the level, rename it to level",
    }


@pytest.mark.parametrize(
    ("header", "used", "reported"),
    [
        ("image,mos,mos", 3.5, "several columns are named mos: the first one is used, the others are renamed to mos.2"),
        ("image,mos,MOS", 3.5, "column mos has the scores; to use MOS instead, add --mos-column"),
        ("image,MOS,mos", 3.5, "column MOS has the scores; to use mos instead, add --mos-column"),
        ("image,score,mos", 1.5, "column mos has the scores; to use score instead, add --mos-column"),
    ],
)
def test_the_chosen_score_column_is_reported(
    folder: Path, caplog: pytest.LogCaptureFixture, header: str, used: float, reported: str
) -> None:
    (folder / "labels.csv").write_text(f"{header}\na.png,3.5,1.5\nb.png,4.5,2.5\n")
    assert read(folder / "labels.csv")[0].mos == used
    assert reported in caplog.text
    if header == "image,mos,mos":
        assert read(folder / "labels.csv", None, Declared(mos="mos.2"))[0].mos == 1.5


def test_a_column_of_labels_splits_the_report_and_is_in_the_rows(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "labels.csv").write_text("image,mos,generator\na.png,3.5,X\nb.png,1.25,Y\nc.png,4,X\n")
    assert main(["evaluate", str(folder / "labels.csv"), "--out", str(tmp_path / "run"), "--by", "generator"]) == 0
    assert "generator" in capsys.readouterr().out
    assert [row["generator"] for row in rows_of(tmp_path / "run")] == ["X", "Y", "X"]


def test_nothing_is_fitted_to_scores_on_an_uncertain_scale(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "labels.csv").write_text("image,mos\na.png,9.55\nb.png,0.83\nc.png,5\n")
    assert main(["calibrate", "adapter", str(folder / "labels.csv"), "--out", str(tmp_path / "mine.npz")]) == 2
    assert "give its ends with --mos-range, such as 0 10" in capsys.readouterr().err
    assert main(["evaluate", str(folder / "labels.csv"), "--out", str(tmp_path / "run")]) == 0
    assert "such as 0 10; without --mos-range, RMSE and other results on 1..5 are omitted" in capsys.readouterr().err
    assert "less than a quarter" in refused(folder / "labels.csv", Declared(lower_is_better=True))


def test_a_second_table_in_a_folder_is_a_separate_set(folder: Path) -> None:
    first, second = table(folder, "labels.csv"), table(folder, "hard.csv")
    names = [labeled_images(data, None, None).name for data in (first, second)]
    assert names == [folder.name, f"{folder.name}-hard"]


def test_classes_are_read_by_their_names(folder: Path) -> None:
    """The codes of a ClassLabel are in alphabetical order, so they are not scores; all classes are read as names."""
    levels = {"a.png": "good", "b.png": "Bad", "c.png": "excellent"}
    names = ["Bad", "excellent", "fair", "good", "poor"]
    columns = datasets.Features(
        image=datasets.Value("string"),
        mos=datasets.ClassLabel(names=names),
        distortion=datasets.ClassLabel(names=["jpeg"]),
    )
    found = [
        {"image": str(folder / name), "mos": names.index(level), "distortion": 0} for name, level in levels.items()
    ]
    data = datasets.Dataset.from_list([*found], features=columns)
    data.to_parquet(folder / "classes.parquet")
    data.save_to_disk(folder / "classes")
    table = folder / "labels.csv"
    table.write_text("image,mos,distortion\n" + "".join(f"{name},{level},jpeg\n" for name, level in levels.items()))
    for source in (folder / "classes.parquet", folder / "classes", table):
        assert [(x.mos, x.distortion) for x in read(source)] == [(4, "jpeg"), (1, "jpeg"), (5, "jpeg")]
    assert "mos has levels" in refused(table, Declared(lower_is_better=True))
    other = datasets.Features(image=datasets.Value("string"), mos=datasets.ClassLabel(names=["sharp", "soft"]))
    datasets.Dataset.from_list([{"image": "a.png", "mos": 1}], features=other).to_parquet(folder / "other.parquet")
    assert "row 1: mos is 'soft', expected a number or a level" in refused(folder / "other.parquet")


@pytest.mark.parametrize(
    "text",
    [
        "Image Name,Mean Opinion Score\na.png,3.5\nb.png,1.25\n",
        "\ufeff FILENAME ; MOS \na.png;3,5\nb.png;1,25\n",
        "image\tmos\na.png\t3.5\nb.png\t1.25\n",
        'image,note,mos\na.png,"sharp,\nvivid, nice, bright",3.5\nb.png,,1.25\n',
    ],
    ids=["words", "semicolons", "tabs", "a line break"],
)
def test_headers_separators_and_line_breaks_of_other_programs(folder: Path, text: str) -> None:
    (folder / "labels.csv").write_text(text)
    assert [(label.name, label.mos) for label in read(folder / "labels.csv")] == [("a.png", 3.5), ("b.png", 1.25)]


def test_a_reference_column_can_be_named_or_ignored(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = folder / "labels.csv"
    data.write_text("image,other,hq,mos\na.png,c.png,b.png,3\n")
    assert [x.reference for x in read(data)] == [folder / "b.png"]
    assert [x.reference for x in read(data, None, Declared(reference="other"))] == [folder / "c.png"]
    assert [x.reference for x in read(data, None, Declared(reference="none"))] == [None]
    data.write_text("image,path,same,mos\na.png,a.png,./a.png,3\n")
    assert [x.reference for x in read(data)] == [None]
    data.write_text("image,hq,mos\na.png,gone.png,3\n")
    assert "ignore the references with --reference-column none" in refused(data)


def test_the_folder_of_the_paths_can_be_named(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "elsewhere" / "labels.csv"
    table.parent.mkdir()
    table.write_text("image,mos\na.png,3.5\nb.png,1.25\nc.png,4\n")
    assert f"Paths are relative to {table.parent}; name the right folder with --root" in refused(table)
    command = ["evaluate", str(table), "--scorer", "PIQE", "--workers", "1", "--out", str(tmp_path / "run"), "--root"]
    assert main([*command, str(folder)]) == 0
    assert main([*command, str(tmp_path / "gone")]) == 2
    assert "gone: there is no such folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["WorkerId", "annotator", "user_id", "Observer", "participant", "PROLIFIC_PID", "judge"]
)
def test_rows_of_several_raters_are_merged_if_an_image_is_repeated(
    name: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ratings = [f"{image},{mos},{rater}\n" for rater in ("anna", "ben") for image, mos in MOS.items()]
    path = folder / "labels.csv"
    path.write_text(f"image,mos,{name}\n{''.join(ratings)}")
    assert [(label.mos, label.raters) for label in read(path)] == [(mos, 2) for mos in MOS.values()]
    assert "each of 6 rows is taken for one rating of one of 3 images" in caplog.text
    path.write_text(f"image,mos,{name}\n{''.join(ratings[:3])}")  # such as the owner of each photo
    assert [(label.mos, label.raters) for label in read(path)] == [(mos, None) for mos in MOS.values()]
    path.write_text("image,mos\na.png,3\na.png,4\n")
    assert "or if each row is one rating, add a column rater" in refused(path)


def test_mos_by_image_is_read_from_json(folder: Path) -> None:
    assert [(label.name, label.mos) for label in read(json_file(folder, MOS, indent=2))] == [*MOS.items()]
