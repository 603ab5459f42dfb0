"""Parse YAML and JSON of users' files; nesting that is too deep and impossible values are syntax errors, too."""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

TOO_DEEP = "nested too deeply"
NOT_BLANK = re.compile(r"\S")


def yaml_value(text: str) -> Any:
    """Return the value of a YAML text. Raises ``yaml.YAMLError``."""
    try:
        return yaml.safe_load(text)
    except RecursionError:
        raise yaml.YAMLError(TOO_DEEP) from None
    except (ArithmeticError, AttributeError, LookupError, ValueError) as error:  # values of dates and numbers
        raise yaml.YAMLError(f"a date or a number is not valid ({error})") from error


def json_values(text: str) -> Iterator[Any]:
    """Yield the values of JSON texts that follow one another, each over any number of lines. Raises ValueError."""
    decoder, place = json.JSONDecoder(), 0
    while start := NOT_BLANK.search(text, place):
        try:
            value, place = decoder.raw_decode(text, start.start())
        except RecursionError:
            raise ValueError(TOO_DEEP) from None
        yield value


def json_value(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
