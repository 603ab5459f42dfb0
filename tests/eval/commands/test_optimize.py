"""``agenticiqa optimize``, against a simulated model that rates well only if its prompt has a phrase."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.configs import Price, load_config
from agenticiqa.eval.cli import main
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.optimize.items import TuningQuestion
from agenticiqa.eval.optimize.search import KEPT_MONEY
from agenticiqa.eval.optimize.settings import TuningSettings
from agenticiqa.eval.optimize.tuning import optimize
from agenticiqa.eval.tasks.task import labels_sha256
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.graph import build_graph
from support.fake_server import Server, fake_server, field_of, images_of, text_of
from support.loopback import Body, Reply
from support.simulated_tuning import ANALYSIS, PHRASE, SCORER, counted, model_at, simulated_models, simulation
from support.snippets import snippets

pytestmark = pytest.mark.slow
MakeLabels = Callable[..., Path]
BUDGET = 56


@pytest.fixture
def labels(make_labels: MakeLabels) -> Path:
    return make_labels(scenes=15, levels=(0, 2, 4), references=True)


def command(labels: Path, server: Server, folder: Path, *more: str, price: bool = False) -> list[str]:
    """Return the command with a configuration in which only the scoring stage uses a model; it writes folder/tuned."""
    stage: dict[str, Any] = {"backend": model_at(server), "api_base": server.url, "max_retries": 0}
    if price:
        stage["price"] = {"input": 1, "output": 4}
        more = ("--reflection-price", "2.5,10", *more)
    (folder / "config.yaml").write_text(json.dumps({"summarizer": stage}))  # JSON is YAML
    models = ["--config", str(folder / "config.yaml"), "--reflection-backend", f"{model_at(server)}-reflection"]
    models += ["--reflection-api-base", server.url]
    out = ["--budget", str(BUDGET), "--out", str(folder / "tuned"), "--workers", "2"]
    return ["optimize", str(labels), *models, *out, *more]


def header(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "tuned" / "prompts.json").read_text())["metadata"]["agenticiqa"]["created_with"]


def instruction(folder: Path) -> str:
    return json.loads((folder / "tuned" / "prompts.json").read_text())[SCORER]["signature"]["instructions"]


def test_every_interface_uses_the_tuned_folder_with_the_same_score(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with simulated_models(labels) as server:
        args = command(labels, server, tmp_path)
        assert main(args) == 0
        printed, asked = capsys.readouterr().out, len(server.requests)
        assert main(args) == 0
        assert main([*args, "--budget", "80"]) in (0, 1)
        assessed = list(server.of("assessment"))
        assert len(server.requests) - asked < 40, "the search is continued, not restarted"
        assert len({text_of(r["messages"][0]) + str(images_of(r)) for r in assessed}) == len(assessed), (
            "none is assessed twice"
        )
        tuned, image = tmp_path / "tuned", labels.parent / "scene0_2.png"
        assert {file.name for file in tuned.iterdir()} == {"prompts.json", "fusion.yaml", "report.html", "search"}
        assert PHRASE in instruction(tmp_path)
        config = ["--config", str(tmp_path / "config.yaml"), "--prompts", str(tuned)]
        capsys.readouterr()
        assert main(["assess", str(image), "--reference", str(labels.parent / "scene0.png"), "--json", *config]) == 0
        scores = [json.loads(capsys.readouterr().out)["quality_score"]]
        assert main(["evaluate", str(labels), "--out", str(tmp_path / "run"), *config]) == 0
        report = json.loads((tmp_path / "run" / "report.json").read_text())
        assert {each["name"]: each["fitted_on"].get("prompts") for each in report["systems"]}["AgenticIQA"] == 45
        rows = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
        scores += [row["quality_score"] for row in rows if Path(row["image"]).name == image.name]
        mine = json.loads((tmp_path / "config.yaml").read_text()) | {"prompts": "tuned/"}
        (tmp_path / "mine.yaml").write_text(json.dumps(mine))
        program = AgenticIQA.from_config(tmp_path / "mine.yaml")
        scores.append(program(image, reference=labels.parent / "scene0.png").quality_score)
        state = {
            "image_path": str(image),
            "reference_path": str(labels.parent / "scene0.png"),
            "query": "Rate the quality.",
        }
        graph = build_graph(program).invoke(state)
        scores.append(program(image, "Rate the quality.", labels.parent / "scene0.png").quality_score)
        assert graph["summarizer_result"].quality_score == scores.pop()
        assert len(set(scores)) == 1, scores
        assert program.summarizer.fusion.profile.labels >= 18
        plain = AgenticIQA.from_config(tmp_path / "config.yaml")
        assert plain(image, reference=labels.parent / "scene0.png").quality_score != scores[0]
    kept = header(tmp_path)
    assert kept["labels_sha256"] == labels_sha256(read_labels(labels))
    assert kept["held_out"]["fused"]["mean_absolute_error"]["change"]["high"] < 0
    assert "127.0.0.1" not in (tmp_path / "tuned" / "prompts.json").read_text()
    page = (tmp_path / "tuned" / "report.html").read_text()
    assert "<ins>" in page
    assert "https:" not in page, "the page loads nothing"
    assert "The tuned prompts are kept: the probability of an improvement is 98.4 %" in printed
    assert "normalized squared error" in printed
    assert "Prompts to tune with reflect (1): summarizer.score.ask.predict" in printed


def test_a_dry_run_sends_nothing_and_a_limit_holds_with_a_usable_result(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_server(counted(simulation(labels))) as server:
        args = command(labels, server, tmp_path, price=True)
        assert main([*args, "--dry-run"]) == 0
        assert not server.requests
        reported = capsys.readouterr().out
        assert "USD" in reported
        assert "use --budget" in reported
        assert "Raise --held-out" not in reported
        assert main([*args, "--dry-run", "--held-out", "0.2"]) == 0
        assert "has only 3 scenes, and no prompts are kept with fewer than 6" in capsys.readouterr().out
        limit = 0.22  # a reflection may take 0.18 of it
        assert main([*args, "--max-usd", str(limit), "--no-cache"]) in (0, 1)
        search = header(tmp_path)["search"]
        spent = search["spent"]["usd"]
        assert search["proposals"]
        assert "would exceed the limit" in search["ended"] or search["ended"] == KEPT_MONEY
        assert 0 < spent <= limit
        program = AgenticIQA.from_config(
            load_config(tmp_path / "config.yaml").model_copy(update={"prompts": str(tmp_path / "tuned")})
        )
        assert program(labels.parent / "scene0_2.png").quality_score
    without = [part for part in args if part not in ("--reflection-price", "2.5,10")]
    assert main([*without, "--max-usd", "1"]) == 2
    assert "--reflection-price" in capsys.readouterr().err


def test_the_prices_of_the_line_in_the_readme_are_known(
    labels: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = Path(__file__).parents[3] / "README.md"
    (line,) = re.findall(r"^agenticiqa (optimize .*\\\n.*?) +#", readme.read_text(), re.M)
    line = line.replace("examples/labels.csv", labels.name).replace("\\", "")
    monkeypatch.chdir(labels.parent)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert main([*line.split(), "--dry-run", "--max-usd", "5"]) == 0, "it needs no key"
    printed, models = capsys.readouterr()
    assert re.search(r"; about \d+\.\d\d USD\n", printed)
    assert re.findall(r"openai\.(\S+) at api\.openai\.com", models) == ["gpt-4o-mini", "gpt-4o"]
    assert main([*line.split(), "--dry-run", "--reflection-price", "2500,10000"]) == 0
    assert "openai.gpt-4o at api.openai.com/v1, key OPENAI_API_KEY, 2500 and 10000 USD" in capsys.readouterr().err


def test_all_stages_are_tuned_in_turn_for_about_the_estimated_price_and_unused_ones_are_reported(
    make_labels: MakeLabels, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server counts text as the estimate does."""
    labels, cost = make_labels(scenes=14), list[float]()

    def analysis(request: Body) -> dict[str, Any]:
        """Return free text that depends on the instruction, so that later stages are requested again."""
        digest = hashlib.sha256(text_of(request["messages"][0]).encode()).hexdigest()
        finding = ANALYSIS["distortion_analysis"][0]
        return {"distortion_analysis": [{**finding, "explanation": f"Blocks show in the sky, at {digest[:8]}."}]}

    working = counted(simulation(labels, analysis=analysis))

    def priced(request: Body) -> Reply:
        reply, of_reflection = working(request), request["model"].endswith("reflection")
        cost.append((Price(input=2.5, output=10) if of_reflection else Price(input=1, output=4)).usd(*reply.usage))
        return reply

    with fake_server(priced) as server:
        args = command(labels, server, tmp_path, "--stage", "all", "--budget", "110", price=True)
        stage = json.loads((tmp_path / "config.yaml").read_text())["summarizer"]
        stages = dict.fromkeys(("planner", "executor", "summarizer", "replan"), stage)
        (tmp_path / "config.yaml").write_text(json.dumps(stages))
        assert main(args) == 0
        printed, spent = capsys.readouterr().out, sum(cost)
        config = load_config(tmp_path / "config.yaml").model_copy(update={"prompts": str(tmp_path / "tuned")})
        assert AgenticIQA.from_config(config)(labels.parent / "scene0_2.png").quality_score
    assert PHRASE in instruction(tmp_path)
    (reported,) = map(float, re.findall(r"about ([\d.]+) USD", printed))
    assert header(tmp_path)["search"]["spent"]["usd"] == pytest.approx(spent, rel=1e-6)
    assert reported == pytest.approx(spent, rel=0.25)
    assert "Not tuned: replan.judge.predict, because it sent no request for the 17 images of the first pass" in printed
    page = (tmp_path / "tuned" / "report.html").read_text()
    for name in ("executor.detect.ask.predict", "executor.analyze.ask.predict", SCORER):
        assert name in page, "each prompt that a rating asks was tuned"


