"""Ask a model for a typed answer, and retry an invalid answer with the reason in the prompt.

DSPy itself never sends a validation error back to the model. The correction is an input of the prompt, so the
temperature can stay at 0, and a repeated run replays the whole exchange, up to the accepted answer, from the cache.
An exchange without an accepted answer is not cached, so a later run asks again. An outage (``dspy.LMError``) is not
an answer and is not retried here.
"""

import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from inspect import isclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import dspy
from pydantic import BaseModel, TypeAdapter, ValidationError

from agenticiqa.configs import StageConfig
from agenticiqa.configs.yaml_json import json_value
from agenticiqa.programs.backends.answer_cache import forget_answers, note_cut_off, was_cut_off
from agenticiqa.programs.backends.call_log import history_settings, leave_out_images, logging_settings
from agenticiqa.programs.backends.callers import features_of_caller, given_sampling, sampling_for_caller, section_for
from agenticiqa.programs.backends.capabilities import ModelFeatures, RequestFeatures
from agenticiqa.programs.backends.choice import Backend, models_to_ask, process_wide_setting, without_place
from agenticiqa.programs.backends.dspy_adapter import CORRECTION, SAVED_END, SAVED_START, SteadyAdapter, showing_images
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.held_images import hold
from agenticiqa.programs.backends.providers import JPEG_PNG
from agenticiqa.programs.backends.run_context import NotSent, Turn, asking, current, spending_of
from agenticiqa.programs.backends.sampling import PARAMETERS, PARAMETERS_OF_CHOICE, after_rejections
from agenticiqa.programs.errors import ImageError, StateError, Unanswered, excerpt
from agenticiqa.programs.images import LoadedImage, load
from agenticiqa.programs.images.metadata import UnclearStructure, without_metadata
from agenticiqa.programs.images.sources import read_source
from agenticiqa.programs.stages import progress
from agenticiqa.programs.stages.protocols import RejectedAnswers
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.signatures.answers.answer_fields import faults, read_fields
from agenticiqa.signatures.answers.json_text import Unreadable, too_much
from agenticiqa.signatures.answers.model_answer import ModelAnswer
from agenticiqa.signatures.answers.requested import Requested
from agenticiqa.signatures.answers.tokens import tokens_of
from agenticiqa.signatures.harmless import harmless
from agenticiqa.signatures.vocabulary import well_formed

logger = logging.getLogger(__name__)

A = TypeVar("A")

LONGEST_LOGGED = 20_000  # characters of the last answer in a log record; the commands show fewer
ALL_THOUGHTS = (
    "the answer was empty, because all text was in {field}; end it, then return the JSON object. (For the user: if the "
    "object is there, check the server's option: --reasoning-parser, llama.cpp's --reasoning-format, Ollama's think)"
)
CUT_OFF = "the answer was cut off at max_tokens; use fewer words."

IMAGE_OR_NONE = dspy.Image | None
ANYTHING = Requested()
FEWEST_WORDS = 4  # words of a sentence that an answer must not copy
_QUOTED = re.compile(r"[\"“]([^\"“”]+)[\"”]")

_DATA_URI = re.compile(r"data:([^;,\s]*);base64,")
# The text that DSPy reports for an empty answer, with and without log-probabilities.
_NO_TEXT = re.compile(r"(None|\{'text': (''|None).*)?", re.DOTALL)
_FIELD_OF_THOUGHTS = re.compile(r"\[([\w.-]+)\] ")


class Rejected(Exception):
    """An answer broke a rule of the stage; the model receives the message as a correction."""


@dataclass(frozen=True)
class Reply(Generic[A]):
    """A validated answer; ``logprobs`` are the log-probabilities of its tokens, if the backend returns them.

    ``model`` is the name of the model that answered, without the address of its server. ``features`` are the features
    that were requested.
    """

    answer: A
    logprobs: Any = None
    rejected_answers: RejectedAnswers = field(default_factory=dict)
    model: str | None = None
    features: RequestFeatures = field(default_factory=RequestFeatures)

    @property
    def in_schema(self) -> bool:
        """Whether the server was asked to enforce a schema."""
        return self.features.form == "json_schema"


