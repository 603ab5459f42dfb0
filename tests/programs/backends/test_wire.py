"""The requests to each provider: each loopback server checks them as the real API does."""

import io
import json
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from PIL import Image

from agenticiqa.configs import Config, PlannerConfig, StageConfig
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.run_context import recorded_usage
from agenticiqa.programs.errors import BackendError
from agenticiqa.programs.fusion.equations import softmax
from agenticiqa.programs.images import load, prompt_inputs
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.programs.stages.scorer import Scorer
from agenticiqa.signatures.executor import AnalyzeDistortions, DetectDistortions, LocateRegions, SelectTools
from agenticiqa.signatures.planner import Plan
from agenticiqa.signatures.replan import DecideReplan
from agenticiqa.signatures.summarizer import AnswerQuestion, ScoreQuality
from agenticiqa.signatures.types import ExecutorOutput
from support.fake_server import by_stage
from support.loopback import Reply, spoken
from support.odd_colors import odd_files
from support.provider_schemas import subschemas
from support.providers import (
    ANTHROPIC,
    DIALECTS,
    GEMINI,
    LLAMACPP,
    LMSTUDIO,
    OLLAMA,
    OPENAI,
    VLLM,
    Dialect,
    ProviderServer,
    Seen,
    provider_server,
)
from support.scripted_answers import ASSESSMENT, LOGS, RATE, SCRIPT

pytestmark = pytest.mark.slow

KEY, KEY_ENV = "sk-wire-4711", "WIRE_TEST_KEY"


ANSWERS = by_stage(SCRIPT)

