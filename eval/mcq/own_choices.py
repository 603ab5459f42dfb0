"""Questions with options whose answers are true by construction, in four tracks, as AgenticIQA-Eval has them.

Each maker is given a photo's workshop and the photo's number, which takes kinds, levels and wordings in turn. The
wordings (``own_wordings``) are none of those in ``eval/research``.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agenticiqa.eval.mcq.own_images import Workshop
from agenticiqa.eval.mcq.own_wordings import FIRST, in_turn
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.distort import KINDS

Row = dict[str, Any]
KEYS = tuple(FIRST.words)
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


def kind_alone(shop: Workshop, number: int) -> Iterator[Row]:
    """Which of four distortions, of different categories, a strong one is, without the original."""
    kind = KEYS[number % len(KEYS)]
    image = shop.image(kind, 4 + number % 2)
    yield _row(
        "type", shop, "executor_distortion", in_turn(shop.wordings.which_step, number), image, *_kinds(shop, kind)
    )


def kind_beside_original(shop: Workshop, number: int) -> Iterator[Row]:
    """The same of a weaker one, with the original."""
    kind = KEYS[(number + 5) % len(KEYS)]
    image = shop.image(kind, 3 + number % 3)
    options, true = _kinds(shop, kind)
    asked = in_turn(shop.wordings.which_change, number)
    yield _row("type, with original", shop, "executor_distortion", asked, image, options, true, shop.image())


def severity(shop: Workshop, number: int) -> Iterator[Row]:
    """How much of a distortion there is, in the paper's four words."""
    kind, grades = LOCAL[number % len(LOCAL)], list(GRADED)
    true = grades[(number // len(LOCAL)) % len(grades)]
    image = shop.image(kind, GRADED[true])
    asked = in_turn(shop.wordings.severity, number, noun=shop.wordings.words[kind][1])
    yield _row("severity", shop, "executor_distortion", asked, image, grades if number % 2 else grades[::-1], true)


def region(shop: Workshop, number: int) -> Iterator[Row]:
    """In which half or quarter a distortion is."""
    kind, places = LOCAL[number % len(LOCAL)], (HALVES, QUARTERS)[(number // 2) % 2]
    true = shop.draw(tuple(places))[0]
    asked = in_turn(shop.wordings.whereabouts, number, noun=shop.wordings.words[kind][1])
    yield _row("region", shop, "executor_distortion", asked, shop.image(kind, 4, places[true]), list(places), true)


def pair(shop: Workshop, number: int) -> Iterator[Row]:
    """Which of two versions has more of a distortion."""
    kind, true = LOCAL[number % len(LOCAL)], ("The image", "The reference", "Neither of the two")[number % 3]
    damaged, clean = shop.image(kind, 4), shop.image()
    image = damaged if true == "The image" else clean
    reference = damaged if true == "The reference" else clean
    asked = in_turn(shop.wordings.pair, number, noun=shop.wordings.words[kind][1])
    options = ["The image", "The reference", "Neither of the two"]
    yield _row("pair", shop, "executor_distortion", asked, image, options, true, reference)


def metric_without_original(shop: Workshop, number: int) -> Iterator[Row]:
    """Which of four metrics needs no original."""
    alone = [tool.name for tool in TOOLS.values() if tool.kind == "NR"]
    compared = [tool.name for tool in TOOLS.values() if tool.kind == "FR"]
    (true,), others = shop.draw(alone), shop.draw(compared, 3)
    asked = in_turn(shop.wordings.metric, number)
    yield _row("metric", shop, "executor_tool", asked, shop.image(), shop.draw([true, *others], 4), true)


def metric_fits(shop: Workshop, number: int) -> Iterator[Row]:
    """Whether a metric, with its description, can be used without an original: the paper's form."""
    tool = TOOLS[shop.draw(tuple(TOOLS))[0]]
    asked = in_turn(shop.wordings.metric_fits, number, tool=f"{tool.name}: {tool.description}")
    yield _row("metric, yes or no", shop, "executor_tool", asked, shop.image(), YES_NO, YES_NO[tool.kind == "FR"])


def named_object(shop: Workshop, number: int) -> Iterator[Row]:
    """Which object a query names: the paper's form."""
    first, *others = shop.draw(OBJECTS, 3)
    kind = KEYS[number % len(KEYS)]
    named = number % 4 != 0
    noun, texts = shop.wordings.words[kind][1], shop.wordings
    query = in_turn(texts.query_with_thing, 0, noun=noun, thing=first.lower())
    asked = in_turn(texts.thing, number, query=query if named else in_turn(texts.query, 0, noun=noun))
    options = [*shop.draw([first, *others], 3), "None"]
    yield _row("object of a query", shop, "planner", asked, shop.image(), options, first if named else "None")


def named_distortion(shop: Workshop, number: int) -> Iterator[Row]:
    """Which distortion a query names."""
    kind = KEYS[(number + 3) % len(KEYS)]
    options, true = _kinds(shop, kind)
    query = in_turn(shop.wordings.query, 1, noun=shop.wordings.words[kind][1])
    yield _row(
        "distortion of a query",
        shop,
        "planner",
        in_turn(shop.wordings.fault_of_query, number, query=query),
        shop.image(),
        options,
        true,
    )


def verdict(shop: Workshop, number: int) -> Iterator[Row]:
    """Which verdict follows from a metric's score, beside an image that looks like it: the paper's form."""
    kind = KEYS[(number + 7) % len(KEYS)]
    level, true, score = ((0, "Excellent", 4.8), (3, "Fair", 3.1), (5, "Bad", 1.2))[number % 3]
    found = f"{shop.wordings.words[kind][0]}, all over" if level else "no distortion"
    asked = in_turn(shop.wordings.verdict, number, found=found, score=f"{score:.2f}")
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
    words = shop.wordings.words
    return [words[kind][0] for kind in offered], words[true][0]


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
