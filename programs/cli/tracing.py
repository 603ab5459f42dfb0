"""Optional tracing: one MLflow trace per image, with DSPy's modules and every call to a model."""

import importlib
import os
from collections.abc import Mapping
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import LoadedImage


def begin(experiment: str) -> None:
    """Trace every DSPy module and every call to a model in MLflow from here on.

    Traces hold the name, size and SHA-256 of an image, and prompts an address without a host instead of its bytes.
    Raises UserError when MLflow is not installed or has no experiment of that name.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # MLflow would report its use to its makers
    try:
        mlflow = importlib.import_module("mlflow")
        autolog = importlib.import_module("mlflow.dspy").autolog
    except ImportError as error:
        raise UserError(f"--mlflow needs MLflow ({error}): pip install 'agenticiqa[mlflow]'") from error
    try:
        mlflow.set_experiment(experiment)
    except mlflow.exceptions.MlflowException as error:
        why = str(error).partition("\n")[0]
        raise UserError(f"--mlflow {experiment}: no such experiment at {mlflow.get_tracking_uri()}: {why}") from error
    autolog()
    for callback in dspy.settings.callbacks:
        hide_images(callback)


def hide_images(callback: BaseCallback) -> None:
    """Make a callback log the text of :func:`described` for a loaded image instead of all its bytes.

    The callback itself is changed, not wrapped, since MLflow looks for its own by type.
    """
    start, end = callback.on_module_start, callback.on_module_end

    def on_module_start(call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        start(call_id, instance, described(inputs))

    def on_module_end(call_id: str, outputs: Any | None, exception: Exception | None = None) -> None:
        end(call_id, described(outputs), exception)

    callback.on_module_start = on_module_start
    callback.on_module_end = on_module_end


def described(value: Any) -> Any:
    """The value with a short text for each image or bytes, also inside of mappings, lists and predictions."""
    if isinstance(value, LoadedImage):
        return f"{value.source} ({value.width} x {value.height} pixels, {value.mime}, SHA-256 {value.sha256})"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, dspy.Prediction):
        copy = dspy.Prediction(**{name: described(inner) for name, inner in value.items()})
        copy.set_lm_usage(value.get_lm_usage())
        return copy
    if isinstance(value, Mapping):
        return {name: described(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [described(inner) for inner in value]
    return value
