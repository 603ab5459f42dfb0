"""A GGUF model in this process: what is refused and how, what goes to llama.cpp, what is made of its answer.

These tests load no model: a loopback server stands where llama.cpp would be. ``test_real_lm.py`` has the real one.
"""

import base64
import copy
import gc
import importlib.machinery
import sys
import threading
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import lm15

from agenticiqa.programs.backends import gguf
from agenticiqa.programs.backends.adapter import SteadyAdapter
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.gguf import GgufEngine, bounded
from agenticiqa.programs.errors import BackendError
from agenticiqa.signatures import executor, planner, replan, summarizer
from support.fake_server import Script, fake_server, hang
from support.loopback import Reply

PIXEL = b"\x89PNG of one pixel"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that begins like a model."""
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF and so on")
    return path


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """xllamacpp can be found, whether or not it is installed; it is never imported."""
    module = types.ModuleType("xllamacpp")
    module.__spec__ = importlib.machinery.ModuleSpec("xllamacpp", None)
    monkeypatch.setitem(sys.modules, "xllamacpp", module)


@pytest.fixture
def in_place_of_llamacpp(monkeypatch: pytest.MonkeyPatch, installed: None) -> Callable[[Script | str | Reply], Any]:
    """A loopback server with this script in place of a loaded model; gives the server, and the models "loaded"."""

    @contextmanager
    def stand_in(script: Script | str | Reply) -> Iterator[Any]:
        with fake_server(script) as server:

            class Stub:
                def __init__(self, setup: gguf.Setup) -> None:
                    self.key, self.address = "sesame", server.url
                    self.turns = threading.BoundedSemaphore(setup.parallel)

            monkeypatch.setattr(gguf, "Loaded", Stub)
            yield server

    return stand_in


def model_of(wire: GgufEngine) -> Model:
    """DSPy's engine for the wire."""
    return Model("gguf/model", "model", wire, lambda size: 0, max_retries=0, timeout=wire.timeout)


def asking(text: str = "How sharp?", *parts: Any, **config: Any) -> lm15.Request:
    message = lm15.Message(role="user", parts=(lm15.TextPart(text), *parts))
    return lm15.Request(model="gguf/model", system="You judge.", messages=(message,), config=lm15.Config(**config))


def form(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}


# What is refused before anything is loaded.


def test_without_the_package_one_line_says_how_to_get_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(BackendError) as caught:
        GgufEngine(file)
    assert 'pip install "agenticiqa[local-lm]"' in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("what", ["model", "projector"])
def test_a_missing_file_and_a_file_of_another_kind_are_told_by_their_path(
    what: str, file: Path, tmp_path: Path, installed: None
) -> None:
    picture = tmp_path / "picture.png"
    picture.write_bytes(PIXEL)
    for bad, complaint in [(tmp_path / "no.gguf", "there is no"), (tmp_path, "there is no"), (picture, "not a GGUF")]:
        with pytest.raises(BackendError, match=complaint) as caught:
            GgufEngine(bad) if what == "model" else GgufEngine(file, bad)
        assert what in str(caught.value)
        assert str(bad) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_image_without_a_projector_is_an_unsupported_feature_to_dspy(file: Path, installed: None) -> None:
    lm = dspy.LM("gguf/model", engine=model_of(GgufEngine(file)), cache=False, num_retries=0)
    question = {"image": dspy.Image(_data_uri(PIXEL)), "query": "How sharp?"}
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()), pytest.raises(dspy.LMUnsupportedFeatureError, match="mmproj"):
        dspy.Predict("image: dspy.Image, query: str -> answer: str")(**question)


def test_half_the_cores_are_used_unless_told_otherwise(
    file: Path, installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cores, threads in [(1, 1), (2, 1), (8, 4)]:
        monkeypatch.setattr(gguf, "available_cores", lambda cores=cores: cores)
        assert GgufEngine(file).setup.threads == threads
    assert GgufEngine(file, threads=3).setup.threads == 3


# What goes to llama.cpp.


def test_a_request_becomes_an_openai_chat_with_every_parameter(
    file: Path, in_place_of_llamacpp: Callable[..., Any]
) -> None:
    schema = {"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]}
    image = lm15.ImagePart(media_type="image/png", data=base64.b64encode(PIXEL).decode())
    sampling = {"temperature": 0.0, "top_p": 0.9, "seed": 7, "max_tokens": 64}
    with in_place_of_llamacpp("sharp") as server:
        engine = GgufEngine(file, file)
        logged = engine.prepared(asking("Look", image, **sampling, logprobs=20, response_format=form(schema)))
        engine.complete(logged)
        engine.complete(asking(response_format={"type": "json_object"}))
    body, other = server.requests
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["messages"][0]["content"] == "You judge."
    text, part = body["messages"][1]["content"]
    assert (text["text"], part["image_url"]["url"]) == ("Look", _data_uri(PIXEL))
    assert body.items() >= {**sampling, "logprobs": True, "top_logprobs": 20}.items()
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["response_format"]["json_schema"]["schema"] == bounded(schema) != schema
    assert logged.config.response_format is not None
    assert logged.config.response_format["schema"] == bounded(schema), "the log has what is sent"
    assert other["response_format"] == {"type": "json_object"}


def test_every_list_and_free_text_gets_a_limit_and_nothing_else_changes() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "names": {"type": "array", "items": {"type": "string"}},
            "few": {"type": "array", "items": {"$ref": "#/$defs/Row"}, "maxItems": 3},
            "short": {"type": "string", "maxLength": 5},
            "level": {"type": "string", "enum": ["Good", "Bad"]},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "either": {"type": ["string", "null"]},
            "share": {"type": "number", "minimum": 0},
        },
        "$defs": {"Row": {"type": "object", "properties": {"why": {"type": "string"}}}},
    }
    before = copy.deepcopy(schema)
    limited = bounded(schema)
    assert schema == before
    fields, text = limited["properties"], {"type": "string", "maxLength": 1000}
    assert fields["type"] == text
    assert fields["names"] == {"type": "array", "items": text, "maxItems": 64}
    assert fields["maybe"] == {"anyOf": [text, {"type": "null"}]}
    assert fields["either"] == {"type": ["string", "null"], "maxLength": 1000}
    assert limited["$defs"]["Row"]["properties"]["why"] == text
    for as_it_was in ("few", "short", "level", "share"):
        assert fields[as_it_was] == schema["properties"][as_it_was]
    assert bounded(limited) == limited


