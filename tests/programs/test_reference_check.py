"""The program reports problems of a reference, aligns it on request, and does not compare other pictures."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skimage.data
from PIL import Image

from agenticiqa.configs import Config, load_config
from agenticiqa.eval.research.distort import distort
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.graph import executor_node, planner_node, summarizer_node
from support.fake_server import by_stage, fake_server
from support.scripted_answers import SCRIPT, program_for

pytestmark = pytest.mark.slow

OFFLINE = {"configurable": {"program": AgenticIQA.offline()}}
COFFEE = np.ascontiguousarray(skimage.data.coffee()[:, :480])
CAT = np.asarray(Image.fromarray(skimage.data.chelsea()).resize((480, 400)))


@pytest.fixture(scope="module")
def offline() -> AgenticIQA:
    return AgenticIQA.offline()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Return an image shifted by (3, 2), the same as JPEG, their reference, and another photo of this size."""
    made = {
        "image": COFFEE[38:-42, 37:-43],
        "worse": distort(np.ascontiguousarray(COFFEE[38:-42, 37:-43]), "jpeg", 3),
        "reference": COFFEE[40:-40, 40:-40],
        "other": CAT[40:-40, 40:-40],
        "crop": COFFEE[40:240, 40:340],
    }
    paths = {name: tmp_path / f"{name}.png" for name in made}
    for name, pixels in made.items():
        Image.fromarray(np.ascontiguousarray(pixels)).save(paths[name])
    return paths


def test_a_shift_is_in_reasoning_notes_and_json(offline: AgenticIQA, files: dict[str, Path]) -> None:
    result = offline(files["worse"], reference=files["reference"])
    shown = "The image is shifted by 3 px right, 2 px down relative to its reference"
    assert shown in result.quality_reasoning
    assert any(note.startswith(shown) for note in result.executor_evidence.notes)
    check = json.loads(json.dumps(result.to_dict()))["reference_check"]
    assert check["relation"] == "shifted"
    assert check["shift"] == pytest.approx([3, 2], abs=0.1)
    assert check["aligned"] is False


def test_a_resized_reference_is_in_the_notes(offline: AgenticIQA, files: dict[str, Path]) -> None:
    half = Image.open(files["reference"]).resize((200, 160), Image.Resampling.LANCZOS)
    result = offline(half, reference=files["reference"], resize_reference=True)
    (note,) = result.executor_evidence.notes
    assert note.startswith("The reference was resized from 400 x 320 to the image's 200 x 160 pixels")


def test_an_aligned_image_is_measured_without_the_shift(offline: AgenticIQA, files: dict[str, Path]) -> None:
    straight = offline(files["worse"], reference=files["image"]).quality_score
    as_it_is = offline(files["worse"], reference=files["reference"])
    aligned = offline(files["worse"], reference=files["reference"], align=True)
    assert as_it_is.quality_score < straight - 0.3
    assert aligned.quality_score == pytest.approx(straight, abs=0.1)
    assert "the area that both show was compared" in aligned.quality_reasoning
    assert aligned.reference_check.aligned
    assert offline(files["image"], reference=files["reference"], align=True).quality_score == 5


def test_align_is_an_argument_a_key_of_the_configuration_and_an_option(
    offline: AgenticIQA, files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "align.yaml").write_text("align: true\n")
    configured = AgenticIQA.from_config(tmp_path / "align.yaml")
    pair = {"image": files["crop"], "reference": files["reference"]}
    assert configured(**pair).quality_score == 5
    assert AgenticIQA.from_config(Config(align=True))(**pair).quality_score == 5
    assert AgenticIQA.from_config(load_config()).image_settings.align is False
    assert main(["assess", str(files["crop"]), "--reference", str(files["reference"]), "--align", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reference_check"]["relation"] == "part"
    assert main(["assess", str(files["crop"]), "--reference", str(files["reference"])]) == 2
    assert (
        "the image shows only the part [0, 0, 300, 200] of its reference; set align (--align)"
        in capsys.readouterr().err
    )
    with pytest.raises(ValueError, match="resize_reference"):
        configured(**pair, align=False)


def test_another_photo_as_reference_is_not_compared(
    offline: AgenticIQA, files: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "agenticiqa"):
        result = offline(files["worse"], reference=files["other"])
    shown = "other.png shows another picture"
    assert shown in result.quality_reasoning
    assert any(shown in record.message for record in caplog.records)
    alone = offline(files["worse"])
    assert alone.reference_check is alone.to_dict()["reference_check"] is None
    assert result.quality_score == alone.quality_score
    assert {call.tool for call in result.executor_evidence.tool_log} == {
        call.tool for call in alone.executor_evidence.tool_log
    }
    row = result.to_dict()
    assert row["reference_check"]["relation"] == "another picture"
    assert row["reference"] == str(files["other"]), "a row names what it was given, for --resume"
    assert row["plan"]["reference_mode"] == "No-Reference"


def test_a_named_metric_compares_any_two_pictures(offline: AgenticIQA, files: dict[str, Path]) -> None:
    result = offline(files["worse"], "What is the PSNR?", reference=files["other"])
    (call,) = result.executor_evidence.tool_log
    assert call.tool == "PSNR"
    assert call.raw < 15
    assert "shows another picture" in result.quality_reasoning


@pytest.mark.parametrize(("kind", "level"), [("white_noise", 5), ("jpeg", 5), ("gaussian_blur", 5), ("brighten", 5)])
def test_a_damaged_image_keeps_its_reference(offline: AgenticIQA, kind: str, level: int) -> None:
    result = offline(distort(COFFEE, kind, level), reference=COFFEE)
    assert result.reference_check.relation == "in place"
    assert result.reference_check.sentence == ""
    assert result.plan.reference_mode == "Full-Reference"


def test_another_photo_is_reported_to_a_model_but_not_sent(files: dict[str, Path]) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        result = program_for(server)(files["worse"], reference=files["other"])
        bodies = [json.dumps(request) for request in server.requests]
    assert "shows another picture" in result.quality_reasoning
    assert any("shows another picture" in body for body in bodies)
    assert max(body.count("data:image/") for body in bodies) == 1


def test_the_graph_reports_another_photo_too(files: dict[str, Path]) -> None:
    state: Any = {"query": "Rate it", "image_path": str(files["worse"]), "reference_path": str(files["other"])}
    state |= planner_node(state, OFFLINE)
    assert state["plan"].reference_mode == "No-Reference"
    state |= executor_node(state, OFFLINE)
    result = summarizer_node(state, OFFLINE)["summarizer_result"]
    assert "shows another picture" in result.quality_reasoning


def test_rows_have_the_check_and_resume_repeats_with_align(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    command = ["assess", str(files["worse"]), "--reference", str(files["reference"]), "--jsonl", str(rows)]
    assert main(command) == main([*command, "--resume"]) == main([*command, "--resume", "--align"]) == 0
    checks = [json.loads(line)["reference_check"] for line in rows.read_text().splitlines()]
    assert [check["aligned"] for check in checks] == [False, True], "aligned is another question"
    assert main([*command, "--resume", "--align"]) == 0
    assert len(rows.read_text().splitlines()) == 2
