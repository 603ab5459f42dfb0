"""Ratings of one or several people become MOS: bias, careless raters, repeats, the ceiling of the SRCC, wrong rows."""

import csv
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest
from pandas import DataFrame

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.labels import raters
from agenticiqa.eval.labels.own_data import Declared, read_labels
from agenticiqa.eval.labels.raters import Panel, merged, unbiased, write_mos
from agenticiqa.eval.metrics import plcc, srcc
from agenticiqa.eval.tasks.labeled_set import labeled_images, own_images
from agenticiqa.programs.errors import UserError
from support import archives

Row = tuple[str, float | str, str, float | str]  # image, rating, rater, repeat
NOISE = {"anna": 0.4, "ben": 0.5}  # standard deviations; other raters are at chance


def rows_of(ratings: Iterable[Row]) -> list[tuple[str, dict[str, str]]]:
    """Return the rows of a table as ``own_data`` passes them."""
    names = ("image", "mos", "rater", "repeat")
    return [
        (f"line {line}", {name: str(cell) for name, cell in zip(names, row, strict=True) if cell != ""})
        for line, row in enumerate(ratings, 2)
    ]


def simulated(
    raters: Iterable[str], truth: np.ndarray, seed: int, bias: Mapping[str, float] | None = None, repeats: int = 12
) -> list[Row]:
    rng, rows = np.random.default_rng(seed), list[Row]()
    for rater in raters:
        for number, quality in enumerate(truth):
            for repeat in range(1 + (number < repeats)):
                rating = rng.normal(quality + (bias or {}).get(rater, 0), NOISE[rater]) if rater in NOISE else None
                rows.append((f"{number}.png", rng.uniform(1, 5) if rating is None else rating, rater, repeat))
    return rows


def result(ratings: Iterable[Row], *, keep_all: bool = False) -> tuple[dict[str, dict[str, str]], Panel]:
    table, panel = merged("t.csv", rows_of(ratings), keep_all=keep_all)
    return {row["image"]: dict(row) for _, row in table}, panel


def test_a_table_without_raters_is_unchanged() -> None:
    rows = [("line 2", {"image": "a.png", "mos": "3"}), ("line 3", {"image": "a.png", "mos": "4", "repeat": "1"})]
    table, panel = merged("t.csv", rows)
    assert table is rows
    assert (panel.raters, panel.left_out, panel.ceiling.value) == ([], [], None)


@pytest.mark.parametrize("missing", [(), (("0.png", "ben"), ("3.png", "anna"), ("4.png", "anna"), ("4.png", "chen"))])
def test_bias_is_removed_exactly(missing: tuple[tuple[str, str], ...]) -> None:
    truth, bias = [2.0, 2.5, 3.0, 4.0, 3.5], {"anna": 0.5, "ben": -0.75, "chen": 0.25}
    every = [(f"{n}.png", quality + bias[name], name, 0) for name in bias for n, quality in enumerate(truth)]
    rows, panel = result(row for row in every if (row[0], row[2]) not in missing)
    assert [float(rows[f"{n}.png"]["mos"]) for n in range(5)] == pytest.approx(truth)
    assert {rater.name: rater.bias for rater in panel.raters} == pytest.approx(bias)
    several = [row for row in rows.values() if row["raters"] != "1"]
    assert [float(row["mos_std"]) for row in several] == pytest.approx([0] * len(several), abs=1e-12)
    assert "mos_std" not in rows["4.png"] or not missing


def test_repeats_are_averaged_before_raters_and_mos_stay_on_the_scale() -> None:
    ratings: list[Row] = [("a", 2, "anna", 0), ("a", 4, "anna", 1), ("a", 5, "ben", 0)]
    ratings += [("b", 1, "anna", 0), ("b", 3, "ben", 0), ("c", 5, "anna", 0), ("d", 5, "ben", "")]
    rows, panel = result(ratings)
    assert [rater.bias for rater in panel.raters] == [-1, 1]
    assert {name: float(row["mos"]) for name, row in rows.items()} == {"a": 4, "b": 2, "c": 5, "d": 4}
    assert [rows[name]["raters"] for name in "abcd"] == ["2", "2", "1", "1"]


SCALES = {
    "1..5": (1, 5),
    "0..100": (0, 100),
    "0..10": (0, 10),
    "0..1": (0, 1),
    "1..10": (1, 10),
    "0..5": (0, 5),
    "1..9": (1, 9),
}


