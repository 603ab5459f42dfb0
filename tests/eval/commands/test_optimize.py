"""``agenticiqa optimize``, against a simulated model that judges well only if its prompt says what to look for."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agenticiqa.eval.bootstrap import Interval
from agenticiqa.eval.cli import main
from agenticiqa.eval.datasets import read_labels
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.images.files import sha256_of
from support.fake_server import Server, bad_key, by_stage, fake_server, field_of, images_of, text_of
from support.loopback import Reply
from support.snippets import snippets

PHRASE = "weigh blockiness"
PLAN: dict[str, Any] = {
    "query_type": "IQA",
    "query_scope": ["Global"],
    "distortion_source": "Inferred",
    "distortions": [],
    "reference_mode": "Full-Reference",
    "required_tool": [],
    "plan": {
        "distortion_detection": True,
        "distortion_analysis": True,
        "tool_selection": True,
        "tool_execution": True,
    },
}
DETECTION = {"distortion_set": [{"region": "Global", "distortions": ["Compression"]}]}
ANALYSIS = {
    "distortion_analysis": [
        {"region": "Global", "type": "Compression", "severity": "moderate", "explanation": "Blocks show in the sky."}
    ]
}


def selection(request: dict[str, Any]) -> dict[str, Any]:
    tool = field_of(request, "available_tools").split(" ")[0]
    return {"selected_tools": [{"region": "Global", "distortion": "Compression", "tool": tool}]}


def reflection(request: dict[str, Any]) -> str:
    """Adds the phrase to what it is shown, once the feedback tells it that the answers were too kind or too harsh."""
    prompt = text_of(request)
    current = field_of(request, "current_instruction")
    lesson = f"\nAlways {PHRASE}." if "too kind" in prompt or "too harsh" in prompt else ""
    return json.dumps({"new_instruction": current + lesson})


def simulation(labels: Path) -> Callable[[dict[str, Any]], Reply | str]:
    """Both models. The scorer knows each image's quality, but says so only under the phrase."""
    quality = {
        hashlib.sha256(label.image.read_bytes()).digest(): round(1 + 4 * (label.mos - 10) / 80)
        for label in read_labels(labels)
    }

    def assessment(request: dict[str, Any]) -> dict[str, Any]:
        (_, image) = images_of(request)[-1]
        true = quality[hashlib.sha256(image).digest()]
        level = true if PHRASE in text_of(request["messages"][0]) else 6 - true
        log_p = {str(other): 0.0 if other == level else math.log(0.001) for other in range(1, 6)}
        names = ("Bad", "Poor", "Fair", "Good", "Excellent")
        return {"quality_level": names[level - 1], "quality_probs": log_p, "quality_reasoning": "By its blocks."}

    return by_stage(
        {
            "plan": PLAN,
            "detection": DETECTION,
            "analysis": ANALYSIS,
            "selection": selection,
            "assessment": assessment,
            "decision": {"need_replan": False, "replan_reason": ""},
            "new_instruction": reflection,
        }
    )


@contextmanager
def simulated_models(labels: Path) -> Iterator[Server]:
    """One server for both models."""
    with fake_server(simulation(labels)) as server:
        yield server


def model_at(server: Server) -> str:
    """A name of its own for each server's model: DSPy's cache tells models by their names, not by their addresses."""
    return f"vllm.simulated-{urlsplit(server.url).port}"


def command(labels: Path, server: Server, out: Path, budget: int, *more: str) -> list[str]:
    model = model_at(server)
    models = ["--reflection-backend", f"{model}-reflection", "--reflection-api-base", server.url]
    if "--config" not in more:
        models += ["--backend", model, "--api-base", server.url]
    return ["optimize", str(labels), *models, "--budget", str(budget), "--out", str(out), "--workers", "2", *more]


