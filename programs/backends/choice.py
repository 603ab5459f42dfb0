"""Choose the language model for a question: the caller's, the configuration's or DSPy's current model."""

import contextvars
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import dspy

from agenticiqa.configs import StageConfig
from agenticiqa.programs.errors import BackendError

AT = " at "
AMBIENT = "dspy"  # the name of the backend that uses DSPy's current model
SKIP_SECONDS = 60.0  # seconds without requests to an unreachable model that has a fallback
NO_MODEL = (
    "no language model is configured: call dspy.configure(lm=dspy.LM(...)), or make the program with "
    "AgenticIQA.from_config(...), or with AgenticIQA.offline(), which uses no model"
)


@dataclass(frozen=True)
class Backend:
    """The models that a configuration names for a stage, in the order in which they are tried (empty for ``ambient``).

    ``reconnect`` rebuilds the backend. It is pickled instead of the models, so that no key is written; loading reads
    the keys from the environment. Without ``reconnect``, models are pickled without their keys and headers.
    ``section`` is the stage's section of the configuration; a model of the caller gets its sampling.
    """

    lms: tuple[dspy.LM, ...] = ()
    reconnect: "Callable[[], Backend] | None" = field(default=None, repr=False, compare=False)
    section: StageConfig | None = field(default=None, repr=False, compare=False)
    _skipped_until: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def ambient(cls) -> "Backend":
        """Return a backend without models of its own: each call uses DSPy's current model."""
        return cls()

    def reachable(self) -> list[dspy.LM]:
        """Return the models, except those that were unreachable in the last minute; always return the last one."""
        now = time.monotonic()
        return [lm for lm in self.lms[:-1] if self._skipped_until.get(lm.model, now) <= now] + [*self.lms[-1:]]

    def out_of_reach(self, lm: dspy.BaseLM) -> None:
        """Skip this model for a minute."""
        self._skipped_until[lm.model] = time.monotonic() + SKIP_SECONDS

    def __deepcopy__(self, memo: dict[int, Any]) -> "Backend":
        # Optimizers copy programs; the connection is not part of what they tune.
        return self

    def __reduce__(self) -> tuple[Callable[..., "Backend"], tuple[Any, ...]]:
        if self.reconnect is not None:
            return self.reconnect, ()
        lms = tuple(lm.copy(api_key=None, headers=None, extra_headers=None) for lm in self.lms)
        return Backend, (lms, None, self.section)


def models_to_ask(own: dspy.BaseLM | None, backend: Backend) -> list[dspy.BaseLM]:
    """Return the models to try in turn for one question.

    The first of these that is set is used: ``own``, the predictor's own model (``set_lm``); the model of an enclosing
    ``dspy.context``; the models of the configuration; the model of ``dspy.configure``. Without models in ``backend``,
    this is DSPy's own order. Raises BackendError when no model is set, or when the value is not a ``dspy.LM``.
    """
    model = given_model(own, backend)
    if model is None:
        return [*backend.reachable()]
    if not isinstance(model, dspy.BaseLM):
        example = f"dspy.LM({model!r})" if isinstance(model, str) else "a dspy.LM"
        raise BackendError(f"the language model is a {type(model).__name__}: pass {example} instead")
    return [model]


def given_model(own: dspy.BaseLM | None, backend: Backend) -> Any:
    """Return the caller's model that replaces the models of ``backend``; ``None`` if the caller set none."""
    process_wide = process_wide_setting("lm")
    enclosing = dspy.settings.lm
    if own is not None:
        return own
    if enclosing is not None and enclosing is not process_wide:
        return enclosing
    if backend.lms:
        return None
    if process_wide is None:
        raise BackendError(NO_MODEL)
    return process_wide


def process_wide_setting(name: str) -> Any:
    """Return a setting of DSPy as ``dspy.configure`` set it, without the changes of any ``dspy.context``."""
    return contextvars.Context().run(lambda: getattr(dspy.settings, name))


def named_at(model: str, address: str) -> str:
    """Return the name of a model at an address; without an address, the name alone.

    The separator has blanks, which neither a name nor an address has: both may have slashes, dots, colons and ``@``.
    """
    return f"{model}{AT}{address}" if address else model


def without_place(name: str) -> str:
    """Return the name of a model without the address of its server, as results show it."""
    return name.partition(AT)[0]
