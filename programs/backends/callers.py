"""Find out what to request from a model that the caller gave to DSPy: as much as from the same configured model.

DSPy requests no JSON schema from a model that it does not know, such as one on a local server, and no sampling. The
provider follows from the prefix of the model's name and from its address. Its engine must carry a parameter (DSPy's
``supported_params``); an engine of the caller declares what it carries. What the caller set is never replaced.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dspy

from agenticiqa.configs import PlannerConfig, ReplanConfig, StageConfig, SummarizerConfig
from agenticiqa.configs.backend_names import with_dot
from agenticiqa.programs.backends.addresses import public_address
from agenticiqa.programs.backends.capabilities import ModelFeatures
from agenticiqa.programs.backends.choice import AMBIENT, Backend
from agenticiqa.programs.backends.connect import FEWEST_REASONING_TOKENS
from agenticiqa.programs.backends.models import always_reasons, plain_name
from agenticiqa.programs.backends.providers import Form, Provider, row_of
from agenticiqa.programs.backends.sampling import PARAMETERS, sampling_of

# The sections of the stages that have parameters of their own, for stages that were made without a configuration.
SECTIONS: Mapping[str, StageConfig] = {
    "planner": PlannerConfig(),
    **dict.fromkeys(("scoring", "answering"), SummarizerConfig()),
    "replan": ReplanConfig(),
}
REASONING = ("reasoning_effort", "reasoning", "thinking")  # parameters that make a model reason
OTHER_NAMES = {"max_completion_tokens": "max_tokens", "max_output_tokens": "max_tokens"}


def section_for(stage: str, backend: Backend) -> StageConfig:
    """Return the section of a stage for a model of the caller.

    If the section has a model of its own, its ways to request JSON and log-probabilities are those of that model.
    """
    section = backend.section or SECTIONS.get(stage, StageConfig())
    if section.backend == AMBIENT:
        return section
    return section.model_copy(update={"structured_outputs": "auto", "logprobs": "auto"})


def given_sampling(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of sampling among the arguments of a model or a predictor."""
    named = {OTHER_NAMES.get(name, name): value for name, value in arguments.items() if value is not None}
    return {name: value for name, value in named.items() if name in PARAMETERS}


def features_of_caller(lm: dspy.BaseLM, section: StageConfig) -> ModelFeatures:
    """Return the features to request from a model of the caller."""
    carried = frozenset(lm.supported_params)
    provider, place = _provider_at(lm)
    if not _chosen_by_dspy(lm):
        forms: tuple[Form, ...] = ("json_schema", "json_object") if lm.supports_response_schema else ("json_object",)
        provider = replace(provider, forms=forms if "response_format" in carried else ())
    provider = replace(
        provider,
        logprobs=provider.logprobs if "top_logprobs" in carried else 0,
        seed=provider.seed and "seed" in carried,
        takes_top_p=provider.takes_top_p and "top_p" in carried,
    )
    structured = section.structured_outputs if provider.forms else "off"
    name = f"{lm.model} at {place}" if place else lm.model
    return ModelFeatures(structured, section.logprobs, provider, name, carried)


def sampling_for_caller(
    lm: dspy.BaseLM, section: StageConfig, features: ModelFeatures, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters of the section that the caller did not set and that the model takes.

    A model that reasons takes no temperature, and its hidden reasoning counts towards the limit of tokens.
    """
    values = sampling_of(section, features.provider)
    reasons = any(lm.kwargs.get(name) for name in REASONING)
    if reasons or always_reasons(with_dot(lm.model)):
        values = {} if reasons else {"max_tokens": max(section.max_tokens, FEWEST_REASONING_TOKENS)}
    if "temperature" in given:  # a low top_p would take its effect away
        values.pop("top_p", None)
    if lm.kwargs.get("rollout_id") is not None:  # the caller asks for different answers to the same request
        values.pop("temperature", None)
    return {name: value for name, value in values.items() if features.carries(name) and name not in given}


def _chosen_by_dspy(lm: dspy.BaseLM) -> bool:
    """Return whether DSPy chooses the engine, so that the server is known, and not the caller."""
    return isinstance(lm, dspy.LM) and isinstance(lm.engine, str)


def _provider_at(lm: dspy.BaseLM) -> tuple[Provider, str]:
    """Return the row of a model's provider, and its address for display, empty for the provider's own."""
    name = with_dot(lm.model)
    known = row_of(name) if _chosen_by_dspy(lm) else None
    prefix = lm.model.partition("/")[0].upper()
    # DSPy and LiteLLM read these variables.
    variables = [os.environ.get(f"{prefix}_{end}") for end in ("API_BASE", "BASE_URL")]
    address = next(filter(None, (lm.kwargs.get("api_base"), lm.kwargs.get("base_url"), *variables)), None)
    place = public_address(str(address)) if address else ""
    if known is None:
        return Provider(), place
    if address and str(address).rstrip("/") != known.address:
        return known.at_another_address(str(address)), place
    return known.of_model(plain_name(name.partition(".")[2])), ""
