"""``--batch`` gives the same results as without, also after faults, and nothing is sent or paid twice."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends import providers
from agenticiqa.programs.backends.connect import server_of
from agenticiqa.programs.backends.provider_batches import driver
from agenticiqa.programs.backends.provider_batches.openai_files import OpenAIFiles, ServiceError
from agenticiqa.programs.batch.cost import Estimate
from agenticiqa.programs.cli.main import main
from support.batch_runs import KEY_VARIABLE, assess, configuration, rows, script, usage
from support.batch_server import FAULTS, RESENT, BatchServer, Fault, batch_server
from support.distortion_levels import blur, scene
from support.loopback import Arrived, Reply, error_reply, loopback
from support.providers import OPENAI, provider_server

KEY = "sk-batch-key"
# Of each kind one, through the whole command; the driver meets all of them (tests/programs/backends/test_batches.py).
QUICK = "ended: expired, one answered"
WHOLE = ("create: no answer after it was made", "create: 401", "answer: 400", "results: cut off twice", QUICK)


@pytest.fixture(scope="session")
def album(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three small photos."""
    folder = tmp_path_factory.mktemp("album")
    for amount in (1, 2, 4):
        Image.fromarray(blur(amount, scene())).resize((128, 96)).save(folder / f"{amount}.png")
    return folder


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setattr(driver, "FIRST_POLL", 0.02)
    monkeypatch.setattr(driver, "LONGEST_POLL", 0.05)