def rated_on(scales: Iterable[str], size: int = 20, shift: int = 0) -> list[Row]:
    """Return the ratings of people on these scales; with ``shift``, each one rates other images."""
    scales, rng, rows = [*scales], np.random.default_rng(0), []
    truth = rng.uniform(0, 1, size + shift * len(scales))
    for number, scale in enumerate(scales):
        low, high = SCALES[scale]
        for image in range(number * shift, number * shift + size):
            share = min(1, max(0, truth[image] + rng.normal(0, 0.08)))
            rows.append((f"{image}.png", low + (high - low) * share, f"rater{number}", 0))
    return rows


@pytest.mark.parametrize("shift", [0, 10, 20])
@pytest.mark.parametrize(
    "scales",
    [
        *(("1..5", "0..100"), ("1..5", "0..10"), ("0..100", "0..1"), ("1..5", "0..1"), ("1..10", "0..100")),
        *(("1..5", "1..5", "0..100"), ("1..5", "0..100", "0..100"), ("1..5",) * 9 + ("0..100",)),
    ],
)
def test_raters_on_different_scales_are_refused_until_one_is_declared(scales: tuple[str, ...], shift: int) -> None:
    ratings = rated_on(scales, shift=shift)
    with pytest.raises(UserError, match=r"rater\d gave ratings from .* --mos-range LOW HIGH") as error:
        result(ratings)
    assert "\n" not in str(error.value)
    merged("t.csv", rows_of(ratings), keep_all=True, is_one_scale=True)


@pytest.mark.parametrize("scales", [("0..5", "0..10"), ("1..5", "1..9"), ("1..9", "1..5", "1..9")])
def test_scales_of_which_one_has_half_the_length_are_refused(scales: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="convert all ratings to one scale"):
        result(rated_on(scales))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bias", [-0.25, 0, 0.25])
def test_severe_raters_on_one_scale_are_merged(scale: str, bias: float) -> None:
    low, high = SCALES[scale]
    ratings = [
        (image, min(high, max(low, float(rating) + bias * (high - low) * (rater == "rater1"))), rater, 0)
        for image, rating, rater, _ in rated_on([scale] * 3)
    ]
    assert len(result(ratings)[1].raters) == 3


@pytest.mark.parametrize("keep_all", [False, True])
def test_a_rater_at_chance_is_left_out(keep_all: bool) -> None:
    truth = np.random.default_rng(0).uniform(1.5, 4.5, 60)
    ratings = simulated(["anna", "chance", "ben"], truth, 1, {"anna": 0.3, "ben": -0.5})
    rows, panel = result(ratings, keep_all=keep_all)
    assert [rater.name for rater in panel.left_out] == ([] if keep_all else ["chance"])
    good = [rater for rater in panel.raters if rater.name != "chance"]
    assert [rater.name for rater in good] == ["anna", "ben"]
    assert all(rater.images == 60 and rater.repeats == 12 for rater in good)
    assert all(rater.own > 0.7 for rater in good)
    assert rows["0.png"]["raters"] == ("3" if keep_all else "2")
    if not keep_all:
        assert all(rater.others > 0.7 for rater in good)
        assert srcc(truth, [float(row["mos"]) for row in rows.values()]) > 0.85
        alone = [row for row in ratings if row[2] != "chance"]
        assert result(alone)[0] == rows


def test_a_crowd_with_careless_raters_is_compared_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, rng, compared = np.random.default_rng(0).uniform(1.5, 4.5, 30), np.random.default_rng(1), list[int]()
    noise = {f"r{number}": 4.0 if number % 3 == 0 else 0.5 for number in range(120)}
    rows = [(f"{n}.png", rng.normal(mos, std), name, 0) for name, std in noise.items() for n, mos in enumerate(truth)]

    def counted(means: DataFrame) -> DataFrame:
        compared.append(len(means))
        return unbiased(means)

    monkeypatch.setattr(raters, "unbiased", counted)
    left_out = result(rows)[1].left_out
    assert len(left_out) > 20
    assert all(noise[rater.name] == 4 for rater in left_out)
    assert len(compared) < 15, "not once for each rater that is left out"


