"""Compare the embedded metrics with the values of their authors' code, as the table of docs/agreement.md.

    python benchmarks/agreement.py dist_dir ref_dir results_official.csv

The folders and the file are those of ``ResultsCalibra`` in the repository of IQA-PyTorch: five pairs of TID2013, 512 x
384 pixels. The values of SSIMULACRA2 are those of the ``ssimulacra2`` command of libjxl 0.11.2 for the same pairs.
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

from agenticiqa.metrics import list_metrics, measure

METRICS = ("PSNR", "SSIM", "MS-SSIM", "FSIM", "GMSD", "VIF", "SSIMULACRA2", "NIQE", "BRISQUE", "PIQE")
LIBJXL = {"I03": -69.75291088, "I04": 30.69327140, "I06": 63.22070816, "I08": -54.33218556, "I19": -60.55240463}


def official_values(file: Path) -> dict[str, dict[str, float]]:
    """Return the authors' values by metric, then by the name of the image without its suffix."""
    with file.open(newline="") as rows:
        table = {row.pop("Method"): row for row in csv.DictReader(rows)}
    found = {
        name: {Path(image).stem: float(value) for image, value in table[name.lower().replace("-", "_")].items()}
        for name in METRICS
        if name != "SSIMULACRA2"
    }
    return {**found, "SSIMULACRA2": LIBJXL}


def rows(distorted: Path, references: Path, values: Path) -> Iterator[str]:
    """Yield the Markdown table: for each metric our value above the official one, and the largest difference."""
    official = official_values(values)
    pairs = {file.stem: (file, references / file.name) for file in sorted(distorted.iterdir())}
    yield f"| metric | | {' | '.join(pairs)} | largest difference |"
    yield "| --- " * (len(pairs) + 3) + "|"
    kinds = {row["name"]: row["kind"] for row in list_metrics()}
    for name in METRICS:
        ours = {stem: measure(name, *(pair if kinds[name] == "FR" else pair[:1])) for stem, pair in pairs.items()}
        yield f"| {name} | here | {' | '.join(f'{value:.4f}' for value in ours.values())} | |"
        largest = max(abs(ours[stem] - official[name][stem]) for stem in pairs)
        yield f"| | official | {' | '.join(f'{official[name][stem]:.4f}' for stem in pairs)} | {largest:.2g} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name in ("distorted", "references", "values"):
        parser.add_argument(name, type=Path)
    args = parser.parse_args()
    print("\n".join(rows(args.distorted, args.references, args.values)))


if __name__ == "__main__":
    main()
