"""``agenticiqa optimize``, against a simulated model that judges well only if its prompt says what to look for."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.eval.cli import main
from agenticiqa.eval.datasets import read_labels
from agenticiqa.eval.intervals import Interval
from agenticiqa.eval.optimize.splits import split_by_content
from agenticiqa.eval.tasks.task import labels_sha256
from agenticiqa.programs.assess import AgenticIQA
from support.fake_server import Server, bad_key, fake_server, field_of, images_of, text_of
from support.loopback import Reply
from support.simulated_tuning import ANALYSIS, PHRASE, PLAN, model_at, simulated_models, simulation
from support.snippets import snippets

pytestmark = pytest.mark.slow


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
    labels, out = make_labels(scenes=7, levels=(0, 1, 2, 3, 4), references=True), tmp_path / "tuned.json"
    with simulated_models(labels) as server:
        config = scorer_only(server, tmp_path / "config.yaml")
        assert main(command(labels, server, out, 24, "--config", str(config), "--held-out", "0.57")) == 0
    printed = capsys.readouterr().out
    kept = header(out)
    assert (kept["data"], kept["labels_sha256"]) == (labels.parent.name, labels_sha256(read_labels(labels)))
    assert kept["images"]["held_out"] == {"images": 20, "contents": 4}
    assert f"summarizer={model_at(server)}" in kept["backend"]
    assert kept["mos_range"]["low"] < kept["mos_range"]["high"]
    figures = kept["held_out"]
    own, fused = figures["model"], figures["fused"]
    assert (own["n"], fused["n"]) == (20, 20)
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
        evaluate = ["evaluate", str(labels), "--out", str(tmp_path / "run"), *config]
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
        (["--backend", "offline"], "nothing to tune: no stage asks a model"),
        (
            ["--profile", "levels"],
            "nothing to tune: the levels scorer asks in the words that its models",
        ),
        (["--budget", "6"], "--budget is at least"),
        (["--held-out", "1.5"], "between 0 and 1"),
        (["--reflection-backend", "offline"], "takes a model"),
        (["--mos-range", "5", "1"], "scale of the labels"),
        (["--mos-column", "dmos"], "there is no column 'dmos'"),
    ],
)
def test_mistakes_are_told_in_one_line_before_anything_is_sent(
    make_labels: Callable[..., Path], tmp_path: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = make_labels(scenes=3, levels=(0, 4), references=True)
    usual = ["--reflection-backend", "vllm.y", "--reflection-api-base", "http://127.0.0.1:9/v1", "--budget", "50"]
    if "--backend" not in more:
        usual += ["--backend", "vllm.x", "--api-base", "http://127.0.0.1:9/v1"]
    assert main(["optimize", str(labels), *usual, "--out", str(tmp_path / "tuned.json"), *more]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


# --- nothing to tune ------------------------------------------------------------------------------------------------


def mute(request: dict[str, Any]) -> str:
    """A reflection model that repeats what it is shown."""
    return json.dumps({"new_instruction": field_of(request, "current_instruction")})


def test_a_reflection_that_never_gives_an_instruction_is_said_and_no_success(
    make_labels: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, out = make_labels(scenes=3, references=True), tmp_path / "tuned.json"
    with simulated_models(labels, new_instruction=mute) as server:
        config = scorer_only(server, tmp_path / "config.yaml")
        args = command(labels, server, out, 80, "--config", str(config))
        assert main(args) == 1
        printed, told = capsys.readouterr()
        asked, search = len(server.of("new_instruction")), header(out)["search"]
        assert main(args) == 1  # the same command tries again, and says it again
    assert "NOT TUNED" in capsys.readouterr().out
    assert header(out)["search"]["reflections"] > 5
    assert (search["tuned"], search["kept"], search["instructions"]) == (False, False, 0)
    assert (search["reflections"], search["gave_up"]) == (5, True)
    (refused,) = search["refused"]
    assert refused.startswith("the instruction was the same as the current one")
    assert f"{refused} (10 times)" in search["warning"]
    assert f"NOT TUNED: {search['warning']}" in printed
    assert f"the prompts were not tuned: {search['warning']}" in told
    assert "The search ended early, after 5 reflections" in printed
    assert 5 <= asked <= 10  # a repeated prompt is answered from the cache
    original = AgenticIQA.from_config(config)
    instructions = dict(original.named_predictors())["summarizer.score.ask.predict"].signature.instructions
    state = json.loads(out.read_text())["state"]
    assert state["summarizer.score.ask.predict"]["signature"]["instructions"] == instructions


def test_a_first_proposal_that_breaks_the_form_is_replaced_by_the_next(
    make_labels: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, out = make_labels(scenes=3, references=True), tmp_path / "tuned.json"

    def careless(request: dict[str, Any]) -> str:
        if "Your last proposal was refused" in text_of(request):
            return json.dumps({"new_instruction": f"{field_of(request, 'current_instruction')}\nAlways {PHRASE}."})
        return json.dumps({"new_instruction": 'Answer as {"score": 1 to 5}.'})

    with simulated_models(labels, new_instruction=careless) as server:
        config = scorer_only(server, tmp_path / "config.yaml")
        assert main(command(labels, server, out, 20, "--config", str(config))) == 0
        said = [request for request in server.of("assessment") if '{"score"' in text_of(request)]
    search = header(out)["search"]
    assert search["tuned"] is True
    assert not said  # no judgment was spent on it
    assert "Refused (" in capsys.readouterr().out


def test_a_prompt_that_the_questions_never_reach_costs_no_iteration(
    make_labels: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, out = make_labels(scenes=3, levels=(0, 2, 4), references=True), tmp_path / "tuned.json"
    named = [{"region": "Global", "distortions": ["Compression"]}]
    explicit = {**PLAN, "distortion_source": "Explicit", "distortions": named}
    explicit["plan"] = {**PLAN["plan"], "distortion_detection": False}
    with simulated_models(labels, plan=explicit) as server:
        assert main(command(labels, server, out, 70)) == 0
        shown = [text_of(request) for request in server.of("new_instruction")]
        assert not server.of("detection")
    search = header(out)["search"]
    assert set(search["skipped"]) == {"executor.detect.ask.predict", "replan.judge.predict"}
    assert "executor.detect.ask.predict" not in search["reflected_on"]
    assert search["iterations"] == search["reflections"] == search["instructions"] >= 7
    assert not any("expert in spotting" in text for text in shown)
    printed = capsys.readouterr().out
    assert (
        "Not tuned: executor.detect.ask.predict, which was never asked about the 3 images of the first pass" in printed
    )
    assert header(out)["held_out"]["model"]["srcc"]["change"]["value"] > 0


def test_a_prompt_whose_answers_are_never_valid_is_named(
    make_labels: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, out = make_labels(scenes=3, levels=(0, 4), references=True), tmp_path / "tuned.json"
    with simulated_models(labels, analysis={**ANALYSIS, "distortion_analysis": []}) as server:
        assert main(command(labels, server, out, 30)) == 0
    printed = capsys.readouterr().out
    assert "Not tuned: executor.analyze.ask.predict, which was asked, but of whose answers none was valid" in printed


def test_prompts_that_worsen_the_models_own_order_on_held_out_images_are_not_kept(
    make_labels: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, out = make_labels(scenes=4, levels=(0, 2, 4), references=True), tmp_path / "tuned.json"
    held_out = split_by_content(read_labels(labels), held_out=0.3, max_val=5, seed=0).held_out
    with simulated_models(labels, contrary=[label.image for label in held_out]) as server:
        config = scorer_only(server, tmp_path / "config.yaml")
        assert main(command(labels, server, out, 30, "--config", str(config))) == 0
    figures, search = header(out)["held_out"], header(out)["search"]
    assert (search["tuned"], search["kept"], figures["kept"]) == (True, False, False)
    printed = capsys.readouterr().out
    assert "The tuned instructions are not kept: by the model's own expectation the SRCC fell by" in printed
    assert PHRASE not in out.read_text()
    assert PHRASE in (tmp_path / "tuned.json.gepa" / "candidates.json").read_text()
    page = (tmp_path / "tuned.json.gepa" / "candidate_tree.html").read_text()
    assert PHRASE in page
    assert "https:" not in page, "it loads nothing"


def test_ctrl_c_keeps_what_was_found_and_the_same_command_goes_on(
    make_labels: Callable[..., Path], tmp_path: Path
) -> None:
    labels, out = make_labels(scenes=3, levels=(0, 2, 4), references=True), tmp_path / "tuned.json"
    working, reflections = simulation(labels), []

    def slow(request: dict[str, Any]) -> Reply | str:
        reply = working(request)
        if request["model"].endswith("reflection"):
            reflections.append(request)
            if len(reflections) == 3:
                os.killpg(run.pid, signal.SIGINT)
                return Reply(str(reply), delay=0.3)
        return reply

    with fake_server(slow) as server:
        args = command(labels, server, out, 60, "--config", str(scorer_only(server, tmp_path / "config.yaml")))
        environment = {**os.environ, "DSPY_CACHEDIR": str(tmp_path / "cache")}
        whole = [sys.executable, "-m", "agenticiqa", *args]
        run = subprocess.Popen(whole, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
        _, told = run.communicate(timeout=300)
        assert run.returncode == 130, told
        assert f"the same command continues from what is kept in {out}.gepa" in told
        assert not out.exists()
        found = json.loads((tmp_path / "tuned.json.gepa" / "candidates.json").read_text())
        assert any(PHRASE in candidate["summarizer.score.ask.predict"] for candidate in found)
        before = len(reflections)
        environment["DSPY_CACHEDIR"] = str(tmp_path / "empty")  # what was found is in the run's folder alone
        assert subprocess.run(whole, capture_output=True, env=environment, timeout=300, check=False).returncode == 0
    search = header(out)["search"]
    assert (search["tuned"], search["kept"]) == (True, True)
    assert search["reflections"] >= before
    assert reflections[0] not in reflections[before:]  # the first step, which had finished, was not made again
    assert PHRASE in out.read_text()
