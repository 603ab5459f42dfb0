"""Choose the sampling of a request: a stage's own parameters, and other ones after a rejected answer.

At temperature 0 a model repeats a rejected answer if only the correction in the prompt differs, also with another seed:
llama.cpp and vLLM then take the likeliest token, whatever the seed. The same holds for a low ``top_p``. Therefore an
attempt after a rejection has a temperature above 0, no ``top_p``, and a seed by the number of rejections, which makes
it repeatable and gives it a key of its own in DSPy's cache.
"""

from collections.abc import Mapping
from typing import Any

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.providers import Provider

PARAMETERS_OF_CHOICE = ("temperature", "top_p", "seed")  # parameters that decide which of the likely tokens is taken
PARAMETERS = (*PARAMETERS_OF_CHOICE, "max_tokens")
# The temperature after a rejected answer, instead of 0.
RETRY_TEMPERATURE = 0.3


def sampling_of(section: StageConfig, provider: Provider) -> dict[str, Any]:
    """Return the parameters of a section that its provider takes, without those that are ``None``."""
    values = {
        "temperature": section.temperature,
        "top_p": section.top_p if provider.takes_top_p else None,
        "seed": section.seed if provider.seed else None,
        "max_tokens": section.max_tokens,
    }
    return {name: value for name, value in values.items() if value is not None}


def after_rejections(sampling: Mapping[str, Any], number: int, provider: Provider) -> dict[str, Any]:
    """Return what changes in the sampling after this number of rejected answers; ``None`` leaves a parameter out.

    A temperature above 0 is kept, and so is that of the server.
    """
    if not number:
        return {}
    changes: dict[str, Any] = {"seed": (sampling.get("seed") or 0) + number} if provider.seed else {}
    if sampling.get("temperature") == 0:
        changes["temperature"] = RETRY_TEMPERATURE
        if "top_p" in sampling:
            changes["top_p"] = None
    return changes
