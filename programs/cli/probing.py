"""Before a run: the cache of answers, and a probe of the backends of which nothing is known, printed to stderr."""

import sys

import dspy

from agenticiqa.configs import Config
from agenticiqa.programs.backends.answer_cache import install
from agenticiqa.programs.backends.configured import probe_unknown
from agenticiqa.programs.backends.limits import Limits
from agenticiqa.programs.images.files import one_line


def prepare(config: Config, limits: Limits | None = None) -> None:
    """Install the cache of answers, and probe each backend that is not known yet; requests count towards the limits.

    Raises as ``probe_unknown`` does; a failure where another backend takes over is printed.
    """
    if not config.is_offline:
        install()
    for use, found in probe_unknown(config, limits):
        if isinstance(found, dspy.LMError):
            role = "" if use.is_needed else "the fallback "
            print(f"agenticiqa: {role}{use.name}: {one_line(str(found))}", file=sys.stderr)
        else:
            print(f"{use.name}: {found}", file=sys.stderr)