@dataclass(frozen=True)
class TokenForm(Generic[A]):
    """A shorter form of a question, for a model that reports the log-probabilities of its tokens.

    Attributes:
        signature: Returns the shorter form of the question's signature.
        gives_levels: Returns whether the log-probabilities of an answer can be used; if not, the same question is asked
            in its usual form. The second argument is whether the server enforced a schema.
        from_begun: Returns the answer in a text that was cut off or broken, if its tokens are enough.
    """

    signature: Callable[[type[dspy.Signature]], type[dspy.Signature]]
    gives_levels: Callable[[Any, bool], bool]
    from_begun: Callable[[str], A | None]


class CheckedPredict(StageModule, Generic[A]):
    """A predictor that asks a model one typed question, at most ``attempts`` times, until the answer is valid.

    It wraps one ``dspy.Predict``, so an optimizer finds exactly this predictor, and only the accepted answer in its
    trace. ``predict`` may be replaced by a module around one predictor, such as ``dspy.ChainOfThought``,
    ``dspy.BestOfN`` or ``dspy.Refine``. The signature has one output field, a pydantic model. ``stage`` names the
    question in logs, in the usage and in ``rejected_answers``. ``choice.models_to_ask`` selects the model.
    ``reads_tokens`` requests log-probabilities if the model supports them. ``adapter`` formats and parses this
    question instead of the current DSPy adapter. After a rejected answer without anything ``worth_correcting`` in its
    text, there are no further attempts. ``token_form`` is how a model that reports its tokens is asked.

    Returns a Reply. Raises Unanswered if no attempt was valid, and ``dspy.LMError`` if the model cannot be reached.
    """

    def __init__(
        self,
        signature: type[dspy.Signature],
        *,
        stage: str,
        backend: Backend | None = None,
        attempts: int = 3,
        reads_tokens: bool = False,
        adapter: dspy.Adapter | None = None,
        worth_correcting: Callable[[str], object] | None = None,
        token_form: TokenForm[A] | None = None,
    ) -> None:
        super().__init__()
        ((self.field_name, output),) = signature.output_fields.items()
        self.answer_type: Any = output.annotation
        self.predict: dspy.Module = dspy.Predict(signature)
        self.shipped = signature  # the one before any tuning
        self.stage = stage
        self.backend = backend or Backend.ambient()
        self.attempts = attempts
        self.reads_tokens = reads_tokens
        self.adapter = adapter
        self.worth_correcting = worth_correcting
        self.token_form = token_form

    if TYPE_CHECKING:  # dspy.Module is called with, and returns, anything

        def __call__(
            self,
            inputs: Mapping[str, Any],
            check: Callable[[A], object] | None = None,
            check_tokens: Callable[[A, Any], object] | None = None,
            evidence: str = "",
            requested: Requested = ANYTHING,
        ) -> Reply[A]:
            """As ``forward``."""
            raise NotImplementedError

    def forward(
        self,
        inputs: Mapping[str, Any],
        check: Callable[[A], object] | None = None,
        check_tokens: Callable[[A, Any], object] | None = None,
        evidence: str = "",
        requested: Requested = ANYTHING,
    ) -> Reply[A]:
        """Ask the model. ``check`` receives the parsed answer and raises Rejected if it breaks a rule of the stage.

        ``check_tokens`` does the same with the answer and the log-probabilities of its tokens (``None`` if missing).
        ``requested`` is what this answer must contain: the schema of the request says it, and the answer is checked
        against it after ``check``. ``evidence`` is a summary of the model's input, for the log of a rejected answer.
        If no answer is accepted, the exchange is removed from DSPy's cache.
        """
        trace = opened_trace()
        fixed = {name: harmless(value) for name, value in inputs.items()}
        turns: list[Turn] = []
        reasons: list[str] = []
        outputs: list[str] = []
        raw, parsed = "", None
        in_prompt = False  # whether the prompt describes the form of the answer, because the server ignores its schema
        try:
            for attempt in range(1, self.attempts + 1):
                progress.asked(self.stage, attempt, self.attempts)
                started = time.perf_counter()
                try:
                    with asking(self.stage, attempt, self.attempts) as turn:
                        turns.append(turn)
                        prediction, model = self._ask({**fixed, **self._correction(reasons)}, requested, in_prompt)
                    parsed = prediction[self.field_name]
                    raw = _as_text(parsed)
                    if check:
                        check(parsed)
                    self._require(parsed, requested, fixed)
                    if check_tokens:
                        check_tokens(parsed, prediction.get("logprobs"))
                except dspy.AdapterParseError as error:
                    raw = raw_text(error)
                    empty = _all_thoughts(turn.thoughts) if turn.thoughts and not raw else ""
                    reasons.append(CUT_OFF if _at_limit(turn) else empty or reason(error))
                except RecursionError:  # an answer of endlessly repeated opening brackets
                    raw = ""
                    reasons.append("the answer was nested too deeply")
                except Rejected as error:
                    reasons.append(str(error))
                else:
                    progress.answered(self.stage, attempt, turn.spent, time.perf_counter() - started)
                    if trace is not None:
                        trace.append(self._traced(fixed, prediction))
                    current().usage.note_parsing(self.stage, parsed.notes if isinstance(parsed, ModelAnswer) else ())
                    rejected = {self.stage: reasons} if reasons else {}
                    return Reply(parsed, prediction.get("logprobs"), rejected, model, turn.features)
                in_prompt = in_prompt or _broke_schema(turn)
                raw, reasons[-1] = well_formed(raw), excerpt(well_formed(reasons[-1]))
                outputs.append("" if too_much(raw) else raw)
                progress.rejected(turn.place, reasons, time.perf_counter() - started, evidence)
                if self.worth_correcting and not self.worth_correcting(raw):
                    break
            progress.unanswered(self.stage, self.attempts, excerpt(well_formed(turn.text) or raw, LONGEST_LOGGED))
            raise Unanswered(self.stage, reasons, excerpt(raw), parsed, outputs)
        except Exception:
            forget_answers([call for turn in turns for call in turn.asked])
            raise

    @property
    def predictor(self) -> dspy.Predict:
        """Return the ``dspy.Predict``, also if ``predict`` was replaced by a module that wraps it."""
        predictors = self.predict.predictors()
        types = {
            name: field.annotation for owner in predictors for name, field in owner.signature.output_fields.items()
        }
        kind = types.get(self.field_name)
        if kind == self.answer_type or (
            isclass(kind) and isclass(self.answer_type) and issubclass(kind, self.answer_type)
        ):
            return next(predictor for predictor in predictors if self.field_name in predictor.signature.output_fields)
        wanted = f"{self.field_name}: {_name_of_type(self.answer_type)}"
        outputs = ", ".join(f"{name}: {_name_of_type(kind)}" for name, kind in types.items()) or "none"
        raise StateError(
            f"{self.stage}: the new signature has no output field {wanted}; its output fields are {outputs}. Keep "
            "the name of the field, and its type or a subclass"
        )

    @property
    def models(self) -> Sequence[dspy.BaseLM]:
        """Return the models that are currently tried in turn. Raises BackendError without a model."""
        return models_to_ask(self.predictor.lm, self.backend)

    @property
    def model(self) -> str:
        """Return the name of the first model, without the address of its server."""
        return without_place(self.models[0].model)

    def _require(self, answer: A, requested: Requested, inputs: Mapping[str, Any]) -> None:
        """Raise Rejected if the answer lacks what was requested, or repeats a sentence of the prompt's examples."""
        if not isinstance(answer, BaseModel):
            return
        wrong = requested.settle(answer)
        if copied := copied_sentence(answer, self.predictor, inputs):
            wrong.append(f"{copied!r} stands in an example of the prompt; write what this image shows")
        if wrong:
            raise Rejected("; ".join(wrong))

    def _ask(self, inputs: Mapping[str, Any], requested: Requested, in_prompt: bool) -> tuple[dspy.Prediction, str]:
        """Make one attempt; return the answer and its model, a fallback if the first model is unreachable."""
        failure: dspy.LMError | None = None
        for request in self._requests(inputs, requested, in_prompt):
            prediction: dspy.Prediction | None = None
            unparsed: dspy.AdapterParseError | None = None
            try:
                with dspy.context(**request.settings), request.recording():
                    prediction = self.predict(**request.inputs)
                outage = current().turn.error
                if prediction is None and isinstance(outage, dspy.LMError):  # dspy.BestOfN and dspy.Refine print it
                    raise outage
            except dspy.AdapterParseError as error:
                unparsed = error
            except NotSent as refused:
                raise refused.reason from None
            except dspy.LMError as error:
                request.error = failure = error
                continue
            finally:
                leave_out_images(request.lm)
            turn = current().turn
            request.keep(turn)
            if request.token_form:
                logprobs = prediction.get("logprobs") if unparsed is None and prediction else turn.logprobs
                gives_levels = request.token_form.gives_levels(logprobs, request.in_schema)
                if not gives_levels and unparsed is None:
                    request.lacks_tokens = True
                    continue
                begun = request.token_form.from_begun(turn.text) if unparsed and gives_levels else None
                if begun is not None:
                    others = dict.fromkeys(self.predictor.signature.output_fields, "")
                    prediction = dspy.Prediction(**{**others, self.field_name: begun}, logprobs=logprobs)
                    unparsed = None
            if unparsed is not None:
                prediction = _read_anyway(unparsed)
            if prediction is None:  # dspy.BestOfN and dspy.Refine skip answers that cannot be parsed
                raise Rejected("no answer could be parsed")
            model = without_place(request.lm.model)
            current().usage.note_answer(self.stage, model, request.features)
            return prediction, model
        assert failure is not None, "there is at least one model"
        raise failure

    def _requests(self, inputs: Mapping[str, Any], requested: Requested, in_prompt: bool) -> Iterator["ModelRequest"]:
        """Yield the requests to send in turn until one of them succeeds; the caller sets the ``error`` of each other.

        A server that refuses a feature by name gets the question again with less of it. A model whose tokens say too
        little is asked in the usual form. If a model is unreachable, the next one follows.
        """
        models = self.models
        for number, lm in enumerate(models, 1):
            fewer: Mapping[str, Any] | None = {}
            reads_tokens = True
            while fewer is not None:
                request = self._request(lm, inputs, requested, fewer, in_prompt=in_prompt, reads_tokens=reads_tokens)
                yield request
                if request.lacks_tokens:
                    reads_tokens = False
                    continue
                assert request.error is not None, "the caller has set it"
                failure, fewer = request.error, request.even_fewer(request.error)
            if number == len(models) or not dspy.is_retryable_lm_error(failure):
                return
            progress.fell_back(self.stage, lm.model, failure)
            self.backend.out_of_reach(lm)

    def _request(
        self,
        lm: dspy.BaseLM,
        inputs: Mapping[str, Any],
        requested: Requested,
        fewer: Mapping[str, Any],
        *,
        in_prompt: bool,
        reads_tokens: bool,
    ) -> "ModelRequest":
        """Return the question for one model, with the features that ``fewer`` replaces.

        The engines of this package receive image bytes separately from the prompt.
        """
        engine = lm.engine if isinstance(getattr(lm, "engine", None), Model) else None
        section = section_for(self.stage, self.backend)
        known = engine.features if engine is not None else features_of_caller(lm, section)
        adapter = self.adapter or dspy.settings.adapter or SteadyAdapter()
        by_form = isinstance(adapter, SteadyAdapter) and not lm.kwargs.get("response_format")
        asks_for_tokens = self.reads_tokens and lm.kwargs.get("logprobs") is None
        features = replace(known.requested(by_form=by_form, reads_tokens=asks_for_tokens), **fewer)
        if current().send is not None:  # a provider batch cannot be repeated with less after a refusal
            features = replace(features, per_request=False)
        config = self._sampling(lm, known, features.omitted, None if engine is not None else section)
        if current().turn.attempt > 1:
            features = replace(features, retried_with=changed_sampling(config))
        arguments = dict(inputs)
        signature = arguments.get("signature", self.predictor.signature)
        token_form = self.token_form if reads_tokens and features.logprobs and not known.lacks_tokens else None
        if token_form:
            signature = arguments["signature"] = token_form.signature(signature)
        if isinstance(adapter, SteadyAdapter):
            adapter = adapter.for_request(
                features.form or "off",
                requested,
                per_request=features.per_request,
                in_prompt=in_prompt,
                refused=() if engine is not None else known.provider.refused_keywords,
            )
            most = None if known.reasons else adapter.most_tokens(signature)
            given = lm.kwargs.get("max_tokens")
            if most and known.carries("max_tokens") and (engine is not None or given is None):
                config["max_tokens"] = min(most, config.get("max_tokens") or given or most)
        elif not self.adapter:
            adapter = showing_images(adapter)
        # DSPy's own trace would keep every image in memory. dspy.BestOfN and dspy.Refine extend the trace.
        settings = {"lm": lm, "adapter": adapter, "trace": [], **history_settings(), **logging_settings()}
        formats = [f"image/{name}" for name in features.image_formats or ()]
        if self.predictor.demos:
            arguments["demos"] = shown_examples(self.predictor, signature, formats)
        images = {name: value.sent_as(formats) for name, value in inputs.items() if isinstance(value, LoadedImage)}
        if engine is None:
            arguments |= {name: image.to_dspy() for name, image in images.items()}
        else:
            settings["send_stream"] = None  # these engines do not stream
            arguments |= hold(images)
        if features.logprobs:
            config |= {"logprobs": True, "top_logprobs": features.logprobs}
        if config:
            arguments["config"] = config
        turn = current().turn
        turn.features, turn.known = features, known
        turn.schema = adapter.schema(signature) if features.form == "json_schema" else None
        mimes = frozenset(image.mime for image in images.values())
        return ModelRequest(
            lm, known, engine is not None, features, settings, arguments, fewer, mimes, token_form=token_form
        )

    def _sampling(
        self, lm: dspy.BaseLM, known: ModelFeatures, omitted: Iterable[str], section: StageConfig | None
    ) -> dict[str, Any]:
        """Return the parameters of sampling to request; ``None`` leaves out one that the model has.

        What the caller set, in a model without a configuration (with a ``section`` of the stage) or in a predictor, is
        never replaced. ``omitted`` are those that the server refused.
        """
        fixed = given_sampling(self.predictor.config)
        values = given = given_sampling(lm.kwargs) | fixed
        if section is not None:
            values, fixed = given | sampling_for_caller(lm, section, known, given), given
        if isinstance(self.predict, dspy.BestOfN | dspy.Refine):
            fixed = fixed | dict.fromkeys(PARAMETERS_OF_CHOICE)  # they sample at a temperature of their own
        wanted = values | after_rejections(values, current().turn.attempt - 1, known.provider) | dict.fromkeys(omitted)
        return {
            name: value
            for name, value in wanted.items()
            if name not in fixed and known.carries(name) and value != given.get(name)
        }

    def _traced(self, given: Mapping[str, Any], prediction: dspy.Prediction) -> tuple[Any, ...]:
        """Return an accepted answer as an entry of DSPy's trace, with ``dspy.Image`` instead of LoadedImage.

        An optimizer shows these images to its own model, whose server may decode only JPEG and PNG.
        """
        in_trace = {
            name: v.sent_as(JPEG_PNG).to_dspy() if isinstance(v, LoadedImage) else v for name, v in given.items()
        }
        predictor = self.predictor
        written = {name: prediction[name] for name in predictor.signature.output_fields}
        return predictor, in_trace, dspy.Prediction(**written)

    def _correction(self, reasons: list[str]) -> dict[str, Any]:
        """Return the correction input for the next attempt, and the signature extended by its field."""
        if not reasons:
            return {}
        correction = (
            f"Attempt {len(reasons) + 1} of {self.attempts}. Your last answer was rejected: {reasons[-1].rstrip('.')}. "
            "Return ONLY valid JSON."
        )
        input_field = dspy.InputField(desc="what was wrong with your previous answer; fix exactly this")
        return {
            "signature": self.predictor.signature.append(CORRECTION, input_field, str),
            CORRECTION: harmless(correction),
        }


