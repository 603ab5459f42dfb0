"""The command that measures the errors of the quality tools."""

import json
import re
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from agenticiqa.eval.research import tool_errors
from agenticiqa.eval.research.tool_errors import QUALITY, SEEN
from agenticiqa.programs.tools.catalog import toolbox
from support.distortion_levels import scene

TOOLS = {name: tool for name, tool in toolbox().items() if tool.rates_overall}
FR = tool_errors.applying("reference", TOOLS)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """40 images: PSNR and SSIM have the same errors, of deviation .2, and the other tools have deviation 1."""
    draw, file = np.random.default_rng(0), tmp_path / "rows.jsonl"
    inverse = {}
    for name in FR:
        curve = TOOLS[name].curve
        assert curve
        raw = np.linspace(*curve.raw_range, 401)
        inverse[name] = raw, np.array([curve(value) for value in raw])
    with file.open("w", encoding="utf-8") as lines:
        for at, quality in enumerate(draw.uniform(2.5, 3.5, 40)):
            missed = dict.fromkeys(("PSNR", "SSIM"), draw.normal(0, 0.2))
            values = {}
            for name, (raw, scores) in inverse.items():
                wanted = quality + missed.get(name, draw.normal(0, 1.0))
                values[name] = float(raw[np.abs(scores - wanted).argmin()])
            row = {"name": f"{at}", QUALITY: quality, SEEN: [], **values}
            lines.write(json.dumps(row) + "\n")
    return file


def test_errors_are_written_beside_the_table(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.yaml"
    shipped = (resources.files("agenticiqa.configs") / "tool_table.yaml").read_text(encoding="utf-8")
    table.write_text(shipped, encoding="utf-8")
    with pytest.raises(SystemExit):
        tool_errors.main(["fit", "reference", str(rows), "--write", str(table)])
    assert re.search(
        r"reference: the table has the errors on \d+ images, and these files have 40", capsys.readouterr().err
    )
    before = yaml.safe_load(shipped)
    del before["errors"]["reference"]
    table.write_text(yaml.safe_dump(before), encoding="utf-8")
    assert tool_errors.main(["fit", "reference", str(rows), "--write", str(table)]) == 0
    after = yaml.safe_load(table.read_text(encoding="utf-8"))
    assert {**after, "errors": 0} == {**before, "errors": 0}
    others = before["errors"].keys()
    assert others
    assert {name: after["errors"][name] for name in others} == {name: before["errors"][name] for name in others}
    found = after["errors"]["reference"]["tools"]
    assert list(found) == FR
    assert found["PSNR"][0] == pytest.approx(0.2, abs=0.06)
    assert found["PSNR"][1 + FR.index("SSIM")] > 0.95, "their errors are equal within their ranges"
    assert found["GMSD"][0] > 0.6


def test_a_source_without_new_images_is_refused(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("".join(rows.read_text(encoding="utf-8").splitlines(keepends=True)[:3]), encoding="utf-8")
    (tmp_path / "table.yaml").write_text("{}")
    assert tool_errors.main(["fit", "reference", str(few), "--write", str(tmp_path / "table.yaml")]) == 2
    assert "reference: fewer than " in capsys.readouterr().err


def test_images_of_a_table_are_measured(tmp_path: Path) -> None:
    Image.fromarray(scene()[:96, :96]).save(tmp_path / "a.png")
    (tmp_path / "labels.csv").write_text("image,mos,reference\na.png,4,a.png\n", encoding="utf-8")
    out = tmp_path / "out.jsonl"
    assert tool_errors.main(["measure", str(tmp_path / "labels.csv"), str(out), "--mos-range", "1", "5"]) == 0
    (row,) = tool_errors.read_rows(out)
    assert row[QUALITY] == 4.0
    assert {"HaarPSI", "PSNR", "LEARNED-IQA"} <= row.keys()
