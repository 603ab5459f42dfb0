"""Parse YAML and JSON of users' files; nesting that is too deep and impossible values are syntax errors, too."""

import json
from typing import Any

import yaml

TOO_DEEP = "nested too deeply"


def yaml_value(text: str) -> Any:
    """Return the value of a YAML text. Raises ``yaml.YAMLError``."""
    try:
        return yaml.safe_load(text)
    except RecursionError:
        raise yaml.YAMLError(TOO_DEEP) from None
    except (ArithmeticError, AttributeError, LookupError, ValueError) as error:  # values of dates and numbers
        raise yaml.YAMLError(f"a date or a number is not valid ({error})") from error


def json_value(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
