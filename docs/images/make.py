"""Draw the pictures of README and docs again: ``python docs/images/make.py``."""

import tempfile
from pathlib import Path

from PIL import Image

from agenticiqa import AgenticIQA, draw_assessment

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
WIDTH = 1400  # pixels


def main() -> None:
    """Judge the shipped photo against its original, draw the result, and keep a smaller copy of the drawing."""
    result = AgenticIQA.offline()(EXAMPLES / "coffee_jpeg.jpg", reference=EXAMPLES / "coffee.webp")
    with tempfile.TemporaryDirectory() as folder:
        drawing = Path(folder) / "drawing.png"
        draw_assessment(result, drawing)
        with Image.open(drawing) as image:
            smaller = image.convert("RGB").resize(
                (WIDTH, round(image.height * WIDTH / image.width)), Image.Resampling.LANCZOS
            )
    smaller.save(HERE / "coffee_jpeg.webp", quality=82, method=6)


if __name__ == "__main__":
    main()
