"""Keys and passwords in addresses are sent to their server only, and written nowhere."""

import base64
import json
import logging
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus

import dspy
import pytest

from agenticiqa.configs import load_config
from agenticiqa.eval.cli import main
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.connect import connect
from support.fake_server import Script, Server, bad_json, by_stage, fake_server, in_turn
from support.loopback import Reply, error_reply
from support.scripted_answers import ASSESSMENT

pytestmark = pytest.mark.slow

MakeLabels = Callable[..., Path]

KEY, KEY_ENV = "sk-very-secret-4711", "SECRETS_TEST_KEY"
QUOTED, PASSWORD = "pass-w%C3%B6rd-0815", "pass-wörd-0815"
BASIC = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
IN_QUERY = "q/uery+key-1904"
SECRETS = (KEY, QUOTED, PASSWORD, "pass-w\\u00f6rd-0815", BASIC, IN_QUERY, quote_plus(IN_QUERY), quote(IN_QUERY))


def answers() -> Script:
    """Return a first answer that is rejected, then valid ones."""
    return by_stage({"assessment": [bad_json(), ASSESSMENT], "color": {"color": "grey"}})


@dataclass(frozen=True)
class Login:
    """A form of credentials: the header that the server gets, the secret that it may repeat, and the configuration."""

    authorization: str
    repeated: str
    address: Callable[[str], str]
    lines: str = ""

    def configured(self, server: Server, folder: Path) -> Path:
        """Write a configuration into a separate folder, the only place where an address may contain a password."""
        file = folder / "own" / "mine.yaml"
        file.parent.mkdir(exist_ok=True)
        settings = f"backend: vllm.test, api_base: '{self.address(server.url)}', max_retries: 0{self.lines}"
        file.write_text(f"summarizer: {{{settings}}}\n")
        return file


LOGINS = {
    "a key": Login(f"Bearer {KEY}", KEY, lambda url: url, f", api_key_env: {KEY_ENV}"),
    "a password": Login(f"Basic {BASIC}", f"{PASSWORD}, {QUOTED}", lambda url: url.replace("//", f"//ann:{QUOTED}@")),
    "a key in the query": Login("", IN_QUERY, lambda url: f"{url}?api-version=2024-10&api-key={quote_plus(IN_QUERY)}"),
}


@pytest.fixture(params=LOGINS)
def login(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Login:
    """Return each form of credentials in turn; DSPy's cache is on disk, so that the test can search it."""
    monkeypatch.setenv(KEY_ENV, KEY)
    dspy.configure_cache(enable_disk_cache=True, enable_memory_cache=False, disk_cache_dir=str(tmp_path / "cache"))
    return LOGINS[request.param]


@pytest.fixture
def written(tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """Return everything that was printed, logged at any level, or written to a file other than the configuration."""
    caplog.set_level(logging.DEBUG)

    def everything() -> str:
        folders = (tmp_path, Path(os.environ["AGENTICIQA_CACHE"]))
        files = [
            file for folder in folders for file in folder.rglob("*") if file.is_file() and file.name != "mine.yaml"
        ]
        kept = b"\n".join([str(file).encode() + file.read_bytes() for file in files]).decode(errors="replace")
        return "\n".join([kept, *capfd.readouterr(), caplog.text])

    return everything


def free_of_secrets(text: str) -> bool:
    """Return whether no secret is in the text. Tests do not use ``in``, because a failure would print the text."""
    return not any(secret in text for secret in SECRETS)


def test_assessing_writes_no_secret(
    login: Login, make_labels: MakeLabels, tmp_path: Path, written: Callable[[], str]
) -> None:
    folder = make_labels(scenes=1).parent
    with fake_server(answers()) as server:
        config = login.configured(server, tmp_path)
        kept = ["--jsonl", str(tmp_path / "scores.jsonl"), "--log", str(tmp_path / "log.jsonl")]
        assert main(["assess", str(folder), *kept, "--config", str(config), "-vv", "--workers", "1"]) == 0
        assert {headers.get("authorization", "") for headers in server.headers} == {login.authorization}
    text = written()
    assert ASSESSMENT["quality_reasoning"] in text
    assert "rejected" in text
    assert (tmp_path / "log.jsonl").stat().st_size > 1000
    assert free_of_secrets(text)


def test_evaluating_and_the_tuned_prompts_write_no_secret(
    login: Login, make_labels: MakeLabels, tmp_path: Path, written: Callable[[], str]
) -> None:
    labels, run = make_labels(scenes=1), tmp_path / "run"
    with fake_server(answers()) as server:
        config = login.configured(server, tmp_path)
        command = ["evaluate", str(labels), "--workers", "1", "--config", str(config)]
        assert main([*command, "--out", str(run), "-vv"]) == 0
        program = AgenticIQA.from_config(load_config(config))
        program.save(tmp_path / "tuned.json", {"run": str(run)})
        assert main(["backends", "--config", str(config), "--probe"]) == 0
    assert {file.name for file in run.iterdir()} >= {"run.json", "results.jsonl", "report.json"}
    assert (tmp_path / "tuned.json").exists()
    assert free_of_secrets(written())


def echo(login: Login, status: int) -> Reply:
    """Return an error message that repeats the credentials."""
    message = f"this is no good: {login.authorization} ({login.repeated})"
    return Reply(status=status, raw_body=message.encode()) if status == 200 else error_reply(status, {"error": message})


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 429, 500])
def test_a_secret_in_an_answer_of_a_server_is_not_shown(
    login: Login, status: int, make_labels: MakeLabels, tmp_path: Path, written: Callable[[], str]
) -> None:
    folder = make_labels(scenes=1, levels=(0,)).parent
    with fake_server(echo(login, status)) as server:
        config = login.configured(server, tmp_path)
        log = ["--log", str(tmp_path / "log.jsonl")]
        assert main(["assess", str(folder), *log, "--config", str(config), "-vv", "--workers", "1"]) == 1
        stage = load_config(config).summarizer
        backend = connect(stage)
        assert backend is not None
        with pytest.raises(dspy.LMError) as caught:
            backend.lms[0]("Are you there?")
    text = written()
    assert "***" in text
    assert free_of_secrets(text)
    shown = [*traceback.format_exception(caught.value), repr(caught.value), repr(caught.value.__cause__), repr(backend)]
    shown += [repr(lm) + repr(vars(lm)) for lm in backend.lms]
    assert free_of_secrets("".join(shown))


