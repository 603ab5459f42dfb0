"""What DSPy's users do with a module, for a program without a model and one with its own; docs/dspy.md has these rows.

Each cell checks the requests that reached the server: the exact bytes of the image in every question with one, no
placeholder, and only the expected model.
"""

import asyncio
import contextlib
import copy
import csv
import dataclasses
import hashlib
import io
import json
import pickle
import re
import textwrap
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from dspy.clients.base_lm import GLOBAL_HISTORY
from dspy.streaming import StatusMessageProvider
from dspy.utils import DummyLM
from dspy.utils.callback import BaseCallback
from openai.types.chat import ChatCompletion
from PIL import Image

from agenticiqa import ImageExample
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.choice import without_place
from agenticiqa.programs.images import load
from agenticiqa.programs.result import Assessment
from agenticiqa.signatures.summarizer import Answer
from support.dspy_matrix import (
    ADVICE,
    ASSESSMENT,
    BASE64,
    BOTH,
    COLUMNS,
    GIVEN,
    OF_A_CUP,
    OF_ITS_EDGES,
    OTHER,
    OURS,
    PLACEHOLDER,
    PLAN,
    Cell,
    Expected,
    Model,
    Row,
    asked_for,
    cell,
    check,
    check_parameters,
    digests_in,
    tiny_photos,
)
from support.fake_server import text_of
from support.recorded import RECORD
from support.scripted_answers import RATE

pytestmark = pytest.mark.slow

ROWS: list[Row] = []
PAGE = Path(__file__).parents[2] / "docs" / "dspy.md"
PROMPTS = "prompts"  # the model that an optimizer asks for new instructions
INSTRUCTIONS = frozenset({PROMPTS})
CANNED = {"messages": [{"role": "user", "content": ""}]}  # a question without an image


def without_tokens(cell: Cell) -> int:
    """Return the requests that are repeated because the server reports no log-probabilities."""
    return 0 if cell.configured else 1


def row(code: str, remark: str = "", *, given: bool = False) -> Callable[[Callable[[Cell], Expected]], None]:
    """Add a row to the matrix."""

    def add(run: Callable[[Cell], Expected]) -> None:
        ROWS.append(Row(code, run, remark, given))

    return add


