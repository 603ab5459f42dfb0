"""The scenarios of the document planner-core."""

import json
import logging
from itertools import pairwise
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.configs import load_config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.graph import AgenticIQAState, planner_node
from agenticiqa.signatures.types import PlannerOutput
from support.fake_server import bad_json, by_stage, fake_server, field_of, images_of, server_error, text_of
from support.nodes import Config, configured, scripted
from support.specification import PLAN

BLURRY = "Is the vehicle blurry?"
ALL_ON = dict.fromkeys(PLAN["plan"], True)
OPEN: dict[str, Any] = {
    **PLAN,
    "query_scope": "Global",
    "distortion_source": "Inferred",
    "distortions": None,
    "plan": ALL_ON,
}


def ask(photo: Path, query: str, config: Config | None = None, reference: Path | None = None) -> PlannerOutput:
    """Return the plan of the node, that of the offline planner without a configuration."""
    given: AgenticIQAState = {"query": query, "image_path": str(photo)}
    if reference:
        given["reference_path"] = str(reference)
    plan = planner_node(given, config)["plan"]
    assert isinstance(plan, PlannerOutput)
    return plan


def test_valid_plan_json_structure(photo: Path) -> None:
    """The question of the document gets the plan of the document, with a model and offline."""
    config, _ = scripted({"plan": PLAN})
    for plan in (ask(photo, BLURRY, config), ask(photo, BLURRY)):
        assert json.loads(plan.model_dump_json()) == PLAN
        assert list(plan.model_dump()) == list(PLAN)
        assert list(plan.plan.model_dump()) == list(PLAN["plan"])


