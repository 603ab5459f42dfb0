"""The result of the program: its short repr, its plain JSON, and its use as a dspy.Prediction."""

import copy
import io
import json
import pickle
import re
import tracemalloc
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from PIL import Image
from pydantic import BaseModel

from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.images import UndecodedImage, load
from agenticiqa.programs.page.notebook import MAX_ROWS
from agenticiqa.programs.result import Assessment, sent_forms
from agenticiqa.signatures.types import ToolCall

HOSTILE = '"><script>alert(1)</script>&<img src=http://127.0.0.1:9/x onerror=alert(2)>.png'


@pytest.fixture(scope="module")
def program() -> AgenticIQA:
    return AgenticIQA.offline()


@pytest.fixture(scope="module")
def scored(program: AgenticIQA, examples: Path) -> Assessment:
    return program(examples / "coffee_jpeg.jpg", reference=examples / "coffee.webp")


@pytest.fixture(scope="module")
def answered(program: AgenticIQA, examples: Path) -> Assessment:
    return program(examples / "astronaut_blur.png", "What is the main distortion?\nA) noise\nB) blur")


class Elements(HTMLParser):
    """Every element of some HTML with its attributes, and its text; raises ValueError where tags do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()
        if self.open:
            raise ValueError(f"never closed: {self.open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open.pop() != tag:
            raise ValueError(f"{tag} closed where another was open")

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def loads_nothing(elements: Elements) -> bool:
    """No script, style sheet, link or address: the only thing shown is in a data URI."""
    allowed = {"div", "span", "table", "tr", "th", "td", "img"}
    attributes = {name for _, given in elements.found for name in given}
    sources = [given["src"] or "" for tag, given in elements.found if tag == "img"]
    styles = " ".join(given.get("style") or "" for _, given in elements.found)
    return (
        {tag for tag, _ in elements.found} <= allowed
        and attributes <= {"style", "src", "alt", "title"}
        and all(re.fullmatch(r"data:image/jpeg;base64,[A-Za-z0-9+/=]+", source) for source in sources)
        and "url(" not in styles
    )


# --- attributes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["scored", "answered"])
def test_every_key_of_the_row_is_an_attribute_of_the_same_content(which: str, request: pytest.FixtureRequest) -> None:
    result: Assessment = request.getfixturevalue(which)
    row = result.to_dict()
    plain = {**result.toDict(), "timings_ms": row["timings_ms"]}  # rounded in the row
    for key, value in row.items():
        attribute = getattr(result, key)
        assert value == (plain[key] if key in plain else json.loads(json.dumps(attribute)))
    assert result.score == row["quality_score"]


def test_the_notebook_shows_the_interval_of_a_score(scored: Assessment, answered: Assessment) -> None:
    assert scored.score_interval is not None
    low, high = scored.score_interval["80"]
    assert f"80 % interval: {low:.1f} to {high:.1f}" in Elements(scored._repr_html_()).text
    assert "80 %" not in Elements(answered._repr_html_()).text


# --- repr ------------------------------------------------------------------------------------------------------------


def test_a_repr_is_one_line_with_image_score_level_and_distortions(scored: Assessment, examples: Path) -> None:
    assert repr(scored) == (
        f"<Assessment of {examples / 'coffee_jpeg.jpg'}: {scored.quality_score:.2f} of 5 (Poor); extreme Compression>"
    )
    assert str(scored) == repr(scored)


def test_a_repr_of_an_answer_is_short_and_has_no_distortion_that_is_not_there(answered: Assessment) -> None:
    severities = [item.severity for items in answered.executor_evidence.distortion_analysis.values() for item in items]
    assert "none" in severities
    assert repr(answered).endswith("astronaut_blur.png: 'B'; severe Blurs>")
    assert len(repr(answered.copy(final_answer="word " * 5000))) < 250
    assert "\n" not in repr(answered.copy(final_answer="two\nlines"))


def test_a_result_without_fields_has_a_repr_and_html() -> None:
    assert repr(Assessment()) == "<Assessment: >"
    assert Assessment()._repr_html_() == ""


# --- JSON ------------------------------------------------------------------------------------------------------------


def test_to_dict_is_plain_json_with_the_documented_keys(scored: Assessment) -> None:
    row = scored.to_dict()
    assert json.loads(json.dumps(row, allow_nan=False)) == row
    assert list(row) == [
        "image", "image_sha256", "reference", "reference_sha256", "width", "height", "jpeg_quality", "effective_side",
        "sent", "reference_check", "query", "query_type", "options", "final_answer",
        "quality_score", "quality_level", "main_distortion", "severity", "distortions", "caveats",
        "score_interval", "score_without_model", "disagreement", "quality_reasoning",
        "quality_probs", "probability_source", "probability_mass",
        "probability_mass_from", "outside_training", "plan", "executor_evidence",
        "summarizer_result", "iteration_count", "replan_history",
        "backend", "rejected_answers", "usage", "usage_by_stage", "answered_by", "answer_notes", "capabilities",
        "timings_ms", "version",
    ]  # fmt: skip
    assert row["quality_level"] == "Poor"
    assert row["quality_score"] == scored.quality_score
    assert row["image_sha256"] == scored.image.sha256
    assert (row["width"], row["height"]) == scored.image.size


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formats", "image", "reference"),
    [
        ({}, None, None),
        ({"a": ["jpeg", "png", "webp"]}, "file", "measured pixels (WebP)"),
        ({"a": ["jpeg", "png"]}, "measured pixels (PNG)", "measured pixels (PNG)"),
        ({"a": ["jpeg", "png", "webp"], "b": ["png"]}, "file or measured pixels (PNG)", None),
        ({"a of the caller": None}, "file", "measured pixels (PNG)"),
    ],
)
def test_the_result_describes_the_data_sent_to_models(
    examples: Path, formats: dict[str, list[str] | None], image: str | None, reference: str | None
) -> None:
    transparent = Image.open(examples / "coffee.webp").convert("RGB")
    transparent.putalpha(128)
    file = io.BytesIO()
    transparent.save(file, "PNG")
    given = {"image": image} | ({"reference": reference} if reference else {})
    result = Assessment(
        image=load(examples / "coffee.webp"),
        reference=load(file.getvalue()) if reference else None,
        capabilities={model: {"image_formats": taken} for model, taken in formats.items()},
    )
    assert sent_forms(result) == (given if formats else None)


def test_a_model_of_pydantic_has_a_result_as_its_row(scored: Assessment) -> None:
    class Reply(BaseModel):
        result: Assessment

    assert json.loads(Reply(result=scored).model_dump_json()) == {"result": scored.to_dict()}
    assert Reply.model_json_schema(mode="serialization")["properties"]["result"]["type"] == "object"


def test_an_endpoint_returns_a_result_as_its_row(scored: Assessment) -> None:
    fastapi = pytest.importorskip("fastapi")
    app = fastapi.FastAPI()

    @app.get("/")
    def endpoint() -> Assessment:
        return scored

    reply = pytest.importorskip("fastapi.testclient").TestClient(app).get("/")
    assert reply.json() == scored.to_dict()


def test_dspys_to_dict_is_plain_json_with_the_names_of_the_fields(scored: Assessment, answered: Assessment) -> None:
    for result in (scored, answered):
        fields = result.toDict()
        assert json.loads(json.dumps(fields, allow_nan=False))
        assert list(fields) == result.keys()
        assert fields["image"] == result.image.source
        assert fields["query_type"] == result.query_type.value
        assert fields["plan"] == result.to_dict()["plan"]
    added = scored.copy(metric=dspy.Prediction(score=1.0, seen=scored.image), pair=(scored.image, 2)).toDict()
    assert (added["metric"]["score"], added["pair"]) == (1.0, [scored.image.source, 2])


# --- HTML ------------------------------------------------------------------------------------------------------------


def test_html_shows_the_image_the_score_the_distortions_and_the_tools(scored: Assessment) -> None:
    elements = Elements(scored._repr_html_())
    assert loads_nothing(elements)
    for words in ("coffee_jpeg.jpg", scored.query, f"{scored.quality_score:.2f}", "Poor", "Compression", "extreme"):
        assert words in elements.text
    for call in scored.executor_evidence.tool_log:
        assert call.tool in elements.text
        assert f"{call.calibrated:.2f}" in elements.text
    assert len(scored._repr_html_()) < 40_000


@pytest.mark.parametrize(("score", "width"), [(1.0, "0.0%"), (3.0, "50.0%"), (5.0, "100.0%")])
def test_the_bar_in_html_runs_from_1_to_5(scored: Assessment, answered: Assessment, score: float, width: str) -> None:
    assert f"width:{width};" in scored.copy(quality_score=score)._repr_html_()
    elements = Elements(answered._repr_html_())
    assert loads_nothing(elements)
    assert "\nB\n" in elements.text
    assert "of 5:" not in elements.text, "an answer in words has no bar"


def test_all_text_in_html_is_escaped(program: AgenticIQA) -> None:
    """A file name, a question, and any text of a model."""
    source = UndecodedImage(HOSTILE, load(np.zeros((40, 60), np.uint8)).data)
    result = program(source, f"Is it good? {HOSTILE}")
    result.final_answer = result.quality_reasoning = HOSTILE
    result.executor_evidence.tool_log.append(ToolCall(tool=HOSTILE, region=HOSTILE, distortion=HOSTILE, ms=1))
    elements = Elements(result._repr_html_())
    assert loads_nothing(elements)
    assert elements.text.count("<script>alert(1)</script>") >= 6


def test_a_long_table_in_html_states_the_number_of_omitted_rows(scored: Assessment) -> None:
    calls = [ToolCall(tool=f"T{number}", region="Global", distortion="Noise", ms=1) for number in range(40)]
    evidence = scored.executor_evidence.model_copy(update={"tool_log": calls})
    text = Elements(scored.copy(executor_evidence=evidence)._repr_html_()).text
    assert f"\nand {40 - MAX_ROWS} more\n" in text
    assert "failed" in text
    assert f"T{MAX_ROWS}" not in text


def test_html_never_sets_a_color_that_a_dark_page_would_hide(scored: Assessment) -> None:
    """Text keeps the page's color, tables as well, which would not on a page in quirks mode."""
    styles = [given.get("style") or "" for _, given in Elements(scored._repr_html_()).found]
    assert all(re.search(r"(^|;)color:(?!inherit)", style) is None for style in styles)
    tables = [given["style"] or "" for tag, given in Elements(scored._repr_html_()).found if tag == "table"]
    assert tables
    assert all("color:inherit" in style for style in tables)