SIGNATURES = [
    planner.plan_signature(sees_images=False),
    executor.SelectTools,
    executor.LocateRegions,
    executor.DetectDistortions,
    executor.AnalyzeDistortions,
    summarizer.ScoreQuality,
    summarizer.AnswerQuestion,
    replan.DecideReplan,
]


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda signature: signature.instructions[:30])
def test_every_schema_of_ours_reaches_llamacpp_strict_and_without_an_open_end(
    signature: type[dspy.Signature], file: Path, installed: None
) -> None:
    bodies: list[dict[str, Any]] = []

    class Noting(GgufEngine):
        def complete(self, request: lm15.Request) -> lm15.Response:
            bodies.append(dict(request.config.response_format or {}))
            raise lm15.InvalidRequestError("noted")

    lm = dspy.LM("gguf/model", engine=model_of(Noting(file, file)), cache=False, num_retries=0)
    inputs = {name: _any_value(field.annotation) for name, field in signature.input_fields.items()}
    adapter = SteadyAdapter()
    adapter.form = "json_schema"
    with dspy.context(lm=lm, adapter=adapter), pytest.raises(dspy.LMInvalidRequestError, match="noted"):
        dspy.Predict(signature)(**inputs)
    (sent,) = bodies
    assert (sent["type"], sent["strict"]) == ("json_schema", True)
    schema = sent["schema"]
    assert schema["additionalProperties"] is False
    lists = [part for part in _schemas(schema) if part.get("type") == "array"]
    texts = [part for part in _schemas(schema) if part.get("type") == "string" and not part.keys() & {"enum", "const"}]
    assert all("maxItems" in part for part in lists)
    assert all("maxLength" in part for part in texts)


# The connection.


def test_the_key_is_sent_and_the_answer_has_the_name_of_the_file(
    file: Path, in_place_of_llamacpp: Callable[..., Any]
) -> None:
    with in_place_of_llamacpp("sharp") as server:
        answer = GgufEngine(file).complete(asking())
    assert (answer.text, answer.model) == ("sharp", "gguf/model")
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["authorization"] == "Bearer sesame"


def test_a_proxy_of_the_environment_is_not_used(
    file: Path, in_place_of_llamacpp: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts and images for a model in this process stay on this machine."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with in_place_of_llamacpp("sharp"):
        assert GgufEngine(file).complete(asking()).text == "sharp"


def test_a_request_that_ran_out_of_time_gives_up_its_turn(file: Path, in_place_of_llamacpp: Callable[..., Any]) -> None:
    with in_place_of_llamacpp(lambda body: hang() if "slow" in str(body) else "next"):
        engine = GgufEngine(file, timeout=0.3)
        with pytest.raises(lm15.TransportError):
            engine.complete(asking("slow"))
        assert engine.complete(asking("quick")).text == "next"


def test_no_more_requests_run_at_once_than_said(file: Path, in_place_of_llamacpp: Callable[..., Any]) -> None:
    lock, running, most = threading.Lock(), 0, 0

    def script(body: dict[str, Any]) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.02)
        with lock:
            running -= 1
        return "sharp"

    with in_place_of_llamacpp(script), ThreadPoolExecutor(8) as pool:
        engines = [GgufEngine(file, parallel=2) for _ in range(2)]
        texts = [answer.text for answer in pool.map(lambda n: engines[n % 2].complete(asking()), range(8))]
    assert texts == ["sharp"] * 8
    assert most <= 2


def test_engines_of_one_file_share_one_model_and_the_last_one_frees_it(
    file: Path, installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[gguf.Setup] = []

    class Counting:
        def __init__(self, setup: gguf.Setup) -> None:
            loads.append(setup)

    monkeypatch.setattr(gguf, "Loaded", Counting)
    engines = [GgufEngine(file, timeout=seconds) for seconds in (10, 20, 30)]
    assert loads == []
    with ThreadPoolExecutor(8) as pool:
        models = set(pool.map(lambda n: engines[n % 3].model(), range(24)))
    assert len(models) == len(loads) == 1
    other = GgufEngine(file, context=4096)
    assert other.model() not in models
    for engine in [*engines, other]:
        engine.close()
    del models
    gc.collect()
    engines[0].model()
    assert len(loads) == 3


def _data_uri(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def _any_value(annotation: Any) -> Any:
    return dspy.Image(_data_uri(PIXEL)) if "Image" in str(annotation) else False if annotation is bool else "x"


def _schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """The schema and all schemas in it."""
    if isinstance(schema, dict):
        yield schema
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _schemas(inner)