def test_explicit_distortion_handling(photo: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A distortion in the question is listed and not detected, independent of the flags that a model writes."""
    said = {**OPEN, "distortion_source": "Explicit", "distortions": {"Global": ["noisy"]}}
    config, engine = scripted({"plan": said})
    with caplog.at_level(logging.INFO, "agenticiqa"):
        plans = [ask(photo, "Is this image noisy?", given) for given in (config, None)]
    for plan in plans:
        assert plan.distortion_source == "Explicit"
        assert plan.distortions == {"Global": ["Noise"]}
        assert plan.plan.distortion_detection is False
    assert len(engine.bodies) == 1
    assert "corrected plan in the model's plan" in caplog.text


def test_inferred_distortion_handling(photo: Path) -> None:
    """Distortions of an open question are detected; a model that only infers named ones is asked again."""
    wrong = {**OPEN, "plan": {**ALL_ON, "distortion_detection": False}}
    config, engine = scripted({"plan": wrong})
    for plan in (ask(photo, "What's wrong with this image?", config), ask(photo, "What's wrong with this image?")):
        assert plan.distortion_source == "Inferred"
        assert plan.distortions is None
        assert plan.plan.distortion_detection is True
    assert len(engine.bodies) == 1

    said = {**OPEN, "distortion_source": "Explicit", "distortions": {"Global": ["Noise"]}}
    for second in (said, OPEN):  # a repeated answer is accepted
        config, engine = scripted({"plan": [OPEN, second]})
        assert ask(photo, "Is this image noisy?", config).distortion_source == second["distortion_source"]
        assert len(engine.bodies) == 2
        assert "the question mentions 'noisy' (Noise)" in field_of(engine.bodies[1], "correction")


def test_reference_mode_determination(photo: Path, reference: Path) -> None:
    """The mode depends on whether a reference is given, not on the answer of a model."""
    full, none = ({**OPEN, "reference_mode": mode} for mode in ("Full-Reference", "No-Reference"))
    for given, wrong, right in ((reference, none, full), (None, full, none)):
        config, engine = scripted({"plan": wrong})
        question = "How is the quality of this snapshot?"
        for plan in (ask(photo, question, config, given), ask(photo, question, None, given)):
            assert plan.reference_mode == right["reference_mode"]
        assert len(engine.bodies) == 1


def test_query_scope_identification(photo: Path) -> None:
    """Objects in the question become a list; a question about the whole image has the scope "Global"."""
    car = {**PLAN, "query_scope": ["car"], "distortions": {"car": ["Blurs"]}}
    config, _ = scripted({"plan": [car, OPEN]})
    for given in (config, None):
        assert ask(photo, "Is the car blurry?", given).query_scope == ["car"]
        assert ask(photo, "How is the image quality?", given).query_scope == "Global"


def test_prompt_template_structure(photo: Path) -> None:
    """The request has question, image and the fields that only a model knows, with the sampling of the shipped file."""
    with fake_server(by_stage({"plan": PLAN})) as server:
        program = AgenticIQA.from_config(load_config("model_backends").with_backend("openai.test", server.url))
        ask(photo, BLURRY, {"configurable": {"program": program}})
        (body,) = server.requests
    assert (body["temperature"], body["top_p"], body["max_completion_tokens"]) == (0.0, 0.1, 2048)
    shown = text_of(body["messages"][0])
    assert "You plan an image quality assessment" in shown
    form = body["response_format"]["json_schema"]["schema"]["properties"]["planner_output"]["properties"]
    assert form.keys() == PLAN.keys() - {"reference_mode", "plan"}
    assert all(f"- {name}:" in shown for name in form)
    for value in ("IQA", "Other", "Global", "Explicit", "Inferred"):
        assert f'"{value}"' in shown
    assert field_of(body, "query") == BLURRY
    assert [data for _, data in images_of(body)] == [photo.read_bytes()]


def test_prompt_with_reference_image(photo: Path, reference: Path, tmp_path: Path) -> None:
    """The request has both images, each with its name, and explains the names."""
    with fake_server(by_stage({"plan": {**PLAN, "reference_mode": "Full-Reference"}})) as server:
        config = configured(tmp_path, {"planner": {"backend": "vllm.test", "api_base": server.url}})
        ask(photo, BLURRY, config, reference)
        (body,) = server.requests
    assert [data for _, data in images_of(body)] == [reference.read_bytes(), photo.read_bytes()]
    parts = body["messages"][-1]["content"]
    labels = [before["text"].split()[-3] for before, part in pairwise(parts) if part["type"] == "image_url"]
    assert labels == ["reference", "image"]
    shown = text_of(body["messages"][0])
    assert "the pristine reference image" in shown
    assert "possibly distorted" in shown


def test_successful_json_parsing(photo: Path) -> None:
    """A plan that fits the schema becomes a PlannerOutput at the first attempt."""
    config, engine = scripted({"plan": PLAN})
    assert ask(photo, BLURRY, config) == PlannerOutput.model_validate(PLAN)
    assert len(engine.requests) == 1


def test_malformed_json_handling(photo: Path) -> None:
    """Invalid JSON is requested again more strictly; after the third attempt the error lists each fault."""
    whole = json.dumps({"plan": PLAN})
    config, engine = scripted({"plan": [bad_json(), whole]})
    assert ask(photo, BLURRY, config).query_scope == ["vehicle"]
    assert "Return ONLY valid JSON" in field_of(engine.bodies[1], "correction")

    config, _ = scripted({"plan": whole.removesuffix("}")})
    assert ask(photo, BLURRY, config).query_scope == ["vehicle"]

    config, engine = scripted({"plan": [bad_json(), "", '{"plan": {"query_type": "IQA"']})
    with pytest.raises(Unanswered, match="planner: no usable answer in 3 attempts") as caught:
        ask(photo, BLURRY, config)
    assert len(engine.requests) == 3
    for fault in ("not a JSON object", "empty", "query_scope: Field required"):
        assert fault in str(caught.value)


def test_schema_validation_failure(photo: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Wrong types are reported for each field, to the log and to the model, which then corrects them."""
    wrong = {**PLAN, "query_type": "Maybe", "query_scope": 3, "required_tool": 4}
    config, engine = scripted({"plan": [wrong, PLAN]})
    assert ask(photo, BLURRY, config) == PlannerOutput.model_validate(PLAN)
    logged = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    for shown in (field_of(engine.bodies[1], "correction"), "\n".join(logged)):
        for field in ("query_type", "query_scope", "required_tool"):
            assert f"{field}: Input should be" in shown


def test_planner_node_execution(photo: Path, reference: Path) -> None:
    """The node sends the question with the images of its state, and returns only the plan."""
    for given in (None, reference):
        mode = "Full-Reference" if given else "No-Reference"
        config, engine = scripted({"plan": {**PLAN, "reference_mode": mode}})
        update = planner_node(
            {"query": BLURRY, "image_path": str(photo), "reference_path": str(given) if given else None}, config
        )
        assert update == {"plan": PlannerOutput.model_validate({**PLAN, "reference_mode": mode})}
        (body,) = engine.bodies
        assert field_of(body, "query") == BLURRY
        assert [data for _, data in images_of(body)] == [path.read_bytes() for path in (given, photo) if path]


def test_planner_node_error_handling(
    photo: Path, tmp_path: Path, waits: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """A missing file raises FileNotFoundError with its name; a failing server is retried three times."""
    config, engine = scripted({"plan": PLAN})
    with pytest.raises(FileNotFoundError, match=r"gone\.png"):
        ask(tmp_path / "gone.png", BLURRY, config)
    assert engine.requests == []

    with fake_server(server_error()) as server:
        section = {"backend": "vllm.test", "api_base": server.url}
        with caplog.at_level(logging.INFO, "agenticiqa"), pytest.raises(dspy.LMError, match="something broke"):
            ask(photo, BLURRY, configured(tmp_path, {"planner": section}))
        assert len(server.requests) == 4
    assert [2**n <= wait <= 1.25 * 2**n for n, wait in enumerate(waits)] == [True] * 3
    assert "something broke" in caplog.text


def test_configuration_loading(photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planner section of the file names the model, and its settings are sent."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    section = {"backend": "openai.gpt-4o", "temperature": 0.25, "max_tokens": 333, "top_p": 0.5}
    (path,) = configured(tmp_path, {"planner": section})["configurable"].values()
    backend = connect(load_config(path).planner)
    assert backend is not None
    assert backend.lms[0].model == "openai/gpt-4o"

    with fake_server(by_stage({"plan": PLAN})) as server:
        own = {**section, "api_base": server.url, "api_key_env": "OPENAI_API_KEY"}
        ask(photo, BLURRY, configured(tmp_path, {"planner": own}))
        (body,) = server.requests
    assert (body["model"], body["temperature"], body["top_p"]) == ("gpt-4o", 0.25, 0.5)
    assert body["max_completion_tokens"] == 333


def test_fallback_model_configuration(
    photo: Path, tmp_path: Path, waits: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """After the retries of the first model the second one plans, with a log line; without a second the node fails."""
    with fake_server(server_error()) as first, fake_server(by_stage({"plan": PLAN})) as second:
        alone = {"backend": "vllm.first", "api_base": first.url, "max_retries": 2}
        both = {**alone, "fallback_backend": "vllm.second", "fallback_api_base": second.url}
        assert ask(photo, BLURRY, configured(tmp_path, {"planner": both})) == PlannerOutput.model_validate(PLAN)
        assert ([body["model"] for body in first.requests], len(second.requests)) == (["first"] * 3, 1)
        assert second.requests[0]["model"] == "second"
        (line,) = [record.getMessage() for record in caplog.records if "asking the next model" in record.getMessage()]
        assert "first at 127.0.0.1" in line
        assert "is unreachable" in line
        with pytest.raises(dspy.LMError):
            ask(photo, BLURRY, configured(tmp_path, {"planner": alone}))
        assert len(second.requests) == 1
