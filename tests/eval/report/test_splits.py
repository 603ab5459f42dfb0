"""Test parts of splits: by scene, a fifth, the same every time; medians as computed by hand; files of splits."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from agenticiqa.eval.cli import main
from agenticiqa.eval.report.splits import medians, random_splits, splits_named, splits_of_file
from agenticiqa.programs.errors import UserError

CONTENTS = [f"scene {number // 4}" for number in range(80)]
NAMES = [f"images/{number}.png" for number in range(80)]


def test_a_test_part_has_a_fifth_of_the_contents_with_all_their_images() -> None:
    parts = random_splits(10, NAMES, CONTENTS)
    assert [int(part.sum()) for part in parts] == [16] * 10
    assert all(len({CONTENTS[at] for at in np.flatnonzero(part)}) == 4 for part in parts)
    assert len({part.tobytes() for part in parts}) > 5
    assert all((a == b).all() for a, b in zip(parts, random_splits(10, NAMES, CONTENTS), strict=True))


def test_the_median_is_over_the_parts_and_on_the_images_with_a_value() -> None:
    random = np.random.default_rng(0)
    mos = random.normal(size=80)
    values = mos + random.normal(size=80)
    values[3] = np.nan
    parts = random_splits(5, NAMES, CONTENTS)
    here = [part & np.isfinite(values) for part in parts]
    expected = np.median([spearmanr(values[part], mos[part]).statistic for part in here])
    found = medians(values, mos, parts)
    assert found["srcc"] == pytest.approx(expected)
    assert found["n"] == np.median([part.sum() for part in here])
    falling = medians(-values, mos, parts)
    assert falling["plcc_fitted"] == pytest.approx(-found["plcc_fitted"], abs=1e-3)
    assert medians(np.full(80, np.nan), mos, parts)["srcc"] is None


def test_splits_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "splits.csv"
    file.write_text("image,split_01,split_02\na.png,train,test\nimages/b.png,test,val\nc.png,test,test\n")
    first, second = splits_of_file(file, ["images/b.png", "x/a.png"], ["b", "a"])
    assert (first.tolist(), second.tolist()) == ([True, False], [False, True])
    with pytest.raises(UserError, match=r"1 images have no row, such as d\.png"):
        splits_of_file(file, ["a.png", "d.png"], ["a", "d"])
    with pytest.raises(UserError, match='no column marks an image as "test"'):
        splits_of_file(file, [], [])
    file.write_text("image,split\nZu\u0308rich.PNG,test\nx/c.png,test\ny/c.png,val\n", encoding="utf-8-sig")
    assert splits_of_file(file, ["a/ZÜRICH.png", "X/c.png"], ["a", "c"])[0].tolist() == [True, True]
    with pytest.raises(UserError, match=r"2 rows fit c\.png, such as x/c\.png and y/c\.png"):
        splits_of_file(file, ["c.png"], ["c"])
    with pytest.raises(UserError, match="at least 1"):
        splits_named("0")


def test_evaluate_gives_the_medians_beside_the_figures_of_all_images(
    make_labels: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, run = make_labels(scenes=6), tmp_path / "run"
    command = ["evaluate", str(labels), "--scorer", "BRISQUE", "--workers", "1", "--out", str(run)]
    assert main([*command, "--splits", "10"]) == 0
    assert "Median over the test sets of 10 random 80/20 splits by scene (seed 0)" in " ".join(
        capsys.readouterr().out.split()
    )
    kept = json.loads((run / "report.json").read_text())
    assert kept["splits"]["count"] == 10
    assert kept["splits"]["systems"]["BRISQUE"]["n"] == 4
    assert "## Median over the test sets" in (run / "report.md").read_text()
