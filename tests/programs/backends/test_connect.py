"""Backends: their names, which key is sent where, and the requests to servers that work or fail."""

import logging
import math
import os
import pickle
from contextlib import suppress
from typing import Any

import dspy
import pytest
from PIL import Image

from agenticiqa.configs import Config, StageConfig, checked, load_config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.addresses import default_address, secrets_in
from agenticiqa.programs.backends.choice import Backend, without_place
from agenticiqa.programs.backends.connect import connect, key_from, server_of, stage_models, workers_for
from agenticiqa.programs.backends.providers import PROVIDERS, row_of
from agenticiqa.programs.errors import BackendError
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.signatures.replan import DecideReplan, Decision
from support.fake_server import (
    Server,
    bad_json,
    bad_key,
    by_stage,
    fake_server,
    in_turn,
    server_error,
)
from support.loopback import Reply, error_reply
from support.scripted_answers import RATE, SCRIPT

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY"}
STAND: dict[str, Any] = {"need_replan": False, "replan_reason": ""}
STANDS = by_stage({"decision": STAND})


def to(server: Server, backend: str = "vllm.test", **changes: Any) -> StageConfig:
    """Return a stage on this server, with a strict schema and no log-probabilities."""
    known = {"structured_outputs": "json_schema", "logprobs": False}
    settings: dict[str, Any] = {"max_retries": 0, "timeout": 5.0, **known, **changes}
    return StageConfig(backend=backend, api_base=server.url, **settings)


def ask(stage: StageConfig, attempts: int = 1) -> dspy.Prediction:
    """Ask one question about replanning, the smallest of the signatures."""
    question = dict.fromkeys(("query", "plan", "evidence", "doubts"), "none")
    return CheckedPredict(DecideReplan, stage="replan", backend=connect(stage), attempts=attempts)(question)


def model_of(backend: Backend | None) -> str:
    assert backend is not None
    return backend.lms[0].model


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("openai.gpt-4.1", "openai/gpt-4.1"),
        ("anthropic.claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("google.gemini-2.5-flash", "google/gemini-2.5-flash"),
        ("vllm.Qwen/Qwen2.5-VL-7B-Instruct", "vllm/Qwen/Qwen2.5-VL-7B-Instruct at 127.0.0.1:9/v1"),
        ("ollama.llava:7b-v1.6", "ollama/llava:7b-v1.6 at 127.0.0.1:9/v1"),
        ("openai.my.model", "openai/my.model at 127.0.0.1:9/v1"),
    ],
)
def test_the_provider_is_before_the_first_dot_and_an_own_server_needs_no_key(
    name: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address of a user's own server is in the name of its model."""
    address = "http://127.0.0.1:9/v1" if " at " in model else None
    if address is None:
        monkeypatch.setenv(KEYS[name.partition(".")[0]], "key")
    assert model_of(connect(StageConfig(backend=name, api_base=address))) == model


def test_offline_has_no_backend() -> None:
    assert connect(StageConfig()) is None


@pytest.mark.parametrize(
    "name",
    [
        ".gpt-4o",
        "azure.gpt-4o",
        "llava",
        "Qwen/Qwen2.5-VL-7B-Instruct",
        "o1lab.m",
        "mygpt-4",
        "Openai.gpt-4o",
        "",
        "offline.x",
    ],
)
def test_an_unknown_name_is_reported_with_the_known_ones(name: str) -> None:
    stage = StageConfig(backend=name)
    with pytest.raises(BackendError) as caught:
        connect(stage)
    message = str(caught.value)
    assert repr(stage.backend) in message
    assert "\n" not in message
    assert all(f"{known}.<model>" in message for known in PROVIDERS)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-4o", "openai.gpt-4o"),
        ("gpt-4.1-mini", "openai.gpt-4.1-mini"),
        ("chatgpt-4o-latest", "openai.chatgpt-4o-latest"),
        ("o3", "openai.o3"),
        ("claude-sonnet-4-5", "anthropic.claude-sonnet-4-5"),
        ("claude-3.5-sonnet", "anthropic.claude-3.5-sonnet"),
        ("gemini-2.5-flash", "google.gemini-2.5-flash"),
    ],
)
def test_a_well_known_model_without_its_provider_gets_the_whole_name(name: str, meant: str) -> None:
    with pytest.raises(BackendError, match=rf"^backend '{name}' names no provider, did you mean {meant}\?$"):
        connect(StageConfig(backend=name))


