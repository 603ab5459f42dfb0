"""The backends that have batches, and how each takes them."""

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.batches.offline_file import OfflineFile
from agenticiqa.programs.backends.batches.openai_files import OpenAIFiles
from agenticiqa.programs.backends.batches.services import Service
from agenticiqa.programs.errors import BackendError

SERVICES: dict[str, type[Service]] = {"openai": OpenAIFiles, "vllm": OfflineFile}


def has_batches(backend: str) -> bool:
    """Return whether a backend, such as ``openai.gpt-4o``, has batches."""
    return backend.partition(".")[0] in SERVICES


def service_of(backend: str) -> type[Service]:
    """Return how a backend that has batches takes them."""
    return SERVICES[backend.partition(".")[0]]


def refuse_without_batches(stage: StageConfig) -> None:
    """Raise BackendError for a backend that has no batches."""
    if not stage.is_offline and not has_batches(stage.backend):
        able = " and ".join(f"{name}.<model>" for name in SERVICES)
        raise BackendError(
            f"backend {stage.backend!r} does not support --batch, {able} do: name one of these, or run without --batch"
        )
