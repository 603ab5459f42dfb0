"""Ask a model for a typed answer; when it is unusable, say what was wrong and ask again.

DSPy itself never tells a model why its answer failed validation, so the loop is ours. The correction is an input of
the prompt: a cached bad answer is not replayed, the temperature can stay at 0, and a repeated run replays the whole
exchange from the cache. An outage (``dspy.LMError``) is not an answer and is never retried here.
"""

import contextvars
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError
from pydantic import BaseModel, ValidationError

from agenticiqa.programs.backends.adapter import CORRECTION
from agenticiqa.programs.backends.cleaning import cut_short
from agenticiqa.programs.backends.connect import Backend
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.held_images import holding
from agenticiqa.programs.backends.ledger import Spent, asking, spend
from agenticiqa.programs.backends.limits import Halted, LimitReached
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.events import event
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.stages import progress
from agenticiqa.programs.stages.flow import Call, Flow, arun, run
from agenticiqa.signatures.types import well_formed

logger = logging.getLogger(__name__)

Check = Callable[[Any], None]

# DSPy turns text between these markers into a real image part, so a question could make a provider fetch an address.
MARKER = "CUSTOM-TYPE-"
LONGEST_LOGGED = 2000
CUT_OFF = "the answer was cut off before its end, at max_tokens; say it in fewer words"

# What DSPy reports as the text of an answer that had none, with and without log-probabilities.
_NO_TEXT = re.compile(r"\s*(None|\{'text': (''|None).*)?\s*", re.DOTALL)


class Rejected(Exception):
    """A stage's own assertion failed; the message tells the model what to do differently."""


class CheckedPredict(dspy.Module):
    """One typed question to a model, with retries.

    Around one ``dspy.Predict``, so that an optimizer finds exactly this predictor, and in its trace the one answer that
    was accepted. The signature has one output field, a pydantic model. ``backend`` names the models to ask; without
    one, DSPy's current ``lm`` is asked. With ``reads_tokens`` log-probabilities are asked for, where the model gives
    them; no other question pays for them.

    Returns a ``dspy.Prediction`` of ``answer`` (the validated output), ``retries`` (what was wrong with each rejected
    attempt) and ``logprobs`` (the tokens' log-probabilities, where the backend gives them). Raises Unanswered when no
    attempt was usable, and ``dspy.LMError`` when the model cannot be reached.
    """

    def __init__(
        self,
        signature: type[dspy.Signature],
        *,
        stage: str,
        backend: Backend | None = None,
        attempts: int = 3,
        reads_tokens: bool = False,
    ) -> None:
        super().__init__()
        self.predict = dspy.Predict(signature)
        self.stage = stage
        self.backend = backend or Backend.ambient()
        self.attempts = attempts
        self.reads_tokens = reads_tokens

    def forward(self, inputs: Mapping[str, Any], check: Check | None = None) -> dspy.Prediction:
        """Ask, sync. ``check`` is given the output and raises Rejected when it breaks a rule of the stage."""
        return run(self._exchange(inputs, check))

    async def aforward(self, inputs: Mapping[str, Any], check: Check | None = None) -> dspy.Prediction:
        """Ask, async."""
        return await arun(self._exchange(inputs, check))

    def _exchange(self, inputs: Mapping[str, Any], check: Check | None) -> Flow[dspy.Prediction]:
        """The conversation, attempt by attempt."""
        (field,) = self.predict.signature.output_fields
        trace = opened_trace()
        given = {name: harmless(value) for name, value in inputs.items()}
        reasons: list[str] = []
        raw, typed = "", None
        for attempt in range(1, self.attempts + 1):
            request = {**given, **self._again(reasons)}
            turn = {"stage": self.stage, "attempt": attempt, "attempts": self.attempts}
            progress.asked(self.stage, attempt, self.attempts)
            if logger.isEnabledFor(logging.DEBUG):
                prompt = self._prompt(request)
                logger.debug("%s: attempt %d of %d: %s", *turn.values(), prompt, extra=event("prompt", **turn))
            started = time.perf_counter()
            try:
                with asking(self.stage) as spent:
                    prediction = yield from self._reach(request)
                typed = prediction[field]
                raw = _as_text(typed)
                if check:
                    check(typed)
            except AdapterParseError as error:
                raw = said(error)
                reasons.append(CUT_OFF if spent.cut_off else reason(error))
            except RecursionError:  # a model that repeats an opening bracket for ever
                raw = ""
                reasons.append("the answer was nested too deeply")
            except Rejected as error:
                reasons.append(str(error))
            else:
                logger.debug("%s: replied: %s", self.stage, _cut(raw), extra=event("reply", **turn))
                progress.answered(self.stage, attempt, spent, time.perf_counter() - started)
                if trace is not None:  # whoever reads it knows nothing of images that are held
                    seen = {name: v.to_dspy() if isinstance(v, LoadedImage) else v for name, v in given.items()}
                    trace.append((self.predict, seen, dspy.Prediction(**{field: typed})))
                return dspy.Prediction(answer=typed, retries=reasons, logprobs=prediction.get("logprobs"))
            told = event("rejected", **turn, reason=reasons[-1], seconds=round(time.perf_counter() - started, 3))
            logger.warning("%s: attempt %d of %d rejected: %s", *turn.values(), reasons[-1], extra=told)
            logger.debug("%s: rejected: %s", self.stage, _cut(raw), extra=event("reply", **turn))
        logger.error(
            "%s: no usable answer in %d attempts; the last one was: %s",
            self.stage,
            self.attempts,
            raw,
            extra=event("unanswered", stage=self.stage, attempts=self.attempts),
        )
        raise Unanswered(self.stage, reasons, raw, typed)

    def _reach(self, request: dict[str, Any]) -> Flow[dspy.Prediction]:
        """One attempt: the primary model, and the fallback when the primary stays out of reach after its retries."""
        *firsts, last = self.backend.settings()
        for settings in firsts:
            try:
                return (yield from self._call(request, settings))
            except (LimitReached, Halted):
                raise
            except dspy.LMError as error:
                if not dspy.is_retryable_lm_error(error):
                    raise
                name, why = settings["lm"].model, str(error).partition("\n")[0]
                told = event("fallback", stage=self.stage, model=name, reason=why)
                logger.warning("%s: %s is out of reach (%s); falling back", self.stage, name, why, extra=told)
                self.backend.out_of_reach(settings["lm"])
        try:
            return (yield from self._call(request, last))
        except dspy.LMError as error:
            told = event("unreachable", stage=self.stage, reason=str(error))
            logger.info(
                "%s: the model stays out of reach: %s", self.stage, error, extra=told
            )  # the catcher tells users
            raise

    def _call(self, request: dict[str, Any], settings: Mapping[str, Any]) -> Flow[dspy.Prediction]:
        """Ask one model; one of ours is sent the bytes of the images without a way through the prompt."""
        images = {name: value for name, value in request.items() if isinstance(value, LoadedImage)}
        engine = settings["lm"].engine if "lm" in settings else None
        if isinstance(engine, Model):
            sent = {name: image.sent_as(engine.formats) for name, image in images.items()}
            if self.reads_tokens and engine.top_logprobs:
                request = {**request, "config": {"logprobs": True, "top_logprobs": engine.top_logprobs}}
            with holding(sent) as shown:
                return (yield Call(self.predict, {**request, **shown}, settings))
        shown = {name: image.to_dspy() for name, image in images.items()}
        spend(Spent(calls=1))  # somebody else's engine does not tell whether it had to ask
        return (yield Call(self.predict, {**request, **shown}, settings))

    def _prompt(self, request: dict[str, Any]) -> str:
        """What is asked, in full but for the bytes of the images."""
        given = "\n".join(
            f"[{name}] {value if isinstance(value, (str, bool)) else type(value).__name__}"
            for name, value in request.items()
            if name != "signature"
        )
        return f"{self.predict.signature.instructions}\n{given}"

    def _again(self, reasons: list[str]) -> dict[str, Any]:
        if not reasons:
            return {}
        correction = (
            f"Attempt {len(reasons) + 1} of {self.attempts}. Your last answer was rejected: {reasons[-1].rstrip('.')}. "
            "Return ONLY valid JSON."
        )
        field = dspy.InputField(desc="what was wrong with your previous answer; mend exactly this")
        return {
            "signature": self.predict.signature.append(CORRECTION, field, str),
            CORRECTION: harmless(correction),
        }


