"""Run the program under DSPy's own tools: four ways to build it, one server that answers all requests, the checks."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import dspy
import numpy as np
from PIL import Image

from agenticiqa.configs import STAGES, Config, StageConfig
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.tools import toolbox
from agenticiqa.signatures.answers.requested import most_tokens
from agenticiqa.signatures.executor import AnalyzeDistortions, DetectDistortions, LocateRegions, SelectTools
from agenticiqa.signatures.planner import Plan
from agenticiqa.signatures.replan import DecideReplan
from agenticiqa.signatures.summarizer import AnswerQuestion, ScoreQuality
from support.fake_server import Server, fake_server, images_of, text_of
from support.loopback import Body, Reply
from support.nodes import all_asking
from support.scripted_answers import ALL, NONE, RATE, plan

SIGNATURES = (
    *(Plan, LocateRegions, DetectDistortions, AnalyzeDistortions, SelectTools),
    *(ScoreQuality, AnswerQuestion, DecideReplan),
)
OURS = {next(iter(signature.output_fields)): signature for signature in SIGNATURES}  # by output field
PLAN, ASSESSMENT, SELECTION = (next(iter(each.output_fields)) for each in (Plan, ScoreQuality, SelectTools))
SEEING = {name for name, signature in OURS.items() if "image" in signature.input_fields}
GIVEN, CONFIGURED, OTHER = "given", "configured", "other"  # models, by the name in the request
OF_A_CUP = "Is the cup sharp?"  # together with RATE it uses all eight signatures
OF_ITS_EDGES = "How sharp are the edges of the cup?"  # another question of this kind
PLACEHOLDER = "held.invalid"
BASE64 = re.compile(r"[A-Za-z0-9+/]{100,}")  # longer than words and digests
LEVELS = ("Fair", "Good", "Poor", "Excellent", "Bad")


@dataclass(frozen=True)
class Expected:
    """The expected models: for the program's requests, by output field if they differ, and for all other requests."""

    model: str
    by_question: Mapping[str, str] = field(default_factory=dict)
    others: frozenset[str] = frozenset()
    images: frozenset[str] | None = None  # sha256 of what may be sent; by default the cell's photos
    shown: int = 1  # images in a question that shows the image
    every_question: bool = False  # whether all signatures are expected


@dataclass
class Cell:
    """A cell of the matrix: the program, its server, and tiny photos."""

    column: str
    server: Server
    program: AgenticIQA
    photos: list[Path]
    folder: Path

    @property
    def configured(self) -> bool:
        """Return whether the program has a model of its own."""
        return self.column in CONFIGURED_COLUMNS

    @property
    def asked(self) -> str:
        """Return the model that is asked under ``model``."""
        return CONFIGURED if self.configured else GIVEN

    @cached_property
    def digests(self) -> frozenset[str]:
        """Return the sha256 of the photos' files."""
        return frozenset(hashlib.sha256(photo.read_bytes()).hexdigest() for photo in self.photos)

    def lm(self, name: str = GIVEN, api_key: str = "none") -> dspy.LM:
        """Return a model that a user of DSPy makes, on the same server."""
        return dspy.LM(f"openai/{name}", api_base=self.server.url, api_key=api_key)

    def asked_for(self, name: str) -> list[Body]:
        """Return the requests for one output field, in the form of any adapter."""
        return [request for request in self.server.requests if name in asked_for(request)[1]]

    def model(self) -> Any:
        """Return a context in which the program has a model: its own, or one of DSPy's context."""
        return nullcontext() if self.configured else dspy.context(lm=self.lm())

    def ask_everything(self, program: Callable[..., Any] | None = None) -> list[Any]:
        """Ask two questions about a photo that together use all eight signatures."""
        return [(program or self.program)(image=self.photos[0], query=query) for query in (RATE, OF_A_CUP)]

    def examples(self) -> list[dspy.Example]:
        """Return the photos as a data set."""
        return [
            dspy.Example(image=str(photo), query=RATE, mos=3.0).with_inputs("image", "query") for photo in self.photos
        ]


@dataclass(frozen=True)
class Row:
    """A row of the matrix, one use of DSPy: its code, its action here, a remark for the page."""

    code: str
    run: Callable[[Cell], Expected]
    remark: str = ""
    given: bool = False  # whether the given model takes precedence over the program's own


def _stage(server: Server) -> StageConfig:
    known: dict[str, Any] = {"structured_outputs": "json_schema", "logprobs": False}
    return StageConfig(backend=f"vllm.{CONFIGURED}", api_base=server.url, max_retries=0, timeout=10.0, **known)


def _from_config(server: Server) -> AgenticIQA:
    stages: dict[str, Any] = {name: _stage(server).model_dump() for name in STAGES}
    return AgenticIQA.from_config(Config(**stages))