def rated(example: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
    """Return how near the score is to the label."""
    return 1 - abs(prediction.quality_score - example.mos) / 4


def with_feedback(
    gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
) -> dspy.Prediction:
    """Return the same for GEPA."""
    return dspy.Prediction(score=rated(gold, pred), feedback="Look at the edges again.")


def one(cell: Cell) -> frozenset[str]:
    """Return the digest of the first photo's file."""
    return frozenset({hashlib.sha256(cell.photos[0].read_bytes()).hexdigest()})


# --- Which model -----------------------------------------------------------------------------------------------------


@row("`dspy.configure(lm=lm)`", "a model of the configuration or of a `Backend` takes precedence")
def _(cell: Cell) -> Expected:
    dspy.configure(lm=cell.lm())
    try:
        cell.ask_everything()
    finally:
        dspy.configure(lm=None)
    check_parameters(cell)
    return Expected(cell.asked, images=one(cell), every_question=True)


@row("`with dspy.context(lm=lm):`", given=True)
def _(cell: Cell) -> Expected:
    with dspy.context(lm=cell.lm()):
        results = cell.ask_everything()
        results.append(asyncio.run(cell.program.acall(cell.photos[0], OF_ITS_EDGES)))
    assert all(set(result.usage) == {"openai/given"} for result in results)
    check_parameters(cell)
    return Expected(GIVEN, images=one(cell), every_question=True)


@row("`program.set_lm(lm)`", "takes precedence over `dspy.context`", given=True)
def _(cell: Cell) -> Expected:
    cell.program.set_lm(cell.lm())
    with dspy.context(lm=cell.lm(OTHER)):
        cell.ask_everything()
    assert cell.program.get_lm().model == "openai/given"
    check_parameters(cell)
    return Expected(GIVEN, images=one(cell), every_question=True)


@row("`predictor.lm = lm`", "answers the requests of this predictor; takes precedence over all others")
def _(cell: Cell) -> Expected:
    predictors = dict(cell.program.named_predictors())
    predictors["summarizer.score.ask.predict"].lm = cell.lm(OTHER)
    with cell.model():
        cell.ask_everything()
    return Expected(cell.asked, {ASSESSMENT: OTHER}, images=one(cell), every_question=True)


class OwnLM(dspy.BaseLM):
    """A user's class of models that sends the messages of DSPy; ``dspy.utils.DummyLM`` is another one."""

    def __init__(self, url: str) -> None:
        super().__init__(model=GIVEN, cache=False)
        self.url = url

    def forward(self, prompt: str | None = None, messages: Any = None, **options: Any) -> Any:
        body = json.dumps({"model": self.model, "messages": messages}).encode()
        request = urllib.request.Request(f"{self.url}/chat/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return ChatCompletion.model_validate_json(response.read())


@row("a `dspy.BaseLM` of your own, `DummyLM`", "DSPy 3.5 drops support for your own `forward`", given=True)
def _(cell: Cell) -> Expected:
    with dspy.context(lm=OwnLM(cell.server.url)), pytest.warns(DeprecationWarning, match=r"BaseLM\.forward\(\)"):
        result, _ = cell.ask_everything()
    assert result.answered_by["scoring"] == [GIVEN]
    assert {stage["input_tokens"] for stage in result.usage_by_stage.values()} == {10}
    assert all(stage["seconds"] > 0 for stage in result.usage_by_stage.values())
    names = {name: {**Model().value(name, CANNED)} for name in OURS}
    with dspy.context(lm=DummyLM([{name: json.dumps(value) for name, value in names.items()}] * 9)):
        assert cell.program(cell.photos[0]).quality_score is not None
    return Expected(GIVEN, images=one(cell), every_question=True)


def awaited(form: Callable[[AgenticIQA], Any]) -> Callable[[Cell], Expected]:
    """Return a row that awaits the program in this form."""

    def run(cell: Cell) -> Expected:
        with cell.model():
            assert asyncio.run(form(cell.program)(image=cell.photos[0])).quality_score is not None
        return Expected(cell.asked, images=one(cell))

    return run


row("`await program.acall(...)`")(awaited(lambda program: program.acall))
row("`dspy.asyncify(program)`")(awaited(dspy.asyncify))


# --- How it is asked -------------------------------------------------------------------------------------------------


def no_image_in(text: str, digests: frozenset[str]) -> bool:
    """Return whether a text, such as a history, has only digests of the images."""
    for digest in digests:
        assert digest in text
        text = text.replace(digest, "")
    return not BASE64.search(text) and PLACEHOLDER not in text


def adapted(cell: Cell, adapter: dspy.Adapter, form: str, **expected: Any) -> Expected:
    """Ask everything through an adapter, sync and async, with a history."""
    cell.program.keep_history = True
    with dspy.context(adapter=adapter), cell.model():
        results = cell.ask_everything()
        results.append(asyncio.run(cell.program.acall(cell.photos[0], OF_ITS_EDGES)))
    assert all(result.rejected_answers == {} for result in results)
    assert all(form in json.dumps(request) for request in cell.server.requests)
    assert no_image_in(repr(cell.program.history), one(cell))
    return Expected(cell.asked, images=one(cell), every_question=True, **expected)


for name, form in (
    ("ChatAdapter", "starting with the field"),
    ("XMLAdapter", "wrapped in XML tags"),
    ("JSONAdapter", "Respond with a JSON object"),
):
    row(f"`dspy.{name}()`")(partial(adapted, adapter=getattr(dspy, name)(), form=form))


@row("`dspy.TwoStepAdapter(lm)`", "`lm` receives the answers as text, never an image")
def _(cell: Cell) -> Expected:
    return adapted(cell, dspy.TwoStepAdapter(cell.lm(OTHER)), "", others=frozenset({OTHER}))


@row("`ChainOfThought` in place of each stage's `Predict`")
def _(cell: Cell) -> Expected:
    for question in cell.program.questions:
        question.predict = dspy.ChainOfThought(question.predict.signature)
    names = [name for name, _ in cell.program.named_predictors()]
    assert len(names) == 8
    assert all(name.endswith(".predict.predict") for name in names)
    with cell.model():
        result, _ = cell.ask_everything()
    assert result.quality_score is not None
    for request in cell.server.requests:
        assert "reasoning" in asked_for(request)[1]
        if cell.configured:
            assert "reasoning" in request["response_format"]["json_schema"]["schema"]["required"]
    return Expected(cell.asked, images=one(cell), every_question=True)


class Captioned(dspy.Module):
    """A user's module with the program in it."""

    def __init__(self, judge: AgenticIQA) -> None:
        super().__init__()
        self.judge = judge
        self.caption = dspy.Predict("score -> caption")

    def forward(self, image: Any) -> dspy.Prediction:
        return self.caption(score=f"{self.judge(image).quality_score:.2f}")


@row("the program in a `dspy.Module` of your own", given=True)
def _(cell: Cell) -> Expected:
    module = Captioned(cell.program)
    module.set_lm(cell.lm())
    assert "caption" in module(image=cell.photos[0]).caption
    assert {name for name, _ in module.named_predictors()} > {"caption", "judge.summarizer.score.ask.predict"}
    return Expected(GIVEN, images=one(cell), others=frozenset({GIVEN}))


# --- What is given and what is kept ----------------------------------------------------------------------------------


@row(
    "`Example(image=...)`: path, bytes, PIL, numpy, `dspy.Image`",
    "sends the bytes of a file, and pixels as lossless PNG",
)
def _(cell: Cell) -> Expected:
    path = cell.photos[0]
    pixels = np.asarray(Image.open(path))
    for given in (str(path), path.read_bytes(), Image.open(path), pixels, dspy.Image.from_path(str(path))):
        with cell.model():
            cell.program(**dspy.Example(image=given, query=RATE).with_inputs("image", "query").inputs())
    drawn = load(pixels)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(drawn.data))), pixels)
    return Expected(cell.asked, images=one(cell) | {drawn.sent_sha256, load(Image.open(path)).sent_sha256})


