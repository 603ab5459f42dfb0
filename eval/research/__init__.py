"""How the shipped models are trained and how offline answers are measured; in the repository only, not in the wheel."""

from pathlib import Path

DATA = Path(__file__).parent / "data"  # wordings of questions, and the lists of the photos