COLUMNS: dict[str, Callable[[Server], AgenticIQA]] = {
    "AgenticIQA()": lambda server: AgenticIQA(),
    "from_config": _from_config,
    "own stages": lambda server: all_asking(None, toolbox()),
    "own stages, Backend": lambda server: all_asking(connect(_stage(server)), toolbox()),
}
CONFIGURED_COLUMNS = {"from_config", "own stages, Backend"}
BOTH = ("AgenticIQA()", "from_config")  # a program without a model, and one with its own


@contextmanager
def cell(column: str, photos: list[Path], folder: Path) -> Iterator[Cell]:
    """Yield a program and its server."""
    with fake_server(Model()) as server:
        yield Cell(column, server, COLUMNS[column](server), photos, folder)


def check(cell: Cell, expected: Expected) -> None:
    """Check that every request went to the expected model, with the exact bytes of one of the images."""
    images = cell.digests if expected.images is None else expected.images
    seen: dict[str, set[str]] = {}
    assert cell.server.requests, "nothing was asked"
    for request in cell.server.requests:
        assert PLACEHOLDER not in json.dumps(request)
        assert not BASE64.search(text_of(request)), "an image was sent as text"
        _, fields = asked_for(request)
        ours = [name for name in fields if name in OURS]
        if not ours or set(fields) - {*ours, "reasoning"}:
            assert request["model"] in expected.others, f"{request['model']} was asked for {fields}"
            continue
        if request["model"] in expected.others - {expected.model}:  # this model extracts fields from a text
            assert not images_of(request)
            continue
        (name,) = ours
        assert request["model"] == expected.by_question.get(name, expected.model), f"{name}: {request['model']}"
        shown = digests_in({"messages": request["messages"][-1:]})
        assert len(shown) == (expected.shown if name in SEEING else 0), f"{name} was shown {len(shown)} images"
        assert images.issuperset(digests_in(request)), f"{name} was shown other bytes"
        seen.setdefault(name, set()).update(shown)
    if expected.every_question:
        # A rating's tools are chosen by a table, unless a program is composed without one.
        by_table = getattr(cell.program.executor, "select_for_rating", None) is not None
        assert seen.keys() == OURS.keys() - ({SELECTION} if by_table else set())
    assert set().union(*seen.values()), "no image was sent"


def check_parameters(cell: Cell) -> None:
    """Check that every question requested a schema, temperature 0 and a limit, whoever made the model.

    The configuration of a cell has the same limit for all stages and no ``top_p``; a model that replaces its own gets
    them, too.
    """
    for request in cell.server.requests:
        (name,) = asked_for(request)[1]
        limits = {request.get("max_tokens"), request.get("max_completion_tokens")} - {None}
        is_short = OURS[name] in (ScoreQuality, AnswerQuestion, DecideReplan) and not cell.configured
        largest = 512 if is_short else 2048
        assert limits == {min(most_tokens(request["response_format"]["json_schema"]["schema"]) or largest, largest)}
        assert request["temperature"] == 0
        assert request.get("top_p") == (0.1 if name == PLAN and not cell.configured else None)
        assert request["response_format"]["type"] == "json_schema"
        reads_tokens = name == ASSESSMENT and request["model"] == GIVEN  # the configuration of the cells has none
        assert request.get("top_logprobs", 0) == (20 if reads_tokens else 0)


def digests_in(request: Body) -> list[str]:
    """Return the sha256 of each image in a request, in order."""
    return [hashlib.sha256(data).hexdigest() for _, data in images_of(request)]


