"""Print a folder's results on a terminal: one line for each image, the worst first, and a summary line."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.results_file import Row
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.arguments import AssessOptions
from agenticiqa.programs.cli.printable import print_text
from agenticiqa.programs.cli.sinks import RunState, Sink
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.page.entry import Entry, entry_of, worst_first
from agenticiqa.programs.page.result_tables import ranking
from agenticiqa.signatures.vocabulary import LEVELS

FEWEST = 10  # images; fewer get a card each instead of a line


def is_ranked(args: AssessOptions, images: int) -> bool:
    """Return whether results are shown as one table: on a terminal, unless -v asks for each."""
    return images >= FEWEST and render.stdout_console().is_terminal and not args.verbose


class Ranking(Sink):
    """The results by score with a summary, printed at the end, even if the run is interrupted."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._entries: list[Entry] = []

    def write(self, job: Job, row: Row) -> None:
        """Keep the fields that the table shows."""
        self._entries.append(entry_of(row))

    def interrupt(self, error: BaseException) -> None:
        """Print the finished results."""
        self.close()

    def close(self) -> int:
        """Print the table, unless no image was assessed."""
        if self._entries:
            in_order = worst_first(self._entries)
            render.print_table(ranking(in_order))
            print_text(summary_text(in_order, len(self._state.summary.failed)))
        return OK


def summary_text(entries: Sequence[Entry], failed: int) -> str:
    """Return how many images were assessed and failed, the median score and the range, and the images per level."""
    counted = f"{len(entries)} assessed" + (f", {failed} failed" if failed else "")
    scores = [entry.score for entry in entries if entry.score is not None]
    if not scores:
        return counted
    levels = Counter(entry.level for entry in entries)
    per_level = ", ".join(
        f"{levels[word]} {word.lower()}" for word in sorted(LEVELS, key=LEVELS.__getitem__) if levels[word]
    )
    return f"{counted}: median {median(scores):.2f}, {min(scores):.2f} to {max(scores):.2f}; {per_level}"
