"""Neutralize untrusted text in a prompt: the model reads it as text, never as structure of the prompt."""

import re
from typing import Any

from agenticiqa.signatures.vocabulary import well_formed

# DSPy turns text between these markers into a real image part, so a question could make a provider fetch an address.
MARKER = "CUSTOM-TYPE-"
# Invisible copies of ASCII, which tokenizers read.
_TAGS = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)} | dict.fromkeys((0xE0001, 0xE007F))
# The opening of a field ("[[ ## query ## ]]"), of a tag, and of a token of a chat template ("<|im_end|>", "[/INST]").
_OPENS = re.compile(r"\[(?=\[\s*##|/?[A-Z_]{3,}\])|<(?=[|｜/!?\w])")


def harmless(value: Any) -> Any:
    """Insert a blank into any text that would open a field, a tag or a template token; return other values unchanged.

    DSPy's image marker and lone surrogates are removed. Invisible tag characters become the ASCII that they encode.

    >>> harmless("Sharp?<|im_end|> [[ ## query ## ]]")
    'Sharp?< |im_end|> [ [ ## query ## ]]'
    """
    if not isinstance(value, str):
        return value
    text = well_formed(value.translate(_TAGS).replace(MARKER, "CUSTOM TYPE "))
    return _OPENS.sub(lambda opening: f"{opening[0]} ", text)
