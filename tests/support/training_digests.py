"""A file of digests of images, as if shipped tools had been trained on them."""

import csv
from pathlib import Path

from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.research.training_images import COLUMNS, lines_of
from agenticiqa.programs.tools.training_images import digests_of


def write_digests(out: Path, *labels: Path) -> Path:
    """Write the digests of the images of labels files, each a set with the name of its folder, and return ``out``."""
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        images = [(path.resolve().parent.name, item) for path in labels for item in read_labels(path)]
        writer.writerows(lines_of((name, item.split or "", *digests_of(item.image)) for name, item in images))
    return out
