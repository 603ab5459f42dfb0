"""The search on DSPy's model and on configured ones: every image's very bytes reach the model that was meant."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.datasets import MosScale, read_labels
from agenticiqa.eval.optimize.judging import TuningQuestion, rating
from agenticiqa.eval.optimize.tuning import tune
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.errors import ImageError
from support.fake_server import Server, field_of, images_of, text_of
from support.loopback import Body
from support.simulated_tuning import PHRASE, PLAN, model_at, simulated_models

pytestmark = pytest.mark.slow

SCORER, ANSWERER = "summarizer.score.ask.predict", "summarizer.answer.ask.predict"
MakeLabels = Callable[..., Path]


def questions(labels: Path) -> tuple[list[TuningQuestion], list[TuningQuestion]]:
    """Two scenes to train on, one to validate on."""
    rows = [rating(label, MosScale(10, 90)) for label in read_labels(labels)]
    return [row for row in rows if row.content != "scene2.png"], [row for row in rows if row.content == "scene2.png"]


def model(server: Server, name: str) -> dspy.LM:
    return dspy.LM(f"openai/{model_at(server)}-{name}", api_base=server.url, api_key="x", cache=False)


def sent(server: Server, stage: str) -> tuple[set[str], set[str]]:
    """The models that were asked a question of this stage, and the digests of the images that they were sent."""
    requests = server.of(stage)
    pictures = [image for request in requests for _, image in images_of(request)]
    return {request["model"] for request in requests}, {hashlib.sha256(image).hexdigest() for image in pictures}


def check_bytes(server: Server, labels: Path, judge: str, reflection: str) -> None:
    """Each model got its own questions, with the files' bytes, and nothing but these."""
    files = {hashlib.sha256(path.read_bytes()).hexdigest() for path in labels.parent.glob("*.png")}
    for stage in ("plan", "detection", "analysis", "assessment"):
        assert sent(server, stage) == ({judge}, files), stage
    models, shown = sent(server, "new_instruction")
    assert models == {reflection}
    assert shown
    assert shown <= files
    assert not any("held.invalid" in text_of(request) for request in server.requests)


@pytest.mark.parametrize("given", ["context", "set_lm"])
def test_dspys_model_is_tuned_with_dspys_model(make_labels: MakeLabels, given: str) -> None:
    labels = make_labels(scenes=3, levels=(0, 2, 4), references=True)
    train, val = questions(labels)
    with simulated_models(labels) as server:
        program, judge = AgenticIQA(), model(server, "judge")
        if given == "set_lm":
            program.set_lm(judge)
        with dspy.context(lm=judge if given == "context" else model(server, "never")):
            tuned, search = tune(program, train, val, model(server, "reflection"), budget=50, workers=2)
        check_bytes(server, labels, f"{model_at(server)}-judge", f"{model_at(server)}-reflection")
    assert search.tuned
    assert search.validation["after"] > 0.9 > 0.1 > search.validation["before"]
    instructions = {name: predictor.signature.instructions for name, predictor in tuned.named_predictors()}
    assert PHRASE in instructions[SCORER]
    assert not any(PHRASE in predictor.signature.instructions for _, predictor in program.named_predictors())


def test_a_configured_model_is_tuned_with_its_images_beside_the_prompt(make_labels: MakeLabels) -> None:
    labels = make_labels(scenes=3, levels=(0, 2, 4), references=True)
    train, val = questions(labels)
    with simulated_models(labels) as server:
        program = AgenticIQA.from_config(
            Config().with_backend(f"vllm.{model_at(server).partition('.')[2]}", server.url)
        )
        _, search = tune(program, train, val, model(server, "reflection"), budget=50, workers=2)
        check_bytes(server, labels, model_at(server).partition(".")[2], f"{model_at(server)}-reflection")
    assert search.tuned


def test_questions_with_options_are_tuned_by_right_answers(make_labels: MakeLabels) -> None:
    labels = make_labels(scenes=3, levels=(1, 3), references=True)
    asked = "Which distortion is strongest?\nA) Noise\nB) Compression"
    train, val = ([replace(row, query=asked, target=None, answer="B") for row in rows] for rows in questions(labels))

    def answer(request: Body) -> dict[str, str]:
        letter = "B" if PHRASE in text_of(request["messages"][0]) else "A"
        return {"final_answer": letter, "quality_reasoning": "By its grain."}

    def reflection(request: Body) -> str:
        shown, lesson = text_of(request), f"\nAlways {PHRASE}."
        told = "The answer was A, but B is right. Its reason was: By its grain." in shown
        return json.dumps({"new_instruction": field_of(request, "current_instruction") + (lesson if told else "")})

    explicit = {"distortions": [{"region": "Global", "distortions": ["Noise", "Compression"]}]}
    plan = {**PLAN, **explicit, "distortion_source": "Explicit"}
    plan["plan"] = {**PLAN["plan"], "distortion_detection": False}
    answers: dict[str, Any] = {"plan": plan, "answer": answer, "new_instruction": reflection}
    with simulated_models(labels, **answers) as server, dspy.context(lm=model(server, "judge")):
        tuned, search = tune(AgenticIQA(), train, val, model(server, "reflection"), budget=40, predictors=[ANSWERER])
    assert search.validation == {"before": 0, "after": 1}
    assert PHRASE in dict(tuned.named_predictors())[ANSWERER].signature.instructions


def test_only_the_named_predictors_are_tuned(make_labels: MakeLabels) -> None:
    labels = make_labels(scenes=3, levels=(0, 4), references=True)
    train, val = questions(labels)
    with simulated_models(labels) as server, dspy.context(lm=model(server, "judge")):
        _, search = tune(AgenticIQA(), train, val, model(server, "reflection"), budget=20, predictors=[SCORER])
    assert search.iterations == search.reflections == search.reflected_on[SCORER]


def test_an_image_that_cannot_be_judged_ends_the_search(make_labels: MakeLabels) -> None:
    labels = make_labels(scenes=3, levels=(0, 4), references=True)
    train, val = questions(labels)
    train[0].image.write_bytes(b"no image")
    with (
        simulated_models(labels.parent / labels.name) as server,
        dspy.context(lm=model(server, "judge")),
        pytest.raises(ImageError, match=r"scene0_0\.png"),
    ):
        tune(AgenticIQA(), train, val, model(server, "reflection"), budget=30)
