"""The values in a row of a run with a model that a later fit of the fusion needs."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.eval.cli import main
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.batch.fit_inputs import rows_with_fit_inputs, third_tools
from agenticiqa.programs.fusion.configured import curves_digest
from agenticiqa.programs.images import load
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.saving import scoring_prompt
from agenticiqa.programs.tools import TOOLS, toolbox
from agenticiqa.programs.tools.statistics.parts import in_working_size
from support.distortion_levels import scene
from support.fake_server import by_stage, fake_server
from support.full_run import configuration
from support.scripted_answers import SCRIPT, config_for


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "a.png"
    Image.fromarray(scene(200, 240, seed=1)).save(path)
    return path


def test_a_row_has_the_model_its_prompt_and_the_values_of_third_tools(photo: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.jsonl"
    with fake_server(by_stage(SCRIPT)) as server:
        file = configuration(tmp_path, server.url)
        assert main(["assess", str(photo), "--config", str(file), "--jsonl", str(out)]) == 0
    row, pixels = json.loads(out.read_text()), np.asarray(Image.open(photo))
    prompt = scoring_prompt(AgenticIQA.from_config(file))
    measured = {name: TOOLS[name].measure(pixels) for name in ("NIQE", "EDGE-SHARPNESS")}
    assert row["fusion"] == {
        "model": "vllm.test",
        "prompt": prompt.digest,
        "tuned": False,
        "curves": curves_digest(("LEARNED-IQA",), toolbox()),
        "third_tools": measured,
    }


def test_rows_of_a_labeled_run_have_fit_inputs_too(tmp_path: Path, photo: Path) -> None:
    (tmp_path / "labels.csv").write_text("image,mos\na.png,50\n")
    with fake_server(by_stage(SCRIPT)) as server:
        file, run = configuration(tmp_path, server.url), tmp_path / "run"
        labels = str(tmp_path / "labels.csv")
        assert main(["evaluate", labels, "--config", str(file), "--out", str(run)]) == 0
    row = json.loads((run / "results.jsonl").read_text())
    assert row["fusion"]["third_tools"].keys() == {"NIQE", "EDGE-SHARPNESS"}
    assert row["fusion"]["prompt"] == scoring_prompt(AgenticIQA.from_config(file)).digest


def test_rows_without_a_rating_by_a_model_have_no_fit_inputs(photo: Path) -> None:
    offline = AgenticIQA.offline()
    assert rows_with_fit_inputs(offline) is Assessment.to_dict
    with fake_server(by_stage(SCRIPT)) as server:
        program = AgenticIQA.from_config(config_for(server))
        jobs = [str(photo)]
        (rated,) = (row for _, row in assess_many(program, jobs, 1, rows_with_fit_inputs(program)))
        assert "fusion" in rated
        result = program(str(photo), "Is it sharp?")
    assert "fusion" not in rows_with_fit_inputs(program)(result)


def test_a_large_photo_is_measured_at_most_at_1024_pixels_and_a_tool_that_fails_is_left_out() -> None:
    large = load(np.tile(scene(256, 320, seed=2), (4, 4, 1)))
    small = in_working_size(large.pixels)
    assert max(small.shape) == 1024
    assert third_tools(large) == {name: TOOLS[name].measure(small) for name in ("NIQE", "EDGE-SHARPNESS")}
    assert third_tools(load(scene(20, 20, seed=3))).keys() < {"NIQE", "EDGE-SHARPNESS"}
