"""Show one result as HTML in a notebook."""

import base64
import io

import dspy
from PIL import Image

from agenticiqa.programs.fusion.formula import interval_text, level_name
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.page.findings import LEVEL_COLORS, distortions_of, measured, place_of, placed, tool_rows
from agenticiqa.programs.page.render import render
from agenticiqa.signatures.types import ToolCall
from agenticiqa.signatures.vocabulary import LEVELS

THUMBNAIL = 240  # pixels of a thumbnail's longer side
LONG_ANSWER = 80  # characters
MAX_ROWS = 12  # lines of a table


def to_html(result: dspy.Prediction) -> str:
    """Return an assessment as one HTML element without scripts, style sheets or links; all text is escaped.

    It inherits the page's font and colors, so it is readable on dark pages.
    """
    image, evidence, score = result.get("image"), result.get("executor_evidence"), result.get("quality_score")
    distortions = [
        (placed(item.type, place_of(evidence, region, item.type)), item.severity)
        for region, item in distortions_of(evidence)
    ]
    tool_headings, *tools = tool_rows(evidence.tool_log if evidence else (), _subject)
    level = None if score is None else level_name(score)
    values = {
        "image": image,
        "thumbnail": _thumbnail(image) if image else "",
        "query": result.get("query") or "",
        "score": score,
        "level": level,
        "color": LEVEL_COLORS[LEVELS[level]] if level else "",
        "interval": interval_text(getattr(result, "score_interval", None)),
        "answer": str(result.get("final_answer") or ""),
        "long_answer": LONG_ANSWER,
        "reasoning": result.get("quality_reasoning") or "",
        "tables": [(("distortion", "severity"), distortions), (tool_headings, tools)],
        "max_rows": MAX_ROWS,
    }
    return render("page/notebook.html", values).strip()


def _subject(call: ToolCall) -> str:
    subject = placed(measured(call.tool, call.distortion), call.region)
    return f"{subject}, assessed as AI-generated" if call.image_kind == "generated" else subject


def _thumbnail(image: LoadedImage) -> str:
    """Return the image, at most ``THUMBNAIL`` pixels wide and high, as a JPEG in a data URI."""
    small = Image.fromarray(image.pixels)
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=90)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