@dataclass
class ModelRequest:
    """A question as one model gets it, through DSPy's ``settings`` and ``inputs``.

    ``known`` is what the process knows of the model's features, ``is_configured`` whether the configuration names it.
    ``fewer`` has the values that replace refused ``features``, by their names. ``mimes`` are the media types of the
    images. ``token_form`` is the shorter form in which the question is asked. ``error`` is why the request failed,
    ``lacks_tokens`` whether the tokens of its answer say too little.
    """

    lm: dspy.BaseLM
    known: ModelFeatures
    is_configured: bool
    features: RequestFeatures
    settings: dict[str, Any]
    inputs: dict[str, Any]
    fewer: Mapping[str, Any]
    mimes: frozenset[str]
    token_form: TokenForm[Any] | None = None
    error: dspy.LMError | None = None
    lacks_tokens: bool = False

    @property
    def in_schema(self) -> bool:
        """Whether the server is asked to enforce a schema."""
        return self.features.form == "json_schema"

    def recording(self) -> AbstractContextManager[None]:
        """Record the usage of the model in the block; the engines of this package do so themselves."""
        return nullcontext() if self.is_configured else spending_of(self.lm)

    def even_fewer(self, error: dspy.LMError) -> dict[str, Any] | None:
        """Return the values for the next request if the error is the refusal of a feature; otherwise ``None``."""
        change = self.known.without_refused(self.features, error, self.sampled, self.mimes)
        return None if change is None else {**self.fewer, **change}

    def keep(self, turn: Turn) -> None:
        """Record what the server accepted and refused, and what its answer shows: hidden reasoning, missing tokens.

        The engines of this package record themselves what was accepted.
        """
        if turn.thoughts:
            self.known.note_reasoning()
        if self.token_form and not tokens_of(turn.logprobs):
            self.known.note_missing_tokens()
        if not self.is_configured and current().turn.spent.calls:
            self.known.accept(self.features.form or "off", self.features.logprobs or 0, *self.sampled, *self.mimes)
        self.known.keep(self.fewer)

    @property
    def sampled(self) -> set[str]:
        """The parameters of sampling that this program requests, so that it may leave them out."""
        config = self.inputs.get("config") or {}
        ours = {name for name in PARAMETERS if config.get(name) is not None}
        if self.is_configured:  # the limit of tokens has two names, which ``features`` has
            ours |= {
                name for name in PARAMETERS if self.lm.kwargs.get(name) is not None and config.get(name, 0) is not None
            }
            ours.discard("max_tokens")
        return ours