# --- DSPy ------------------------------------------------------------------------------------------------------------


def test_a_result_is_a_prediction_that_copies_and_takes_fields(scored: Assessment) -> None:
    assert isinstance(scored, dspy.Prediction)
    assert scored["quality_score"] == scored.quality_score == scored.get("quality_score")
    copied = scored.copy(note="x")
    assert isinstance(copied, Assessment)
    assert (copied.note, "note" in scored) == ("x", False)
    marked = scored.with_inputs("image", "query")
    assert set(marked.inputs().keys()) == {"image", "query"}
    assert "quality_score" in marked.labels()
    assert "plan" not in scored.without("plan")
    changed = scored.copy()
    changed.quality_score = 1.0
    assert (changed.quality_score, changed["quality_score"]) == (1.0, 1.0)


COMPUTED = (
    *("score", "quality_level", "image_sha256", "reference_sha256", "is_unscored", "sent", "score_interval"),
    *(
        "score_without_model",
        "disagreement",
        "quality_probs",
        "probability_source",
        "probability_mass",
        "probability_mass_from",
    ),
)


@pytest.mark.parametrize("name", COMPUTED)
def test_a_computed_attribute_is_a_field_in_every_form(scored: Assessment, name: str) -> None:
    value = getattr(scored, name)
    assert name in scored
    assert scored[name] == scored.get(name, "absent") == dict(scored)[name] == dict(scored.items())[name] == value
    assert scored.keys().count(name) == list(scored).count(name) == 1
    assert scored.toDict()[name] == json.loads(json.dumps(value))


def test_results_hold_the_loaded_images_and_copy_no_bytes(scored: Assessment) -> None:
    assert scored.copy().image is scored.image
    large = scored.copy(image=load(np.zeros((3000, 3000), np.uint8)))
    tracemalloc.start()
    for _ in range(5):
        repr(large), large.to_dict(), large.toDict(), large.copy()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("again", [lambda result: pickle.loads(pickle.dumps(result)), copy.deepcopy, copy.copy])
def test_a_result_can_be_pickled(scored: Assessment, again: Any) -> None:
    arrived = again(scored)
    assert isinstance(arrived, Assessment)
    assert arrived.to_dict() == scored.to_dict()
    assert arrived.score_interval == scored.score_interval
    assert arrived.image.data == scored.image.data
    assert arrived._repr_html_() == scored._repr_html_()
