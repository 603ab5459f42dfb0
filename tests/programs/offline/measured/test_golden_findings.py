"""Golden findings: severity and kind in each category for images of known distortions, so that a change is a diff.

The curves alone assess a small image, curves and networks a larger one.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from agenticiqa.eval.research.distort import DISTORTION_STRENGTHS, KINDS, distort
from agenticiqa.programs.offline.measured.distortions import findings_of
from agenticiqa.programs.tools.features.image_features import has_features
from agenticiqa.signatures.vocabulary import DETECTABLE
from support.distortion_levels import scene
from support.images import loaded
from support.recorded import RECORD

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).with_name("golden_findings.csv")
SMALL, LARGE = (60, 62), (192, 256)
COLUMNS = ("size", "kind", "level", "reference", *DETECTABLE)
CASES = [(SMALL, kind, level) for kind in KINDS for level in DISTORTION_STRENGTHS] + [
    (LARGE, kind, 3) for kind in KINDS
]


def rows() -> Iterator[list[str]]:
    """Yield a row for each case, without and with the reference."""
    references = {size: loaded(scene(*size)) for size in (SMALL, LARGE)}  # their measurements are cached
    for size, kind, level in CASES:
        reference = references[size]
        image = loaded(distort(scene(*size), kind, level))
        assert has_features(image) == (size == LARGE)
        for compared in (False, True):
            found = findings_of(image, reference if compared else None)
            cells = [f"{found[name].severity:.3f} {found[name].subtype}" for name in DETECTABLE]
            yield [f"{size[1]}x{size[0]}", kind, str(level), "yes" if compared else "no", *cells]


def alike(cell: str, golden: str) -> bool:
    """Return whether the kinds are equal, and the severities up to rounding in other library versions."""
    (severity, _, subtype), (expected, _, kind) = cell.partition(" "), golden.partition(" ")
    return subtype == kind and abs(float(severity) - float(expected)) <= 0.02


@pytest.mark.recorded
def test_the_findings_are_the_golden_ones(recording: bool) -> None:
    found = list(rows())
    if recording:
        with GOLDEN.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *found])
        return
    with GOLDEN.open(newline="") as file:
        head, *expected = csv.reader(file)
    assert tuple(head) == COLUMNS
    assert [row[:4] for row in found] == [row[:4] for row in expected]
    differing = [
        f"{' '.join(row[:4])}: {name} {now}, was {was}"
        for row, golden in zip(found, expected, strict=True)
        for name, now, was in zip(DETECTABLE, row[4:], golden[4:], strict=True)
        if not alike(now, was)
    ]
    assert not differing, "\n".join([RECORD, *differing])
