"""GEPA's page of what it tried, written anew as ours: GEPA's own loads its drawing from a network."""

import logging
from pathlib import Path
from typing import Any

from agenticiqa.eval.page.candidates import candidates_page
from agenticiqa.programs.images.files import write_atomically

logger = logging.getLogger(__name__)

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
