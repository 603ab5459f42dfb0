"""Photos and shards in an object store: a loopback server with the protocol of S3 or Google."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
import pytest

from agenticiqa.programs.scale.names import SUCCESS
from agenticiqa.programs.scale.table import ShardFolder
from support.shards import png, run_of, write_tar

pytestmark = pytest.mark.slow

IMAGES = 10
# A command of its own, which can be killed: five shards of two images, each .3 s.
COMMAND = """
import sys
from support.instant import InstantIQA
from support.shards import run_of

def slowly(config):
    program = InstantIQA.from_config(config)
    program.seconds = 0.3
    return program

run_of([f"{sys.argv[1]}/album"], f"{sys.argv[1]}/scores", 2, make=slowly)
"""


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    server = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    fsspec.filesystem("s3").clear_instance_cache()
    fsspec.filesystem("s3").mkdir(bucket := uuid4().hex)  # the server's buckets outlive it
    yield f"s3://{bucket}"
    fsspec.filesystem("s3").clear_instance_cache()
    running.stop()


@pytest.fixture
def gs(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    pytest.importorskip("gcsfs", reason="gcsfs is not installed")
    server = pytest.importorskip("gcp_storage_emulator.server", reason="gcp-storage-emulator is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    running = server.create_server("127.0.0.1", port, in_memory=True)
    running.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    fsspec.filesystem("gs").clear_instance_cache()
    fsspec.filesystem("gs").mkdir(bucket := uuid4().hex)  # the server's buckets outlive it
    yield f"gs://{bucket}"
    fsspec.filesystem("gs").clear_instance_cache()
    running.stop()


@pytest.fixture(params=["s3", "gs"])
def store(request: pytest.FixtureRequest) -> str:
    """A bucket with an album of ten images."""
    bucket: str = request.getfixturevalue(request.param)
    fs, root = fsspec.core.url_to_fs(bucket)
    for number in range(IMAGES):
        fs.pipe_file(f"{root}/album/{number}.png", png(20 * number))
    return bucket


def scores(place: str) -> list[tuple[str, Any]]:
    return [(row["image"], row["quality_score"]) for row in ShardFolder(place).rows()]


def test_images_are_read_from_and_shards_written_to_a_store(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = run_of([f"{store}/album"], f"{store}/scores")
    assert (ended.figures["assessed"], ended.problems) == (IMAGES, [])
    (tmp_path / "album").mkdir()
    for number in range(IMAGES):
        (tmp_path / "album" / f"{number}.png").write_bytes(png(20 * number))
    monkeypatch.chdir(tmp_path)
    run_of(["album"], "scores")
    assert scores(f"{store}/scores") == [(f"{store}/{image}", score) for image, score in scores("scores")]
    assert run_of([f"{store}/album"], f"{store}/scores").assessed_before == 3


def test_globs_and_tar_files_in_a_store_are_read(store: str, tmp_path: Path) -> None:
    fs, root = fsspec.core.url_to_fs(store)
    write_tar(tmp_path / "a.tar", {f"{number}.png": png(20 * number) for number in range(5)})
    fs.pipe_file(f"{root}/tars/a.tar", (tmp_path / "a.tar").read_bytes())
    assert run_of([f"{store}/album/[0-3].png"], f"{store}/globbed").figures["assessed"] == 4
    assert run_of([f"{store}/tars"], f"{store}/from-tar").figures["assessed"] == 5
    assert [name for name, _ in scores(f"{store}/from-tar")] == [f"{store}/tars/a.tar/{each}.png" for each in range(5)]


def test_a_killed_command_continues_in_the_store(store: str) -> None:
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = subprocess.Popen([sys.executable, "-c", COMMAND, store], env=here)
    folder = ShardFolder(f"{store}/scores")
    try:
        while len(folder.shards()) < 2 and command.poll() is None:
            time.sleep(0.05)
        assert command.poll() is None, "it was over before it could be killed"
    finally:
        command.send_signal(signal.SIGKILL)
        command.wait()
    before = folder.stamps(folder.shards())
    assert folder.described(SUCCESS) is None
    ended = run_of([f"{store}/album"], f"{store}/scores", 2)
    assert 2 <= ended.assessed_before == len(before) < 5
    assert ended.figures["assessed"] == IMAGES
    run_of([f"{store}/album"], f"{store}/whole", 2)
    assert scores(f"{store}/scores") == scores(f"{store}/whole")
