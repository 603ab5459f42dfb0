"""What a run was made with, kept beside its results, so that nothing else is ever mixed into them."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dspy

from agenticiqa.configs import STAGES, Config
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.stages.ask import CheckedPredict

# How a model is reached may change between two halves of a run; what is asked of which model may not.
TRANSPORT = {
    "api_base",
    "fallback_api_base",
    "api_key_env",
    "fallback_api_key_env",
    "timeout",
    "max_retries",
    "price",
}


def made_with(program: dspy.Module, config: Config, labels: Path, **more: Any) -> dict[str, Any]:
    """What determines the results of a run, as plain JSON types: version, labels, configuration, prompts, and ``more``.

    No address of a server and no name of a key is in it.
    """
    prompts = {name: predictor.signature.instructions for name, predictor in program.named_predictors()}
    return {
        "version": version("agenticiqa"),
        "labels": sha256(labels.read_bytes()),
        "config": config.model_dump(mode="json", exclude={**dict.fromkeys(STAGES, TRANSPORT), "cache": True}),
        "prompts": sha256(json.dumps(prompts, sort_keys=True).encode()),
        "asked": _asked(program),
        **more,
    }


def _asked(program: dspy.Module) -> dict[str, dict[str, Any]]:
    """In which form each question's first model is asked to answer, which a configuration may leave to a probe."""
    asking = {name: part for name, part in program.named_sub_modules() if isinstance(part, CheckedPredict)}
    engines = {name: part.backend.lms[0].engine for name, part in asking.items() if part.backend.lms}
    return {name: {"form": engine.form, "top_logprobs": engine.top_logprobs} for name, engine in engines.items()}


def pin(folder: Path, description: Mapping[str, Any]) -> None:
    """Note in a run's folder what it is made with; raises UserError when it was begun with something else."""
    file = folder / "run.json"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
        return
    try:
        earlier = dict(_leaves(json.loads(file.read_text(encoding="utf-8"))))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot be read ({error}); name another folder") from error
    now = dict(_leaves(json.loads(json.dumps(description))))
    different = [key for key in now | earlier if now.get(key) != earlier.get(key)]
    if different:
        key, *others = different
        more = f" (and {len(others)} more differ)" if others else ""
        raise UserError(
            f"{folder} was begun with another {key}: {_short(earlier.get(key))}, not {_short(now.get(key))}{more}; "
            "name another folder, or use what it was begun with"
        )


def sha256(data: bytes) -> str:
    """The hex digest."""
    return hashlib.sha256(data).hexdigest()


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    else:
        yield path, value


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:24]}..."
