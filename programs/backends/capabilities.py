"""What a probe found each backend to support, saved in the user's cache folder between runs.

One small JSON file per backend under ``capabilities`` in ``$AGENTICIQA_CACHE``, else in the user's cache folder of the
system (Linux: ``$XDG_CACHE_HOME/agenticiqa`` or ``~/.cache/agenticiqa``). Provider, server and model make its name;
keys and passwords are in neither its name nor its content.
"""

import hashlib
import json
import logging
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.addresses import public_address
from agenticiqa.programs.images import files
from agenticiqa.programs.images.files import write_atomically

logger = logging.getLogger(__name__)

LONGEST_NAME = 80
DAYS_KEPT = 30


@dataclass(frozen=True)
class Capabilities:
    """What a backend supports.

    ``logprobs`` is the number of alternatives per token, 0 for no log-probabilities: in an answer about an image where
    the backend takes images.
    ``schema`` is what happens to a strict JSON schema: answers obey it (``enforced``), it is taken and ignored
    (``accepted``), or the request is refused (``refused``). ``json_object`` is only probed where the schema is refused.
    ``seed``: a seed is taken, which does not prove that it has an effect. ``model`` is the server's own name for its
    model, ``when`` the day of the probe (ISO, UTC).
    """

    images: bool
    several_images: bool
    logprobs: int
    schema: Literal["enforced", "accepted", "refused"]
    json_object: bool
    seed: bool
    model: str
    when: str

    @property
    def is_current(self) -> bool:
        """Whether this was found in the last 30 days."""
        try:
            age = datetime.now(UTC).date() - date.fromisoformat(self.when)
        except ValueError:
            return False
        return timedelta(-1) <= age <= timedelta(DAYS_KEPT)  # -1: a computer with its clock ahead

    @property
    def is_of_today(self) -> bool:
        """Whether this was found today (UTC)."""
        return self.when == datetime.now(UTC).date().isoformat()

    @property
    def form(self) -> Literal["json_schema", "json_object", "off"]:
        """The best way to ask for JSON."""
        if self.schema != "refused":
            return "json_schema"
        return "json_object" if self.json_object else "off"

    @property
    def structure(self) -> str:
        """How the backend can be asked for JSON, in words."""
        if self.schema == "refused":
            return "JSON objects" if self.json_object else "none"
        return "strict JSON schema" if self.schema == "enforced" else "JSON schema, not enforced"

    def __str__(self) -> str:
        pictures = "several images" if self.several_images else "only one image" if self.images else "images"
        found = {
            "log-probabilities": bool(self.logprobs),
            self.structure if self.structure != "none" else "JSON mode": self.structure != "none",
            pictures: self.images,
            "seed": self.seed,
        }
        has = ", ".join(name for name, able in found.items() if able)
        lacks = ", ".join(f"no {name}" for name, able in found.items() if not able)
        return "; ".join(filter(None, (has, lacks)))


_SAVED: TypeAdapter[Capabilities] = TypeAdapter(Capabilities)


def name_of(stage: StageConfig) -> str:
    """The name of a stage's own backend, without any secret: ``provider@host:port/path//model``."""
    kind, _, model = stage.backend.partition(".")
    if kind == "gguf":
        files = (model, stage.projector)
        return "gguf/" + " with ".join(str(Path(file).expanduser().resolve()) for file in files if file)
    return f"{kind}@{public_address(stage.api_base)}//{model}" if stage.api_base else f"{kind}/{model}"


def saved_capabilities(backend: str) -> Capabilities | None:
    """What is saved of a backend by its ``name_of``, however old; ``None`` where nothing is, or it cannot be read."""
    try:
        saved = json.loads(_file(backend).read_bytes())
        found = _SAVED.validate_python(saved["capabilities"]) if saved["backend"] == backend else None
    except (OSError, ValueError, TypeError, KeyError, ValidationError):
        return None
    # Version 0.1 also saved that every image was refused, which may have been a fault of the server.
    return found if found and found.images else None


def save_capabilities(backend: str, found: Capabilities) -> None:
    """Save what a probe found; logs a warning when the cache cannot be written."""
    text = json.dumps({"backend": backend, "capabilities": asdict(found)}, indent=2)
    try:
        write_atomically(_file(backend), text, private=True)
    except OSError as error:
        logger.warning("what %s supports is not saved, so it is probed again next time: %s", backend, error)


def forget_saved(backend: str) -> None:
    """Remove what is saved of a backend, where it can be."""
    with suppress(OSError):
        _file(backend).unlink(missing_ok=True)


def cache_folder() -> Path:
    """The folder of the files, which may not exist yet."""
    return files.cache_folder() / "capabilities"


def _file(backend: str) -> Path:
    readable = re.sub(r"[^\w.]+", "-", backend)[-LONGEST_NAME:].strip("-")
    return cache_folder() / f"{readable}-{hashlib.sha256(backend.encode()).hexdigest()[:12]}.json"
