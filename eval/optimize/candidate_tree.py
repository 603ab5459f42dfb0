"""GEPA's page of what it tried, written anew as ours: GEPA's own loads its drawing from a network."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.page.render import PACKAGES, render

logger = logging.getLogger(__name__)

PACKAGE = "agenticiqa.eval.optimize"
FILE = "candidate_tree.html"  # as GEPA calls it


class CandidateTree:
    """A callback of GEPA: after each step its page in ``folder`` is replaced by ours, also when the step failed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def on_iteration_end(self, event: Any) -> None:
        """Write the page, if GEPA wrote one. A page that cannot be written is only logged."""
        if not self.path.exists():
            return
        state = event["state"]
        try:
            page = candidates_page(
                state.program_candidates, state.parent_program_for_candidate, state.program_full_scores_val_set
            )
            write_atomically(self.path, page)
        except OSError as error:
            logger.warning("%s: cannot be written: %s", self.path, error.strerror)


def candidates_page(
    candidates: Sequence[Mapping[str, str]], parents: Sequence[Sequence[int | None]], scores: Sequence[float]
) -> str:
    """The HTML of the instructions that a search by GEPA tried, in their order, the original first.

    A candidate has its instructions by predictor, ``parents`` the numbers of those that it was made from, ``scores``
    the mean score on the validation images.
    """
    found = [
        {
            "number": number,
            "score": f"{score:.4f}",
            "best": score == max(scores),
            "parents": [parent for parent in before if parent is not None],
            "texts": [
                (name, text, any(candidates[parent].get(name) != text for parent in before if parent is not None))
                for name, text in candidate.items()
            ],
        }
        for number, (candidate, before, score) in enumerate(zip(candidates, parents, scores, strict=True))
    ]
    values = {"title": "Instructions tried", "found": found}
    return render("optimize/candidates.html", values, {**PACKAGES, "optimize": PACKAGE})
