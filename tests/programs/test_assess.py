"""Calling the program: images of every kind, the default question, wrong arguments in one line, several at once."""

import asyncio
import inspect
import io
import logging
import traceback
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from annotated_types import Ge
from PIL import Image

from agenticiqa.configs import Config
from agenticiqa.configs.options import Effect, ImageSettings
from agenticiqa.programs import AgenticIQA
from agenticiqa.programs.errors import UserError, WrongArgument
from agenticiqa.programs.images.pairs import load_checked
from agenticiqa.programs.offline import reference
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.stages.executor import Executor
from agenticiqa.programs.stages.protocols import Detected
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY
from support.distortion_levels import scene


@pytest.fixture(scope="module")
def program() -> AgenticIQA:
    return AgenticIQA.offline()


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("images") / "photo.png"
    Image.fromarray(scene(60, 80)).save(path)
    return path


# --- the question ----------------------------------------------------------------------------------------------------


def test_none_is_the_default_question(program: AgenticIQA, photo: Path) -> None:
    left_out, none = program(photo), program(photo, None)
    assert left_out.query == none.query == DEFAULT_QUERY
    assert left_out.quality_score == none.quality_score
    assert asyncio.run(program.acall(photo, query=None)).query == DEFAULT_QUERY


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("", "the question is empty; write one, or leave it out"),
        ("  \n ", "the question is empty; write one, or leave it out"),
        (5, "the question is of type int; give it as text"),
    ],
)
def test_a_question_that_is_empty_or_not_text_is_an_error(
    program: AgenticIQA, photo: Path, query: Any, why: str
) -> None:
    with pytest.raises(UserError, match=why):
        program(photo, query)


def test_a_question_has_at_most_4000_characters(program: AgenticIQA, photo: Path) -> None:
    question = f"Is it sharp?{' ' * 3984}Now?"
    assert len(question) == 4000
    assert program(photo, f"  {question}\n").query == question
    with pytest.raises(UserError, match=r"^the question has 4001 characters; shorten it to 4000$"):
        program(photo, f"{question}?")


# --- the arguments ---------------------------------------------------------------------------------------------------


TAKES = "It takes image, query, reference, resize_reference, align, options."


@pytest.mark.parametrize(
    ("positional", "keywords", "words"),
    [
        (("a.png",), {"question": "Is it sharp?"}, "AgenticIQA has no argument 'question', did you mean query?"),
        (("a.png",), {"Prompt": "Is it sharp?"}, "no argument 'Prompt', did you mean query?"),
        (("a.png",), {"ref": "b.png"}, "no argument 'ref', did you mean reference?"),
        (("a.png",), {"refrence": "b.png"}, "no argument 'refrence', did you mean reference?"),
        (("a.png",), {"choices": ["a", "b"]}, "no argument 'choices', did you mean options?"),
        (("a.png",), {"resize": True}, "no argument 'resize', did you mean resize_reference?"),
        (("a.png",), {"zzz": 1}, f"no argument 'zzz'. {TAKES}"),
        ((), {}, f"AgenticIQA: missing a required argument: 'image'. {TAKES}"),
        ((), {"path": "a.png"}, "no argument 'path', did you mean image?"),
        (("a.png", "Sharp?", None, False, 5), {}, "too many positional arguments"),
        (("a.png",), {"image": "b.png"}, "multiple values for argument 'image'"),
    ],
)
def test_wrong_arguments_are_reported_in_one_line_with_the_known_ones(
    program: AgenticIQA, positional: tuple[Any, ...], keywords: dict[str, Any], words: str
) -> None:
    for call in (program, lambda *given, **named: asyncio.run(program.acall(*given, **named))):
        with pytest.raises(WrongArgument, match=r"^AgenticIQA") as caught:
            call(*positional, **keywords)
        assert words in str(caught.value)
        assert str(caught.value).endswith(TAKES)
        assert "\n" not in str(caught.value)
        assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)
        assert isinstance(caught.value, TypeError)
        assert isinstance(caught.value, UserError)


def test_the_interval_covers_the_gap_between_a_named_tool_and_the_programs_own(examples: Path) -> None:
    result = AgenticIQA.offline()(examples / "chelsea_noise.png", "Rate the quality. Use tool NIQE.")
    named, own = result.executor_evidence.tool_log
    error = max(named.spread, abs(named.calibrated - own.calibrated))
    low, high = result.summarizer_result.score_interval["95"]
    score = result.quality_score
    assert (named.tool, own.tool, own.weight) == ("NIQE", "LEARNED-IQA", 0)
    assert low <= max(score - 1.95 * error, 1)
    assert high >= min(score + 1.95 * error, 5)


def test_an_editor_sees_the_arguments_and_the_type_of_the_result() -> None:
    for method in (AgenticIQA.__call__, AgenticIQA.acall):
        signature = inspect.signature(method)
        assert list(signature.parameters) == [
            "self",
            "image",
            "query",
            "reference",
            "resize_reference",
            "align",
            "options",
        ]
        assert signature.return_annotation is Assessment


class Counting(AgenticIQA):
    """A user's program that overrides ``__call__``."""

    calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Assessment:
        type(self).calls += 1
        return super().__call__(*args, **kwargs)


def test_acall_uses_the_call_of_a_subclass(photo: Path) -> None:
    assert asyncio.run(Counting.offline().acall(photo)).quality_score is not None
    assert Counting.calls == 1


