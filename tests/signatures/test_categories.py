"""The table of categories: an added row is all that a new category needs, and a wrong one is refused in one line."""

import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from agenticiqa.eval.research.distort import KINDS
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.offline.measured.findings import SUBTYPE, Measured
from agenticiqa.signatures.categories import (
    CATEGORIES,
    Category,
    Curve,
    Sense,
    Subtype,
    Words,
)
from agenticiqa.signatures.lexicon import check_claims

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
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


@pytest.mark.parametrize("curve", [((2, 0), (1, 4)), ((1, 0), (1, 4)), ((1, 4), (2, 0)), ((1, 0), (2, 40))])
def test_a_curve_that_falls_or_leaves_the_severities_is_refused(curve: Curve) -> None:
    for name in ("curve", "change"):
        with pytest.raises(ValueError, match=f"^the kind 'steps': {name} needs values that rise"):
            replace(Subtype("steps", "", ""), **{name: curve})


@pytest.mark.slow
def test_an_added_category_is_planned_detected_measured_and_answered() -> None:
    shown = json.loads(printed()[ADDED])
    assert shown["plan"]["distortions"] == {"Global": ["Ink"]}
    assert "Ink" in shown["found"]
    assert "Ink" in shown["compared"]
    assert shown["yes"].startswith("Yes")
    assert shown["no"].startswith("No")


WITH_ROWS = textwrap.dedent(
    """
    import json
    from dataclasses import asdict, replace
    from agenticiqa.signatures import categories

    def rest(row):
        return tuple(kind.name for kind in row.subtypes[1:])

    def changed(row):
        return {change}

    rows = [changed(row) for row in categories.CATEGORIES]
    categories.CATEGORIES = (*rows[{first}:], *rows[:{first}])

    import numpy as np
    from agenticiqa import AgenticIQA
    from agenticiqa.programs.errors import ToolError
    from agenticiqa.programs.offline.answers.asked import read_question
    from agenticiqa.programs.offline.measured.distortions import findings_of
    from agenticiqa.programs.offline.measured.patches import region_weights
    from support.images import coffee, loaded

    clean = coffee()
    noisy, part = clean.copy(), (slice(0, 160), slice(0, 224))
    noisy[part] = np.clip(noisy[part] + np.random.default_rng(0).normal(0, 40, (160, 224, 3)), 0, 255)
    questions = ["Is it noisy?", "Is it out of focus or grainy?", "How severe is the banding?", "Is it fine?"]
    try:
        shown = {{
            "read": [str(read_question(question, {{}}, [], False)) for question in questions],
            "found": [{{name: asdict(finding) for name, finding in findings_of(loaded(image), beside).items()}}
                for image in (clean, noisy) for beside in (None, loaded(clean))],
            "regions": {{name: weights.tolist() for name, weights in region_weights().items()}},
            "answers": [AgenticIQA.offline()(noisy, question).final_answer for question in questions],
        }}
        print(json.dumps(shown, sort_keys=True))
    except ToolError as error:
        print(error)
    """
)


WITHOUT_PARTS = (
    "row if row.name != 'Compression' else "
    "replace(row, unused_outputs=(*row.unused_outputs, *rest(row)), subtypes=row.subtypes[:1])"
)
REVERSED_PARTS = "replace(row, subtypes=row.subtypes[::-1], words=row.words[::-1])"
WRONG = [
    (
        "replace(row, subtypes=tuple(kind for kind in row.subtypes if kind.name != 'color noise'))",
        "detector.npz: the weights know 'Noise: color noise', the table does not; train it again or restore the row",
    ),
    (
        "row if row.name != 'Noise' else replace(row, unused_outputs=(*row.unused_outputs, 'color noise'),"
        " subtypes=tuple(kind for kind in row.subtypes if kind.name != 'color noise'))",
        "signatures/categories.py has no kind 'color noise', which programs/offline/measured/curves.py measures; "
        "restore the row or remove the code",
    ),
    (
        "replace(row, subtypes=(*row.subtypes, replace(row.subtypes[0], name='dots', kinds=())))"
        " if row.name == 'Noise' else row",
        "detector.npz: the table knows 'Noise: dots', the weights do not; train it again or remove the row",
    ),
    (
        "replace(row, words=tuple(words for words in row.words if 'cast' not in words.read_as))",
        "question_reader.onnx: the weights know 'meaning: cast', the table does not; train it again or restore the row",
    ),
    (
        "replace(row, words=tuple(replace(words, read_as=(*words.read_as, 'dots'))"
        " if 'noise' in words.read_as else words for words in row.words))",
        "question_reader.onnx: the table knows 'meaning: dots', the weights do not; train it again or remove the row",
    ),
]


def with_rows(change: str, first: int = 0) -> str:
    """Return a script that prints findings and answers with other rows, ``first`` in front, or the line of an error."""
    return WITH_ROWS.format(change=change, first=first)


ORIGINAL, WITHOUT, REVERSED = with_rows("row"), with_rows(WITHOUT_PARTS), with_rows(REVERSED_PARTS, 3)

# Each script changes the table before the package is loaded. The libraries are loaded once.
FORKS = textwrap.dedent(
    """
    import json, os, sys
    import dspy, scipy.ndimage, skimage.data

    for script in json.load(sys.stdin):
        if not os.fork():
            exec(script, {"__name__": "__main__"})
            sys.stdout.flush()
            os._exit(0)  # without the cleanup of threads that the other process has
        if os.wait()[1]:
            sys.exit(f"failed: {script}")
    """
)


