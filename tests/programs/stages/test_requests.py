"""What the request of each stage asks for, on the wire, and what is read from the tokens of its answer."""

import json
import logging
from pathlib import Path
from typing import Any

import dspy
import jsonschema  # type: ignore[import-untyped]
import pytest

from agenticiqa.configs import StageConfig
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.run_context import recorded_usage
from agenticiqa.programs.images import LoadedImage, load
from agenticiqa.programs.stages.analyst import Analyst
from agenticiqa.programs.stages.detector import Detector
from agenticiqa.programs.stages.planner import Planner
from agenticiqa.programs.stages.protocols import Scored
from agenticiqa.programs.stages.scorer import Scorer
from agenticiqa.programs.tools import toolbox
from agenticiqa.signatures.types import ExecutorOutput
from agenticiqa.signatures.vocabulary import DETECTABLE
from support.fake_server import Server, by_stage, fake_server, has_field, stage_of, text_of
from support.loopback import Body, Reply, error_reply, spoken
from support.scripted_answers import ASSESSMENT, RATE, SCRIPT, plan, program_for

REGIONS = ["the cup", "Global"]
LEVEL = {"quality_level": "Fair", "quality_reasoning": "Soft edges everywhere."}
SHARES = {"Fair": {"Fair": -0.4, "Good": -1.6, "Nice": -2.0}}


@pytest.fixture
def image(examples: Path) -> LoadedImage:
    return load(examples / "coffee_jpeg.jpg")


def backend(server: Server, name: str = "vllm.test", **changes: Any) -> Any:
    return connect(StageConfig(backend=name, api_base=server.url, max_retries=0, **changes), cache=False)


def schema_of(body: Body) -> dict[str, Any]:
    schema: dict[str, Any] = body["response_format"]["json_schema"]["schema"]
    return schema


def rated(server: Server, image: LoadedImage, attempts: int = 1, name: str = "vllm.test", **changes: Any) -> Scored:
    scorer = Scorer(backend=backend(server, name, **changes), attempts=attempts)
    return scorer(image=image, query=RATE, evidence=ExecutorOutput(), reference=None)


def test_each_request_has_the_schema_of_its_own_inputs(photo: Path) -> None:
    """Every answer that the program accepts fits the schema of its request, and the limit of tokens is that of it."""
    with fake_server(by_stage(SCRIPT)) as server:
        program_for(server)(photo, "How noisy are the cup and the spoon?")
    stages = {stage_of(body) for body in server.requests}
    assert stages >= {"plan", "detection", "analysis"}
    detection = next(body for body in server.requests if stage_of(body) == "detection")
    rows = schema_of(detection)["properties"]["detection"]["properties"]["distortion_set"]["prefixItems"]
    assert [row["properties"]["region"]["enum"] for row in rows] == [["Global"]]
    assert all(body["max_tokens"] < 2048 for body in server.requests if stage_of(body) != "plan")


def test_a_hosted_provider_gets_one_schema_for_each_stage(image: LoadedImage) -> None:
    answers = [{"distortion_set": [{"region": region, "distortions": []}]} for region in REGIONS]
    with fake_server(by_stage({"detection": answers})) as server:
        detector = Detector(backend=backend(server, "openai.test"))
        for region in REGIONS:
            detector(image=image, query=RATE, regions=[region], boxes={}, reference=None)
    first, second = map(schema_of, server.requests)
    assert first == second
    assert "maxLength" not in json.dumps(first), "a keyword that OpenAI's strict mode refuses"


def test_a_server_that_refuses_the_schema_of_a_request_gets_that_of_the_stage(image: LoadedImage, near: None) -> None:
    answers = {"distortion_set": [{"region": "Global", "distortions": []}]}

    def reply(body: Body) -> Reply | str:
        if "prefixItems" in json.dumps(body["response_format"]):
            return error_reply(400, {"error": {"message": "Invalid schema: 'prefixItems' is not permitted"}})
        return json.dumps({"detection": answers})

    with fake_server(reply) as server:
        detector = Detector(backend=backend(server, "openai.test"))
        for _ in range(2):
            detector(image=image, query=RATE, regions=["Global"], boxes={}, reference=None)
    kinds = [body["response_format"]["type"] for body in server.requests]
    assert kinds == ["json_schema"] * 3, "refused once, then remembered"
    assert ["prefixItems" in json.dumps(schema_of(body)) for body in server.requests] == [True, False, False]


def test_a_rating_with_tokens_asks_for_level_and_reason_only(image: LoadedImage) -> None:
    with fake_server(spoken(json.dumps({"assessment": LEVEL}), SHARES)) as server:
        found = rated(server, image)
    (body,) = server.requests
    assert list(schema_of(body)["properties"]["assessment"]["properties"]) == ["quality_level", "quality_reasoning"]
    assert "quality_probs" not in text_of(body)
    assert (found.source, found.reasoning) == ("logprobs", LEVEL["quality_reasoning"])
    assert (found.mass, found.mass_from) == (pytest.approx(0.872, abs=0.001), "before grammar")


