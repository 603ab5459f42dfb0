"""Rules of plain English: terms to replace, and the sentences of a text."""

import re

INSTEAD = {  # term to avoid: replacement
    r"\btold\b": "reported, shown, logged, recognized",
    r"\btaught\b": "trained on",
    r"(?<!mean )\bopinions?\b": "MOS, subjective scores",
    r"\bjudg(es|ed|ing|ment|ments)\b": "assess, assessment",
    r"\breading of all\b": "the shared head",
    r"\bkept aside\b|\bleft out of the fit\b": "held out",
    r"\bis a level off\b": "differs by one quality level",
    r"\bhalf price\b|\bgoes as a batch\b|\bgo as batches\b": "the Batch API (half the price), is submitted as a batch",
    r"\bladders?\b": "distortion series",
    r"\bstranger's words\b": "free-form questions",
    r"\bundetermined\b": "not answered",
    r"\bthe house\b|\bfloors?\b": "packages, modules, layers",
    r"\bwhose\b|\bnobody\b|\bwhoever\b": "who does what",
}
INSTEAD_IN_MESSAGES = INSTEAD | {
    r"\basked of\b": "the model that is asked, the request",
    r"\bof which\b": "two sentences",
    r"\b(by|of) what\b": "the name of the thing",
    r"\bwhat is left\b(?! out)": "the remaining images",
    r"\b(is|are|was|were|has|have) gone\b": "was removed, is missing, stopped",
    r"\bheard\b": "received",
    r"\b(is|are|was) dead\b|\bdied\b": "stopped, unreachable",
}


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; a list item and a line before a block or table end one, too."""
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|(?<=[.!?])[)\"*]*\s+(?=[A-Z\d(`\"*]|code\b)", text)
    return [" ".join(part.split()) for part in parts if re.search(r"\w", part)]


def offences(text: str, instead: dict[str, str]) -> list[str]:
    """Return the terms to replace in a text."""
    return [f"{each[0]!r}: write {new}" for old, new in instead.items() for each in re.finditer(old, text, re.I)]