def changed_sampling(config: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """Return the sampling of an attempt after a rejected answer, for the record."""
    return tuple((name, config[name]) for name in ("temperature", "seed") if config.get(name) is not None)


def shown_examples(
    predictor: dspy.Predict, signature: type[dspy.Signature] | None = None, formats: Collection[str] = ()
) -> list[Any]:
    """Return a predictor's examples for a request with this signature, with images converted to ``dspy.Image``.

    DSPy would write a path or an array into the prompt as text. An example with an unreadable image is skipped with a
    warning. The outputs have the types of the signature, which may be a shorter form of the predictor's own. Images
    are in one of the ``formats``; without them, in their own.
    """
    images = image_fields(predictor.signature)
    examples = []
    for example in complete_examples(predictor, signature):
        try:
            examples.append(_with_images(example, images, formats))
        except ImageError as error:
            logger.warning("an example in the prompt is skipped, because its image cannot be read: %s", error)
    return examples


def complete_examples(predictor: dspy.Predict, signature: type[dspy.Signature] | None = None) -> list[Any]:
    """Return a predictor's examples that have an output of its type, or of the type of ``signature``.

    DSPy gives a predictor every labeled example: also one without an output, which it does not show, and one with a
    label that has the name of an output and another type, which would contradict the schema of the request.
    """
    typed = [_with_typed_outputs(example, signature or predictor.signature) for example in predictor.demos]
    return [example for example in typed if example is not None]


def _with_typed_outputs(example: Mapping[str, Any] | dspy.Example, signature: type[dspy.Signature]) -> Any | None:
    """Return an example with outputs of the signature's types; ``None`` if it has none, or one of another type."""
    types = {name: field.annotation for name, field in signature.output_fields.items() if name in example}
    changes: dict[str, Any] = {}
    for name, kind in types.items():
        value = example[name]
        try:
            if isinstance(value, BaseModel) and not isinstance(value, kind):
                changes[name] = TypeAdapter(kind).validate_python(value.model_dump(by_alias=True))
            else:
                TypeAdapter(kind).validate_python(value)
        except ValidationError:
            return None
    if not types:
        return None
    return {**dict(example.items()), **changes} if changes else example


def copied_sentence(answer: BaseModel, predictor: dspy.Predict, inputs: Mapping[str, Any]) -> str | None:
    """Return a sentence of an answer that stands in an example of the prompt, or ``None``.

    Small models copy examples. Those of a prompt are its demos, except one with the same ``inputs``, and what tuned
    instructions have in quotation marks.
    """
    signature = predictor.signature
    quoted = {_bare(text) for text in _QUOTED.findall(signature.instructions)}
    for text in _sentences_in(answer):
        if _bare(text) in quoted:
            return text
        for demo in predictor.demos:
            outputs = [demo[name] for name in signature.output_fields if name in demo]
            if _bare(text) in map(_bare, _sentences_in(outputs)) and not _is_same_case(demo, inputs):
                return text
    return None


def _is_same_case(demo: Mapping[str, Any] | dspy.Example, inputs: Mapping[str, Any]) -> bool:
    """Return whether an example has the inputs of this request."""
    return all(_in_example(value) == _in_example(demo.get(name)) for name, value in inputs.items())


def _in_example(value: Any) -> Any:
    """Return an input as it can be compared: an image in any form by the hash of its file."""
    if isinstance(value, str) and not value.startswith(SAVED_START):
        return value
    if value is None or isinstance(value, LoadedImage):
        return value and value.sha256
    with suppress(ImageError):
        return load(value).sha256
    return value


def _sentences_in(value: Any) -> Iterator[str]:
    """Yield the texts of several words in a value and everything inside it."""
    if isinstance(value, str):
        if len(value.split()) >= FEWEST_WORDS:
            yield value
    elif isinstance(value, BaseModel):
        yield from _sentences_in(dict(value))
    elif isinstance(value, Mapping):
        yield from _sentences_in(list(value.values()))
    elif isinstance(value, list):
        for item in value:
            yield from _sentences_in(item)


def _bare(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def image_fields(signature: type[dspy.Signature]) -> list[str]:
    """Return the names of the input fields that hold an image."""
    return [name for name, field in signature.input_fields.items() if field.annotation in (dspy.Image, IMAGE_OR_NONE)]


def _with_images(example: Mapping[str, Any] | dspy.Example, images: list[str], formats: Collection[str]) -> Any:
    given = {name: example[name] for name in images if name in example and example[name] is not None}
    if not given:
        return example
    return {**dict(example.items()), **{name: _shown(image, formats) for name, image in given.items()}}


def _shown(image: Any, formats: Collection[str]) -> Any:
    """Return an image of an example as DSPy shows it, without metadata, in one of the formats."""
    image = _unsaved(image)
    if isinstance(image, dspy.Image):
        data = _DATA_URI.match(image.url)
        if data is None or (_is_clean(image.url) and (not formats or data[1] in formats)):
            return image
    loaded = load(image)
    return (loaded.sent_as(formats) if formats else loaded).to_dspy()


def _unsaved(value: Any) -> Any:
    """Return the image that DSPy wrote into a saved state; any other value unchanged."""
    if not (isinstance(value, str) and value.startswith(SAVED_START) and value.endswith(SAVED_END)):
        return value
    (part,) = json_value(value.removeprefix(SAVED_START).removesuffix(SAVED_END))
    return dspy.Image(part["image_url"]["url"])


def _is_clean(uri: str) -> bool:
    """Return whether the image in a data URI has no metadata."""
    content = read_source(uri).content
    with suppress(UnclearStructure):
        return isinstance(content, bytes) and without_metadata(content) is content
    return False


def reason(error: dspy.AdapterParseError) -> str:
    """Return, as feedback for the model, why its answer could not be parsed: the fields and their required values."""
    if not raw_text(error):
        return "the answer was empty"
    cause = error.__cause__
    while cause is not None and not isinstance(cause, Unreadable | ValidationError):
        cause = cause.__cause__
    if isinstance(cause, ValidationError):
        return faults(cause)
    return "the answer was not a JSON object" if cause is None else str(cause)


def raw_text(error: dspy.AdapterParseError) -> str:
    """Return the text of an answer that could not be parsed; empty for an empty answer."""
    text = str(error.lm_response or "")
    return "" if _NO_TEXT.fullmatch(text.strip()) else text


def opened_trace() -> list[Any] | None:
    """Return the trace that a caller, such as an optimizer, opened for this run, or ``None``.

    DSPy's process-wide trace is not used: it would keep the images of every call.
    """
    trace: list[Any] | None = dspy.settings.trace
    return None if trace is process_wide_setting("trace") else trace


def _read_anyway(error: dspy.AdapterParseError) -> dspy.Prediction:
    """Parse an answer that the user's DSPy adapter could not parse. Raises AdapterParseError if this fails, too."""
    if isinstance(error.__cause__, Unreadable):  # an error of this package's DSPy adapter
        raise error
    try:
        fields = read_fields(raw_text(error), error.signature)
    except Unreadable as why:
        raise dspy.AdapterParseError(error.adapter_name, error.signature, error.lm_response, str(why)) from why
    if fields is None:
        raise error
    return dspy.Prediction(**fields)


def _broke_schema(turn: Turn) -> bool:
    """Return whether a rejected answer breaks the schema of its request: its server then ignores schemas."""
    if turn.known is None or turn.schema is None or not turn.text or _at_limit(turn):
        return False
    return turn.known.ignored(turn.schema, turn.text)


def _at_limit(turn: Turn) -> bool:
    """Return whether the server reported that this answer ended at the token limit."""
    if turn.spent.cut_off and turn.cache:
        note_cut_off(turn.model, turn.text)
    return turn.spent.cut_off or (not turn.spent.calls and was_cut_off(turn.model, turn.text))


def _all_thoughts(thoughts: str) -> str:
    named = _FIELD_OF_THOUGHTS.match(thoughts)  # the form of ``vetting``
    return ALL_THOUGHTS.format(field=f"`{named[1]}`" if named else "the reasoning")


def _name_of_type(kind: Any) -> str:
    return kind.__name__ if isclass(kind) else str(kind)


def _as_text(output: Any) -> str:
    return output.model_dump_json(by_alias=True) if isinstance(output, BaseModel) else str(output)