@pytest.mark.parametrize("reason", ['"quality_reasoning": "It is soft at the', '"quality_rea', ""])
def test_a_rating_that_was_cut_off_after_its_level_is_the_level_of_its_tokens(image: LoadedImage, reason: str) -> None:
    text = f'{{"assessment": {{"quality_level": "Fair", {reason}'
    with fake_server(spoken(text, SHARES)) as server:
        found = rated(server, image)
    assert len(server.requests) == 1
    assert (found.source, found.rejected_answers) == ("logprobs", {})
    assert found.probabilities[3] > found.probabilities[4] > 0
    assert found.reasoning == ("It is soft at the" if "at the" in reason else "The model gave no reason.")


def test_tokens_count_whatever_probabilities_the_model_writes(image: LoadedImage) -> None:
    """Five ones are no distribution, and a small model repeats the tool score."""
    said = {**ASSESSMENT, "quality_probs": dict.fromkeys("12345", 1)}
    with fake_server(spoken(json.dumps({"assessment": said}), SHARES)) as server:
        found = rated(server, image)
    assert (len(server.requests), found.source, found.rejected_answers) == (1, "logprobs", {})


def test_log_probabilities_after_a_grammar_are_named(image: LoadedImage) -> None:
    """VLLM gives the tokens that its grammar excludes the logarithm -9999, so their share is always 1."""
    shares = {"Fair": {"Fair": -0.4, "Good": -1.1, "Nice": -9999.0, "The": -9999.0}}
    with fake_server(spoken(json.dumps({"assessment": LEVEL}), shares)) as server:
        found = rated(server, image)
    assert (found.mass, found.mass_from) == (pytest.approx(1.0, abs=0.01), "after grammar")


@pytest.mark.parametrize("form", ["off", "json_object"])
def test_without_a_schema_most_of_the_probability_must_fall_on_levels(image: LoadedImage, form: str) -> None:
    shares = {"Fair": {"Fair": -1.2, "Nice": -0.4}}
    with fake_server(spoken(json.dumps({"assessment": ASSESSMENT}), shares)) as server:
        found = rated(server, image, structured_outputs=form)
    assert len(server.requests) == 2, "the second one asks for probabilities"
    assert (found.source, found.mass_from) == ("quality_probs", "free text")


def test_a_server_without_log_probabilities_is_asked_for_probabilities_from_then_on(image: LoadedImage) -> None:
    with fake_server(json.dumps({"assessment": ASSESSMENT})) as server:
        found = [rated(server, image), rated(server, image)]
    forms = [list(schema_of(body)["properties"]["assessment"]["properties"]) for body in server.requests]
    assert [len(form) for form in forms] == [2, 3, 3]
    assert [each.source for each in found] == ["quality_probs"] * 2


def test_an_ignored_schema_is_reported_once_and_the_correction_describes_the_form(
    image: LoadedImage, caplog: pytest.LogCaptureFixture
) -> None:
    wrong, right = ({"distortion_set": [{"region": name, "distortions": []}]} for name in ("car", "Global"))
    with fake_server(by_stage({"detection": [wrong, right]})) as server, caplog.at_level(logging.WARNING):
        detector = Detector(backend=backend(server))
        for _ in range(2):
            detector(image=image, query=RATE, regions=["Global"], boxes={}, reference=None)
        detector(image=image, query=RATE, regions=["Global"], boxes={}, reference=None)
    assert [has_field(body, "correction") for body in server.requests] == [False, True, False, False]
    form = '{"region": "Global", "distortions": ['
    assert [form in text_of(body) for body in server.requests] == [False, True, False, False]
    (said,) = [record.getMessage() for record in caplog.records if "ignores the JSON schema" in record.message]
    assert said.startswith("vllm/test at ")


def test_a_detection_of_everything_is_asked_again_once_and_noted(image: LoadedImage) -> None:
    everything = {"distortion_set": [{"region": "Global", "distortions": list(DETECTABLE)}]}
    with fake_server(by_stage({"detection": everything})) as server, recorded_usage() as usage:
        detector = Detector(backend=backend(server))
        found = detector(image=image, query=RATE, regions=["Global"], boxes={}, reference=None)
    first, second = (len(text_of(body)) for body in server.requests)
    assert "every category" in found.rejected_answers["distortion_detection"][0]
    assert "listed every distortion category for Global" in usage.answer_notes["distortion_detection"][0]
    assert second > first


def test_a_correction_of_an_enforced_schema_is_its_reason_alone(image: LoadedImage) -> None:
    copied = analysis(" ")
    with fake_server(by_stage({"analysis": [copied, analysis("There is grain.")]})) as server:
        given: dict[str, Any] = {"image": image, "query": RATE, "boxes": {}, "reference": None}
        Analyst(backend=backend(server))(distortion_set={"Global": ["Noise"]}, **given)
    first, second = (len(text_of(body)) for body in server.requests)
    assert 0 < second - first < 300


