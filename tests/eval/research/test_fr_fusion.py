"""The fit of FR-FUSION prints all rows."""

import csv
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.eval.research import fr_fusion
from agenticiqa.programs.tools.metrics.fr_fusion import MEMBERS
from support.distortion_levels import blur, scene


@pytest.mark.slow
def test_the_command_prints_the_fits_and_a_row_for_each_metric_and_the_fusion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "reference", "mos"])
        for seed in range(4):  # with fewer contents there are no intervals
            Image.fromarray(scene(96, 112, seed)).save(tmp_path / f"scene{seed}.png")
            for level in range(1, 6):
                Image.fromarray(blur(level, scene(96, 112, seed))).save(tmp_path / f"{seed}_{level}.png")
                rows.writerow([f"{seed}_{level}.png", f"scene{seed}.png", 100 - 18 * level])
    tools = {name: fr_fusion.TOOLS[name] for name in (*MEMBERS, "PSNR", "NIQE")}
    monkeypatch.setattr(fr_fusion, "TOOLS", tools)
    assert fr_fusion.main([str(tmp_path / "labels.csv"), "--mos-range", "0", "100"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in out[: len(MEMBERS)]] == list(MEMBERS)
    table = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in out if line.startswith("| ")}
    assert list(table)[2:] == [*MEMBERS, "PSNR", fr_fusion.HELD_OUT]
    assert all(cells[0].strip() == "20" and float(cells[1].split()[0]) > 0.9 for cells in list(table.values())[2:])
