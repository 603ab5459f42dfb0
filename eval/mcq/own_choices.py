"""Questions with options whose answers are true by construction, in four tracks, as AgenticIQA-Eval has them.

Each maker is given a photo's workshop and the photo's number, which takes kinds and levels in turn. The wordings are
none of those in ``eval/questions``, on which the offline reader of questions was made;
it was later improved on these, too.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agenticiqa.eval.mcq.own_images import WORDS, Workshop
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.distort import KINDS

Row = dict[str, Any]
KEYS = tuple(WORDS)
LETTERS = "ABCDE"
GRADED = {"None": 0, "Mild": 1, "Moderate": 2, "Severe": 4}  # the words of the paper, by level of ``distort``
LOCAL = ("gaussian_blur", "white_noise", "jpeg", "impulse_noise")
HALVES = {"Left half": "half left", "Right half": "half right", "Upper half": "half top", "Lower half": "half bottom"}
QUARTERS = {
    "Upper left quarter": "quarter 0",
    "Upper right quarter": "quarter 1",
    "Lower left quarter": "quarter 2",
    "Lower right quarter": "quarter 3",
}
OBJECTS = ("Mast", "Awning", "Handrail", "Gravel", "Signpost", "Hedge", "Doorstep", "Chimney")
VERDICTS = {"Bad": 1, "Poor": 2, "Fair": 3, "Good": 4, "Excellent": 5}
YES_NO = ("Yes", "No")
WHICH_STEP = (
    "A single processing step was applied to this photograph. Which one was it?",
    "Of the following, what was this shot put through?",
    "Pick the fault that somebody built into this frame.",
)
WHICH_CHANGE = (
    "Next to its original, this copy went through one change. Name it.",
    "What separates this copy from the original that it is shown with?",
)
WHEREABOUTS = (
    "The {noun} does not cover the entire frame. Whereabouts is it?",
    "One part of this frame was spoiled by {noun}. Mark it.",
)


def kind_alone(shop: Workshop, number: int) -> Iterator[Row]:
    """Which of four distortions, of different categories, a strong one is, without the original."""
    kind = KEYS[number % len(KEYS)]
    image = shop.image(kind, 4 + number % 2)
    yield _row("type", shop, "executor_distortion", WHICH_STEP[number % 3], image, *_kinds(shop, kind))


def kind_beside_original(shop: Workshop, number: int) -> Iterator[Row]:
    """The same of a weaker one, with the original."""
    kind = KEYS[(number + 5) % len(KEYS)]
    image = shop.image(kind, 3 + number % 3)
    options, true = _kinds(shop, kind)
    asked = WHICH_CHANGE[number % 2]
    yield _row("type, with original", shop, "executor_distortion", asked, image, options, true, shop.image())


def severity(shop: Workshop, number: int) -> Iterator[Row]:
    """How much of a distortion there is, in the paper's four words."""
    kind, grades = LOCAL[number % len(LOCAL)], list(GRADED)
    true = grades[(number // len(LOCAL)) % len(grades)]
    image, asked = shop.image(kind, GRADED[true]), f"Grade the amount of {WORDS[kind][1]} in this frame."
    yield _row("severity", shop, "executor_distortion", asked, image, grades if number % 2 else grades[::-1], true)


def region(shop: Workshop, number: int) -> Iterator[Row]:
    """In which half or quarter a distortion is."""
    kind, places = LOCAL[number % len(LOCAL)], (HALVES, QUARTERS)[(number // 2) % 2]
    true = shop.draw(tuple(places))[0]
    asked = WHEREABOUTS[number % 2].format(noun=WORDS[kind][1])
    yield _row("region", shop, "executor_distortion", asked, shop.image(kind, 4, places[true]), list(places), true)


def pair(shop: Workshop, number: int) -> Iterator[Row]:
    """Which of two versions has more of a distortion."""
    kind, true = LOCAL[number % len(LOCAL)], ("The image", "The reference", "Neither of the two")[number % 3]
    damaged, clean = shop.image(kind, 4), shop.image()
    image = damaged if true == "The image" else clean
    reference = damaged if true == "The reference" else clean
    asked = f"Two versions of a scene are given, the image and its reference. On which is {WORDS[kind][1]} stronger?"
    options = ["The image", "The reference", "Neither of the two"]
    yield _row("pair", shop, "executor_distortion", asked, image, options, true, reference)


def metric_without_original(shop: Workshop, number: int) -> Iterator[Row]:
    """Which of four metrics needs no original."""
    alone = [tool.name for tool in TOOLS.values() if tool.kind == "NR"]
    compared = [tool.name for tool in TOOLS.values() if tool.kind == "FR"]
    (true,), others = shop.draw(alone), shop.draw(compared, 3)
    asked = "No pristine original of this frame can be had. Which of these metrics still yields a value for it?"
    yield _row("metric", shop, "executor_tool", asked, shop.image(), shop.draw([true, *others], 4), true)


def metric_fits(shop: Workshop, number: int) -> Iterator[Row]:
    """Whether a metric, with its description, can be used without an original: the paper's form."""
    tool = TOOLS[shop.draw(tuple(TOOLS))[0]]
    asked = f"Is the '{tool.name}: {tool.description}' tool usable where this frame is all there is, with no original?"
    yield _row("metric, yes or no", shop, "executor_tool", asked, shop.image(), YES_NO, YES_NO[tool.kind == "FR"])


def named_object(shop: Workshop, number: int) -> Iterator[Row]:
    """Which object a query names: the paper's form."""
    first, *others = shop.draw(OBJECTS, 3)
    kind = KEYS[number % len(KEYS)]
    named = number % 4 != 0
    query = f"Has {WORDS[kind][1]} marred the {first.lower()}?" if named else f"How far has {WORDS[kind][1]} gone?"
    asked = f"What object is explicitly mentioned in the query? The query is: {query}"
    options = [*shop.draw([first, *others], 3), "None"]
    yield _row("object of a query", shop, "planner", asked, shop.image(), options, first if named else "None")


def named_distortion(shop: Workshop, number: int) -> Iterator[Row]:
    """Which distortion a query names."""
    kind = KEYS[(number + 3) % len(KEYS)]
    options, true = _kinds(shop, kind)
    query = f"How far has {WORDS[kind][1]} gone in this picture?"
    yield _row(
        "distortion of a query",
        shop,
        "planner",
        f"Which flaw is brought up by the query? The query is: {query}",
        shop.image(),
        options,
        true,
    )


def verdict(shop: Workshop, number: int) -> Iterator[Row]:
    """Which verdict follows from a metric's score, beside an image that looks like it: the paper's form."""
    kind = KEYS[(number + 7) % len(KEYS)]
    level, true, score = ((0, "Excellent", 4.8), (3, "Fair", 3.1), (5, "Bad", 1.2))[number % 3]
    found = f"{WORDS[kind][0]}, all over" if level else "no distortion"
    asked = (
        f"The analysis found: {found}. The tool used is: LEARNED-IQA (score: {score:.2f}). The score ranges from 1 to "
        "5, from bad over poor, fair and good to excellent. Which verdict follows?"
    )
    options = shop.draw([true, *shop.draw([name for name in VERDICTS if name != true], 3)], 4)
    yield _row("verdict", shop, "summarizer", asked, shop.image(kind, level), options, true)


MAKERS: tuple[Callable[[Workshop, int], Iterator[Row]], ...] = (
    kind_alone,
    kind_beside_original,
    severity,
    region,
    pair,
    metric_without_original,
    metric_fits,
    named_object,
    named_distortion,
    verdict,
)


def choices(shop: Workshop, number: int) -> Iterator[Row]:
    """All questions with options about one photo."""
    for maker in MAKERS:
        yield from maker(shop, number)


def _kinds(shop: Workshop, true: str) -> tuple[list[str], str]:
    """Four kinds of different categories, as options, and the true one."""
    others: dict[str, str] = {}
    for kind in shop.draw([kind for kind in KEYS if KINDS[kind].category != KINDS[true].category], len(KEYS)):
        others.setdefault(KINDS[kind].category, kind)
    offered = shop.draw([true, *list(others.values())[:3]], 4)
    return [WORDS[kind][0] for kind in offered], WORDS[true][0]


def _row(
    kind: str,
    shop: Workshop,
    track: str,
    question: str,
    image: str,
    options: Sequence[str],
    true: str,
    reference: str | None = None,
) -> Row:
    letters = dict(zip(LETTERS, options, strict=False))
    return {
        "id": f"{shop.content} {kind}",
        "question": question,
        "options": letters,
        "answer": next(letter for letter, text in letters.items() if text == true),
        "task_type": track,
        "reference_mode": "FR" if reference else "NR",
        "image_path": image,
        "reference_path": reference,
        "kind": kind,
        "content": shop.content,
    }
