"""The fit of FR-FUSION: held-out scores do not depend on their content, and the command prints all rows."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.research import fr_fusion
from agenticiqa.programs.tools.metrics.fr_fusion import MEMBERS
from support.distortion_levels import blur, scene

pytestmark = pytest.mark.slow

MEMBER = MEMBERS["HaarPSI"]
RAW = np.linspace(0.05, 0.95, 30).tolist()
CONTENTS = [f"scene{row % 3}" for row in range(len(RAW))]


def test_held_out_scores_do_not_depend_on_the_qualities_of_their_own_content() -> None:
    raws = {name: RAW if member.tool.higher_is_better else [1 - raw for raw in RAW] for name, member in MEMBERS.items()}
    quality = [MEMBER.quality(raw) for raw in RAW]
    before = np.array(fr_fusion.held_out(raws, quality, CONTENTS))
    own = np.array(CONTENTS) == "scene1"
    after = np.array(fr_fusion.held_out(raws, np.where(own, 3.0, quality).tolist(), CONTENTS))
    assert after[own] == pytest.approx(before[own])
    assert (after[~own] != before[~own]).all()


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    rows = []
    for seed in range(4):  # with fewer contents there are no intervals
        Image.fromarray(scene(96, 112, seed)).save(tmp_path / f"scene{seed}.png")
        for level in range(1, 6):
            Image.fromarray(blur(level, scene(96, 112, seed))).save(tmp_path / f"{seed}_{level}.png")
            rows.append([f"{seed}_{level}.png", f"scene{seed}.png", 100 - 18 * level])
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["image", "reference", "mos"], *rows])
    return tmp_path / "labels.csv"


def test_the_command_prints_the_fits_and_a_row_for_each_metric_and_the_fusion(
    labels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = {name: fr_fusion.TOOLS[name] for name in (*MEMBERS, "PSNR", "NIQE")}
    monkeypatch.setattr(fr_fusion, "TOOLS", tools)
    assert fr_fusion.main([str(labels), "--mos-range", "0", "100"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in out[: len(MEMBERS)]] == list(MEMBERS)
    rows = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in out if line.startswith("| ")}
    assert list(rows)[2:] == [*MEMBERS, "PSNR", fr_fusion.HELD_OUT]
    assert all(cells[0].strip() == "20" and float(cells[1].split()[0]) > 0.9 for cells in list(rows.values())[2:])
    assert rows[fr_fusion.HELD_OUT][-1].strip() == "+0.0000 [+0.0000, +0.0000]"