def test_the_address_of_an_unreachable_server_is_shown_without_its_password(
    make_labels: MakeLabels, tmp_path: Path, written: Callable[[], str]
) -> None:
    folder = make_labels(scenes=1, levels=(0,)).parent
    with fake_server(in_turn("never")) as stopped_server:
        config = LOGINS["a password"].configured(stopped_server, tmp_path)
    assert main(["assess", str(folder), "--config", str(config), "-vv", "--workers", "1"]) == 1
    text = written()
    assert "refused" in text
    assert free_of_secrets(text)


def test_a_secret_in_an_answer_of_a_model_is_not_saved(
    login: Login, make_labels: MakeLabels, tmp_path: Path, written: Callable[[], str]
) -> None:
    folder = make_labels(scenes=1, levels=(0,)).parent
    answer = {**ASSESSMENT, "quality_reasoning": f"Soft, {login.repeated}, {login.authorization}\x1b[2J"}
    accepted = json.dumps({"assessment": answer})
    rejected = json.dumps({"assessment": {**answer, "quality_level": login.repeated}})
    rows = tmp_path / "scores.jsonl"
    with fake_server(in_turn(rejected, accepted)) as server:
        config = login.configured(server, tmp_path)
        kept = ["--jsonl", str(rows), "--log", str(tmp_path / "log.jsonl")]
        assert main(["assess", str(folder), *kept, "--config", str(config), "-vv", "--workers", "1"]) == 0
    text = written()
    assert "***" in rows.read_text(encoding="utf-8")
    assert any((tmp_path / "cache").rglob("*.db")), "the cache is among the files"
    assert free_of_secrets(text)
    assert "\x1b" not in rows.read_text(encoding="utf-8"), "JSON escapes control sequences"


@pytest.mark.parametrize("wrong", ["http://ann:{}@", "ftp://ann:{}@host/v1", "http://ann:{}@host:port/v1"])
def test_a_wrong_address_is_shown_without_its_password(
    wrong: str, make_labels: MakeLabels, written: Callable[[], str]
) -> None:
    folder = make_labels(scenes=1, levels=(0,)).parent
    address = wrong.format(QUOTED)
    assert main(["assess", str(folder), "--backend", "vllm.test", "--api-base", address, "-vv"]) in (1, 2)
    assert free_of_secrets(written())