def scorer_only(server: Server, path: Path) -> Path:
    """A configuration in which only the scoring stage asks the model."""
    stage = {"backend": model_at(server), "api_base": server.url, "max_retries": 0}
    path.write_text(json.dumps({"summarizer": stage}))  # JSON is YAML
    return path


def header(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())["header"]["created_with"]


def test_reflection_finds_the_phrase_and_held_out_images_are_judged_better(
    make_labels: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, out = make_labels(scenes=5, levels=(0, 1, 2, 3, 4), references=True), tmp_path / "tuned.json"
    with simulated_models(labels) as server:
        config = scorer_only(server, tmp_path / "config.yaml")
        assert main(command(labels, server, out, 24, "--config", str(config), "--held-out", "0.4")) == 0
    printed = capsys.readouterr().out
    kept = header(out)
    assert (kept["data"], kept["labels_sha256"]) == (labels.parent.name, sha256_of(labels))
    assert kept["images"]["held_out"] == {"images": 10, "contents": 2}
    assert f"summarizer={model_at(server)}" in kept["backend"]
    assert kept["mos_range"]["low"] < kept["mos_range"]["high"]
    figures = kept["held_out"]
    own, fused = figures["model"], figures["fused"]
    assert (own["n"], fused["n"]) == (10, 10)
    assert own["srcc"]["before"]["value"] < 0 < 0.7 < own["srcc"]["after"]["value"]
    assert own["srcc"]["change"]["low"] > 0
    assert abs(fused["srcc"]["change"]["value"]) < own["srcc"]["change"]["value"] / 2  # the tools decide it
    assert own["mean_absolute_error"]["after"]["value"] < 0.3 * own["mean_absolute_error"]["before"]["value"]
    assert (figures["decided_by"], figures["kept"], kept["search"]["kept"]) == ("model", True, True)
    assert kept["search"]["validation"]["after"] > 0.9 > 0.1 > kept["search"]["validation"]["before"]
    state = json.loads(out.read_text())["state"]
    assert PHRASE in state["summarizer.score.ask.predict"]["signature"]["instructions"]
    assert "Cost: 24 judgments to tune" in printed
    shown = (Interval(**own["srcc"][key]) for key in ("before", "after"))
    assert "SRCC: {:.3f} -> {:.3f}, change +".format(*shown) in printed
    assert "127.0.0.1" not in out.read_text()
    page = Path(__file__).parents[3] / "docs" / "tuning.md"
    (example,) = (block.text for block in snippets(page) if block.kind == "text")
    assert example.strip() in printed, f"docs/tuning.md shows another output than\n{printed}"


def test_what_was_tuned_can_be_loaded_and_measured(make_labels: Callable[..., Path], tmp_path: Path) -> None:
    labels, out = make_labels(scenes=3, levels=(0, 2, 4), references=True), tmp_path / "tuned.json"
    with simulated_models(labels) as server:
        config = ["--config", str(scorer_only(server, tmp_path / "config.yaml"))]
        assert main(command(labels, server, out, 20, *config)) == 0
        program = AgenticIQA.from_config(config[1])
        program.load(out)
        best, worst = (program(labels.parent / f"scene0_{level}.png").quality_score for level in (0, 4))
        assert worst < best
        evaluate = ["evaluate", "--resamples", "0", str(labels), "--out", str(tmp_path / "run"), *config]
        assert main([*evaluate, "--prompts", str(out)]) == 0
        assert main(evaluate) == 2
    assert json.loads((tmp_path / "run" / "report.json").read_text())["systems"][0]["srcc"]["value"] > 0.7


def test_all_five_predictors_of_scoring_take_their_turn_and_answering_never_does(
    make_labels: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, out = make_labels(scenes=3, levels=(0, 2, 4), references=True), tmp_path / "tuned.json"
    with simulated_models(labels) as server:
        assert main(command(labels, server, out, 50)) == 0
        shown = [text_of(request) for request in server.of("new_instruction")]
        pictures = [len(images_of(request)) for request in server.of("new_instruction")]
    for opening in (
        "You plan an image",
        "expert in spotting",
        "expert in analyzing",
        "choose the measuring",
        "You judge",
    ):
        assert any(opening in text for text in shown)
    assert not any("You answer a question" in text for text in shown)
    assert max(pictures) >= 3
    figures = header(out)["held_out"]
    assert figures["model"]["srcc"]["change"]["value"] > 0
    printed = capsys.readouterr().out
    assert "To be tuned (6)" in printed
    assert "Not tuned: replan.judge.predict, which was never asked about the 3 images" in printed


def test_an_outage_ends_the_run_and_writes_nothing(
    make_labels: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, out = make_labels(scenes=3, references=True), tmp_path / "tuned.json"
    with simulated_models(labels) as models, fake_server(bad_key()) as broken:
        config = ["--config", str(scorer_only(models, tmp_path / "config.yaml"))]
        args = command(labels, models, out, 20, *config)
        args[args.index("--reflection-api-base") + 1] = broken.url
        assert main(args) == 1
    assert "no such key" in capsys.readouterr().err
    assert not out.exists()


def test_an_outage_of_the_judged_model_is_no_bad_prompt_and_the_run_goes_on_after_it(
    make_labels: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, out = make_labels(scenes=3, levels=(0, 2, 4), references=True), tmp_path / "new" / "tuned.json"
    working, broken = simulation(labels), True

    def sometimes(request: dict[str, Any]) -> Reply | str:
        asked.append(request)
        return bad_key() if broken and len(asked) > 12 else working(request)

    asked: list[dict[str, Any]] = []
    with fake_server(sometimes) as server:
        args = command(labels, server, out, 30, "--config", str(scorer_only(server, tmp_path / "config.yaml")))
        assert main(args) == 1
        err = capsys.readouterr().err
        assert "no such key" in err
        assert f"continues from what is kept in {out}.gepa" in err
        assert not out.exists()
        broken = False
        assert main(args) == 0
    figures = header(out)["held_out"]["model"]
    assert figures["srcc"]["before"]["value"] < 0 < figures["srcc"]["after"]["value"]
    assert figures["missing"] == {"before": 0, "after": 0}  # the outage is no answer


def test_a_finished_run_is_not_made_again_and_other_labels_are_refused(
    make_labels: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, out = make_labels(scenes=3, references=True), tmp_path / "tuned.json"
    with simulated_models(labels) as server:
        args = command(labels, server, out, 20, "--config", str(scorer_only(server, tmp_path / "config.yaml")))
        assert main(args) == 0
        search, asked = header(out)["search"], len(server.requests)
        assert main(args) == 0
        assert header(out)["search"] == search
        assert len(server.requests) == asked
        labels.write_text(labels.read_text().replace("90.0", "88.0"))
        assert main(args) == 2
    assert "another labels" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--backend", "offline"], "nothing to tune"),
        (["--backend", "vllm.x", "--api-base", "http://127.0.0.1:9/v1", "--budget", "6"], "--budget is at least"),
        (["--backend", "vllm.x", "--api-base", "http://127.0.0.1:9/v1", "--held-out", "1.5"], "between 0 and 1"),
        (
            ["--backend", "vllm.x", "--api-base", "http://127.0.0.1:9/v1", "--reflection-backend", "offline"],
            "takes a model",
        ),
        (
            ["--backend", "vllm.x", "--api-base", "http://127.0.0.1:9/v1", "--mos-range", "5", "1"],
            "scale of the labels",
        ),
    ],
)
def test_mistakes_are_told_in_one_line_before_anything_is_sent(
    make_labels: Callable[..., Path], tmp_path: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = make_labels(scenes=3, levels=(0, 4), references=True)
    usual = ["--reflection-backend", "vllm.y", "--reflection-api-base", "http://127.0.0.1:9/v1", "--budget", "50"]
    assert main(["optimize", str(labels), *usual, "--out", str(tmp_path / "tuned.json"), *more]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
