"""The table for choosing tools: the command that measures it, and that the shipped one is complete."""

import shutil
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from agenticiqa.eval.research import tool_categories, tool_table
from agenticiqa.eval.research.distort import KINDS
from agenticiqa.programs.tools import TOOLS, Tool
from agenticiqa.signatures.categories import OVERALL
from agenticiqa.signatures.vocabulary import DISTORTIONS
from support.distortion_levels import scene


def brightness(name: str, *, higher_is_better: bool, trained_on: tuple[str, ...] = ()) -> Tool:
    return Tool(
        name=name,
        kind="NR",
        higher_is_better=higher_is_better,
        raw_range=(0, 255),
        measures=OVERALL,
        description="The mean gray level.",
        source="a test",
        cost_ms=1,
        measure=lambda pixels: float(pixels.mean()),
        trained_on=trained_on,
    )


@pytest.mark.slow
def test_the_table_is_written_updated_and_keeps_held_out_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out, levels = tmp_path / "darkened", tmp_path / "table.yaml", tmp_path / "levels.csv"
    folder.mkdir()
    for number in range(12):
        Image.fromarray((scene(48, 64, 3) * (1 - number / 20)).astype(np.uint8)).save(folder / f"{number}.png")
    labels = folder / "labels.csv"
    labels.write_text("image,mos\n" + "".join(f"{number}.png,{100 - number}\n" for number in range(12)))
    tools = [
        brightness("BRIGHT", higher_is_better=True),
        brightness("WRONG", higher_is_better=False),
        brightness("TRAINED", higher_is_better=True, trained_on=("darkened",)),
    ]
    monkeypatch.setattr(tool_table, "TOOLS", {tool.name: tool for tool in tools})
    monkeypatch.setattr(tool_categories, "photos", lambda: {"0": folder / "0.png"})
    assert tool_table.main([str(labels)]) == 0
    assert "| WRONG | 12 | 0 | -1.000" in capsys.readouterr().out

    assert tool_table.main([str(labels), "--write", str(out)]) == 0
    first = yaml.safe_load(out.read_text())
    overall = first["categories"][OVERALL]
    assert overall["BRIGHT"]["darkened"] == {"srcc": 1.0, "n": 12}
    assert set(overall["TRAINED"]) == {"distortion_levels"}, "not measured on what it was trained on"
    assert list(overall)[-1] == "WRONG", "the best first"
    rows = [f"{kind},{level},{5 - level}" for kind in KINDS for level in range(6)] * 2
    levels.write_text("\n".join(["kind,level,score", *rows]))
    again = [str(labels), "--write", str(out), "--tool", "TRAINED"]
    monkeypatch.setattr(tool_categories, "photos", lambda: {"other": folder / "1.png"})
    assert tool_table.main([*again, "--level-scores", "TRAINED", str(levels)]) == 0
    assert tool_table.main(again) == 0
    other = shutil.copytree(folder, tmp_path / "other") / "labels.csv"
    capsys.readouterr()
    assert tool_table.main([str(other), "--write", str(out), "--tool", "BRIGHT"]) == 2
    assert "rows of darkened would be dropped: name their labels.csv, too" in capsys.readouterr().err
    second = yaml.safe_load(out.read_text())
    after = second["categories"][OVERALL]
    assert second["measured"]["TRAINED"]["distortion_levels"] == "other"
    assert second["measured"]["BRIGHT"] == first["measured"]["BRIGHT"] != second["measured"]["TRAINED"]
    assert after["TRAINED"]["distortion_levels, held out"] == {"srcc": 1.0, "n": 12 * len(KINDS)}
    assert after["BRIGHT"] == overall["BRIGHT"]


def test_the_shipped_table_has_every_embedded_tool_and_nothing_else() -> None:
    text = (resources.files("agenticiqa.configs") / "tool_table.yaml").read_text(encoding="utf-8")
    assert text.startswith(tool_table.HEADER)
    table = yaml.safe_load(text)
    again = "python -m agenticiqa.eval.research.tool_table LABELS.csv... --tool NAME --write configs/tool_table.yaml"
    for category in DISTORTIONS:
        missing = set(TOOLS) ^ set(table["categories"].get(category, ()))
        assert missing == set(), f"{category}: {again}; LEARNED-IQA needs --level-scores"
    overall = {name for name, one in TOOLS.items() if one.rates_overall}
    assert set(table["categories"][OVERALL]) == overall, again
    assert set(table["measured"]) == set(TOOLS)
    rating = {name for name in overall if TOOLS[name].kind == "NR"}
    with_errors = {name for rows in table["errors"].values() for name in rows["tools"]}
    assert rating - with_errors == set(), "run tool_errors, or name a category in Tool.measures"
    assert all({"date", "version", "distortion_levels"} == set(stamp) for stamp in table["measured"].values())
    for rows in table["categories"].values():
        for name, sources in rows.items():
            assert all(-1 <= one["srcc"] <= 1 and one["n"] >= 10 for one in sources.values())
            assert not set(TOOLS[name].trained_on) & set(sources), f"{name}: measured on what it has seen"


def test_each_category_was_measured_with_the_kinds_that_count_for_it() -> None:
    """After a kind was moved to another category, all tools have to be measured again."""
    table = yaml.safe_load((resources.files("agenticiqa.configs") / "tool_table.yaml").read_text(encoding="utf-8"))
    per_kind: dict[tuple[str, str], dict[str, float]] = {}
    for category in DISTORTIONS:
        kinds = [one for one in KINDS.values() if category in tool_categories.counts_for(one.category)]
        for tool, sources in table["categories"][category].items():
            for source in (name for name in sources if name.startswith(tool_table.LEVELS_SOURCE)):
                per_kind.setdefault((tool, source), {})[category] = sources[source]["n"] / len(kinds)
    assert [images for images in per_kind.values() if len({*images.values()}) > 1] == []
