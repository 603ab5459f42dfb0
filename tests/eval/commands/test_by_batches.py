"""``evaluate --batch`` and ``calibrate fusion --batch``: the same rows as without, and no synchronous requests."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agenticiqa.eval.cli import main
from agenticiqa.programs.backends.provider_batches import driver
from support import question_archives as archives
from support.batch_runs import KEY_VARIABLE, always, configuration, rows, script
from support.batch_server import BatchServer, batch_server
from support.distortion_levels import blur, scene
from support.fake_server import bad_json, field_of
from support.loopback import Body
from support.providers import OPENAI, provider_server

KEY = "sk-batch-key"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    monkeypatch.setattr(driver, "FIRST_POLL", 0.02)
    monkeypatch.setattr(driver, "LONGEST_POLL", 0.05)
    with batch_server(script(), key=KEY) as running:
        yield running


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    for mos, amount in ((5, 1), (4, 2), (2, 4)):
        Image.fromarray(blur(amount, scene())).resize((128, 96)).save(tmp_path / f"{mos}.png")
    table = tmp_path / "labels.csv"
    table.write_text("image,mos\n" + "".join(f"{mos}.png,{mos}\n" for mos in (5, 4, 2)))
    return table


def batched(command: list[str], server: BatchServer, folder: Path) -> list[str]:
    """Return the command with --batch, a configuration for the server, and the run in ``folder``/batch."""
    settings = ["--config", str(configuration(folder, server.url)), "--out", str(folder / "batch")]
    return [*command, *settings, "--batch"]


@pytest.mark.slow
def test_a_benchmark_has_the_same_rows_with_and_without_batches(
    labels: Path, server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", str(labels), "--mos-range", "1", "5", "--no-cache"]
    with provider_server(OPENAI, script(), key=KEY) as at_once:
        plain = configuration(tmp_path, at_once.url)
        assert main([*command, "--config", str(plain), "--out", str(tmp_path / "plain")]) == 0
    with_batches = batched(command, server, tmp_path)
    assert main([*with_batches, "--dry-run"]) == 0
    assert "With --batch: 9 requests" in capsys.readouterr().out
    assert main([*with_batches, "--max-calls", "3"]) == 2
    assert "need about 9 calls" in capsys.readouterr().err
    assert not server.log
    assert main(with_batches) == 0
    assert not server.at_once
    assert rows(tmp_path / "batch" / "results.jsonl") == rows(tmp_path / "plain" / "results.jsonl")
    assert main(["batches", str(tmp_path / "batch"), "--json"]) == 0


def chosen(request: Body) -> Any:
    """Return an answer that depends on the question; one question gets no usable answer."""
    usable = {"final_answer": "B", "quality_reasoning": "Seen."}
    return bad_json() if "sign" in field_of(request, "query") else usable


MARKS = ("name", "truth", "answer", "correct", "unparsed", "final_answer", "plan", "rejected_answers")


def marks(run: Path) -> dict[str, dict[str, Any]]:
    """Return the graded answer to each question, by name."""
    read = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    return {f"{row['name']}": {mark: row.get(mark) for mark in MARKS} for row in read}


def test_questions_are_answered_as_without_batches(server: BatchServer, tmp_path: Path) -> None:
    """The questions include one with a rejected answer, and one without a usable answer."""
    archives.qbench(tmp_path, rows=archives.QBENCH_ROWS[1:3])
    answers = script(answer=always("answer", [bad_json(), chosen]))
    server.script = answers
    command = ["evaluate", "qbench", "--root", str(tmp_path)]
    with provider_server(OPENAI, answers, key=KEY) as at_once:
        plain = configuration(tmp_path, at_once.url)
        assert main([*command, "--config", str(plain), "--no-cache", "--out", str(tmp_path / "plain")]) == 0
    assert main(batched(command, server, tmp_path)) == 0
    assert not server.at_once
    assert not server.sent_twice()
    found = marks(tmp_path / "batch")
    assert found == marks(tmp_path / "plain")
    assert {name: mark["unparsed"] for name, mark in found.items()} == {"0 00000.png": False, "1 00001.png": True}


@pytest.mark.slow
def test_a_profile_is_fitted_to_answers_of_batches(server: BatchServer, tmp_path: Path) -> None:
    for number in range(10):  # the minimum for a profile
        Image.fromarray(blur(1, scene(seed=number))).resize((128, 96)).save(tmp_path / f"{number}.png")
    config, out = configuration(tmp_path, server.url), tmp_path / "fusion.yaml"
    command = [
        "calibrate",
        "fusion",
        *map(str, tmp_path.glob("*.png")),
        "--config",
        str(config),
        "--out",
        str(out),
        "--batch",
    ]
    assert main(command) == 0
    assert not server.at_once
    assert len(rows(tmp_path / "fusion.rows.jsonl")) == 10
    assert out.is_file()