def test_a_model_that_reasons_keeps_the_configured_limit_of_tokens(image: LoadedImage) -> None:
    def reply(body: Body) -> Reply:
        message = {"role": "assistant", "content": json.dumps({"detection": row}), "reasoning_content": "Let me see."}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        return Reply(raw_body=json.dumps({"choices": [choice], "model": "test", "usage": usage}).encode())

    row = {"distortion_set": [{"region": "Global", "distortions": []}]}
    with fake_server(reply) as server:
        detector = Detector(backend=backend(server, max_tokens=1500))
        for _ in range(2):
            detector(image=image, query=RATE, regions=["Global"], boxes={}, reference=None)
    first, second = (body["max_tokens"] for body in server.requests)
    assert first < 300
    assert second == 1500


@pytest.mark.parametrize("form", ["json_schema", "json_object", "off"])
def test_no_prompt_has_an_example_that_could_come_back_as_a_finding(photo: Path, form: str) -> None:
    section = {"structured_outputs": form}
    changes = dict.fromkeys(("planner", "executor", "summarizer", "replan"), section)
    with fake_server(by_stage(SCRIPT)) as server:
        program = program_for(server, **changes)
        program(photo, RATE)
        program(photo, "Why is it noisy?")
    assert {stage_of(body) for body in server.requests} >= {"plan", "detection", "analysis", "assessment", "answer"}
    for body in server.requests:
        assert "vehicle" not in text_of(body)
        assert "example" not in text_of(body).lower()


def test_a_region_that_the_question_does_not_name_is_dropped_with_a_note(photo: Path) -> None:
    named = plan("vehicle", distortions=[{"region": "vehicle", "distortions": ["Blurs"]}], distortion_source="Explicit")
    with fake_server(by_stage({**SCRIPT, "plan": named})) as server:
        result = program_for(server)(photo, RATE)
    assert result.plan.query_scope == "Global"
    assert "location" not in server.stages()
    assert result.answer_notes["planner"] == [
        "dropped 'vehicle' from query_scope, because the question names no such region",
        "dropped 'Blurs' from distortions, because the question names no such distortion",
    ]


def test_the_name_of_a_tool_is_no_region(image: LoadedImage) -> None:
    with fake_server(by_stage({"plan": plan("NIQE", required_tool=["NIQE"])})) as server:
        planner = Planner(toolbox(), backend=backend(server))
        made = planner(image=image, query="How good is it by NIQE?", reference=None, feedback="")
    assert (made.plan.query_scope, made.plan.required_tool) == ("Global", "NIQE")


def analysis(explanation: str) -> dict[str, Any]:
    return {
        "distortion_analysis": [
            {
                "region": "Global",
                "type": "Noise",
                "severity": "slight",
                "explanation": explanation,
                "uncertain": False,
            }
        ]
    }


@pytest.mark.parametrize("place", ["a demo", "quoted in tuned instructions"])
def test_a_sentence_of_an_example_is_no_finding(image: LoadedImage, place: str) -> None:
    copied, own = "The number plate is smeared badly.", "There is grain in the sky above."
    with fake_server(by_stage({"analysis": [analysis(copied), analysis(own)]})) as server:
        analyst = Analyst(backend=backend(server))
        predictor = analyst.ask.predictor
        if place == "a demo":
            inputs = {"query": RATE, "distortion_set": '{"Global": ["Noise"]}', "boxes": "none"}
            predictor.demos = [dspy.Example(**inputs, image=None, reference=None, analysis=analysis(copied))]
        else:
            told = f'{predictor.signature.instructions} Write such as "{copied}"'
            predictor.signature = predictor.signature.with_instructions(told)
        given: dict[str, Any] = {"image": image, "query": RATE, "boxes": {}, "reference": None}
        found = analyst(distortion_set={"Global": ["Noise"]}, **given)
    assert found.distortion_analysis["Global"][0].explanation == own
    assert "stands in an example of the prompt" in found.rejected_answers["distortion_analysis"][0]


def test_a_demo_with_the_same_inputs_may_have_the_same_answer(image: LoadedImage) -> None:
    said = "There is grain in the sky above."
    with fake_server(by_stage({"analysis": analysis(said)})) as server:
        analyst = Analyst(backend=backend(server))
        inputs = {"query": RATE, "distortion_set": '{"Global": ["Noise"]}', "boxes": "none", "reference": None}
        analyst.ask.predictor.demos = [dspy.Example(**inputs, image=image.to_dspy(), analysis=analysis(said))]
        given: dict[str, Any] = {"image": image, "query": RATE, "boxes": {}, "reference": None}
        found = analyst(distortion_set={"Global": ["Noise"]}, **given)
    assert found.rejected_answers == {}


def test_the_answers_of_all_stages_fit_the_schemas_of_their_requests(photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        program: AgenticIQA = program_for(server)
        program(photo, RATE)
        program(photo, "Is it blurry? A. Yes B. No", options={"A": "Yes", "B": "No"})
    script = by_stage({**SCRIPT, "answer": {"final_answer": "A", "quality_reasoning": "Soft."}})
    for body in server.requests:
        said = script(body)
        text = said if isinstance(said, str) else said.content
        written = json.loads(text or "")
        if stage_of(body) == "plan":
            for key in ("plan", "reference_mode"):
                written["planner_output"].pop(key)
        if stage_of(body) != "answer":
            jsonschema.validate(written, schema_of(body))