@row("`Example(image=..., reference=...)`", "sends both, the reference first")
def _(cell: Cell) -> Expected:
    example = dspy.Example(image=cell.photos[0], reference=cell.photos[1]).with_inputs("image", "reference")
    with cell.model():
        cell.program(**example.inputs())
    pair = [hashlib.sha256(photo.read_bytes()).hexdigest() for photo in (cell.photos[1], cell.photos[0])]
    assert all(digests_in(request) in ([], pair) for request in cell.server.requests)
    return Expected(cell.asked, shown=2)


@row("`lm.history`, `dspy.inspect_history()`", "needs `keep_history`; shows images as hash and size")
def _(cell: Cell) -> Expected:
    GLOBAL_HISTORY.clear()  # of what other tests asked
    cell.program.keep_history = True
    with cell.model():
        cell.program(cell.photos[0], RATE)
        shown = io.StringIO()
        dspy.inspect_history(n=1, file=shown)
        models = {id(lm): lm for question in cell.program.questions for lm in question.models}.values()
        kept = [entry for lm in models for entry in lm.history]
        (digest,) = one(cell)
        assert len(kept) == len(cell.server.requests)
        for text in (repr(kept), repr(cell.program.history), repr(GLOBAL_HISTORY)):
            assert PLAN in text
            assert no_image_in(text, one(cell))
        assert "Respond with" in shown.getvalue()
        assert no_image_in(shown.getvalue() + digest, one(cell))
        cell.program.keep_history = False
        cell.program(cell.photos[0], OF_ITS_EDGES)
        assert sum(len(lm.history) for lm in models) == len(kept) < len(cell.server.requests)
    return Expected(cell.asked, images=one(cell))


@row("`result.usage`, `dspy.track_usage()`", "counts the tokens of every model, also by stage")
def _(cell: Cell) -> Expected:
    with cell.model(), dspy.track_usage() as usage:
        result = cell.program(cell.photos[0], RATE)
    asked = len(cell.server.requests)
    stages = result.usage_by_stage.values()
    assert sum(stage["calls"] for stage in stages) == asked
    assert sum(stage["input_tokens"] for stage in stages) == 10 * asked
    assert sum(stage["output_tokens"] for stage in stages) == 5 * asked
    assert [tokens["total_tokens"] for tokens in result.usage.values()] == [15 * asked]
    assert [tokens["total_tokens"] for tokens in usage.get_total_tokens().values()] == [15 * asked]
    return Expected(cell.asked, images=one(cell))


