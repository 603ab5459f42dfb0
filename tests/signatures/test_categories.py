"""The table of categories: an eighth row is all that a new category needs."""

import json
import os
import subprocess
import sys
import textwrap

from agenticiqa.eval.research.distort import KINDS
from agenticiqa.signatures.categories import CATEGORIES

ADDED = textwrap.dedent(
    """
    import json
    from agenticiqa.signatures import categories
    from agenticiqa.signatures.categories import Category, Subtype, Words

    inked = Subtype(
        "inked shadows",
        "{clipped_dark:.0%} of the image is pure black (usually below 5%).",
        "{clipped_dark:.0%} of the image is pure black (reference: {was[clipped_dark]:.0%}).",
        measure="clipped_dark", curve=((0.05, 0), (0.5, 4)), change=((0.05, 0), (0.5, 4)),
    )
    row = Category("Ink", "ink", (Words("fault", "ink, inky, inked, ink stain*"),), subtypes=(inked,))
    categories.CATEGORIES += (row,)

    import numpy as np
    from agenticiqa import AgenticIQA

    stained = np.random.default_rng(0).integers(60, 200, (120, 160, 3)).astype(np.uint8)
    clean = stained.copy()
    stained[:, :70] = 0
    program = AgenticIQA.offline()
    plan = program(stained, "How severe is the ink on the image?").plan
    results = [program(stained, "What distortions are there?", reference) for reference in (None, clean)]
    found = [each.executor_evidence.distortion_analysis["Global"] for each in results]
    alone, compared = ([each.type for each in analysis] for analysis in found)
    print(json.dumps({
        "plan": plan.model_dump(),
        "found": alone,
        "compared": compared,
        "yes": program(stained, "Is the image inky?").final_answer,
        "no": program(clean, "Is the image inky?").final_answer,
    }))
    """
)


def test_every_kind_of_distort_belongs_to_one_category() -> None:
    kinds = [kind for row in CATEGORIES for kind in row.kinds]
    assert sorted(kinds) == sorted(KINDS)


def test_an_added_category_is_planned_detected_measured_and_answered() -> None:
    done = subprocess.run([sys.executable, "-c", ADDED], capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["plan"]["distortions"] == {"Global": ["Ink"]}
    assert "Ink" in shown["found"]
    assert "Ink" in shown["compared"]
    assert shown["yes"].startswith("Yes")
    assert shown["no"].startswith("No")