def test_a_few_repeats_that_agree_by_chance_do_not_keep_a_rater() -> None:
    """Six repeats of a rater at chance agree by .3 or more in a third of all cases."""
    found = []
    for seed in range(20):
        truth = np.random.default_rng(seed).normal(3, 0.7, 60)
        panel = result(simulated(["anna", "chance", "ben"], truth, 100 + seed, {"anna": 0.4}, repeats=6))[1]
        found.append([rater.name for rater in panel.left_out])
    assert found.count(["chance"]) >= 17


def test_agreement_with_oneself_is_enough() -> None:
    """A person with another taste is kept; one rater alone is always kept."""
    truth = np.random.default_rng(0).uniform(1.5, 4.5, 60)
    ratings = simulated(["anna", "ben"], truth, 1)
    other = [(image, 6 - rating, "other", repeat) for image, rating, _, repeat in simulated(["anna"], truth, 2)]
    panel = result([*ratings, *other])[1]
    assert panel.left_out == []
    assert panel.raters[-1].others < -0.8
    panel = result(simulated(["chance"], truth, 3))[1]
    assert [rater.figures for rater in panel.raters] == [
        f"60 ratings, agreement with oneself {panel.raters[0].own:.2f} (12 repeats)"
    ]
    with pytest.raises(UserError, match="no rater agrees with the others or with oneself; to use them, add --keep-r"):
        result(simulated(["chance", "random", "by chance"], truth, 4, repeats=0))


@pytest.mark.parametrize("raters", [["anna"], ["ben", "anna"], ["anna", "ben", "carl", "dora"]])
@pytest.mark.parametrize("repeats", [0, 400])
@pytest.mark.parametrize("shape", ["uniform", "normal"])
def test_the_ceiling_is_the_correlation_of_the_true_quality_and_the_mos(
    raters: list[str], repeats: int, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(NOISE, "carl", 0.7)
    monkeypatch.setitem(NOISE, "dora", 0.9)
    rng = np.random.default_rng(1)
    truth = rng.uniform(1.5, 4.5, 1000) if shape == "uniform" else rng.normal(3, 0.7, 1000)
    rows, panel = result(simulated(raters, truth, 2, {"ben": 0.5}, repeats))
    best, mos = panel.ceiling, [float(row["mos"]) for row in rows.values()]
    assert best.n == repeats * len(raters)
    if len(raters) == 1 and not repeats:
        assert best.value is None
        return
    assert best.low <= plcc(truth, mos) <= best.high
    assert best.high - best.low < 0.06
    assert best.value == pytest.approx(srcc(truth, mos), abs=0.03)


def test_the_interval_of_the_ceiling_covers_the_correlation() -> None:
    covered = []
    for seed in range(40):
        truth = np.random.default_rng(seed).normal(3, 0.7, 60)
        rows, panel = result(simulated(["anna"], truth, 100 + seed, repeats=6))
        mos = [float(row["mos"]) for row in rows.values()]
        covered.append(panel.ceiling.low <= plcc(truth, mos) <= panel.ceiling.high)
    assert sum(covered) >= 36


def test_equal_repeats_do_not_make_a_perfect_ceiling() -> None:
    """Half steps hide the noise of the ratings, so it is at least that of rounding."""
    rows = [(f"{n}", 1 + n % 9 / 2, "anna", repeat) for n in range(9) for repeat in range(2)]
    best = result(rows)[1].ceiling
    assert best.value == pytest.approx(np.sqrt(1 - 0.25 / 12 / 2 / 1.875))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("a.png", 3, "anna", 0), "line 5: anna already rated a.png in line 2; remove one of the two rows, or rename"),
        (("b.png", 3, "", 0), "line 5: the column rater is empty or missing; add the name of the person"),
        (("b.png", "sharp", "anna", 0), "line 5: mos is 'sharp', expected a number or a level"),
        (("b.png", "nan", "anna", 0), "line 5: mos is 'nan', expected a number"),
        (("b.png", 3, "anna", "twice"), "line 5: repeat is 'twice', expected a number"),
    ],
)
def test_wrong_rows_are_reported_with_their_place(row: Row, message: str) -> None:
    with pytest.raises(UserError, match=rf"^t\.csv: {message}"):
        result([("a.png", 3, "anna", 0), ("a.png", 4, "anna", 1), ("a.png", 3, "ben", 0), row])


@pytest.fixture
def album(tmp_path: Path) -> Path:
    archives.images(tmp_path / "album", ["a.png", "b.png", "c.png"])
    return tmp_path / "album"


