"""What is kept of a backend from one start to the next, and what follows from it."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.backends.capabilities import (
    Capabilities,
    cache_folder,
    name_of,
    save_capabilities,
    saved_capabilities,
)
from agenticiqa.programs.backends.configured import BackendUse, backends_of
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.limits import LimitReached, Limits
from agenticiqa.programs.cli.probing import prepare
from agenticiqa.programs.errors import BackendError
from support.fake_server import able, bad_key, fake_server, server_error
from support.loopback import Reply

TODAY = datetime.now(UTC).date()
ABLE = Capabilities(True, True, 20, "enforced", False, True, "test", TODAY.isoformat())
SECRET = "hunter2-secret"


def stage(**changes: Any) -> StageConfig:
    return StageConfig(**{"backend": "vllm.test", "api_base": "http://host:8000/v1", "max_retries": 0, **changes})


def keep(found: Capabilities, **changes: Any) -> None:
    save_capabilities(name_of(stage(**changes)), found)


def saved(**changes: Any) -> Capabilities | None:
    return saved_capabilities(name_of(stage(**changes)))


def engine(stage: StageConfig) -> Model:
    backend = connect(stage)
    assert backend is not None
    found = backend.lms[0].engine
    assert isinstance(found, Model)
    return found


def test_what_is_kept_is_known() -> None:
    assert saved() is None
    keep(ABLE)
    assert saved() == ABLE
    keep(replace(ABLE, seed=False))
    assert saved() == replace(ABLE, seed=False)
    assert len(list(cache_folder().iterdir())) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"backend": "vllm.other"},
        {"backend": "ollama.test"},
        {"api_base": "http://host:8001/v1"},
        {"api_base": "http://elsewhere:8000/v1"},
        {"backend": "openai.test", "api_base": None},
        {"backend": "gguf.test", "api_base": None},
    ],
)
def test_every_backend_is_known_for_itself(other: dict[str, Any]) -> None:
    keep(ABLE)
    assert saved(**other) is None


def test_what_does_not_change_the_backend_does_not_matter() -> None:
    keep(ABLE)
    same = stage(api_base="http://host:8000/v1/", temperature=1.0, api_key_env="X", fallback_backend="openai.gpt-4o")
    assert saved_capabilities(name_of(same)) == ABLE


def test_a_model_in_process_is_known_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(ABLE, backend=f"gguf.{tmp_path}/m.gguf", api_base=None)
    monkeypatch.chdir(tmp_path)
    assert saved(backend="gguf.m.gguf", api_base=None) == ABLE
    assert saved(backend="gguf.m.gguf", api_base=None, projector="eyes.gguf") is None


def test_no_secret_is_in_a_file_or_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    with_secrets = stage(api_base=f"http://user:{SECRET}@host:8000/v1?key={SECRET}", api_key_env="MY_KEY")
    save_capabilities(name_of(with_secrets), ABLE)
    assert saved() == ABLE
    (file,) = cache_folder().iterdir()
    assert SECRET not in file.name + file.read_text()
    assert json.loads(file.read_text())["backend"] == "vllm@host:8000/v1//test"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        json.dumps({"backend": "vllm@host:8000/v1//test", "capabilities": {"images": True}}),
        json.dumps({"backend": "vllm@host:8000/v1//test", "capabilities": [1, 2]}),
        json.dumps({"backend": "vllm@host:8000/v1//another", "capabilities": vars(ABLE)}),
        json.dumps({"backend": "vllm@host:8000/v1//test", "capabilities": {**vars(ABLE), "schema": "perhaps"}}),
        "\x00" * 10,
    ],
)
def test_a_file_that_cannot_be_read_is_as_none(text: str) -> None:
    keep(ABLE)
    (file,) = cache_folder().iterdir()
    file.write_text(text)
    assert saved() is None
    keep(ABLE)
    assert saved() == ABLE


def test_a_cache_that_cannot_be_written_is_only_worth_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("AGENTICIQA_CACHE", str(tmp_path / "file"))
    keep(ABLE)
    assert saved() is None
    assert "is not saved" in caplog.text


def test_where_the_files_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTICIQA_CACHE", "/a/b")
    assert cache_folder() == Path("/a/b/capabilities")
    monkeypatch.delenv("AGENTICIQA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_folder() == Path("/x/agenticiqa/capabilities")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache/agenticiqa/capabilities"


FORMS = [
    (None, "json_schema"),
    (ABLE, "json_schema"),
    (replace(ABLE, schema="accepted"), "json_schema"),
    (replace(ABLE, schema="refused", json_object=True), "json_object"),
    (replace(ABLE, schema="refused"), "off"),
]


@pytest.mark.parametrize(("seen", "form"), FORMS)
def test_auto_asks_for_json_in_the_best_way_that_was_seen(seen: Capabilities | None, form: str) -> None:
    if seen:
        keep(seen)
    assert engine(stage()).form == form
    assert engine(stage(structured_outputs="json_schema")).form == "json_schema"
    assert engine(stage(structured_outputs="off")).form == "off"


@pytest.mark.parametrize(("seen", "auto", "always"), [(None, 0, 20), (20, 20, 20), (5, 5, 20), (0, 0, 20)])
def test_auto_asks_for_log_probabilities_that_were_seen(seen: int | None, auto: int, always: int) -> None:
    if seen is not None:
        keep(replace(ABLE, logprobs=seen))
    assert engine(stage()).top_logprobs == auto
    assert engine(stage(logprobs=True)).top_logprobs == always
    assert engine(stage(logprobs=False)).top_logprobs == 0


def config(url: str, **changes: Any) -> Config:
    return Config(summarizer=stage(api_base=url, **changes))


def test_each_backend_is_probed_once_and_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_server("never", probes=able) as server:
        both = Config(executor=stage(api_base=server.url), summarizer=stage(api_base=server.url))
        prepare(both)
        once = len(server.requests)
        prepare(both)
    place = server.url.removeprefix("http://")
    assert once == len(server.requests) == 4 + 0
    assert capsys.readouterr().err == (
        f"vllm@{place}/test: strict JSON schema, several images, seed; no log-probabilities\n"
    )


def test_nothing_is_asked_where_nothing_is_left_open() -> None:
    with fake_server("never", probes=able) as server:
        prepare(Config())
        prepare(config(server.url, structured_outputs="json_schema", logprobs=False))
    assert server.requests == []


def test_a_profile_asks_only_what_it_uses() -> None:
    with fake_server("never", probes=able) as server:
        prepare(Config(executor=stage(api_base=server.url), profile="fast"))
    assert server.requests == []


@pytest.mark.parametrize("outage", [server_error(), bad_key()])
def test_an_outage_ends_the_preparation_and_nothing_is_kept(outage: Reply) -> None:
    with fake_server("never", probes=lambda _: outage) as server, pytest.raises(dspy.LMError):
        prepare(config(server.url))
    assert saved(api_base=server.url) is None


def test_a_fallback_that_is_down_is_only_told(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_server("never", probes=able) as up, fake_server("never", probes=lambda _: server_error()) as down:
        prepare(config(up.url, fallback_backend="ollama.spare", fallback_api_base=down.url))
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("vllm@")
    assert "the fallback ollama@" in second
    assert "something broke" in second


def test_a_backend_that_is_down_and_has_a_fallback_is_only_told(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_server("never", probes=lambda _: server_error()) as down, fake_server("never", probes=able) as up:
        prepare(config(down.url, fallback_backend="ollama.spare", fallback_api_base=up.url))
        first, second = capsys.readouterr().err.splitlines()
        assert first.startswith("agenticiqa: vllm@")
        assert "something broke" in first
        assert second.startswith("ollama@")
        with pytest.raises(dspy.LMServerError):
            prepare(config(down.url))


def test_a_fallback_is_probed_with_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST", "sk-first")
    monkeypatch.setenv("SECOND", "sk-second")
    with fake_server("never", probes=able) as first, fake_server("never", probes=able) as second:
        prepare(
            config(
                first.url,
                api_key_env="FIRST",
                fallback_backend="vllm.spare",
                fallback_api_base=second.url,
                fallback_api_key_env="SECOND",
            )
        )
    assert {headers["authorization"] for headers in first.headers} == {"Bearer sk-first"}
    assert {headers["authorization"] for headers in second.headers} == {"Bearer sk-second"}


def test_a_limit_of_calls_holds_for_the_probe_too() -> None:
    with fake_server("never", probes=able) as server, pytest.raises(LimitReached):
        prepare(config(server.url), Limits(max_calls=0))
    assert server.requests == []


def test_the_backends_of_a_configuration_are_told_once_each() -> None:
    shared = stage(fallback_backend="openai.gpt-4o")
    used = backends_of(Config(executor=shared, summarizer=shared, replan=stage(backend="openai.gpt-4o", api_base=None)))
    assert [(each.stage.backend, each.stages) for each in used] == [
        ("vllm.test", ("executor", "summarizer")),
        ("openai.gpt-4o", ("executor (fallback)", "summarizer (fallback)", "replan")),
    ]
    assert all(each.is_needed for each in used)
    with pytest.raises(BackendError):
        backends_of(Config(executor=stage(fallback_backend="offline")))


def test_starts_at_once_leave_a_whole_file() -> None:
    """What is replaced was written in full beside it."""
    keep(ABLE)

    def start(number: int) -> list[Capabilities | None]:
        seen = []
        for _ in range(20):
            keep(ABLE)
            seen.append(saved())
        return seen

    with ThreadPoolExecutor(8) as pool:
        assert all(found == ABLE for seen in pool.map(start, range(8)) for found in seen)
    (file,) = cache_folder().iterdir()
    assert file.suffix == ".json"
    assert stat.S_IMODE(os.stat(file).st_mode) & 0o077 == 0
    assert name_of(stage()) in file.read_text()
    assert BackendUse(stage(), (), False).name == "vllm@host:8000/v1/test"
