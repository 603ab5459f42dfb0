"""The switch for MLflow: what a missing or unreachable one says, and that traces hold everything but images."""

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils.callback import BaseCallback

from agenticiqa.configs import load_config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.cli import tracing
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.images import LoadedImage, load
from support.fake_server import by_stage, fake_server
from support.full_run import SCRIPT, configuration

QUERY = "Rate the perceptual quality of this image."


class Notes(BaseCallback):
    """Writes down what DSPy tells, as MLflow does."""

    def __init__(self) -> None:
        self.started: dict[str, tuple[str, Any]] = {}
        self.ended: dict[str, Any] = {}

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.started[call_id] = (type(instance).__name__, inputs)

    def on_module_end(self, call_id: str, outputs: Any | None, exception: Exception | None = None) -> None:
        self.ended[call_id] = outputs if exception is None else exception


@pytest.fixture
def calm_settings() -> Iterator[None]:
    """What MLflow changes of DSPy's settings, afterwards as it was."""
    callbacks, usage = list(dspy.settings.callbacks), dspy.settings.track_usage
    yield
    dspy.configure(callbacks=callbacks, track_usage=usage)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, calm_settings: None) -> types.ModuleType:
    """A module in MLflow's place: ``experiments`` has the names that were set, and Notes are its callback."""

    class MlflowException(Exception):
        pass

    experiments: list[str] = []
    mlflow, flavor = types.ModuleType("mlflow"), types.ModuleType("mlflow.dspy")
    vars(mlflow).update(
        exceptions=types.SimpleNamespace(MlflowException=MlflowException),
        experiments=experiments,
        set_experiment=experiments.append,
        get_tracking_uri=lambda: "http://nowhere",
    )
    vars(flavor).update(autolog=lambda: dspy.configure(callbacks=[*dspy.settings.callbacks, Notes()]))
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "mlflow.dspy", flavor)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return mlflow


def leaves(value: Any) -> Iterator[Any]:
    """Everything inside of mappings, lists and predictions."""
    if isinstance(value, dict | dspy.Prediction):
        for _, inner in value.items():
            yield from leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def test_without_mlflow_the_message_says_how_to_get_it(
    examples: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)  # as if it were not installed
    assert main(["assess", str(examples / "coffee_jpeg.jpg"), "--mlflow", "mine"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "pip install 'agenticiqa[mlflow]'" in err


def test_a_store_that_gives_no_experiment_is_told_in_one_line(
    examples: Path, capsys: pytest.CaptureFixture[str], stand_in: Any
) -> None:
    def refuse(name: str) -> None:
        raise stand_in.exceptions.MlflowException("out of reach\nand a long story")

    stand_in.set_experiment = refuse
    assert main(["assess", str(examples / "coffee_jpeg.jpg"), "--mlflow", "mine"]) == 2
    err = capsys.readouterr().err
    assert err == "agenticiqa: --mlflow mine: no such experiment at http://nowhere: out of reach\n"


def test_the_switch_names_the_experiment_and_changes_no_result(
    examples: Path, capsys: pytest.CaptureFixture[str], stand_in: Any
) -> None:
    command = ["assess", str(examples / "coffee_jpeg.jpg"), "--json"]
    assert main(command) == 0
    alone = capsys.readouterr().out
    assert main([*command, "--mlflow", "mine"]) == 0
    assert stand_in.experiments == ["mine"]
    (notes,) = [each for each in dspy.settings.callbacks if isinstance(each, Notes)]
    assert next(iter(notes.started.values()))[0] == "AgenticIQA"

    def untimed(text: str) -> list[str]:
        return [line for line in text.splitlines() if not any(word in line for word in ('"ms"', '": 0.', "_ms"))]

    assert [line for line in untimed(alone) if "score" in line] == [
        line for line in untimed(capsys.readouterr().out) if "score" in line
    ]


def test_commands_that_judge_have_the_switch_and_others_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    from agenticiqa.eval.cli import COMMANDS

    for name in ("assess", "evaluate", "tools"):
        with pytest.raises(SystemExit):
            main([name, "--help"], COMMANDS)
        assert ("--mlflow" in capsys.readouterr().out) is (name != "tools")


@pytest.mark.parametrize("form", ["path", "bytes", "loaded"])
def test_a_trace_tells_all_stages_and_holds_no_image(tmp_path: Path, examples: Path, form: str) -> None:
    notes, path = Notes(), examples / "coffee.webp"
    tracing.hide_images(notes)
    image = {"path": path, "bytes": path.read_bytes(), "loaded": load(path)}[form]
    with fake_server(by_stage(SCRIPT)) as server:
        program = AgenticIQA.from_config(load_config(configuration(tmp_path, server.url)))
        with dspy.context(callbacks=[notes]):
            result = program(image, QUERY)
    assert result.quality_score is not None
    assert isinstance(result.image, LoadedImage)
    stages = {name for name, _ in notes.started.values()}
    assert stages >= {
        "AgenticIQA",
        "Planner",
        "Detector",
        "Analyst",
        "TableSelector",
        "Scorer",
        "Replan",
        "CheckedPredict",
        "Predict",
    }
    assert notes.started.keys() == notes.ended.keys()
    told = [*leaves([inputs for _, inputs in notes.started.values()]), *leaves([*notes.ended.values()])]
    assert not [each for each in told if isinstance(each, LoadedImage | bytes)]
    seen = [each for each in told if isinstance(each, str) and "600 x 400 pixels" in each]
    assert seen
    assert all(result.image.sha256 in each for each in seen)
    assert max(len(repr(each)) for each in told) < 20_000


def test_a_prediction_is_described_without_being_changed(examples: Path) -> None:
    image = load(examples / "coffee.webp")
    prediction = dspy.Prediction(image=image, inner={"image": image}, score=3.5)
    prediction.set_lm_usage({"model": {"prompt_tokens": 7}})
    told = tracing.described(prediction)
    assert isinstance(told, dspy.Prediction)
    assert told.score == 3.5
    assert told.get_lm_usage() == {"model": {"prompt_tokens": 7}}
    assert told.inner["image"] == told.image
    assert "image/webp" in told.image
    assert prediction.image is image
    assert prediction.inner["image"] is image
    assert tracing.described(None) is None


def test_in_mlflow_itself_each_image_is_one_trace(
    tmp_path: Path, examples: Path, monkeypatch: pytest.MonkeyPatch, calm_settings: None
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    data = (examples / "coffee.webp").read_bytes()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'traces.db'}")
    with fake_server(by_stage(SCRIPT)) as server:
        program = AgenticIQA.from_config(load_config(configuration(tmp_path, server.url)))
        tracing.begin("mine")
        program(examples / "coffee.webp", QUERY)
    mlflow.flush_trace_async_logging()
    (trace,) = mlflow.search_traces(return_type="list")
    names = [span.name for span in trace.data.spans]
    assert names[0] == "AgenticIQA.forward"
    assert names.count("Planner.forward") == 2
    assert names.count("LM.__call__") == 11
    assert trace.info.token_usage["input_tokens"] == 110
    text = str(trace.to_dict())
    assert "held.invalid" in text
    assert len(text) < 2 * len(data)
    assert repr(data[:60])[2:-1] not in text