@cache
def printed() -> dict[str, str]:
    """Return the line that each script prints."""
    scripts = [ADDED, ORIGINAL, WITHOUT, REVERSED, *(with_rows(change) for change, _ in WRONG)]
    command = [sys.executable, "-c", FORKS]
    done = subprocess.run(
        command, input=json.dumps(scripts), capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(scripts, done.stdout.splitlines(), strict=True))


@pytest.mark.slow
def test_an_output_without_a_subtype_is_unused_if_the_row_says_so() -> None:
    assert json.loads(printed()[WITHOUT])["found"]


@pytest.mark.slow
def test_nothing_depends_on_the_order_of_the_rows() -> None:
    before = printed()[ORIGINAL]
    assert json.loads(before)["found"][2]["Noise"]["local"], "damage of a part is compared, too"
    assert printed()[REVERSED] == before


@pytest.mark.slow
@pytest.mark.parametrize(("change", "said"), WRONG)
def test_a_row_that_the_weights_do_not_know_or_that_is_gone_is_named(change: str, said: str) -> None:
    assert printed()[with_rows(change)] == said


INKED = Words("fault", "ink, inky")
SPOTS = Category(
    "Spots",
    "spots",
    words=(Words("fault", kind="dots", read_as=("dots",), phrases="dot*, spotted"), Words("virtue", vague="spotless")),
    signs="round marks",
    subtypes=(Subtype("round dots", "", "", kinds=("dots",)),),
)


def ink(*words: Words, signs: str = "", subtypes: tuple[Subtype, ...] = ()) -> Category:
    return Category("Ink", "ink", words, signs, subtypes=subtypes)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            ink(INKED, Words("fault", "spotted, stripes")),
            "two rows claim the phrase 'spotted': Spots (fault, dots) and Ink (fault); keep it in one",
        ),
        (
            ink(INKED, Words("", "dotty")),
            "two rows claim the phrase 'dot* / dotty': Spots (fault, dots) and Ink (its names); keep it in one",
        ),
        (
            ink(INKED, Words("virtue", vague="spotless")),
            "two rows claim the phrase 'spotless': Spots (virtue) and Ink (virtue); keep it in one",
        ),
        (
            ink(INKED, Words("virtue", "ink*")),
            "two rows claim the phrase 'ink / ink*': Ink (fault) and Ink (virtue); keep it in one",
        ),
        (
            ink(INKED, Words("virtue", vague="stainless")),
            "two rows claim the phrase 'stainless / stain*': Ink (virtue) and OTHER_WORDS (fault); keep it in one",
        ),
        (
            ink(INKED, subtypes=(Subtype("round dots", "", ""),)),
            "two rows claim the phrase 'round dots': Spots (the name 'round dots') and Ink (the name 'round dots'); "
            "keep it in one",
        ),
        (
            ink(INKED, subtypes=(Subtype("lost ink", "", ""), Subtype("lost ink", "", ""))),
            "two rows claim the subtype 'lost ink': Ink and Ink; keep it in one",
        ),
        (
            ink(INKED, subtypes=(Subtype("lost ink", "", "", kinds=("dots",)),)),
            "two rows claim the kind of eval.research.distort 'dots': Spots and Ink; keep it in one",
        ),
        (
            ink(INKED, signs="spilled ink, round marks"),
            "two rows claim the sign 'round marks': Spots and Ink; keep it in one",
        ),
        (
            ink(Words("fault", "inky", read_as=("dots",))),
            "two rows claim the output 'dots': Spots and Ink; keep it in one",
        ),
    ],
)
def test_a_phrase_or_name_that_two_rows_claim_is_refused(row: Category, said: str) -> None:
    others = (Words("fault", subject="any", vague="stain*"),)
    with pytest.raises(ValueError, match=f"^signatures/categories.py: {re.escape(said)}$"):
        check_claims((SPOTS, row), others)
    check_claims((SPOTS, ink(INKED)), others)


@pytest.mark.parametrize("sense", get_args(Sense))
def test_one_category_may_list_a_phrase_as_its_name_and_with_a_meaning(sense: Sense) -> None:
    check_claims((ink(Words("", "ink, stain*"), Words(sense, vague="ink, stained")),), ())


def test_a_searched_category_without_a_measurement_is_refused_in_one_line() -> None:
    measured = Measured({"clipped_dark": 0.1}, None, {})
    with pytest.raises(ToolError, match=r"^category .Ink.: nothing measures it"):
        measured.plain(ink(INKED))
    for subtype in (Subtype("lost ink", "", ""), Subtype("lost ink", "", "", measure="clipped_dark")):
        with pytest.raises(ToolError, match=r"^category 'Ink': the kind 'lost ink' needs a measure of .*curves\.py$"):
            measured.plain(ink(INKED, subtypes=(subtype,)))


def test_a_sentence_with_a_value_that_nothing_measures_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUBTYPE, "lost ink", Subtype("lost ink", "{ink:.0f} drops are lost.", ""))
    with pytest.raises(ToolError, match=r"^the sentence of the kind 'lost ink' names 'ink', which nothing measures$"):
        Measured({}, None, {}).finding("lost ink", 1.0)
