"""Fixtures of the tests against a real llama.cpp server, which assert on form and protocol: its model sees nothing.

The server's log is shown for a test that fails.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenticiqa.programs.cli.main import main
from support.llama_server import INSTALL, MODEL, VARIABLE, LlamaServer, installed, llama_server


@dataclass(frozen=True)
class Ran:
    """A command that has ended: its exit status and what it printed."""

    status: int
    out: str
    err: str


Start = Callable[..., LlamaServer]
Run = Callable[..., Ran]
Configure = Callable[..., str]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how to install what skipped tests need."""
    if any(INSTALL in str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())):
        terminalreporter.write_line(f"The tests against a real server need its packages: {INSTALL}")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the servers' logs. Skips the test without the packages, unless their folder is named."""
    if not installed():
        missing = f"the packages of the server are missing: {INSTALL}"
        if os.environ.get(VARIABLE):
            pytest.fail(missing)
        pytest.skip(missing)
    return tmp_path_factory.mktemp("llama")


@pytest.fixture(autouse=True)
def shown_log(folder: Path) -> Iterator[None]:
    """Print what the servers log during a test, which pytest shows if the test fails."""
    before = {log: log.stat().st_size for log in folder.glob("*.log")}
    yield
    for log in folder.glob("*.log"):
        with log.open(encoding="utf-8", errors="replace") as lines:
            lines.seek(before.get(log, 0))
            if text := lines.read():
                print(f"{log}:\n{text}")


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[LlamaServer]:
    """A server with one slot, which is used by all tests that do not change it."""
    with llama_server(folder) as running:
        yield running


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Start a server of the test's own, with the options of ``llama_server``."""
    with ExitStack() as servers:
        yield lambda **options: servers.enter_context(llama_server(folder, **options))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process."""

    def ran(*arguments: object) -> Ran:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        return Ran(status, *capsys.readouterr())

    return ran


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Write a configuration with the tiny model in each stage, and with other keys."""

    def written(server: LlamaServer, **keys: Any) -> str:
        file = tmp_path / "mine.yaml"
        file.write_text(yaml.safe_dump({"backend": MODEL, "api_base": server.url, "cache": False, **keys}))
        return str(file)

    return written