Signature = type[dspy.Signature]
SEES: dict[str, tuple[Signature, dict[str, Any]]] = {
    "plan": (Plan, {"available_tools": "NIQE", "feedback": None}),
    "detection": (DetectDistortions, {"query_scope": '["Global"]', "boxes": "none"}),
    "analysis": (AnalyzeDistortions, {"distortion_set": '{"Global": ["Blurs"]}', "boxes": "none"}),
    "assessment": (ScoreQuality, {"evidence": "none"}),
    "answer": (AnswerQuestion, {"options": "none", "evidence": "none"}),
}
REASONS: dict[str, tuple[Signature, dict[str, Any]]] = {
    "selection": (SelectTools, {"available_tools": "NIQE (NR): n.", "distortion_set": '{"Global": ["Blurs"]}'}),
    "decision": (DecideReplan, dict.fromkeys(("query", "plan", "evidence", "doubts"), "none")),
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of every server of this file, in the environment."""
    monkeypatch.setenv(KEY_ENV, KEY)


@pytest.fixture
def photo(examples: Path) -> Path:
    """A PNG, which every provider decodes."""
    return examples / "astronaut_blur.png"


def server_of(dialect: Dialect, script: Any = ANSWERS) -> Any:
    return provider_server(dialect, script, key=KEY)


def on(server: ProviderServer, **changes: Any) -> StageConfig:
    """Return a stage on this server, with a strict schema and no log-probabilities unless they are changed."""
    settings: dict[str, Any] = {"structured_outputs": "json_schema", "logprobs": False, "timeout": 10.0, **changes}
    where = {"backend": server.dialect.backend, "api_base": server.url, "api_key_env": KEY_ENV}
    return StageConfig(**where, max_retries=0, **settings)


def asked(stage: StageConfig, stage_name: str = "assessment") -> CheckedPredict:
    signature = (SEES | REASONS | {"location": (LocateRegions, {})})[stage_name][0]
    scoring = stage_name == "assessment"
    return CheckedPredict(signature, stage=stage_name, backend=connect(stage), attempts=1, reads_tokens=scoring)


def inputs(image: Path, reference: Path | None = None, query: str = RATE, stage: str = "assessment") -> dict[str, Any]:
    images = prompt_inputs(load(image), load(reference) if reference else None)
    return {**images, "query": query, **SEES[stage][1]}


def score(server: ProviderServer, image: Path, reference: Path | None = None, **changes: Any) -> dspy.Prediction:
    """Ask one question with the image."""
    return asked(on(server, **changes))(inputs(image, reference))


def only(server: ProviderServer) -> Seen:
    """Return the only request of a server that refused no request."""
    assert server.refused == []
    (seen,) = server.seen
    return seen


def test_a_type_that_a_server_does_not_decode_is_sent_as_a_png_of_the_same_pixels(examples: Path) -> None:
    with server_of(LLAMACPP) as server:
        score(server, examples / "chelsea.webp")
    ((mime, data),) = only(server).images
    assert mime == "image/png"
    with Image.open(io.BytesIO(data)) as sent, Image.open(examples / "chelsea.webp") as original:
        assert (np.asarray(sent) == np.asarray(original.convert("RGB"))).all()


WITHOUT_WEBP = (LLAMACPP, OLLAMA, OPENAI)  # OpenAI as a server at another address
OF_ODD_FILES = ("JPEG turned 6", "16-bit gray PNG", "PNG with alpha", "Adobe RGB PNG", "PQ 16-bit PNG")


def test_other_files_are_sent_as_the_measured_pixels(dialect: Dialect, examples: Path, tmp_path: Path) -> None:
    """The file is decoded as by the simplest server, which ignores orientation, depth, alpha and color profiles."""
    with Image.open(examples / "coffee.webp") as opened:
        photo = np.asarray(opened.convert("RGB"))[::4, ::4]
    for name, data, *_ in odd_files(photo):
        if name in OF_ODD_FILES:
            path = tmp_path / name
            path.write_bytes(data)
            with server_of(dialect) as server:
                score(server, path)
            ((mime, sent),) = only(server).images
            assert mime == ("image/png" if dialect in WITHOUT_WEBP else "image/webp")
            assert np.array_equal(np.asarray(Image.open(io.BytesIO(sent)).convert("RGB")), load(path).pixels), name


def test_the_order_is_instructions_reference_image_and_then_varying_text(dialect: Dialect, examples: Path) -> None:
    reference, image = examples / "coffee_jpeg.jpg", examples / "astronaut_blur.png"
    with server_of(dialect) as server:
        score(server, image, reference)
    seen = only(server)
    for line in filter(None, map(str.strip, ScoreQuality.instructions.splitlines())):
        assert line in seen.system
        assert line not in "".join(seen.texts)
    assert seen.images == [("image/jpeg", reference.read_bytes()), ("image/png", image.read_bytes())]
    for picture in seen.pictures:
        assert seen.arrived.raw.count(picture.text.encode()) == 1
    last = seen.parts.index(seen.pictures[-1])
    before, after = (
        "".join(part for part in parts if isinstance(part, str)) for parts in (seen.parts[:last], seen.parts[last:])
    )
    assert RATE in after
    assert RATE not in before + seen.system
    assert set(before.split()) <= {"[[", "##", "reference", "image", "]]"}


@pytest.mark.parametrize(
    ("dialect", "stage"),
    [(dialect, "assessment") for dialect in DIALECTS] + [(OPENAI, stage) for stage in SEES if stage != "assessment"],
)
def test_two_questions_about_an_image_share_their_beginning_up_to_its_end(
    dialect: Dialect, stage: str, photo: Path, examples: Path
) -> None:
    """A server may charge less for a prefix that it has read before."""
    with server_of(dialect) as server:
        ask = asked(on(server, structured_outputs="off"), stage)
        for query in ("Is it sharp?", "Why is it soft, of all things?"):
            ask(inputs(photo, examples / "coffee_jpeg.jpg", query, stage))
    assert server.refused == []
    first, second = (seen.arrived.raw for seen in server.seen)
    last = server.seen[0].pictures[-1].text.encode()
    end = first.index(last) + len(last)
    assert first != second
    assert first[:end] == second[:end]


FORMS: dict[str, dict[Dialect, str | None]] = {
    "json_schema": {
        **dict.fromkeys(DIALECTS, "response_format.json_schema"),
        ANTHROPIC: "output_config.format",
        GEMINI: "generationConfig.responseJsonSchema",
    },
    "json_object": {
        **dict.fromkeys(DIALECTS, "response_format.json_object"),
        GEMINI: "generationConfig.responseMimeType",
    },
    "off": dict.fromkeys(DIALECTS),
}
NO_JSON_MODE = (ANTHROPIC, LMSTUDIO)


def test_json_is_requested_in_the_providers_form(dialect: Dialect, photo: Path) -> None:
    forms = {form: fields[dialect] for form, fields in FORMS.items()}
    with server_of(dialect) as server:
        if dialect in NO_JSON_MODE:
            del forms["json_object"]
            with pytest.raises(BackendError, match="json_schema or off"):
                connect(on(server, structured_outputs="json_object"))
        for form in forms:
            assert score(server, photo, structured_outputs=form).answer.quality_level == "Fair"
    assert server.refused == []
    assert [seen.structured for seen in server.seen] == [*forms.values()]
    assert [seen.schema is not None for seen in server.seen] == [form == "json_schema" for form in forms]


def test_a_rating_has_a_strict_schema_and_the_key_only_in_its_header(dialect: Dialect, photo: Path) -> None:
    """The usage in the answer is recorded."""
    reply = Reply(json.dumps({"assessment": ASSESSMENT}), usage=(1234, 56))
    with server_of(dialect, reply) as server, recorded_usage() as usage:
        score(server, photo)
    seen = only(server)
    name, value = HEADERS[dialect]
    assert seen.headers[name] == value
    assert [other for other, given in seen.headers.items() if KEY in given] == [name]
    assert KEY not in seen.path
    assert KEY.encode() not in seen.arrived.raw
    (spent,) = usage.stages.values()
    assert (spent.calls, spent.input_tokens, spent.output_tokens) == (1, 1234, 56)
    schema = seen.schema
    assert schema is not None
    if dialect not in (ANTHROPIC, GEMINI):
        assert seen.body["response_format"]["json_schema"]["strict"] is True
    objects = [part for _, part in subschemas(schema) if part.get("type") == "object"]
    assert [list(part["properties"]) for part in objects if "quality_level" in part["properties"]] == [
        ["quality_level", "quality_probs", "quality_reasoning"]
    ]
    assert list(schema["properties"]) == ["assessment"]
    for part in objects:
        assert part["additionalProperties"] is False
        assert sorted(part["required"]) == sorted(part["properties"])


def test_providers_accept_the_schema_of_every_stage(dialect: Dialect, photo: Path) -> None:
    given = {stage: inputs(photo, stage=stage) for stage in SEES} | {stage: REASONS[stage][1] for stage in REASONS}
    given["location"] = {"image": prompt_inputs(load(photo), None)["image"], "regions": '["Global"]'}
    with server_of(dialect) as server:
        for stage, values in given.items():
            asked(on(server), stage)(values)
    assert server.refused == []
    assert [seen.schema is not None for seen in server.seen] == [True] * len(given)


TOKENS = dict.fromkeys(DIALECTS, "max_tokens") | {OPENAI: "max_completion_tokens", GEMINI: "maxOutputTokens"}


def test_only_configured_parameters_are_sent(dialect: Dialect, photo: Path) -> None:
    with server_of(dialect) as server:
        score(server, photo, temperature=0.5, top_p=0.25, max_tokens=200, seed=7)
    expected: dict[str, float] = {"temperature": 0.5, TOKENS[dialect]: 200}
    if dialect is not ANTHROPIC:  # no seed at all, and no top_p beside a temperature
        expected |= {"topP" if dialect is GEMINI else "top_p": 0.25, "seed": 7}
    assert only(server).sampling == expected
    assert only(server).ignored == ()
    with server_of(dialect) as server:
        score(server, photo, structured_outputs="off", temperature=0.0, max_tokens=64)
    seen = only(server)
    assert seen.sampling == {"temperature": 0.0, TOKENS[dialect]: 64}
    content = {
        ANTHROPIC: {"model", "messages", "system", "max_tokens", "temperature", "stream"},
        GEMINI: {"contents", "systemInstruction", "generationConfig"},
    }
    assert set(seen.body) == content.get(dialect, {"model", "messages", "temperature", TOKENS[dialect]})
    assert seen.model == dialect.backend.partition(".")[2]


HEADERS = dict.fromkeys(DIALECTS, ("authorization", f"Bearer {KEY}")) | {
    ANTHROPIC: ("x-api-key", KEY),
    GEMINI: ("x-goog-api-key", KEY),
}


def test_no_header_describes_this_machine_or_an_openai_account(photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-4711")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-4711")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway-Key: 4711")
    with server_of(VLLM) as server:
        score(server, photo)
    usual = {"accept", "accept-encoding", "authorization", "content-length", "content-type", "host", "user-agent"}
    assert set(only(server).headers) == usual


CHOICES = {"Fair": -0.4, "Good": -1.3, "Poor": -3.0}
ASKED, ASKED_OF_GEMINI = {"logprobs": True, "top_logprobs": 20}, {"responseLogprobs": True, "logprobs": 20}


def test_log_probabilities_are_requested_and_parsed_if_supported(dialect: Dialect, photo: Path) -> None:
    reply = spoken(json.dumps({"assessment": ASSESSMENT}), {"Fair": CHOICES})
    with server_of(dialect, reply) as server:
        scorer = Scorer(backend=connect(on(server, logprobs=True)), attempts=1)
        shown = scorer(image=load(photo), query=RATE, evidence=ExecutorOutput(), reference=None)
    sampling = only(server).sampling
    assert only(server).ignored == ()
    if dialect.logprobs:
        expected = ASKED_OF_GEMINI if dialect is GEMINI else ASKED
        assert {name: sampling.get(name) for name in expected} == expected
        levels = softmax({2: CHOICES["Poor"], 3: CHOICES["Fair"], 4: CHOICES["Good"]})
        assert shown.source == "logprobs"
        assert shown.probabilities == pytest.approx({1: 0.0, 5: 0.0} | levels)
    else:
        assert not set(ASKED) & set(sampling)
        assert shown.source == "quality_probs"
        assert shown.probabilities == pytest.approx(softmax({int(level): log for level, log in LOGS.items()}))


PAIRS = {"astronaut_blur.png": "astronaut.webp", "chelsea_noise.png": "chelsea.webp", "coffee_jpeg.jpg": "coffee.webp"}


def test_a_whole_assessment(dialect: Dialect, examples: Path) -> None:
    """Every second provider gets a reference, too."""
    number = DIALECTS.index(dialect)
    name = list(PAIRS)[number % len(PAIRS)]
    image, reference = examples / name, examples / PAIRS[name] if number % 2 == 0 else None
    with server_of(dialect) as server:
        stage = on(server).model_dump()
        stages = {name: StageConfig(**stage) for name in ("executor", "summarizer", "replan")}
        result = AgenticIQA.from_config(Config(planner=PlannerConfig(**stage), **stages))(image, RATE, reference)
    assert server.refused == []
    assert 1 <= result.final_answer <= 5
    assert result.summarizer_result.probability_source == "quality_probs"
    assert result.rejected_answers == {}
    assert {"plan", "detection", "analysis", "assessment"} <= {stage for stage in SCRIPT if server.of(stage)}
    files = [reference, image] if reference else [image]
    for seen in server.seen:
        looks = "[[ ## image ## ]]" in "".join(seen.texts)
        assert len(seen.images) == (len(files) if looks else 0)
        for (_, data), file in zip(seen.images, files, strict=False):
            converted = dialect in WITHOUT_WEBP and file.suffix == ".webp"
            assert (data == file.read_bytes()) is not converted
    assert sum(1 for seen in server.seen if seen.images) >= 4
