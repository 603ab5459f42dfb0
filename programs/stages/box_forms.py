"""The coordinate formats of boxes: each model family is asked for boxes in the format that it was trained on.

- Qwen2.5-VL: pixels of the image as it was resized for the model, sides of whole patches of 28.
  https://github.com/QwenLM/Qwen3-VL/issues/676. Q-Insight and VisualQuality-R1 are trained from it.
- Qwen2-VL, Qwen3-VL and later: 0..1000. https://github.com/QwenLM/Qwen3-VL/issues/1486 and .../1741
- InternVL: 0..1000. https://internvl.readthedocs.io/en/latest/get_started/chat_data_format.html
- GLM-V: 0..1000, by its grounding guide; DeepSeek-VL2: 0..999.
- Gemini: 0..1000, y first. https://docs.cloud.google.com/vertex-ai/generative-ai/docs/bounding-box-detection. Gemma
  likely as Gemini (https://huggingface.co/google/gemma-3-4b-it/discussions/38).
- Claude: pixels of the resized image. https://platform.claude.com/docs/en/build-with-claude/vision-coordinates
- Kimi-VL: fractions. https://github.com/MoonshotAI/Kimi-VL/issues/56
- GPT and all other names, also aliases of changing models (qwen-vl-max): no documented form, so thousandths are
  requested.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agenticiqa.programs.backends.image_tokens import Size
from agenticiqa.programs.backends.models import seen_size
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.regions import in_pixels
from agenticiqa.signatures.types import Box, Boxes

Unit = Literal["pixels", "thousandths", "fractions"]

# The first pattern that matches the model's name decides.
FAMILIES: tuple[tuple[str, str, Unit, bool], ...] = (  # name, pattern, unit, y first
    ("Qwen2.5-VL", r"qwen-?2[._-]?5-?vl|q-insight|visualquality-r1", "pixels", False),
    ("Qwen-VL", r"qwen-?2-?vl|qwen-?[3-9]|qwen-vl-chat", "thousandths", False),
    ("InternVL", r"internvl", "thousandths", False),
    ("GLM-V", r"glm-[\d.]+v", "thousandths", False),
    ("DeepSeek-VL2", r"deepseek-vl", "thousandths", False),
    ("Gemini", r"gemini|gemma", "thousandths", True),
    ("Claude", r"claude", "pixels", False),
    ("Kimi-VL", r"kimi", "fractions", False),
)
SLACK = 28  # pixels that a box may exceed the border, because servers resize slightly differently


@dataclass(frozen=True)
class BoxForm:
    """The form of the boxes in one answer. ``family`` is the model family, ``None`` if unknown.

    ``whole`` has the coordinates of the right and the lower border of the image.
    """

    family: str | None
    unit: Unit
    whole: tuple[float, float]
    y_first: bool = False

    def repeated(self, sent: Size) -> "BoxForm":
        """Return the form to assume if a model repeats a box that contradicts this form after a correction."""
        unit: Unit = "thousandths" if self.unit == "pixels" else "pixels"
        return BoxForm(None, unit, sent if unit == "pixels" else (1000, 1000), self.y_first)

    @property
    def asked(self) -> str:
        """Return a description of the form for the prompt."""
        order = "[top, left, bottom, right]" if self.y_first else "[left, top, right, bottom]"
        across, down = self.whole
        if self.unit == "pixels":
            return f"{order} in pixels of the image, which is {across:.0f} wide and {down:.0f} high"
        scale = "0..1" if self.unit == "fractions" else "0..1000, whatever its size in pixels"
        return f"{order} in {self.unit} of the image, {scale}: 0 is the left or upper border"

    def note(self, why: str = "") -> str:
        """Return a sentence on how the boxes were read, and why."""
        unit = f"pixels of {self.whole[0]:.0f} x {self.whole[1]:.0f}" if self.unit == "pixels" else self.unit
        own = (
            f"the format of {self.family}" if self.family else "the requested format; the model's own format is unknown"
        )
        return f"Box coordinates were read as {unit}{', y first' if self.y_first else ''} ({why or own})."

    def in_pixels(self, box: Sequence[float], size: Size) -> Box:
        """Return the box in pixels of an image of ``size``. Raises ValueError, worded for the model, on a conflict.

        Numbers up to 1 are fractions in every form, because no other form has boxes this small.
        """
        left, top, right, bottom = (box[1], box[0], box[3], box[2]) if self.y_first else box
        across, down = self.whole if max(box) > 1 else (1, 1)
        over = SLACK if self.unit == "pixels" else 0
        if right - left < across / 1000 or bottom - top < down / 1000:
            problem = "has no left < right and top < bottom, by at least a thousandth"
        elif right > across + over or bottom > down + over:
            problem = f"lies outside of the image with its lower right corner at {across:g}, {down:g}"
        elif self.family is None and self.unit != "pixels" and (right, bottom) == size:
            problem = f"ends exactly at the size of the image in pixels, {size[0]} x {size[1]}"
        else:
            return in_pixels((left / across, top / down, min(right / across, 1), min(bottom / down, 1)), size)
        raise ValueError(f"the box {[*box]} {problem}; give {self.asked}")

    def written(self, box: Box, size: Size) -> list[float]:
        """Return a box, given in pixels of an image of ``size``, in this form."""
        digits = 3 if self.unit == "fractions" else None
        edges = zip(box, (*size, *size), (*self.whole, *self.whole), strict=True)
        left, top, right, bottom = (round(edge / extent * whole, digits) for edge, extent, whole in edges)
        return [top, left, bottom, right] if self.y_first else [left, top, right, bottom]


def boxes_for_prompt(boxes: Boxes, image: LoadedImage, model: str) -> str:
    """Format boxes (pixels) for a prompt: JSON of region to box in the model's form, and that form; or "none"."""
    form = box_form(model, image.sent_size)
    entries = {region: form.written(box, image.size) for region, box in boxes.items() if box}
    return f"{json.dumps(entries, ensure_ascii=False)}\nEach is {form.asked}" if entries else "none"


def box_form(model: str, size: Size) -> BoxForm:
    """Return the form in which a model (``provider/name``) writes boxes, for an image sent in this size."""
    for family, pattern, unit, y_first in FAMILIES:
        if re.search(pattern, model.lower()):
            across, down = seen_size(model.replace("/", ".", 1), size)
            whole = {"pixels": (across, down), "thousandths": (1000, 1000), "fractions": (1, 1)}[unit]
            return BoxForm(family, unit, whole, y_first)
    return BoxForm(None, "thousandths", (1000, 1000))
