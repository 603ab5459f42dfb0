"""Train the shipped models and measure offline answers. This package is in the repository only, not in the wheel."""

from pathlib import Path

DATA = Path(__file__).parent / "data"  # folder of question wordings and lists of photos
