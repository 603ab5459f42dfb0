"""Check the question about an image; a list of jobs is checked without loading DSPy."""

import os

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.finding import is_name_of_image
from agenticiqa.programs.images.sources import is_in_memory
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY, well_formed

MAX_QUERY_LENGTH = 4000  # characters


def checked(query: str | None) -> str:
    """Return the stripped question, or the default for ``None``. Raises UserError if empty, too long or not text."""
    if query is not None and not isinstance(query, str):
        meant = ", did you mean reference=?" if is_image(query) else "; give it as text"
        raise UserError(f"the question is of type {type(query).__name__}{meant}")
    query = well_formed(DEFAULT_QUERY if query is None else query).strip()
    if not query:
        raise UserError("the question is empty; write one, or leave it out to rate the perceptual quality")
    if is_name_of_image(query):
        raise UserError(f"the question is the name of an image file, did you mean reference={query!r}?")
    if len(query) > MAX_QUERY_LENGTH:
        raise UserError(f"the question has {len(query)} characters; shorten it to {MAX_QUERY_LENGTH}")
    return query


def is_image(value: object) -> bool:
    """Return whether a value is an image that is not given as text."""
    return is_in_memory(value) or isinstance(value, os.PathLike)