class Model:
    """A model that answers the eight questions and DSPy's optimizers, in the form of the requesting adapter.

    Ratings differ from each other, so that optimizers have a choice.
    """

    def __init__(self) -> None:
        self.ratings = count()

    def __call__(self, request: Body) -> Reply | str:
        """Return an answer, in pieces if the request asks for a stream."""
        text = self.text(request)
        return streamed(text, request["model"]) if request.get("stream") else text

    def text(self, request: Body) -> str:
        """Return the text of an answer."""
        form, fields = asked_for(request)
        if not fields:
            return "```\nLook at every region, and name what a careful observer would see.\n```"
        values = {name: self.value(name, request) for name in fields}
        texts = {name: v if isinstance(v, str) else json.dumps(v) for name, v in values.items()}
        if form == "json":
            return json.dumps(values)
        if form == "xml":
            return "\n".join(f"<{name}>\n{escape(text)}\n</{name}>" for name, text in texts.items())
        if form == "chat":
            return (
                "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in texts.items()) + "\n\n[[ ## completed ## ]]"
            )
        return "\n".join(f"{name}: {text}" for name, text in texts.items())

    def value(self, name: str, request: Body) -> Any:
        """Return the value of one output field."""
        if name not in OURS:
            return ADVICE if "advice" in name else f"A careful text about {name}."
        cup = "cup" in text_of(request["messages"][-1])
        region, distortion = ("the cup", "Sharpness") if cup else ("Global", "Blurs")
        signature = OURS[name]
        if signature is Plan:
            named = [{"region": region, "distortions": [distortion]}]
            flags = {**NONE, "distortion_analysis": True}
            source: dict[str, Any] = {"distortion_source": "Explicit", "distortions": named}
            if len(images_of({"messages": request["messages"][-1:]})) == 2:
                source["reference_mode"] = "Full-Reference"
            return plan(region, flags, **source) if cup else plan(region, ALL, **{**source, **INFERRED})
        if signature is LocateRegions:
            return {"regions": [{"region": region, "box": [250, 250, 750, 750]}]}
        if signature is DetectDistortions:
            return {"distortion_set": [{"region": region, "distortions": [distortion]}]}
        if signature is AnalyzeDistortions:
            row = {"region": region, "type": distortion, "severity": "slight"}
            return {"distortion_analysis": [{**row, "explanation": "The edges may be soft.", "uncertain": True}]}
        if signature is SelectTools:
            return {"selected_tools": [{"region": region, "distortion": distortion, "tool": "BLUR-EXTENT"}]}
        if signature is ScoreQuality:
            at = next(self.ratings) % len(LEVELS)
            level = ("Bad", "Poor", "Fair", "Good", "Excellent").index(LEVELS[at]) + 1
            logs = {str(n): -0.3 if n == level else -3.0 - abs(n - level) for n in range(1, 6)}
            return {"quality_level": LEVELS[at], "quality_probs": logs, "quality_reasoning": "Soft edges."}
        if signature is AnswerQuestion:
            return {"final_answer": "It is not sharp.", "quality_reasoning": "The analysis says so."}
        return {"need_replan": False, "replan_reason": ""}


INFERRED: dict[str, Any] = {"distortion_source": "Inferred", "distortions": []}
ADVISED = ("planner.ask.predict", "executor.detect.ask.predict", "summarizer.score.ask.predict")
ADVICE = dict.fromkeys(ADVISED, "Compare the edges with those of a sharp photo.")
_JSON = "Respond with a JSON object in the following order of fields:"
_CHAT = "Respond with the corresponding output fields, starting with the field"
_XML = "Respond with the corresponding output fields wrapped in XML tags"
_TWO_STEP = re.compile(r"Your outputs must contain:\n(.*?)\nYou should lay out", re.DOTALL)


def asked_for(request: Body) -> tuple[str, list[str]]:
    """Return the form of the adapter and the requested output fields, none for a request in another form."""
    last, system = text_of(request["messages"][-1]), text_of(request["messages"][0])
    for form, opening, name in (("json", _JSON, r"`(\w+)`"), ("xml", _XML, r"`<(\w+)>`")):
        if opening in last:
            return form, re.findall(name, last.rpartition(opening)[2].partition("\n")[0])
    if _CHAT in last:
        names = re.findall(r"`\[\[ ## (\w+) ## \]\]`", last.rpartition(_CHAT)[2])
        return "chat", [name for name in names if name != "completed"]
    if found := _TWO_STEP.search(system):
        return "text", re.findall(r"^\d+\. `(\w+)`", found[1], re.MULTILINE)
    return "unknown", []


def streamed(text: str, model: str) -> Reply:
    """Return a reply as OpenAI's server streams it, piece by piece."""
    pieces: list[Body] = [*({"content": piece} for piece in re.findall(r"\s*\S{1,8}|\s+$", text)), {}]
    chunks: list[Body] = [
        {"choices": [{"index": 0, "delta": piece, "finish_reason": None if piece else "stop"}]} for piece in pieces
    ]
    chunks.append({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
    common = {"id": "chatcmpl-test", "object": "chat.completion.chunk", "created": 0, "model": model}
    lines = [json.dumps({**common, **chunk}) for chunk in chunks]
    body = "".join(f"data: {line}\n\n" for line in (*lines, "[DONE]"))
    return Reply(raw_body=body.encode(), headers={"Content-Type": "text/event-stream"})


def tiny_photos(folder: Path, number: int) -> list[Path]:
    """Write small photos with real JPEG and PNG bytes and different contents."""
    paths = []
    for index in range(number):
        rows, columns = np.mgrid[0:48, 0:64]
        plane = 128 + 80 * np.sin(rows / (3 + index)) * np.cos(columns / (5 + index))
        pixels = np.stack([plane, np.roll(plane, index, 0), plane[:, ::-1]], axis=2).astype(np.uint8)
        path = folder / f"photo{index}.{'jpg' if index % 2 == 0 else 'png'}"
        Image.fromarray(pixels).save(path, **({"quality": 90} if index % 2 == 0 else {}))
        paths.append(path)
    return paths