def test_ctrl_c_loses_nothing(labels: Path, tmp_path: Path) -> None:
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
        args = command(labels, server, tmp_path)
        environment = {**os.environ, "DSPY_CACHEDIR": str(tmp_path / "cache")}
        whole = [sys.executable, "-m", "agenticiqa", *args]
        run = subprocess.Popen(whole, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
        _, reported = run.communicate(timeout=300)
        assert run.returncode == 130, reported
        assert "run the same command again to continue from the results in" in reported
        before, assessed = len(reflections), len(server.of("assessment"))
        environment["DSPY_CACHEDIR"] = str(tmp_path / "empty")  # results are only in the folder of the run
        assert subprocess.run(whole, capture_output=True, env=environment, timeout=300, check=False).returncode == 0
        assert reflections[0] not in reflections[before:]
        again = {text_of(r["messages"][0]) + str(images_of(r)) for r in server.of("assessment")[:assessed]}
        rest = {text_of(r["messages"][0]) + str(images_of(r)) for r in server.of("assessment")[assessed:]}
        assert not again & rest
    assert PHRASE in instruction(tmp_path)


def test_without_a_usable_proposal_the_originals_are_saved_and_the_status_says_so(
    labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def mute(request: dict[str, Any]) -> str:
        return json.dumps({"new_instruction": field_of(request, "current_instruction")})

    with simulated_models(labels, new_instruction=mute) as server:
        assert main(command(labels, server, tmp_path)) == 1
    printed = capsys.readouterr().out
    assert "No improvement was shown, so the original prompts are saved: no better prompts were found" in printed
    saved = printed.splitlines()[-1]
    assert saved.startswith(
        f"Saved in {tmp_path / 'tuned'} (fusion.yaml is a fusion profile fitted to your labels with the orig"
    )
    gain = header(tmp_path)["held_out"]["profile"]
    assert f"SRCC {gain['before']:.3f} -> {gain['after']:.3f} on {gain['n']} held-out images" in saved
    page = (tmp_path / "tuned" / "report.html").read_text()
    assert "Why no instruction was changed" in page
    assert "the instruction was the same as the current one" in page
    assert "the instruction was the same as the current one" in printed
    assert PHRASE not in instruction(tmp_path)
    assert header(tmp_path)["kept"] is False


def test_other_labels_in_the_same_folder_are_refused(labels: Path, tmp_path: Path) -> None:
    with simulated_models(labels) as server:
        args = command(labels, server, tmp_path)
        assert main(args) in (0, 1)
        copy = shutil.copytree(labels.parent, tmp_path / "other") / labels.name
        copy.write_text(copy.read_text().replace("90.0", "88.0"))
        assert main([*args[:1], str(copy), *args[2:]]) == 2


def test_the_lines_of_the_docs_run_on_prompts_that_were_really_tuned(
    labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).parents[3] / "docs" / "prompts.md"
    (block,) = (block for block in snippets(page) if "again.load(" in block.text)
    shutil.copy(labels.parent / "scene0_4.png", labels.parent / "coffee_jpeg.jpg")
    (labels.parent / "examples").symlink_to(labels.parent)
    monkeypatch.chdir(labels.parent)
    with simulated_models(labels) as server:
        lines = block.text
        for shown, here in (
            ('backend="openai.gpt-4o-mini"', f'backend="{model_at(server)}", api_base="{server.url}"'),
            ('dspy.LM("openai/gpt-4o")', f'dspy.LM("openai/{model_at(server)}", api_base="{server.url}", api_key="x")'),
        ):
            assert shown in lines, f"the page has changed, so adapt this test to it: {shown}"
            lines = lines.replace(shown, here)
        exec(lines, scope := {})
        image = "examples/coffee_jpeg.jpg"
        assert scope["again"](image).quality_score != scope["program"](image).quality_score
    assert PHRASE in Path("tuned.json").read_text()


# --- other stages, in Python ------------------------------------------------------------------


def model(server: Server, name: str) -> dspy.LM:
    return dspy.LM(f"openai/{model_at(server)}-{name}", api_base=server.url, api_key="x", cache=False)


def choices(labels: Path, count: int = 24) -> list[TuningQuestion]:
    return [
        TuningQuestion(
            row.image, "Which distortion is strongest?", row.name, row.reference, ("Noise", "Compression"), answer="B"
        )
        for row in read_labels(labels)[:count]
    ]


def answer(request: Body) -> dict[str, str]:
    letter = "B" if PHRASE in text_of(request["messages"][0]) else "A"
    return {"final_answer": letter, "quality_reasoning": "By its grain."}


def lesson(request: Body) -> str:
    """Return a reflection that adds the phrase."""
    return json.dumps({"new_instruction": field_of(request, "current_instruction") + f"\nAlways {PHRASE}."})


def test_answering_and_detection_are_tuned_on_their_own_labels(labels: Path) -> None:
    def detection(request: Body) -> dict[str, Any]:
        found = "Noise" if PHRASE in text_of(request["messages"][0]) else "Compression"
        return {"distortion_set": [{"region": "Global", "distortions": [found]}]}

    rows = read_labels(labels)[:24]
    about = [(row.image, "Rate the quality.", row.name, row.reference) for row in rows]
    noisy = [TuningQuestion(*each, distortion="Noise") for each in about]
    answers: dict[str, Any] = {"answer": answer, "detection": detection, "new_instruction": lesson}
    for stage, questions in (("answering", choices(labels)), ("detection", noisy)):
        with simulated_models(labels, **answers) as server, dspy.context(lm=model(server, "judge")):
            settings = TuningSettings(stage, budget=40, workers=2)
            tuned = optimize(AgenticIQA(), questions, settings, reflection=model(server, "reflection"))
        assert tuned.kept, (stage, tuned.why)
        (name,) = tuned.originals
        assert PHRASE in dict(tuned.program.named_predictors())[name].signature.instructions
        assert tuned.figures["mark"]["mean_absolute_error"]["after"]["value"] == 0, stage
