"""The table for choosing tools: its measurements, and that the shipped one is up to date."""

from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from agenticiqa.eval.calibrate import tool_categories, tool_table
from agenticiqa.eval.research.distort import KINDS
from agenticiqa.programs.tools import TOOLS, Tool, training_images
from agenticiqa.programs.tools.srcc_table import Agreement
from agenticiqa.signatures.types import OVERALL
from agenticiqa.signatures.vocabulary import DISTORTIONS
from support.distortion_levels import scene
from support.training_digests import write_digests

pytestmark = pytest.mark.slow


def card(name: str, measure: Callable[..., float], *, kind: str = "NR", **more: object) -> Tool:
    return Tool(
        name=name,
        kind=kind,  # type: ignore[arg-type]
        higher_is_better=bool(more.get("higher_is_better", False)),
        raw_range=(0, 1),
        good_at=more.get("good_at", ()),  # type: ignore[arg-type]
        description="A tool.",
        source="a test",
        cost_ms=1,
        measure=measure,
        trained_on=more.get("trained_on", ()),  # type: ignore[arg-type]
    )


def brightness(pixels: np.ndarray) -> float:
    return float(pixels.mean())


def error(pixels: np.ndarray, reference: np.ndarray) -> float:
    return float(np.abs(pixels.astype(float) - reference).mean())


@pytest.fixture(scope="module")
def levels() -> dict[str, tool_categories.Figures]:
    cards = [
        card("ERROR", error, kind="FR"),
        card("DARK", brightness, higher_is_better=True, good_at=("Brightness change",)),
        card("CONSTANT", lambda pixels: 1.0),
    ]
    return dict(
        tool_categories.on_distortion_levels(cards, {f"scene {seed}": scene(48, 64, seed) for seed in range(2)})
    )


def test_a_full_reference_error_follows_every_kind(levels: dict[str, tool_categories.Figures]) -> None:
    assert set(levels) == {*KINDS, OVERALL}
    assert all(levels[kind]["ERROR"].srcc > 0.6 for kind in KINDS)
    assert levels["jpeg"]["ERROR"].n == 2 * 6


def test_a_tool_in_the_wrong_direction_has_a_negative_srcc_and_a_constant_tool_0(
    levels: dict[str, tool_categories.Figures],
) -> None:
    assert levels["darken"]["DARK"].srcc > 0.8
    assert levels["brighten"]["DARK"].srcc < -0.8
    assert abs(tool_categories.by_category(levels)["Brightness change"]["DARK"].srcc) < 0.2
    assert {levels[kind]["CONSTANT"].srcc for kind in KINDS} == {0.0}


def test_a_single_distortion_tool_has_no_overall_figure(levels: dict[str, tool_categories.Figures]) -> None:
    assert set(levels[OVERALL]) == {"ERROR", "CONSTANT"}
    assert levels[OVERALL]["ERROR"].n == 2 * 6 * len(KINDS)


def test_every_category_has_kinds(levels: dict[str, tool_categories.Figures]) -> None:
    assert set(tool_categories.by_category(levels)) == {OVERALL, *DISTORTIONS}


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    folder = tmp_path / "darkened"
    folder.mkdir()
    rows = ["image,mos,distortion"]
    for seed in range(12):
        pixels = scene(48, 64, 3)
        Image.fromarray((pixels * (1 - seed / 20)).astype(np.uint8)).save(folder / f"{seed}.png")
        rows.append(f"{seed}.png,{100 - seed},{'white-noise' if seed % 2 else 'authentic'}")
    (folder / "labels.csv").write_text("\n".join(rows))
    return folder / "labels.csv"


