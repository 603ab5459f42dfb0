"""List the backends that have a Batch API and their services, and raise errors for other backends."""

from pathlib import Path

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.provider_batches.manifest import Manifest
from agenticiqa.programs.backends.provider_batches.offline_file import OfflineFile
from agenticiqa.programs.backends.provider_batches.openai_files import OpenAIFiles
from agenticiqa.programs.backends.provider_batches.services import Service
from agenticiqa.programs.backends.providers import PROVIDERS
from agenticiqa.programs.errors import BackendError, UserError
from agenticiqa.programs.images.files import printable_path

SERVICES: dict[str, type[Service]] = {"files": OpenAIFiles, "vllm run-batch": OfflineFile}


def has_batches(backend: str) -> bool:
    """Return whether a backend, such as ``openai.gpt-4o``, has a Batch API."""
    provider = PROVIDERS.get(backend.partition(".")[0])
    return provider is not None and provider.batches is not None


def service_of(backend: str) -> type[Service]:
    """Return the service of a backend that has a Batch API."""
    return SERVICES[str(PROVIDERS[backend.partition(".")[0]].batches)]


def refuse_without_batches(stage: StageConfig) -> None:
    """Raise BackendError for a backend without a Batch API."""
    if not stage.is_offline and not has_batches(stage.backend):
        able = " or ".join(f"{name}.<model>" for name, each in PROVIDERS.items() if each.batches)
        raise BackendError(f"backend {stage.backend!r} does not support --batch: use {able}, or run without --batch")


def open_manifest(folder: Path, *, shared: bool = False) -> Manifest:
    """Open the manifest of a run. Raise UserError if it has an open batch of a backend that lost its Batch API."""
    manifest = Manifest(folder, shared=shared)
    for batch in manifest.batches():
        if not has_batches(batch.backend):
            manifest.close()
            raise UserError(
                f"{printable_path(folder)}: batch {batch.n} ({batch.handle or 'not sent yet'}) is for {batch.backend}, "
                "which no longer supports --batch: cancel the batch at the provider, delete this folder, and run "
                "without --batch"
            )
    return manifest
