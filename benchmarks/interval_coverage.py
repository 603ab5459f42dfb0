"""Measure how often the 95 % intervals of ``evaluate`` and ``compare`` contain the true figure, on simulated sets.

    python benchmarks/interval_coverage.py [--sets 100]

A set has scenes of 18 images, or single photos. The table has a row for each figure that is printed with an interval,
and a column for each population with its number of scenes; ``tests/support/populations.py`` describes these.
"""

import argparse
import sys
from math import isnan
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.populations import coverage

COLUMNS = [(kind, scenes) for kind in ("mild", "hard") for scenes in (4, 10, 25)] + [("photos", 100)]


def run() -> None:
    """Print the table as Markdown, and the least and largest share."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sets", type=int, default=100, help="simulated sets for each column (default: 100)")
    sets = parser.parse_args().sets
    columns = [coverage(kind, scenes, sets) for kind, scenes in COLUMNS]
    print(f"| figure | {' | '.join(f'{kind}, {scenes}' for kind, scenes in COLUMNS)} |")
    print(f"| --- |{' --- |' * len(COLUMNS)}")
    for name in columns[0]:
        print(f"| {name} | {' | '.join(f'{column[name]:.2f}' for column in columns)} |")
    shares = [share for column in columns for share in column.values() if not isnan(share)]
    print(f"\nshares from {min(shares):.2f} to {max(shares):.2f}")


if __name__ == "__main__":
    run()
