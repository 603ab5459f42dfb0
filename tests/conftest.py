"""Fixtures every test shares: an isolated cache for DSPy, no keys, and the optional folder of labelled images."""

import math
import os
import shutil
import signal
import tempfile
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from PIL import Image

if TYPE_CHECKING:
    from dspy import lm15

# Read when DSPy and LiteLLM are first imported, so it has to be set before any test module imports them.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # tests import onnxruntime themselves, too
TEMPORARY = Path(tempfile.mkdtemp(prefix="agenticiqa-test-"))
CACHES = count()
os.environ["DSPY_CACHEDIR"] = str(TEMPORARY / "dspy")
OF_CLIENTS = ("OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_GEMINI_", "OLLAMA_", "AGENTICIQA_")
for name in [name for name in os.environ if name.endswith("_API_KEY") or name.startswith(OF_CLIENTS)]:
    del os.environ[name]
os.environ["AGENTICIQA_CACHE"] = str(TEMPORARY / "findings")
# Tests run in a process per core: threads of NumPy's in each of them would only wait for each other's cores.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# A shell's background job starts with Ctrl-C ignored, and so would every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The README's test command has minutes; .ci/run tries the properties again with --hypothesis-profile=thorough.
settings.register_profile("quick", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=60, deadline=None)
settings.load_profile("quick")

ROOT = Path(__file__).resolve().parent.parent

# An installed copy leaves out the research code, which some tests take their sets from: it is read from the checkout.
if str(ROOT / "eval") not in (places := import_module("agenticiqa.eval").__path__):
    places.append(str(ROOT / "eval"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes all recorded texts again."""
    parser.addoption("--record", action="store_true", help="write all recorded texts again, and run nothing else")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Give each process of ``-n`` whole files as long as it can, because tests of a file share fixtures and caches."""
    if config.getoption("numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


def pytest_configure(config: pytest.Config) -> None:
    """With ``--record``, run the recorded texts alone, also slow ones. Raises UsageError for several processes."""
    if config.getoption("--record"):
        if config.getoption("numprocesses", None):
            raise pytest.UsageError("--record runs in one process, because scenes of one file are written in turn")
        config.option.markexpr = "recorded"


@pytest.fixture
def recording(request: pytest.FixtureRequest) -> bool:
    """Whether recorded texts are written again."""
    return bool(request.config.getoption("--record"))


def pytest_unconfigure() -> None:
    """Remove what this process kept on disk."""
    shutil.rmtree(TEMPORARY, ignore_errors=True)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real labelled images beside the checkout; tests that need it are skipped where it is missing."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no labelled images at {folder}")
    return folder


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the six example photos that the repository ships, without the labeled copies."""
    folder = tmp_path_factory.mktemp("shipped") / "examples"
    folder.mkdir()
    for photo in (ROOT / "examples").iterdir():
        if photo.suffix in (".webp", ".jpg", ".png"):
            shutil.copy(photo, folder)
    return folder


@pytest.fixture(scope="session")
def half_examples(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same photos in half of their size: measuring them takes a quarter of the time."""
    folder = tmp_path_factory.mktemp("half") / "examples"
    folder.mkdir()
    for photo in examples.iterdir():
        with Image.open(photo) as whole:
            whole.reduce(2).save(folder / photo.name, quality=90)
    return folder


@pytest.fixture(autouse=True)
def fresh_cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new cache in memory, so that no test is given another's answers, and none of what other servers can do."""
    import dspy

    from agenticiqa.programs.backends import capabilities, in_flight, providers

    if "near" not in request.fixturenames and "real_server" not in request.keywords:
        # Servers on loopback stand for the providers, which the program recognizes by their addresses.
        monkeypatch.setattr(providers, "is_own_network", lambda address: False)

    monkeypatch.setattr(capabilities, "_known", {})
    monkeypatch.setattr(in_flight, "_servers", {})  # a later server may have the port of one that asked to wait
    monkeypatch.setenv("AGENTICIQA_CACHE", str(TEMPORARY / f"cache{next(CACHES)}"))  # made when it is written to
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)


@pytest.fixture
def near() -> None:
    """A server on loopback is one of the user's own, as it is outside of tests."""


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the engine would have waited before each further attempt; nothing waits."""
    from agenticiqa.programs.backends import in_flight

    noted: list[float] = []
    log_retry = in_flight.log_retry

    def note(name: str, attempt: int, error: "lm15.LM15Error", seconds: float) -> None:
        log_retry(name, attempt, error, seconds)
        noted.append(seconds)

    monkeypatch.setattr(in_flight, "log_retry", note)
    monkeypatch.setattr(in_flight, "monotonic", lambda: math.inf)  # every wait is over
    return noted
