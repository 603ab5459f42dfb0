"""Shards assessed by a model: a limit, and the requests of the next run, with the results of JSON lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.eval.cli import main
from agenticiqa.programs.batch.stop_rule import FAILURES_IN_A_ROW
from agenticiqa.programs.scale.table import ShardFolder
from support.fake_server import by_stage, fake_server
from support.images import album_of_squares
from support.loopback import Reply
from support.rated_album import Rater, make_album, rating_configuration
from support.scripted_answers import RATED

IMAGES = 52


def digits(row: dict[str, Any]) -> tuple[Any, ...]:
    fused = {name: value for name, value in (row.get("fusion") or {}).items() if name != "third_tools"}
    return row["image_sha256"], row["quality_score"], row["quality_reasoning"], row["run_fingerprint"], str(fused)


@pytest.mark.slow
def test_a_limit_ends_the_run_and_the_next_run_sends_only_the_remaining_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    album, out, lines = tmp_path / "album", tmp_path / "scores", tmp_path / "lines.jsonl"
    qualities = make_album(album, IMAGES)
    with fake_server(Rater(album, qualities)) as server:
        config = str(rating_configuration(tmp_path, server.url))
        asked = ["assess", str(album), "--config", config, "--no-cache"]
        in_shards = [*asked, "--parquet", str(out), "--shard-images", "16"]
        assert main([*in_shards, "--max-calls", "20"]) == 1
        message = capsys.readouterr().err
        assert "the limit of 20 calls is reached" in message
        assert "run the same command again to continue" in message
        assert len(server.requests) <= 20
        assert len([row for row in ShardFolder(out).rows() if "error" not in row]) >= 6
        assert main(in_shards) == 0
        requests = len(server.requests)
        assert main([*asked, "--jsonl", str(lines)]) == 0
        # An image whose calls the limit cut off begins anew, one for each of the 4 workers at most.
        assert len(server.requests) - requests <= requests <= len(server.requests) - requests + 4
        expected = {digits(json.loads(line)) for line in lines.read_text().splitlines()}
        assert {digits(row) for row in ShardFolder(out).rows()} == expected
        assert len(expected) == IMAGES
        for name, rows in {"shards": out, "lines": lines}.items():
            assert main(["calibrate", "fusion", str(rows), "--out", str(tmp_path / f"{name}.yaml")]) == 0
        assert (tmp_path / "shards.yaml").read_text() == (tmp_path / "lines.yaml").read_text()


@pytest.mark.parametrize("answer", [Reply(status=403, raw_body=b"{}"), ""])
def test_a_server_without_any_usable_answer_is_not_asked_for_each_image(
    answer: Reply | str, tmp_path: Path, waits: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    album, last = album_of_squares(tmp_path / "album", 14), FAILURES_IN_A_ROW + 2
    in_shards = ["assess", str(album), "--backend", "vllm.test", "--mode", "fast", "--workers", "1", "--no-cache"]
    in_shards += ["--shard-images", "4", "--parquet", str(tmp_path / "scores")]
    with fake_server(lambda _: answer) as server:
        in_shards += ["--api-base", server.url]
        assert main(in_shards) == 1
        shown = capsys.readouterr().err
        assert f"the last {last} images had no usable answer; check the errors above" in shown
        assert "or add --keep-going" in shown
        assert len([*ShardFolder(tmp_path / "scores").rows()]) == last
        if answer:
            assert f"{last - 1:02d}.png: " in shown.partition("the last")[0], "also of unfinished shards"
        assert main([*in_shards, "--resume", "--keep-going"]) == (1 if answer else 3)
    assert len([*ShardFolder(tmp_path / "scores").rows()]) == 14


def test_moderated_images_do_not_end_a_run_with_answers_in_other_shards(tmp_path: Path, waits: list[float]) -> None:
    album = album_of_squares(tmp_path / "album", 16)
    answers, moderated = by_stage({"assessment": RATED}), False
    in_shards = ["assess", str(album), "--backend", "vllm.test", "--mode", "fast", "--workers", "1"]
    in_shards += ["--shard-images", "4", "--parquet", str(tmp_path / "scores")]
    with fake_server(lambda request: "no" if moderated else answers(request)) as server:
        in_shards += ["--api-base", server.url]
        assert main([*in_shards, "--limit", "4"]) == 0
        moderated = True
        assert main(in_shards) == 3
    assert len([*ShardFolder(tmp_path / "scores").rows()]) == 16
