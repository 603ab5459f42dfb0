"""An optional switch: each image as a trace in MLflow, made of DSPy's modules and of every question to a model."""

import importlib
import os
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import LoadedImage


def add_tracing_argument(parser: ArgumentParser) -> None:
    """The option that switches the traces on."""
    parser.add_argument(
        "--mlflow",
        metavar="EXPERIMENT",
        help="keep a trace of each image under this experiment of MLflow, at $MLFLOW_TRACKING_URI",
    )


def begin(experiment: str) -> None:
    """From here on DSPy tells MLflow of every module and every question to a model.

    Images are in the traces by name, size and SHA-256; in a prompt an address that leads nowhere stands for each.
    Raises UserError when MLflow is not installed, or gives no experiment of that name.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing is sent where the user did not ask for it
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
    """Let a callback hear of a loaded image what :func:`described` says; it would write down each of its bytes.

    The callback itself is changed, and not wrapped, since MLflow looks for its own by type.
    """
    start, end = callback.on_module_start, callback.on_module_end

    def on_module_start(call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        start(call_id, instance, described(inputs))

    def on_module_end(call_id: str, outputs: Any | None, exception: Exception | None = None) -> None:
        end(call_id, described(outputs), exception)

    callback.on_module_start = on_module_start
    callback.on_module_end = on_module_end


def described(value: Any) -> Any:
    """The value with a short line of text for each image or its bytes, also in mappings, lists and predictions."""
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