class Recorder(BaseCallback):
    """Records the calls, and the result of each class of modules."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.results: dict[str, Any] = {}
        self.models: list[str] = []

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.names[call_id] = type(instance).__name__

    def on_module_end(self, call_id: str, outputs: Any | None, exception: Exception | None = None) -> None:
        self.results[self.names[call_id]] = outputs

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.models.append(instance.model)


@row("callbacks")
def _(cell: Cell) -> Expected:
    ways = (cell.program, lambda photo: asyncio.run(cell.program.acall(photo)))
    for way, photo in zip(ways, cell.photos, strict=False):
        recorder, before = Recorder(), len(cell.server.requests)
        with cell.model(), dspy.context(callbacks=[recorder]):
            result = way(photo)
        assert len(recorder.models) >= len(cell.server.requests) - before  # the second choice of tools is cached
        assert all(without_place(name).endswith(f"/{cell.asked}") for name in recorder.models)
        found = recorder.results
        assert found.pop("AgenticIQA") is result
        assert isinstance(found.pop("Predict"), dspy.Prediction)
        assert found.keys() >= {"Planner", "Executor", "Detector", "Analyst", "Summarizer", "Replan", "CheckedPredict"}
        assert all(map(dataclasses.is_dataclass, found.values()))
        assert (found["Planner"].plan, found["Executor"].evidence) == (result.plan, result.executor_evidence)
    return Expected(cell.asked)


class Started(StatusMessageProvider):
    """Returns the module that begins as the status message."""

    def module_start_status_message(self, instance: Any, inputs: dict[str, Any]) -> str:
        return type(instance).__name__


@row("`dspy.streamify(program)`, async and sync", "yields status messages and the result")
def _(cell: Cell) -> Expected:
    async def streamed(stream: Any) -> list[Any]:
        return [value async for value in stream(image=cell.photos[0])]

    status = {"status_message_provider": Started()}
    with cell.model():
        awaited = asyncio.run(streamed(dspy.streamify(cell.program, is_async_program=True, **status)))
        threaded = asyncio.run(streamed(dspy.streamify(cell.program, **status)))
        sync = [*dspy.streamify(cell.program, async_streaming=False, **status)(image=cell.photos[0])]
    for values in (awaited, threaded, sync):
        assert isinstance(values[-1], Assessment)
        messages = {value.message for value in values if isinstance(value, dspy.streaming.StatusMessage)}
        assert {"AgenticIQA", "Planner", "Detector", "Analyst", "Scorer", "Replan"} <= messages
    return Expected(cell.asked, images=one(cell))


@row(
    "`dspy.streaming.StreamListener`",
    "streams the `reasoning` of a `ChainOfThought`, with `dspy.ChatAdapter()`",
    given=True,
)
def _(cell: Cell) -> Expected:
    score = cell.program.summarizer.score.ask
    score.predict = dspy.ChainOfThought(score.predict.signature)
    listener = dspy.streaming.StreamListener("reasoning", predict=score.predict.predict, predict_name="scoring")
    with dspy.context(lm=cell.lm(), adapter=dspy.ChatAdapter()):
        stream = dspy.streamify(cell.program, stream_listeners=[listener], async_streaming=False)
        *pieces, result = stream(image=cell.photos[0])
    assert isinstance(result, Assessment)
    assert len(pieces) > 2
    assert "".join(piece.chunk for piece in pieces) == "A careful text about reasoning."
    return Expected(GIVEN, images=one(cell))


# --- Copies and files ------------------------------------------------------------------------------------------------


@row("`deepcopy`, `reset_copy`, `named_predictors`", "a copy keeps the model that was set", given=True)
def _(cell: Cell) -> Expected:
    names = [name for name, _ in cell.program.named_predictors()]
    assert len(names) == len(set(names)) == 8
    cell.program.set_lm(cell.lm())
    copies = [copy.deepcopy(cell.program), cell.program.deepcopy()]
    for copied in copies:
        assert [name for name, _ in copied.named_predictors()] == names
        copied(cell.photos[0])
    reset = cell.program.reset_copy()
    assert {predictor.lm for predictor in reset.predictors()} == {None}
    assert not {id(p) for p in reset.predictors()} & {id(p) for p in cell.program.predictors()}
    return Expected(GIVEN, images=one(cell))


def set_instruction(program: AgenticIQA) -> None:
    predictor = dict(program.named_predictors())["planner.ask.predict"]
    predictor.signature = predictor.signature.with_instructions("Plan with great care.")


def loaded(cell: Cell, name: str) -> AgenticIQA:
    """Return a new program with the prompts of a file."""
    program = COLUMNS[cell.column](cell.server)
    program.load(cell.folder / name)
    return program


def with_instruction(cell: Cell, program: AgenticIQA) -> Expected:
    """Ask a program, and check that the request of the plan has the tuned instruction."""
    with cell.model():
        program(cell.photos[0], RATE)
    assert ["Plan with great care." in json.dumps(request) for request in cell.asked_for(PLAN)] == [True]
    return Expected(cell.asked, images=one(cell))


@row("`program.save(path)`, `load(path)`", "saves prompts, not models; loads predictors with matching fields")
def _(cell: Cell) -> Expected:
    set_instruction(cell.program)
    cell.program.set_lm(cell.lm(api_key="sk-secret"))
    cell.program.save(cell.folder / "tuned.json")
    assert "sk-secret" not in (cell.folder / "tuned.json").read_text()
    return with_instruction(cell, loaded(cell, "tuned.json"))


@row("`load` of a state that `dspy.Module.save` wrote", "if its predictors and fields match")
def _(cell: Cell) -> Expected:
    set_instruction(cell.program)
    dspy.Module.save(cell.program, cell.folder / "plain.json")
    return with_instruction(cell, loaded(cell, "plain.json"))


@row("`save(folder, save_program=True)`, `dspy.load`", "saves no keys; `dspy.load` reads them from the environment")
def _(cell: Cell) -> Expected:
    set_instruction(cell.program)
    cell.program.save(cell.folder / "whole", save_program=True)
    return with_instruction(cell, dspy.load(str(cell.folder / "whole"), allow_pickle=True))


@row("`pickle`")
def _(cell: Cell) -> Expected:
    program = pickle.loads(pickle.dumps(cell.program))
    with cell.model():
        program(cell.photos[0], RATE)
    return Expected(cell.asked, images=one(cell))


# --- Many images -----------------------------------------------------------------------------------------------------


@row("`dspy.Evaluate(save_as_json=..., save_as_csv=...)`", "use paths, or an `ImageExample`")
def _(cell: Cell) -> Expected:
    files = {"save_as_json": str(cell.folder / "rows.json"), "save_as_csv": str(cell.folder / "rows.csv")}
    first, *others = cell.examples()
    in_memory = ImageExample({**dict(first.items()), "image": dspy.Image.from_path(first.image)}).with_inputs(
        "image", "query"
    )
    with cell.model():
        found = dspy.Evaluate(devset=[in_memory, *others], metric=rated, num_threads=2, **files)(cell.program)
    assert 0 < found.score <= 100
    rows = json.loads(Path(files["save_as_json"]).read_text(), parse_constant=pytest.fail)
    assert len(rows) == len(cell.photos)
    assert all(isinstance(line["plan"], dict) for line in rows)
    with open(files["save_as_csv"], newline="") as file:
        assert len(list(csv.DictReader(file))) == len(cell.photos)
    for path in files.values():
        assert not BASE64.search(Path(path).read_text())
    return Expected(cell.asked)


@row("`program.batch(examples)`, `dspy.Parallel`")
def _(cell: Cell) -> Expected:
    with cell.model():
        batched = cell.program.batch(cell.photos, num_threads=2, disable_progress_bar=True)
        pairs = [(cell.program, example.inputs()) for example in cell.examples()]
        parallel = dspy.Parallel(num_threads=2, disable_progress_bar=True)(pairs)
    assert [result.image.source for result in [*batched, *parallel]] == [str(photo) for photo in cell.photos] * 2
    return Expected(cell.asked)


@row("`dspy.BestOfN(program, ...)`", "uses the program's own model, if it has one")
def _(cell: Cell) -> Expected:
    best = dspy.BestOfN(cell.program, N=3, reward_fn=lambda given, result: result.quality_score, threshold=4.9)
    with cell.model():
        result = best(image=str(cell.photos[0]))
    assert isinstance(result, Assessment)
    assert len(cell.asked_for(ASSESSMENT)) == 3 + without_tokens(cell)
    return Expected(cell.asked, images=one(cell))


def sharp(given: Any, result: Any) -> float:
    """Return a reward that needs a second attempt."""
    return float(result.quality_score)


@row("`dspy.Refine(program, ...)`", "asks DSPy's model for advice, so configure one")
def _(cell: Cell) -> Expected:
    refine = dspy.Refine(cell.program, N=2, reward_fn=sharp, threshold=4.9)
    dspy.configure(lm=cell.lm() if not cell.configured else cell.lm(PROMPTS))
    try:
        result = refine(image=str(cell.photos[0]), query=RATE)
    finally:
        dspy.configure(lm=None)
    assert isinstance(result, Assessment)
    assert len(cell.asked_for(ASSESSMENT)) == (
        2 if cell.configured else 3
    )  # one more, because the server reports no log-probabilities
    advised = [
        request for request in cell.server.requests if ADVICE["summarizer.score.ask.predict"] in text_of(request)
    ]
    assert [asked_for(request)[1] for request in advised] == [[PLAN], ["detection"], [ASSESSMENT]]
    return Expected(cell.asked, images=one(cell), others=frozenset({PROMPTS if cell.configured else GIVEN}))


# --- Optimizers ------------------------------------------------------------------------------------------------------


def tuned_by(optimizer: Any, cell: Cell, **given: Any) -> AgenticIQA:
    """Return the program, tuned with two photos by the optimizer."""
    with cell.model():
        tuned: AgenticIQA = optimizer.compile(cell.program, **{"trainset": cell.examples()[:2], **given})
    return tuned


@row("`dspy.LabeledFewShot`", "shows labels with the name and the type of an output")
def _(cell: Cell) -> Expected:
    pixels = np.asarray(Image.open(cell.photos[1]))
    written = Answer(final_answer="Yes.", quality_reasoning="Crisp edges.")
    labeled = [ImageExample(image=pixels, query="Is it sharp?", answer=written).with_inputs("image", "query")]
    tuned = dspy.LabeledFewShot(k=1).compile(cell.program, trainset=labeled)
    with cell.model():
        tuned(cell.photos[0], OF_A_CUP)
    drawn = load(pixels).sent_sha256
    (answer,) = cell.asked_for("answer")
    assert digests_in(answer) == [drawn, *one(cell)]
    return Expected(cell.asked, images=one(cell) | {drawn})


@row("`dspy.BootstrapFewShot`", "each example in the prompt contains its image")
def _(cell: Cell) -> Expected:
    with cell.model():
        tuned = dspy.BootstrapFewShot(rated, max_bootstrapped_demos=1, max_labeled_demos=1).compile(
            cell.program, trainset=cell.examples()
        )
        scorer = dict(tuned.named_predictors())["summarizer.score.ask.predict"]
        assert ["CUSTOM-TYPE" in str(demo.get("image")) for demo in scorer.demos] == [True]
        tuned.save(cell.folder / "tuned.json")
        tuned(cell.photos[1])
        loaded(cell, "tuned.json")(cell.photos[2])
    digests = [hashlib.sha256(photo.read_bytes()).hexdigest() for photo in cell.photos]
    *_, by_tuned, by_loaded = cell.asked_for(ASSESSMENT)
    assert digests_in(by_tuned) == digests[:2]
    assert digests_in(by_loaded) == [digests[0], digests[2]]
    return Expected(cell.asked)


@row("`dspy.BootstrapFewShot(teacher_settings={'lm': lm})`", "the teacher uses `lm`")
def _(cell: Cell) -> Expected:
    optimizer = dspy.BootstrapFewShot(
        rated, teacher_settings={"lm": cell.lm(OTHER)}, max_bootstrapped_demos=1, max_labeled_demos=1
    )
    tuned = optimizer.compile(cell.program, trainset=cell.examples()[:1])
    by_teacher = cell.server.requests.copy()
    assert {request["model"] for request in by_teacher} == {OTHER}
    check(cell, Expected(OTHER, images=one(cell)))
    cell.server.requests.clear()
    with cell.model():
        tuned(cell.photos[1])
    return Expected(cell.asked)


@row("`dspy.BootstrapFewShotWithRandomSearch`")
def _(cell: Cell) -> Expected:
    few = {"max_bootstrapped_demos": 1, "max_labeled_demos": 1, "num_candidate_programs": 1}
    tuned_by(dspy.BootstrapFewShotWithRandomSearch(rated, num_threads=2, **few), cell, valset=cell.examples()[:2])
    return Expected(cell.asked)


@row("`dspy.KNNFewShot`")
def _(cell: Cell) -> Expected:
    embedder = dspy.Embedder(lambda texts: np.array([[len(text), 1.0] for text in texts]))
    knn = dspy.KNNFewShot(1, cell.examples(), embedder, metric=rated, max_bootstrapped_demos=1, max_labeled_demos=1)
    with cell.model():
        tuned = knn.compile(cell.program)
        tuned(image=str(cell.photos[0]), query=RATE)
    return Expected(cell.asked)


@row("`dspy.COPRO`")
def _(cell: Cell) -> Expected:
    optimizer = dspy.COPRO(prompt_model=cell.lm(PROMPTS), metric=rated, breadth=2, depth=1)
    tuned_by(optimizer, cell, trainset=cell.examples()[:1], eval_kwargs={"num_threads": 1, "display_progress": False})
    return Expected(cell.asked, others=INSTRUCTIONS)


@row("`dspy.SIMBA`")
def _(cell: Cell) -> Expected:
    few = {"bsize": 2, "num_candidates": 2, "max_steps": 2, "max_demos": 1}
    tuned_by(dspy.SIMBA(metric=rated, prompt_model=cell.lm(PROMPTS), **few), cell)
    return Expected(cell.asked, others=INSTRUCTIONS)


@row("`dspy.MIPROv2`", "uses its `task_model`; needs `optuna`", given=True)
def _(cell: Cell) -> Expected:
    pytest.importorskip("optuna", reason="MIPROv2 needs optuna")
    optimizer = dspy.MIPROv2(
        metric=rated,
        prompt_model=cell.lm(PROMPTS),
        task_model=cell.lm(),
        auto=None,
        num_candidates=2,
        max_bootstrapped_demos=1,
        max_labeled_demos=0,
        num_threads=1,
    )
    examples = cell.examples()
    optimizer.compile(cell.program, trainset=examples[:2], valset=examples[:2], num_trials=2, minibatch=False)
    return Expected(GIVEN, others=INSTRUCTIONS)


@row("`dspy.GEPA`", "`agenticiqa optimize --optimizer gepa` runs it with this package's metric")
def _(cell: Cell) -> Expected:
    optimizer = dspy.GEPA(
        metric=with_feedback,
        max_metric_calls=12,
        reflection_lm=cell.lm(PROMPTS),
        reflection_minibatch_size=2,
        num_threads=1,
        track_stats=True,
    )
    tuned = tuned_by(optimizer, cell, valset=cell.examples()[:2])
    assert tuned.detailed_results.total_metric_calls >= 4
    assert any(request["model"] == PROMPTS for request in cell.server.requests)
    return Expected(cell.asked, others=INSTRUCTIONS)


# --- The cells, and their table --------------------------------------------------------------------------------------


def cells() -> list[Any]:
    """Return every row for both programs, and the first row for each way to build one."""
    every = [(row, column) for row in ROWS for column in BOTH]
    every += [(ROWS[0], column) for column in COLUMNS if column not in BOTH]
    return [
        pytest.param(row, column, id=f"{re.sub(r'[^a-zA-Z_]+', '-', row.code).strip('-')}-{column}")
        for row, column in every
    ]


def table() -> str:
    """Return the matrix of the page: the rows with a remark, and then the names of all others."""
    lines = ["| | |", "| --- | --- |", *(f"| {row.code} | {row.remark} |" for row in ROWS if row.remark)]
    others = f"Without a remark: {'; '.join(row.code for row in ROWS if not row.remark)}."
    return "\n".join([*lines, "", *textwrap.wrap(others, 130, break_on_hyphens=False)])


@pytest.mark.recorded
def test_the_page_has_this_matrix(recording: bool) -> None:
    head, begin, rest = PAGE.read_text(encoding="utf-8").partition("<!-- the matrix -->\n")
    _, end, tail = rest.partition("\n<!-- end of the matrix -->")
    assert begin
    assert end
    page = f"{head}{begin}{table()}{end}{tail}"
    if recording:
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, RECORD


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return tiny_photos(tmp_path_factory.mktemp("photos"), 4)


@pytest.mark.parametrize(("row", "column"), cells())
def test_dspy(row: Row, column: str, photos: list[Path], tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path), cell(column, photos, tmp_path) as given:
        expected = row.run(given)
        assert (expected.model == GIVEN) == (row.given or not given.configured)
        check(given, expected)