@pytest.fixture(scope="session")
def plain(album: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results of the same album without batches."""
    folder = tmp_path_factory.mktemp("plain")
    with pytest.MonkeyPatch.context() as patch, provider_server(OPENAI, script(), key=KEY) as server:
        patch.setenv(KEY_VARIABLE, KEY)
        patch.setattr(providers, "is_own_network", lambda address: False)  # the server stands for OpenAI
        assert assess(album, configuration(folder, server.url), folder / "plain.jsonl", "--no-cache") == 0
    return folder / "plain.jsonl"


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with batch_server(script(), key=KEY) as running:
        yield running


def test_results_equal_those_without_batches(album: Path, plain: Path, server: BatchServer, tmp_path: Path) -> None:
    out = tmp_path / "scores.jsonl"
    assert assess(album, configuration(tmp_path, server.url), out, "--batch") == 0
    assert rows(out) == rows(plain)
    assert usage(out) == usage(plain), "each request of an image counts once, however often the image is looked at"
    assert len(server.ids()) == usage(plain)["calls"]
    assert not server.sent_twice()
    assert not server.at_once
    assert not server.files, "the files of requests hold the images, and are deleted"


def test_half_the_price_is_counted(album: Path, plain: Path, server: BatchServer, tmp_path: Path) -> None:
    out = tmp_path / "scores.jsonl"
    assess(album, configuration(tmp_path, server.url), out, "--batch")

    def usd(file: Path) -> float:
        found = [json.loads(line)["usage_by_stage"].values() for line in file.read_text().splitlines()]
        return sum(stage["usd"] for stages in found for stage in stages)

    assert usd(out) == pytest.approx(usd(plain) / 2)


def test_the_folder_is_private_and_contains_no_key(album: Path, server: BatchServer, tmp_path: Path) -> None:
    out = tmp_path / "scores.jsonl"
    assess(album, configuration(tmp_path, server.url), out, "--batch")
    folder = tmp_path / "scores.jsonl.batches"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(KEY.encode() not in path.read_bytes() for path in folder.iterdir())
    assert not [path for path in folder.iterdir() if path.suffix == ".jsonl"]


def run_with(fault: str, album: Path, server: BatchServer, folder: Path) -> int:
    """Run a command with this fault, and again if the fault ends it; return the last status."""
    config, out = configuration(folder, server.url), folder / "scores.jsonl"
    server.faults.append(FAULTS[fault])
    status = assess(album, config, out, "--batch")
    return status if status == 0 else assess(album, config, out, "--batch", "--resume")


@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=() if name == QUICK else pytest.mark.slow) for name in WHOLE]
)
def test_a_fault_does_not_change_the_results(
    fault: str, album: Path, plain: Path, server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run_with(fault, album, server, tmp_path)
    said = capsys.readouterr().err
    assert KEY not in said
    assert "Traceback" not in said
    if fault == "answer: 400":
        assert "no" in said, "an answer that refuses the request fails its image, as without batches"
    assert status == 0
    assert rows(tmp_path / "scores.jsonl") == rows(plain)
    assert bool(server.sent_twice()) == (fault in RESENT or fault == "answer: 400")


def test_a_second_process_is_refused(album: Path, server: BatchServer, tmp_path: Path) -> None:
    from agenticiqa.programs.backends.provider_batches.manifest import Manifest

    config = configuration(tmp_path, server.url)
    (tmp_path / "scores.jsonl").touch()
    other = Manifest(tmp_path / "scores.jsonl.batches")
    assert assess(album, config, tmp_path / "scores.jsonl", "--batch") == 2
    other.close()
    assert not server.log


def test_batches_under_way_are_listed_and_canceled(
    album: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "scores.jsonl"

    def interrupted(*args: object) -> bool:
        raise KeyboardInterrupt

    with batch_server(script(), key=KEY, hours=30) as server:
        with monkeypatch.context() as patch:
            patch.setattr(driver.Batches, "look", interrupted)
            assert assess(album, configuration(tmp_path, server.url), out, "--batch") == 130
        assert main(["batches", str(out), "--json"]) == 0
        (listed,) = json.loads(capsys.readouterr().out)
        assert (listed["state"], listed["requests"], listed["handle"]) == ("sent", 3, "batch_1")
        assert main(["batches", str(out), "--cancel"]) == 0
        assert server.batches["batch_1"].state == "cancelled"
        server.hours = 0.02
        assert assess(album, configuration(tmp_path, server.url), out, "--batch", "--resume") == 0
    assert len(rows(out)) == 3


REFUSED = "does not support --batch: use openai.<model>, or run without --batch\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--batch", "--backend", "vllm.x", "--api-base", "http://127.0.0.1:1/v1"), f"'vllm.x' {REFUSED}"),
        (("--batch", "--backend", "anthropic.claude-x"), f"'anthropic.claude-x' {REFUSED}"),
        (("--batch", "--backend", "google.gemini-x"), f"'google.gemini-x' {REFUSED}"),
        (("--batch",), "name one with --backend"),
    ],
)
def test_a_backend_without_batches_is_reported(
    more: tuple[str, ...], message: str, album: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", str(album), "--jsonl", str(tmp_path / "a.jsonl"), *more]) == 2
    assert message in capsys.readouterr().err


def test_a_limit_is_kept_and_reported_before_the_run(
    album: Path,
    server: BatchServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = configuration(tmp_path, server.url)
    assert assess(album, config, tmp_path / "a.jsonl", "--batch", "--max-calls", "3") == 2
    assert "need about 9 calls, more than --max-calls 3" in capsys.readouterr().err
    assert not server.log
    monkeypatch.setattr("agenticiqa.programs.cli.batching.estimate", lambda config, jobs: Estimate())
    assert assess(album, config, tmp_path / "b.jsonl", "--batch", "--max-calls", "7") == 1
    assert len(server.ids()) == 7
    assert "limit of 7 calls" in capsys.readouterr().err
    assert assess(album, config, tmp_path / "b.jsonl", "--batch", "--resume") == 0
    assert len(rows(tmp_path / "b.jsonl")) == 3
    assert not server.sent_twice()


def test_a_dry_run_shows_batches_and_bytes(
    album: Path, server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = configuration(tmp_path, server.url)
    assert main(["assess", str(album), "--config", str(config), "--jsonl", "x", "--batch", "--dry-run"]) == 0
    message = capsys.readouterr().out
    assert "With --batch: 9 requests, 0." in message
    assert main(["assess", str(album), "--config", str(config), "--dry-run"]) == 0
    full, half = (float(each.split("\t")[-1]) for each in _totals(capsys.readouterr().out, message))
    assert half == pytest.approx(full / 2, abs=1e-4)
    assert not server.log


def _totals(*shown: str) -> list[str]:
    """Return the line of totals of each table."""
    return [next(line for line in each.splitlines() if line.startswith("total")) for each in shown]


def test_a_failed_batch_whose_message_repeats_the_key_does_not_show_or_keep_it(
    album: Path, server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    escaped = "".join(f"\\u{ord(character):04x}" for character in KEY)

    def failed(running: BatchServer, _: Any) -> Reply:
        errors = {"object": "list", "data": [{"code": KEY, "message": f"{KEY.upper()} is wrong"}]}
        state = {"id": [*running.batches][-1], "object": "batch", "status": "failed", "errors": errors}
        return Reply(raw_body=json.dumps(state).replace("wrong", f"wrong: {escaped}").encode())

    server.faults.append(Fault("state", failed))
    assert assess(album, configuration(tmp_path, server.url), tmp_path / "scores.jsonl", "--batch") == 2
    said = capsys.readouterr().err
    assert "***: *** is wrong: ***" in said
    kept = b"".join(path.read_bytes() for path in (tmp_path / "scores.jsonl.batches").iterdir())
    assert b"***: *** is wrong: ***" in kept
    for text in (said, kept.decode(errors="replace")):
        assert KEY not in text.lower()


def test_a_login_that_a_provider_of_batches_repeats_is_not_shown() -> None:
    def repeats(arrived: Arrived) -> Reply:
        return error_reply(400, {"error": {"message": f"{arrived.headers['authorization']}, ann:secret-0815"}})

    with loopback(repeats) as address:
        stage = StageConfig(backend="openai.m", api_base=address.replace("//", "//ann:secret-0815@") + "/v1")
        files = OpenAIFiles(server_of(stage))
        with pytest.raises(ServiceError) as raised:
            files.progress("batch_1")
    assert "Basic ***, ann:***" in str(raised.value)
