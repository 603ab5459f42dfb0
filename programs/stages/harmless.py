"""Text of others in a prompt: it arrives as text that the model can read, and never as structure of the prompt."""

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
    """Text with a blank after what would open a field, a tag or a token of a template; any other value as it is.

    Also without DSPy's image marker and lone surrogates, and with invisible tag characters as what they spell.

    >>> harmless("Sharp?<|im_end|> [[ ## query ## ]]")
    'Sharp?< |im_end|> [ [ ## query ## ]]'
    """
    if not isinstance(value, str):
        return value
    text = well_formed(value.translate(_TAGS).replace(MARKER, "CUSTOM TYPE "))
    return _OPENS.sub(lambda opening: f"{opening[0]} ", text)
