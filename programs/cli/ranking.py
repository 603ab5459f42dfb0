"""Print a folder's results on a terminal: one line for each image, the worst first, and a summary line."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median

from agenticiqa.programs.batch.summary import Summary
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.outputs import Write
from agenticiqa.programs.cli.overview import Entries, collect_entries
from agenticiqa.programs.page.entry import Entry, Lines, with_caveats, worst_first
from agenticiqa.signatures.vocabulary import LEVELS

FEWEST = 10  # with fewer images, each gets a card instead of a line


def is_ranked(args: Namespace, images: int) -> bool:
    """Return whether results are shown as one table: on a terminal, unless -v or --jsonl asks for each."""
    return images >= FEWEST and render.stdout_console().is_terminal and not (args.jsonl or args.verbose)


@contextmanager
def ranking_of(summary: Summary) -> Iterator[Write]:
    """Collect results, and print them by score with a summary at the end, even if the run is interrupted."""
    entries: Entries = {}
    try:
        yield collect_entries(None, entries, [])
    finally:
        if entries:
            in_order = worst_first([*entries.values()])
            render.print_lines(*ranking(in_order))
            print(summary_text(in_order, len(summary.failed)))


def ranking(entries: Sequence[Entry]) -> Lines:
    """Return a line for each image: score, its 80 % interval, the image, the main distortion; or the answer."""
    if all(entry.answer for entry in entries):
        return with_caveats(entries, ("answer", "image"), [[entry.answer, entry.image] for entry in entries])
    lines = []
    for entry in entries:
        interval = "" if entry.low is None or entry.high is None else f"{entry.low:.1f} to {entry.high:.1f}"
        score = "-" if entry.score is None else f"{entry.score:.2f}"
        lines.append([score, interval, entry.image, entry.answer or entry.finding or "none found"])
    return with_caveats(entries, ("score", "80 % interval", "image", "main finding"), lines)


def summary_text(entries: Sequence[Entry], failed: int) -> str:
    """Return how many images were assessed and failed, the median score and the range, and the images per level."""
    counted = f"{len(entries)} assessed" + (f", {failed} failed" if failed else "")
    scores = [entry.score for entry in entries if entry.score is not None]
    if not scores:
        return counted
    levels = Counter(entry.level for entry in entries)
    each = ", ".join(
        f"{levels[word]} {word.lower()}" for word in sorted(LEVELS, key=LEVELS.__getitem__) if levels[word]
    )
    return f"{counted}: median {median(scores):.2f}, {min(scores):.2f} to {max(scores):.2f}; {each}"