def reason(error: AdapterParseError) -> str:
    """What was wrong with an answer, for the model that gave it: the fields and what each should have been."""
    if cut_short(said(error)):
        return CUT_OFF
    cause = error.__cause__
    while cause is not None and not isinstance(cause, ValidationError):
        cause = cause.__cause__
    if isinstance(cause, ValidationError):
        return "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'the answer'}: {item['msg']}"
            for item in cause.errors(include_url=False, include_context=False, include_input=False)
        )
    if not said(error):
        return "the answer was empty"
    missing = [name for name in error.signature.output_fields if name not in (error.parsed_result or {})]
    if error.parsed_result is not None and missing:
        return f"the JSON object has no field {', '.join(map(repr, missing))}"
    return "the answer was not a JSON object"


def said(error: AdapterParseError) -> str:
    """The text of an answer that could not be used; empty when there was none."""
    text = str(error.lm_response or "")
    return "" if _NO_TEXT.fullmatch(text) else text


def opened_trace() -> list[Any] | None:
    """The trace that someone opened for this run, as an optimizer does; ``None`` without one.

    DSPy's process-wide trace does not count: it would keep the images of every call ever made.
    """
    process_wide = contextvars.Context().run(lambda: dspy.settings.trace)
    trace: list[Any] | None = dspy.settings.trace
    return None if trace is process_wide else trace


def harmless(value: Any) -> Any:
    """Text in which DSPy finds no marker of an image and no half character; every other value as it is."""
    return well_formed(value.replace(MARKER, "CUSTOM TYPE ")) if isinstance(value, str) else value


def _as_text(output: Any) -> str:
    return output.model_dump_json(by_alias=True) if isinstance(output, BaseModel) else str(output)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_LOGGED else f"{text[:LONGEST_LOGGED]} ... ({len(text)} characters)"