HEADER = "image,mos,rater,seconds,repeat\n"
ANNA = "a.png,4.5,anna,2.1,0\nb.png,2,anna,2.4,0\nc.png,3,anna,1.8,0\na.png,3.5,anna,1.1,1\n"
BEN = "c.png,2,ben,3.0,0\nb.png,1,ben,3.1,0\na.png,3,ben,2.0,0\n"


def written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


def figures(labels: Iterable[LabeledImage]) -> list[tuple[str, float, float | None, float | None]]:
    return [(x.image.name, x.mos, x.mos_std, x.raters) for x in labels]


EXPECTED = [("a.png", 3.5, 0.0, 2), ("b.png", 1.5, 0.0, 2), ("c.png", 2.5, 0.0, 2)]


def test_files_of_several_raters_and_one_file_of_all_give_the_same_mos(album: Path) -> None:
    files = [written(album / f"labels-{n}.csv", HEADER + text) for n, text in enumerate((ANNA, BEN))]
    together = written(album / "labels.csv", HEADER + ANNA + BEN)
    merged_set = own_images(files, None, None, Declared())
    assert figures(merged_set.labels) == EXPECTED
    assert merged_set.digest == labeled_images(together, None, None).digest
    assert figures(read_labels(together)) == EXPECTED
    assert (merged_set.name, merged_set.panel.ceiling.n) == ("album-labels-0", 1)
    out = album / "to" / "mos.csv"
    write_mos(out, merged_set.labels)
    with out.open() as file:
        assert next(csv.reader(file)) == ["image", "mos", "mos_std", "raters"]
    assert figures(read_labels(out)) == EXPECTED


def test_lower_is_better_mirrors_the_mos(album: Path) -> None:
    file = written(album / "labels.csv", HEADER + ANNA + BEN)
    labels = labeled_images(file, None, None, Declared(lower_is_better=True)).labels
    assert [label.mos for label in labels] == [2.5, 4.5, 3.5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,mos\na.png,3\n", "labels-1.csv, line 2: the column rater is empty or missing"),
        (f"{HEADER}a.png,3,anna,1,0\n", "labels-1.csv, line 2: anna already rated a.png in labels-0.csv, line 2"),
        (f"{HEADER},3,ben,1,0\n,3,ben,1,0\n", "labels-1.csv, line 2: the column image is empty"),
        (f"{HEADER}a.png,x,ben,1,0\n", "labels-1.csv, line 2: mos is 'x'"),
        (f"{HEADER}gone.png,3,ben,1,0\n", "1 of 4 files are missing: .*gone.png"),
    ],
)
def test_wrong_rows_of_several_files_are_reported_with_their_file(album: Path, text: str, message: str) -> None:
    files = [written(album / f"labels-{n}.csv", each) for n, each in enumerate((HEADER + ANNA, text))]
    with pytest.raises(UserError, match=message) as error:
        own_images(files, None, None, Declared())
    assert "\n" not in str(error.value)


def test_files_in_two_folders_need_the_folder_of_the_album(album: Path, tmp_path: Path) -> None:
    files = [written(album / "labels.csv", HEADER + ANNA), written(tmp_path / "ben.csv", HEADER + BEN)]
    with pytest.raises(UserError, match=r"ben\.csv is not in the folder of .*labels\.csv: move it, or name the album"):
        own_images(files, None, None, Declared())
    assert figures(own_images(files, album, None, Declared()).labels) == EXPECTED


def test_raters_left_out_are_named_by_every_reader(
    album: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"{number}.png" for number in range(30)]
    archives.images(album, names)
    ratings = simulated(["anna", "chance", "ben"], np.linspace(1.5, 4.5, 30), 1, repeats=0)
    lines = [f"{image},{rating},{rater},1,{repeat}\n" for image, rating, rater, repeat in ratings]
    file = written(album / "labels.csv", HEADER + "".join(lines))
    with caplog.at_level(logging.WARNING):
        labels = read_labels(file)
    assert {label.raters for label in labels} == {2}
    assert "chance are not used: no clear agreement with others or oneself (30 ratings, bias" in caplog.text
    assert "; to use them, add --keep-raters" in caplog.text
    every = labeled_images(file, None, None, Declared(keep_raters=True)).labels
    assert {label.raters for label in every} == {3}
