"""The outcome of a tuning run."""

from dataclasses import dataclass, field
from typing import Any

from agenticiqa.eval.optimize.items import Stage
from agenticiqa.eval.optimize.search import Searched
from agenticiqa.programs.fusion.profile import FusionProfile
from agenticiqa.programs.saving import SavedProgram


@dataclass
class Tuned:
    """The outcome: the ``program`` with the prompts that are kept, the held-out ``figures``, and what was tried.

    ``profile`` is the fusion fitted with these prompts, ``None`` where it could not be. ``why`` says why the tuned
    prompts are kept or not, ``steps`` are the proposals, ``images`` the SHA-256 of all
    images, ``originals`` the instructions before, ``proposed`` those that
    the search found.
    """

    program: SavedProgram
    stage: Stage
    kept: bool
    why: str
    figures: dict[str, Any]
    found: Searched
    originals: dict[str, str]
    profile: FusionProfile | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    spent: dict[str, Any] = field(default_factory=dict)
    exemplars: str = ""
    images: list[str] = field(default_factory=list)

    @property
    def proposed(self) -> dict[str, str]:
        """The instructions that the search found best."""
        return self.found.best
