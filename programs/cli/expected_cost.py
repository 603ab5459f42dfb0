"""Print the expected cost of a run as a table or JSON on stdout."""

import json
from typing import TYPE_CHECKING

from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.cli.render import print_lines, print_remark

if TYPE_CHECKING:
    from agenticiqa.programs.batch.cost import Estimate

COUNTED = {
    "calls": "calls",
    "input_tokens": "input tokens",
    "image_tokens": "of images",
    "output_tokens": "output tokens",
}
ESTIMATED = (
    "Nothing was sent. Calls and tokens are estimated from the real prompts and the providers' published rules for "
    "images, for one pass without retries. Images without a distortion need fewer calls; rejected answers and "
    "new plans need more. To set an upper bound, use --max-calls or --max-usd."
)


def print_estimate(found: "Estimate", as_json: bool = False) -> None:
    """Print the estimate of a run as a table, or as one JSON object, on stdout."""
    if as_json:
        whole = {"images": found.images, "questions": found.questions, "refused": found.refused, "stages": found.rows()}
        print(json.dumps(whole, ensure_ascii=False, indent=2))
        return
    about = f"{found.questions} questions about {found.images} images"
    if not found.stages:
        print(f"{about}: no model is needed, so nothing is sent")
        return
    models = sorted({stage.model for stage in found.stages})
    several = ["model"] if len(models) > 1 else []
    lines = []
    for row in found.rows():
        usd = "no price" if row["usd"] is None else f"{row['usd']:.4f}"
        counts = [f"{row[count]:,}" for count in COUNTED]
        lines.append([row["stage"], *counts, usd, *([row["model"]] if several else [])])
    print(f"{about}, for {', '.join(models)}:")
    print_lines(("stage", *COUNTED.values(), "USD", *several), lines, numbers=range(1, len(COUNTED) + 2))
    print_remark(ESTIMATED)
    for refused in found.refused:
        print_error(refused)
