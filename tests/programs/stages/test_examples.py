"""The examples of a predictor: images are sent as images in any form, and answers as the schema demands them."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import dspy
import jsonschema
import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.signatures.executor import AnalyzeDistortions, DetectDistortions, LocateRegions, SelectTools
from agenticiqa.signatures.planner import Plan
from agenticiqa.signatures.replan import DecideReplan
from agenticiqa.signatures.summarizer import AnswerQuestion, NameLevel, ScoreQuality
from support.engine import scripted_lm
from support.fake_server import by_stage, fake_server, images_of, text_of
from support.golden_requests import all_signatures
from support.loopback import Body
from support.scripted_answers import ANSWER as ANSWERED
from support.scripted_answers import ASSESSMENT, LOGS, RATE, SCRIPT, STAND, program_for

ANSWER = '{"answer": {"final_answer": "Yes", "quality_reasoning": "Crisp."}}'
INPUTS = {"image": None, "reference": None, "query": "Now?", "options": "none", "evidence": "none"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "shown.png"
    Image.fromarray(np.full((24, 32, 3), 90, np.uint8)).save(path)
    return path


def asked_with(demos: list[Any]) -> Any:
    """Return the request of a question with these examples."""
    lm, engine = scripted_lm([ANSWER])
    question = CheckedPredict[Any](AnswerQuestion, stage="answering")
    question.predictor.demos = demos
    with dspy.context(lm=lm):
        question(INPUTS)
    (body,) = engine.bodies
    return body


@pytest.mark.parametrize("kind", ["path", "text path", "bytes", "array", "PIL", "dspy.Image", "saved"])
def test_an_image_in_an_example_is_sent_as_an_image(kind: str, path: Path) -> None:
    given: Any = {
        "path": path,
        "text path": str(path),
        "bytes": path.read_bytes(),
        "array": np.asarray(Image.open(path)),
        "PIL": Image.open(path),
        "dspy.Image": dspy.Image.from_path(str(path)),
        "saved": str(dspy.Image.from_path(str(path))),
    }[kind]
    body = asked_with([dspy.Example(image=given, query="Sharp?", answer=ANSWERED)])
    ((mime, data),) = images_of(body)
    assert mime == "image/png"
    if kind not in ("array", "PIL"):
        assert hashlib.sha256(data).digest() == hashlib.sha256(path.read_bytes()).digest()
    assert str(path) not in text_of(body)
    assert base64.b64encode(path.read_bytes()).decode()[:40] not in text_of(body)
    assert "Sharp?" in text_of(body)


def test_an_example_with_a_truncated_image_is_skipped(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """``dspy.SIMBA`` cuts inputs to 100,000 characters, so it cuts the base64 of an image of 75 kB."""
    cut = str(dspy.Image.from_path(str(path)))[:60] + "\n\t\t... <TRUNCATED FOR BREVITY>"
    body = asked_with([dspy.Example(image=cut, query="Sharp?", answer=ANSWERED)])
    assert "TRUNCATED" not in text_of(body)
    assert "Sharp?" not in text_of(body)
    assert "is skipped" in caplog.text


@pytest.mark.parametrize("label", [{"mos": 3.0}, {"answer": "B"}])
def test_examples_without_an_output_of_its_type_are_not_shown(label: dict[str, Any], path: Path) -> None:
    """``dspy.LabeledFewShot`` gives every predictor every example, and a label may have the name of an output."""
    body = asked_with([dspy.Example(image=path, query="Sharp?", **label)])
    assert "Sharp?" not in text_of(body)


# An answer for each signature with a typed output.
WRITTEN: dict[type[dspy.Signature], dict[str, Any]] = {
    Plan: {
        "query_type": "IQA",
        "query_scope": ["vehicle"],
        "distortion_source": "Explicit",
        "distortions": [{"region": "vehicle", "distortions": ["Blurs"]}],
        "required_tool": [],
    },
    LocateRegions: {"regions": [{"region": "vehicle", "box": [1, 2, 3, 4]}, {"region": "sky", "box": [0, 0, 0, 0]}]},
    DetectDistortions: {"distortion_set": [{"region": "vehicle", "distortions": ["Blurs"]}]},
    AnalyzeDistortions: {
        "distortion_analysis": [
            {
                "region": "sky",
                "type": "Noise",
                "severity": "slight",
                "explanation": "Grain.",
                "uncertain": False,
            }
        ]
    },
    SelectTools: {"selected_tools": [{"region": "vehicle", "distortion": "Blurs", "tool": "NIQE"}]},
    ScoreQuality: ASSESSMENT,
    AnswerQuestion: ANSWERED,
    DecideReplan: STAND,
}


def shown_answers(body: Body) -> list[Any]:
    """Return the answers of the examples in a request, each checked against the schema of this request."""
    answers = [json.loads(message["content"]) for message in body["messages"] if message["role"] == "assistant"]
    for answer in answers:
        jsonschema.validate(answer, body["response_format"]["json_schema"]["schema"])
    return answers


def test_every_signature_with_a_typed_output_has_an_answer_here() -> None:
    assert WRITTEN.keys() == all_signatures() - {NameLevel}


@pytest.mark.parametrize("signature", WRITTEN)
def test_the_answer_of_an_example_fits_the_schema_of_its_request(signature: type[dspy.Signature]) -> None:
    ((name, field),) = signature.output_fields.items()
    typed: Any = field.annotation
    inputs = {name: None if name in ("image", "reference") else "vehicle" for name in signature.input_fields}
    with fake_server(json.dumps({name: WRITTEN[signature]})) as server:
        backend = next(q.backend for q in program_for(server).questions)
        question = CheckedPredict[Any](signature, stage="planner", backend=backend)
        question.predictor.demos = [{**inputs, name: typed.model_validate(WRITTEN[signature])}]
        question(inputs)
    assert shown_answers(server.requests[0]) == [{name: WRITTEN[signature]}]


def test_bootstrapped_examples_fit_the_schema_also_after_saving(photo: Path, tmp_path: Path) -> None:
    examples = [
        dspy.Example(image=photo, query=query).with_inputs("image", "query") for query in (RATE, "Is it sharp?")
    ]
    with fake_server(by_stage(SCRIPT)) as server:
        optimizer = dspy.BootstrapFewShot(metric=lambda *given: True, max_bootstrapped_demos=2, max_labeled_demos=0)
        tuned: AgenticIQA = optimizer.compile(program_for(server), trainset=examples)
        tuned.save(tmp_path / "tuned.json")
        again = program_for(server)
        again.load(tmp_path / "tuned.json")
        asked = len(server.requests)
        again(photo, RATE)
    shown = [answer for body in server.requests[asked:] for answer in shown_answers(body)]
    assert {name for answer in shown for name in answer} >= {"planner_output", "detection", "analysis", "assessment"}
    assert [answer["assessment"]["quality_probs"] for answer in shown if "assessment" in answer] == [LOGS]
    saved = json.loads((tmp_path / "tuned.json").read_text())["summarizer.score.ask.predict"]
    assert saved["demos"][0]["assessment"]["quality_probs"] == LOGS
