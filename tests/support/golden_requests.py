"""The signatures that have a golden request."""

from importlib import import_module
from pkgutil import iter_modules

import dspy

from agenticiqa import signatures


def all_signatures() -> set[type[dspy.Signature]]:
    """Return every signature that the modules of ``agenticiqa.signatures`` define."""
    modules = [import_module(f"{signatures.__name__}.{module.name}") for module in iter_modules(signatures.__path__)]
    return {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, dspy.Signature) and value.__module__ == module.__name__
    }
