"""Ablations: the program without a part is compared with the whole."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from scipy.stats import spearmanr

from agenticiqa.configs import Config
from agenticiqa.eval.cli import main
from agenticiqa.eval.names import PARTS, Part
from agenticiqa.eval.scorers.ablated import estimate_without, parts_named, program_without
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import UserError
from support.fake_server import bad_json, by_stage, fake_server
from support.scripted_answers import ASSESSMENT, SCRIPT, plan

MakeLabels = Callable[..., Path]


@pytest.fixture
def photo(examples: Path, tmp_path: Path) -> Path:
    with Image.open(examples / "chelsea_noise.png") as whole:
        whole.crop((0, 0, 96, 96)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_parts_are_named_in_any_order_and_others_are_refused() -> None:
    assert parts_named(" replan, planner,") == ("planner", "replan")
    with pytest.raises(UserError, match="unknown part 'tools': use planner, detection"):
        parts_named("tools")


SLOW = ("planner", "analysis", "replan")


@pytest.mark.parametrize("part", [pytest.param(p, marks=[pytest.mark.slow] if p in SLOW else []) for p in PARTS])
def test_each_part_is_missing_in_the_offline_evidence(photo: Path, part: Part) -> None:
    result = program_without(Config(), part)(photo, "Rate the quality of the background.")
    evidence = result.executor_evidence
    assert result.quality_score is not None
    assert (evidence.distortion_set is None) == (part == "detection")
    assert (evidence.distortion_analysis is None) == (part == "analysis")
    assert (result.plan.query_scope == "Global") == (part in ("planner", "regions"))


def test_a_removed_stage_sends_no_requests_and_costs_nothing(photo: Path) -> None:
    script = {"assessment": ASSESSMENT, **dict.fromkeys(("detection", "analysis", "selection"), bad_json())}
    with fake_server(by_stage(script)) as server:
        config = Config().with_backend("vllm.test", server.url)
        config = config.model_copy(update={"attempts": 1})
        program_without(config, "planner")(photo)
    assert "plan" not in server.stages()
    stages = {part: {row.stage for row in estimate_without(config, part, [Job(photo)]).stages} for part in PARTS}
    assert "planner" not in stages["planner"]
    assert "distortion_detection" not in stages["detection"]
    assert not {"distortion_analysis", "replan"} & stages["analysis"]
    assert "replan" not in stages["replan"]
    assert "scoring" in set.intersection(*stages.values())


def test_the_command_saves_each_ablation_and_compares_it_with_the_whole(
    make_labels: MakeLabels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    command = ["evaluate", str(make_labels(scenes=1)), "--out", str(run), "--workers", "1"]
    command += ["--ablate", "detection,replan"]
    assert main(command) == 0
    assert "SRCC difference" in capsys.readouterr().out
    figures = {each["name"]: each for each in json.loads((run / "ablations.json").read_text())}
    assert list(figures) == ["whole program", "without detection", "without replan"]
    rows = [json.loads(line) for line in (run / "without-detection" / "results.jsonl").read_text().splitlines()]
    assert all(row["executor_evidence"]["distortion_set"] is None for row in rows)
    expected = spearmanr([row["quality_score"] for row in rows], [row["mos"] for row in rows]).statistic
    assert figures["without detection"]["srcc"]["value"] == pytest.approx(expected)
    reported = json.loads((run / "without-replan" / "report.json").read_text())
    assert reported["backend"] == "offline without replan"
    assert reported["systems"][0]["srcc"]["value"] == pytest.approx(figures["without replan"]["srcc"]["value"])
    kept = (run / "without-replan" / "results.jsonl").read_text()
    assert main(command) == 0
    assert (run / "without-replan" / "results.jsonl").read_text() == kept
    assert main([*command[:-1], "replan", "--scorer", "BRISQUE"]) == 2


@pytest.mark.slow
def test_the_calls_to_a_model_are_counted(make_labels: MakeLabels, tmp_path: Path) -> None:
    """Another plan changes the requests for detection; unchanged requests are answered from the cache."""
    labels, run = make_labels(scenes=1), tmp_path / "run"
    with fake_server(by_stage({**SCRIPT, "plan": plan()})) as server:
        (tmp_path / "c.yaml").write_text(f"planner: &m {{backend: vllm.cut, api_base: '{server.url}'}}\nexecutor: *m\n")
        command = ["evaluate", str(labels), "--config", str(tmp_path / "c.yaml"), "--workers", "1", "--out", str(run)]
        assert main([*command, "--ablate", "planner,detection"]) == 0
        sent = len(server.requests)
    figures = {each["name"]: each["calls"] for each in json.loads((run / "ablations.json").read_text())}
    assert figures["whole program"] >= 2 * 3
    assert figures["without detection"] < figures["whole program"]
    assert sum(figures.values()) <= sent