@pytest.mark.parametrize("name", ["openai", "openai."])
def test_a_provider_without_a_model_is_reported_with_the_expected_form(name: str) -> None:
    with pytest.raises(BackendError, match=rf"^backend '{name}' names no model: expected openai\.<model>$"):
        connect(StageConfig(backend=name))


@pytest.mark.parametrize("provider", KEYS)
@pytest.mark.parametrize("value", [None, "", " ", "\n"])
def test_a_missing_key_is_one_line_that_names_the_variable(
    provider: str, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv(KEYS[provider], value)
    with pytest.raises(BackendError, match=KEYS[provider]) as caught:
        connect(StageConfig(backend=f"{provider}.model"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("provider", ["vllm", "sglang"])
def test_a_server_without_a_known_address_needs_one(provider: str) -> None:
    with pytest.raises(BackendError, match="api_base"):
        connect(StageConfig(backend=f"{provider}.model"))


@pytest.mark.parametrize(
    ("backend", "variable", "value", "address", "key"),
    [
        ("openai.m", "OPENAI_BASE_URL", "https://gw.example/v1", "https://gw.example/v1", "OPENAI_API_KEY"),
        (
            "openai.m",
            "OPENAI_BASE_URL",
            " https://gw.example/openai/v1/ ",
            "https://gw.example/openai/v1",
            "OPENAI_API_KEY",
        ),
        ("openai.m", "OPENAI_API_BASE", "https://gw.example/v1", "https://gw.example/v1", "OPENAI_API_KEY"),
        ("openai.m", "OPENAI_BASE_URL", "https://api.openai.com/v1/", None, None),
        ("openai.m", "OPENAI_BASE_URL", "", None, None),
        ("anthropic.m", "ANTHROPIC_BASE_URL", "https://gw.example", "https://gw.example/v1", "ANTHROPIC_API_KEY"),
        ("anthropic.m", "ANTHROPIC_API_BASE", "https://gw.example/v1", "https://gw.example/v1", "ANTHROPIC_API_KEY"),
        ("anthropic.m", "ANTHROPIC_BASE_URL", "https://api.anthropic.com", None, None),
        ("google.m", "GOOGLE_GEMINI_BASE_URL", "https://gw.example", "https://gw.example/v1beta", "GEMINI_API_KEY"),
        ("ollama.m", "OLLAMA_HOST", "0.0.0.0", "http://0.0.0.0:11434/v1", None),
        ("ollama.m", "OLLAMA_HOST", "nas:8080", "http://nas:8080/v1", None),
        ("ollama.m", "OLLAMA_HOST", "[::1]", "http://[::1]:11434/v1", None),
        ("ollama.m", "OLLAMA_HOST", "me:login@nas", "http://me:login@nas:11434/v1", None),
        ("ollama.m", "OLLAMA_API_BASE", "https://gw.example", "https://gw.example/v1", None),
        ("ollama.m", "OPENAI_BASE_URL", "https://gw.example/v1", "http://localhost:11434/v1", None),
        ("lmstudio.m", "OLLAMA_HOST", "nas", "http://localhost:1234/v1", None),
        ("llamacpp.m", "OLLAMA_HOST", "nas", "http://localhost:8080/v1", None),
    ],
)
def test_an_address_that_is_left_out_is_that_of_the_clients_variable_or_the_default(
    backend: str, variable: str, value: str, address: str | None, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    stage = StageConfig(backend=backend, fallback_backend=backend)
    first, second = stage_models(stage)
    assert [(m.api_base, m.api_key_env) for m in (first, second)] == [(address, key)] * 2
    given = StageConfig(backend=backend, api_base="http://127.0.0.1:9/v1")
    (model,) = stage_models(given)
    assert (model.api_base, model.api_key_env) == ("http://127.0.0.1:9/v1", None), (
        "an address that was named comes first"
    )


@pytest.mark.parametrize("backend", ["openai.m", "anthropic.m", "google.m", "ollama.m"])
def test_the_provider_gets_its_key_also_if_its_address_is_named(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (model,) = stage_models(StageConfig(backend=backend))
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gw.example/v1")
    address = f"{PROVIDERS[backend.partition('.')[0]].address}/"
    stage = StageConfig(backend=backend, api_base=address, fallback_backend=backend, fallback_api_base=address)
    assert stage_models(stage) == [model, model]


@pytest.mark.parametrize("value", ["gw.example/v1", "localhost:9", "ftp://gw.example"])
def test_a_key_is_not_sent_to_a_variable_that_is_no_url(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", value)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with pytest.raises(BackendError, match=f"^OPENAI_BASE_URL '{value.removeprefix('ftp://')}' is not a URL such as"):
        connect(StageConfig(backend="openai.m"))


def test_a_key_in_place_of_an_address_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "sk-secret-4711")
    with pytest.raises(BackendError, match=r"^OPENAI_BASE_URL '\*\*\*' is not a URL such as"):
        connect(StageConfig(backend="openai.m"))


def test_another_process_asks_the_address_that_the_variable_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-gateway")
    with fake_server(STANDS) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        pickled = pickle.dumps(connect(StageConfig(backend="openai.m", max_retries=0, timeout=5.0)))
        monkeypatch.delenv("OPENAI_BASE_URL")
        (lm,) = pickle.loads(pickled).lms
        assert lm.engine.wire.address == server.url
    assert b"sk-gateway" not in pickled


@pytest.mark.parametrize("backend", ["vllm.m", "openai.m", "anthropic.m", "google.m"])
def test_without_a_key_no_header_has_one_and_a_refusal_says_so(backend: str) -> None:
    with fake_server(error_reply(401, {"error": {"message": "who are you?"}})) as server:
        with pytest.raises(dspy.LMError, match=r"who are you\?; no key was sent: name its .* --api-key-env"):
            ask(to(server, backend))
        assert sent_keys(server) == ""


def test_a_refused_key_does_not_count_as_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVER_KEY", "sk-wrong")
    with fake_server(bad_key()) as server, pytest.raises(dspy.LMError, match=r"no such key$"):
        ask(to(server, api_key_env="MY_SERVER_KEY"))


def test_a_key_in_place_of_its_variable_is_refused_and_not_shown() -> None:
    with pytest.raises(BackendError, match="it is not the key itself") as caught:
        connect(StageConfig(backend="vllm.m", api_base="http://127.0.0.1:9/v1", api_key_env="sk-secret-4711"))
    assert "4711" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["127.0.0.1:8000/v1", "ftp://host/v1", "http://host:port/v1", "http://[::1/v1", "http://host:99999/v1"]
)
def test_an_invalid_address_is_reported_before_anything_is_sent(address: str) -> None:
    with pytest.raises(BackendError, match="is not a URL such as") as caught:
        connect(StageConfig(backend="vllm.model", api_base=address))
    assert address.rpartition("//")[2] in str(caught.value)


def test_a_password_in_an_address_is_sent_as_basic_authentication_and_not_shown() -> None:
    with fake_server(STANDS) as server:
        stage = to(server)
        stage = stage.model_copy(update={"api_base": server.url.replace("//", "//ann:p%40ss@")})
        assert ask(stage).answer == Decision(**STAND)
    assert server.headers[0]["authorization"] == "Basic YW5uOnBAc3M="
    assert "ss" not in model_of(connect(stage)).replace("test", "")


def test_a_stage_cannot_fall_back_to_offline() -> None:
    with pytest.raises(
        BackendError, match=r"'sglang.y' needs the address of its server: set fallback_api_base, such as"
    ):
        connect(StageConfig(backend="vllm.x", api_base="http://127.0.0.1:9/v1", fallback_backend="sglang.y"))
    with pytest.raises(BackendError, match="fallback_backend"):
        connect(StageConfig(backend="vllm.x", api_base="http://127.0.0.1:9/v1", fallback_backend="offline"))


def sent_keys(server: Server) -> str:
    """Return everything in the headers of the requests that could be a key."""
    names = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
    return " ".join(headers[name] for headers in server.headers for name in names if name in headers)


@pytest.mark.parametrize(
    "backend", ["openai.gpt-4o", "anthropic.claude-sonnet-4-5", "google.gemini-2.5-flash", "vllm.m"]
)
def test_a_providers_key_is_not_sent_to_another_address(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (*KEYS.values(), "HOSTED_VLLM_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(variable, "sk-secret")
    with fake_server(Reply(status=400, raw_body=b"{}")) as server:
        with pytest.raises(dspy.LMError):
            ask(to(server, backend))
        assert len(server.requests) == 1
        assert "secret" not in sent_keys(server)


def test_a_named_key_is_sent_to_the_own_server_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MY_SERVER_KEY", "sk-mine")
    with fake_server(in_turn(bad_json(), {"need_replan": False, "replan_reason": ""})) as server:
        stage = to(server, api_key_env="MY_SERVER_KEY")
        with caplog.at_level(logging.DEBUG):
            reply = ask(stage, attempts=2)
        assert server.headers[0]["authorization"] == "Bearer sk-mine"
    for shown in (caplog.text, repr(reply), repr(connect(stage)), repr(stage)):
        assert "sk-mine" not in shown


def test_a_missing_named_key_is_reported_with_its_variable() -> None:
    with pytest.raises(BackendError, match="MY_SERVER_KEY"):
        connect(StageConfig(backend="vllm.m", api_base="http://127.0.0.1:9/v1", api_key_env="MY_SERVER_KEY"))


def test_the_key_of_the_first_server_is_not_sent_to_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVER_KEY", "sk-mine")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    with fake_server(server_error()) as first, fake_server(STANDS) as second:
        stage = to(first, api_key_env="MY_SERVER_KEY", fallback_backend="vllm.b", fallback_api_base=second.url)
        ask(stage)
        assert sent_keys(first) == "Bearer sk-mine"
        assert "sk-" not in sent_keys(second)
        provider = connect(stage.model_copy(update={"fallback_backend": "openai.gpt-4o", "fallback_api_base": None}))
        assert provider is not None
        assert provider.lms[1].engine.wire.key == "sk-openai"


def test_two_models_of_one_server_share_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVER_KEY", "sk-mine")

    def only_small(body: dict[str, Any]) -> Reply | str:
        return STANDS(body) if body["model"] == "small" else server_error()

    with fake_server(only_small) as server:
        ask(
            to(
                server,
                "vllm.big",
                api_key_env="MY_SERVER_KEY",
                fallback_backend="vllm.small",
                fallback_api_base=server.url,
            )
        )
        assert [body["model"] for body in server.requests] == ["big", "small"]
        assert sent_keys(server) == "Bearer sk-mine Bearer sk-mine"


def test_a_key_in_the_environment_never_makes_the_default_send_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in KEYS.values():
        monkeypatch.setenv(variable, "sk-secret")
    for config in (load_config(), Config()):
        assert config.is_offline
        assert [connect(stage) for stage in (config.planner, config.executor, config.summarizer, config.replan)] == [
            None
        ] * 4


@pytest.mark.parametrize(("before", "after"), [(None, "True"), ("False", "False")])
def test_nothing_else_is_downloaded_unless_the_user_asks_for_it(
    before: str | None, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DSPy asks GitHub for a list of models, unless this variable forbids it."""
    variable = "LITELLM_LOCAL_MODEL_COST_MAP"
    monkeypatch.delenv(variable) if before is None else monkeypatch.setenv(variable, before)
    connect(StageConfig())
    assert os.environ.get(variable) == before
    connect(StageConfig(backend="vllm.m", api_base="http://127.0.0.1:9/v1"))
    assert os.environ[variable] == after


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5-mini-2025-08-07", "gpt-5.2", "o3", "o4-mini", "vendor/gpt-5"])
def test_reasoning_models_of_openai_need_no_configuration(model: str) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        config = Config().with_backend(f"openai.{model}", server.url)
        AgenticIQA.from_config(config)(Image.new("RGB", (64, 64), "gray"), RATE)
    assert len(server.requests) >= 4
    for body in server.requests:
        assert body["max_completion_tokens"] == 16_000
        assert not {"temperature", "top_p", "max_tokens"} & body.keys()


def test_settings_that_a_reasoning_model_refuses_are_reported_and_others_sent() -> None:
    for wrong in ({"temperature": 0}, {"temperature": 0.5, "max_tokens": 20_000}, {"max_tokens": 512}):
        with pytest.raises(BackendError, match=r"'openai.gpt-5' always reasons: remove temperature and max_tokens"):
            connect(StageConfig(backend="openai.gpt-5", api_base="http://127.0.0.1:9/v1", **wrong))
    with fake_server(STANDS) as server:
        ask(to(server, "openai.gpt-5", temperature=1, max_tokens=32_000))
        ask(to(server, "openai.gpt-5-chat-latest"))
    reasoning, chat = server.requests
    assert (reasoning["temperature"], reasoning["max_completion_tokens"]) == (1, 32_000)
    assert (chat["temperature"], chat["max_completion_tokens"]) == (0, 2048)


def test_usage_is_counted_over_every_attempt() -> None:
    with fake_server(in_turn(Reply("no", usage=(100, 7)), Reply("nor this", usage=(11, 3)), STAND)) as server:
        with dspy.track_usage() as usage:
            ask(to(server), attempts=3)
        (spent,) = usage.get_total_tokens().values()
    assert (spent["prompt_tokens"], spent["completion_tokens"]) == (100 + 11 + 10, 7 + 3 + 5)
    assert math.isclose(spent["total_tokens"], 136)


@pytest.mark.parametrize("around", ["{}\n", " {}", "{}\r\n", "\t{} "])
def test_blanks_and_line_breaks_around_a_key_are_removed(around: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", around.format("sk-secret-4711"))
    assert key_from("MY_KEY", "vllm.m") == "sk-secret-4711"


@pytest.mark.parametrize("key", ["sk secret 4711", "sk-secret\n4711", "sk-sécret-4711", "sk-secret\x00"])
def test_a_key_that_a_header_cannot_contain_is_reported_before_anything_is_sent(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, "MY_KEY": key})
    with pytest.raises(
        BackendError, match=r"variable MY_KEY contains blanks, line breaks or characters outside ASCII"
    ) as caught:
        key_from("MY_KEY", "vllm.m")
    assert key not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("backend", "timeout", "max_tokens", "workers"),
    [
        ("vllm.m", 120, 2048, 4),
        ("openai.gpt-4o", 120, 2048, 4),
        ("google.gemini-2.5-flash", 120, 16_000, 4),
        ("ollama.m", 600, 2048, 1),
        ("llamacpp.m", 600, 2048, 1),
        ("lmstudio.m", 600, 2048, 1),
    ],
)
def test_the_settings_of_a_provider_hold_however_it_is_named(
    backend: str, timeout: float, max_tokens: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in KEYS.values():
        monkeypatch.setenv(variable, "key")
    address = "http://127.0.0.1:9/v1"
    section = {"backend": backend, "api_base": address}
    named = (
        StageConfig(**section),
        Config().with_backend(backend, address).executor,
        checked(StageConfig, section, ""),
    )
    for stage in named:
        (model,) = stage_models(stage)
        assert (model.timeout, model.max_tokens, workers_for([model])) == (timeout, max_tokens, workers)
        assert server_of(model).timeout == timeout
        (own,) = stage_models(stage.model_copy(update={"timeout": 7.0, "max_tokens": 99}))
        assert (own.timeout, own.max_tokens) == (7.0, 99)


def test_the_slowest_server_decides_how_many_images_are_in_progress() -> None:
    assert workers_for([StageConfig(backend="openai.m"), StageConfig(backend="ollama.m")]) == 1
    assert workers_for([]) == 4


@pytest.mark.parametrize("model", ["Qwen/Qwen2.5-VL-7B-Instruct", "@cf/meta/llama", "llava:7b@v1", "a//b"])
@pytest.mark.parametrize("address", ["http://127.0.0.1:9/v1", "http://h/a/b@c//d", "http://[::1]:9/v1"])
def test_the_name_of_a_model_is_found_in_that_of_its_connection(model: str, address: str) -> None:
    backend = connect(StageConfig(backend=f"vllm.{model}", api_base=address))
    assert model_of(backend).startswith(f"vllm/{model} at ")
    assert without_place(model_of(backend)) == f"vllm/{model}"


@pytest.mark.parametrize("address", ["{}?api-version=1&x=&x=2", "{}/?api-version=1&x&x=2#top"])
def test_the_query_of_an_address_stays_at_the_end(address: str) -> None:
    with fake_server(STANDS) as server:
        stage = to(server).model_copy(update={"api_base": address.format(server.url)})
        ask(stage)
    assert server.paths == ["/v1/chat/completions?api-version=1&x=&x=2"]


@pytest.mark.parametrize("backend", ["anthropic.m", "google.m"])
def test_the_query_of_an_address_stays_at_the_end_of_native_requests(backend: str) -> None:
    with fake_server(STANDS) as server, suppress(Exception):  # the server answers in another form
        ask(to(server, backend).model_copy(update={"api_base": f"{server.url}?api-version=1"}))
    (path,) = server.paths
    assert path.endswith(("/messages?api-version=1", ":generateContent?api-version=1"))


def test_keys_in_the_query_of_an_address_are_secret() -> None:
    assert secrets_in("http://h/v1?api-version=2024-10-21&subscription-key=abcdef&sig=x%2Fy") == ("abcdef", "x/y")


def test_an_address_of_the_environment_keeps_its_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://proxy.example/?api-version=1")
    provider = row_of("anthropic.m")
    assert provider is not None
    assert default_address(provider)[0] == f"https://proxy.example{provider.path}?api-version=1"
