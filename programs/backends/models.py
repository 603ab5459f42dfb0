"""Look up what is known of a model by its name: the tokens of an image, the size it sees, and whether it reasons.

A model has one name at its maker and others at gateways and for its tuned versions, so all of these tables are searched
by the plain name.
"""

import re

from agenticiqa.programs.backends.image_tokens import FAMILIES, QWEN, Rule, Size, seen_size_by
from agenticiqa.programs.backends.providers import Provider, row_of

# Beginning of a plain name. Names such as "o1-7b" belong to other makers.
ALWAYS_REASON = re.compile(r"o\d(?![\w-])|o\d-(mini|pro|preview|deep|\d{4})|gpt-5(?![\d.]*-chat)")


def plain_name(model: str) -> str:
    """Return the name of a model at its maker, in lower case.

    The names of gateways (``openai/gpt-4o``, ``azure/gpt-4o``, ``us-gov.anthropic.claude-sonnet-4-5``) and the marks
    of tuned models (``ft:gpt-4o-mini-2024-07-18:org::id``) are removed.
    """
    name = model.lower().rpartition("/")[2]
    if name.startswith("ft:"):
        name = name.split(":")[1]
    return re.sub(r"^([a-z-]+\.)+", "", name)


def always_reasons(backend: str) -> bool:
    """Return whether a backend, named ``provider.model``, is a model of OpenAI that always reasons."""
    _, name = _rule_and_name(backend)
    return bool(ALWAYS_REASON.match(name))


def image_tokens(backend: str, size: Size) -> int:
    """Return the input tokens of one image of ``size`` to a backend, named ``provider.model`` as in a configuration."""
    rule, name = _rule_and_name(backend)
    return rule(name, size)


def seen_size(backend: str, size: Size) -> Size:
    """Return the size to which a Claude or a Qwen2.5-VL model resizes an image of ``size``."""
    return seen_size_by(*_rule_and_name(backend), size)


def _rule_and_name(backend: str) -> tuple[Rule, str]:
    """Return the rule for the tokens of an image, of the family or else of the provider, and the model's plain name."""
    name, provider = plain_name(backend.partition(".")[2]), row_of(backend) or Provider()
    of_family = (rule for pattern, rule in FAMILIES.items() if re.match(pattern, name))
    return next(of_family, provider.image_tokens or QWEN), name