class Shown(dspy.Module):
    """A user's detector that records the call stack."""

    def forward(self, regions: list[str], **_: object) -> Detected:
        self.calls = [frame.name for frame in traceback.extract_stack()]
        return Detected({region: [] for region in regions})


def test_stages_run_in_the_callers_stack(photo: Path) -> None:
    """Between the two are ``forward`` and the step of the round, and for each module two calls of DSPy's."""
    program = AgenticIQA.offline()
    assert isinstance(program.executor, Executor)
    program.executor.detect = shown = Shown()
    program(photo)
    test = test_stages_run_in_the_callers_stack.__name__
    first, *between, last = shown.calls[shown.calls.index(test) + 1 :]
    assert (first, last) == ("checked_call", "forward")
    by_dspy = ["sync_wrapper", "__call__"]
    assert between == ["__call__", *by_dspy, "forward", "execute", *by_dspy, "forward", *by_dspy]


def test_a_program_has_a_short_repr(program: AgenticIQA) -> None:
    assert repr(program) == "<AgenticIQA, backend offline>"


# --- images ----------------------------------------------------------------------------------------------------------


def another_value(setting: str) -> bool | int:
    """Return a value of a setting of images that accepts the photo: its least value, or one above its default."""
    field = Config.model_fields[setting]
    if isinstance(field.default, bool):
        return not field.default
    return field.default + 1 if field.default is not None else next(m.ge for m in field.metadata if isinstance(m, Ge))


@pytest.mark.parametrize("setting", [each.name for each in fields(ImageSettings)])
def test_every_setting_of_images_comes_from_the_configuration_to_the_code_that_loads_them(
    setting: str, photo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A field of ``ImageSettings`` needs no other line to be a key, to be used, and to be recorded as it declares."""
    changed = another_value(setting)
    config = Config.model_validate({setting: changed})
    passed: list[ImageSettings] = []
    monkeypatch.setattr(reference, "load_checked", lambda *args, **_: passed.append(args[2]) or load_checked(*args))
    by_file, by_hand = AgenticIQA(config=config), AgenticIQA.offline()
    by_file(photo, "Is it sharp?")
    assert passed == [replace(ImageSettings(), **{setting: changed})]
    assert (by_file.settings != by_hand.settings) == (setting in Config.keys_with(Effect.ON_RESULTS))


def test_an_image_in_memory_gives_the_result_of_its_file(program: AgenticIQA, photo: Path) -> None:
    expected = program(photo, reference=photo).to_dict()
    for source, name in (
        (np.asarray(Image.open(photo)), "<array>"),
        (bytearray(photo.read_bytes()), "<bytes>"),
        (io.BytesIO(photo.read_bytes()), "<file object>"),
        (photo.as_uri(), str(photo)),
        (dspy.Image.from_path(str(photo)), "<dspy.Image>"),
    ):
        result = program(source, reference=source).to_dict()
        assert (result["image"], result["reference"]) == (name, name)
        for key in ("final_answer", "quality_reasoning", "plan"):
            assert result[key] == expected[key]


# --- several at once -------------------------------------------------------------------------------------------------


def test_batch_takes_images_and_keeps_their_order(program: AgenticIQA, photo: Path) -> None:
    pixels = np.asarray(Image.open(photo))
    given = [photo, pixels, photo.read_bytes(), {"image": str(photo), "query": "Is it blurry?"}]
    results = program.batch(given, num_threads=2, disable_progress_bar=True)
    assert [result.image.source for result in results] == [str(photo), "<array>", "<bytes>", str(photo)]
    assert [result.query for result in results] == [DEFAULT_QUERY] * 3 + ["Is it blurry?"]
    assert all(isinstance(result, Assessment) for result in results)


def test_batch_takes_one_image_or_one_folder(program: AgenticIQA, photo: Path) -> None:
    for given in (str(photo), photo, photo.parent, photo.read_bytes()):
        assert len(program.batch(given, disable_progress_bar=True)) == 1


def test_batch_takes_dspys_examples_as_before(program: AgenticIQA, photo: Path) -> None:
    examples = [
        dspy.Example(image=photo, query=query, mos=3.0).with_inputs("image", "query") for query in ("Sharp?", "Noisy?")
    ]
    results = program.batch(examples, disable_progress_bar=True)
    assert [result.query for result in results] == ["Sharp?", "Noisy?"]
    results, failed, errors = program.batch(
        [*examples, dspy.Example(image="gone.png").with_inputs("image")],
        return_failed_examples=True,
        disable_progress_bar=True,
    )
    assert len(results) == 3
    assert [example.image for example in failed] == ["gone.png"]
    assert isinstance(errors[0], UserError)


def test_a_failed_image_of_a_batch_is_none_and_its_bytes_are_not_logged(
    program: AgenticIQA, photo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("dspy").addHandler(caplog.handler)  # DSPy's logger does not propagate
    try:
        results = program.batch([b"no image" * 100_000, photo], disable_progress_bar=True)
    finally:
        logging.getLogger("dspy").removeHandler(caplog.handler)
    assert results[0] is None
    assert results[1].image.source == str(photo)
    (message,) = [record.getMessage() for record in caplog.records if "expected an image" in record.getMessage()]
    assert "image=<bytes>" in message
    assert len(message) < 500
