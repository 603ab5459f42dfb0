"""What each backend was seen to be able to do, kept from one start to the next.

One small JSON file for each backend in ``$AGENTICIQA_CACHE``, else ``$XDG_CACHE_HOME/agenticiqa``, else
``~/.cache/agenticiqa``, under ``capabilities``. A backend is known by provider, server and model; no key or password
is in its name, so none is in its file.
"""

import hashlib
import json
import logging
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.wire import place
from agenticiqa.programs.images.files import write_atomically

logger = logging.getLogger(__name__)

VARIABLE = "AGENTICIQA_CACHE"
LONGEST_NAME = 80


@dataclass(frozen=True)
class Capabilities:
    """What a backend takes.

    ``logprobs`` is how many alternatives to each token of an answer about an image it gives, 0 for no
    log-probabilities. ``schema`` is what it does with a strict JSON schema: its answers obey it (``enforced``), it
    takes the schema and does not keep to it (``accepted``), or it refuses the request. ``json_object`` is only asked
    for where the schema is refused. ``seed``: it takes one, which does not prove that it heeds it. ``model`` is the
    name that the server gives its model, ``when`` the day that it was asked (ISO, UTC).
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
    def structure(self) -> str:
        """How it can be asked for JSON, in words."""
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


_KEPT: TypeAdapter[Capabilities] = TypeAdapter(Capabilities)


def name_of(stage: StageConfig) -> str:
    """The first backend of a stage as it is known here: ``provider@host:port/path//model``, without any secret."""
    kind, _, model = stage.backend.partition(".")
    if kind == "gguf":
        files = (model, stage.projector)
        return "gguf/" + " with ".join(str(Path(file).expanduser().resolve()) for file in files if file)
    return f"{kind}@{place(stage.api_base)}//{model}" if stage.api_base else f"{kind}/{model}"


def known(stage: StageConfig) -> Capabilities | None:
    """What was seen of a stage's first backend; ``None`` where nothing was, or the file cannot be read."""
    try:
        kept = json.loads(_file(stage).read_bytes())
        return _KEPT.validate_python(kept["capabilities"]) if kept["backend"] == name_of(stage) else None
    except (OSError, ValueError, TypeError, KeyError, ValidationError):
        return None


def remember(stage: StageConfig, seen: Capabilities) -> None:
    """Keep what was seen; a cache that cannot be written is only worth a warning."""
    file = _file(stage)
    text = json.dumps({"backend": name_of(stage), "capabilities": asdict(seen)}, indent=2)
    try:
        write_atomically(file, text, private=True)
    except OSError as error:
        logger.warning("what %s can do is not kept, and is asked again next time: %s", name_of(stage), error)


def folder() -> Path:
    """Where the files are."""
    if own := os.environ.get(VARIABLE):
        return Path(own).expanduser() / "capabilities"
    shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(shared).expanduser() / "agenticiqa" / "capabilities"


def _file(stage: StageConfig) -> Path:
    name = name_of(stage)
    readable = re.sub(r"[^\w.]+", "-", name)[-LONGEST_NAME:].strip("-")
    return folder() / f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:12]}.json"