def test_labels_count_overall_and_by_their_distortion_where_there_are_enough(labels: Path) -> None:
    from agenticiqa.eval.datasets import read_labels

    items = read_labels(labels)
    assert tool_categories.on_labels(card("BRIGHT", brightness, higher_is_better=True), items) == {
        OVERALL: Agreement(1.0, 12)
    }
    assert tool_categories.on_labels(card("WRONG", brightness), items) == {OVERALL: Agreement(-1.0, 12)}
    assert tool_categories.on_labels(card("FR", error, kind="FR"), items) == {}


def photos(folder: Path) -> dict[str, Path]:
    for seed in range(2):
        Image.fromarray(scene(32, 40, seed)).save(folder / f"{seed}.png")
    return {f"{seed}": folder / f"{seed}.png" for seed in range(2)}


def test_held_out_figures_replace_those_on_photos_that_a_tool_was_trained_on_and_stay(
    labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if TRAINED had been trained on the photos that the distorted ones are made of, and on the labeled images."""
    made = photos(tmp_path)
    tmp_path.joinpath("labels.csv").write_text("image,mos\n0.png,1\n1.png,2\n")
    digests = write_digests(tmp_path / "digests.csv", tmp_path / "labels.csv", labels)
    monkeypatch.setattr(training_images, "FILE", digests)
    trained = card("TRAINED", brightness, trained_on=(tmp_path.name, "darkened"), higher_is_better=True)
    monkeypatch.setattr(tool_table, "TOOLS", {"TRAINED": trained, "OTHER": card("OTHER", brightness)})
    monkeypatch.setattr(tool_categories, "photos", lambda: made)
    out, levels = tmp_path / "table.yaml", tmp_path / "levels.csv"
    write = [str(labels), "--write", str(out)]
    assert tool_table.main(write) == 0
    overall = yaml.safe_load(out.read_text())["categories"][OVERALL]
    assert set(overall) == {"OTHER"}
    rows = [f"{kind},{level},{5 - level}" for kind in KINDS for level in range(6)] * 2
    levels.write_text("\n".join(["kind,level,score", *rows]))
    assert tool_table.main([*write, "--level-scores", "TRAINED", str(levels)]) == 0
    held_out = yaml.safe_load(out.read_text())["categories"][OVERALL]["TRAINED"]
    assert held_out == {"distortion_levels, held out": {"srcc": 1.0, "n": 12 * len(KINDS)}}
    assert tool_table.main(write) == 0
    assert yaml.safe_load(out.read_text())["categories"][OVERALL]["TRAINED"] == held_out, "no run flatters it"
    levels.write_text("kind,level,score\njpeg,1,2\n")
    assert tool_table.main([*write, "--level-scores", "TRAINED", str(levels)]) == 2


def test_the_table_is_written_updated_and_keeps_what_was_not_measured_again(
    labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = {
        one.name: one
        for one in (
            card("BRIGHT", brightness, higher_is_better=True),
            card("WRONG", brightness),
            card("ERROR", error),
            card("TRAINED", brightness, trained_on=("darkened",)),
        )
    }
    monkeypatch.setattr(tool_table, "TOOLS", cards)
    monkeypatch.setattr(tool_categories, "photos", lambda: photos(tmp_path))
    out = tmp_path / "table.yaml"
    arguments = [str(labels), "--write", str(out), "--tool"]
    assert tool_table.main([*arguments, "BRIGHT"]) == 0
    first = yaml.safe_load(out.read_text())
    assert first["categories"][OVERALL]["BRIGHT"]["darkened"] == {"srcc": 1.0, "n": 12}
    assert tool_table.main([*arguments, "WRONG"]) == 0
    second = yaml.safe_load(out.read_text())
    assert second["categories"][OVERALL]["BRIGHT"] == first["categories"][OVERALL]["BRIGHT"]
    assert list(second["categories"][OVERALL])[-1] == "WRONG", "the best first"
    assert set(second["measured"]) == {"BRIGHT", "WRONG"}
    assert tool_table.main([*arguments, "TRAINED"]) == 0
    trained = yaml.safe_load(out.read_text())["categories"][OVERALL]["TRAINED"]
    assert set(trained) == {"distortion_levels"}, "it was not measured on what it was trained on"
    scores = tmp_path / "scores.csv"
    scores.write_text("image,score\n" + "".join(f"{image}.png,{image}\n" for image in range(12)))
    assert tool_table.main([*arguments, "BRIGHT", "--scores", "BRIGHT", str(labels), str(scores)]) == 0
    assert yaml.safe_load(out.read_text())["categories"][OVERALL]["BRIGHT"]["darkened, held out"]["srcc"] == -1.0


def test_the_agreement_with_labels_is_printed_for_each_tool(
    labels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(tool_table, "TOOLS", {"WRONG": card("WRONG", brightness), "NIQE": TOOLS["NIQE"]})
    assert tool_table.main([str(labels)]) == 0
    rows = {line.split(" | ")[0].strip("| "): line for line in capsys.readouterr().out.splitlines()[2:]}
    assert "| 12 | 0 | -1.000" in rows["WRONG"], "the sign is turned, so that agreement is positive"
    assert "| 0 | 12 | - (" in rows["NIQE"], "too small for it: refused and counted, not imputed"


def test_training_images_of_a_tool_are_marked_whatever_the_folder_is_called(
    labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(training_images, "FILE", write_digests(tmp_path / "digests.csv", labels))
    trained = replace(card("TRAINED", brightness), trained_on=(labels.resolve().parent.name,))
    monkeypatch.setattr(tool_table, "TOOLS", {"TRAINED": trained, "OTHER": card("OTHER", brightness)})
    renamed = labels.parent.rename(tmp_path / "another name") / labels.name
    assert tool_table.main([str(renamed)]) == 0
    rows = {line.split(" | ")[0].strip("| "): line for line in capsys.readouterr().out.splitlines()[2:]}
    assert rows["TRAINED"].endswith("| trained on 12 of 12 |")
    assert rows["OTHER"].endswith("| - |")
    items = tool_table.read_labels(renamed)
    table = tool_table.measured_table([trained], {"another name": items}, {}, {}, lambda done: None)
    assert not table, "the table that tools are chosen by leaves it out"


def test_full_reference_tools_are_in_the_table_where_every_image_has_a_reference(
    labels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(tool_table, "TOOLS", {"ERROR": card("ERROR", error, kind="FR")})
    assert tool_table.main([str(labels)]) == 0
    assert "ERROR" not in capsys.readouterr().out
    rows = [f"{line},0.png" for line in labels.read_text().splitlines()]
    labels.write_text("\n".join([rows[0].replace("0.png", "reference"), *rows[1:]]))
    assert tool_table.main([str(labels)]) == 0
    assert "| ERROR | 12 | 0 | 1.000 |" in capsys.readouterr().out, "of one content: no interval"


def test_the_shipped_table_has_every_embedded_tool_and_nothing_else() -> None:
    text = (resources.files("agenticiqa.configs") / "tool_table.yaml").read_text(encoding="utf-8")
    assert text.startswith(tool_table.HEADER)
    table = yaml.safe_load(text)
    again = "python -m agenticiqa.eval.calibrate.tool_table LABELS.csv... --tool NAME --write configs/tool_table.yaml"
    for category in DISTORTIONS:
        assert set(table["categories"][category]) == set(TOOLS), again
    overall = {name for name, one in TOOLS.items() if one.rates_overall}
    assert set(table["categories"][OVERALL]) == overall, again
    assert set(table["measured"]) == set(TOOLS)
    assert all({"date", "version"} == set(stamp) for stamp in table["measured"].values())
    for rows in table["categories"].values():
        for name, sources in rows.items():
            assert all(-1 <= one["srcc"] <= 1 and one["n"] >= 10 for one in sources.values())
            assert not set(TOOLS[name].trained_on) & set(sources), f"{name}: measured on what it has seen"
