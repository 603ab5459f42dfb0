"""Make the questions: each wording asked of images in which its answer is known by construction.

Kinds, and what ``truth`` of a wording says:

- presence, negation: the answer, "yes" or "no", where the distortion is visible; the other one where it is absent.
- degree: how much of it there is, in words, or by options that name levels.
- choice: one of the options, by levels or by concepts.
- which: the category of the only distortion.
- where: the place of local damage, in words or by options.
- half: the damaged half, of "lr" (left and right) or "tb" (top and bottom); "lr-clean" asks for the other one.
- subject: "PLACE:yes", whether a part has it; "all:yes" for parts that cannot be placed, asked of images that are
  distorted all over or nowhere, "sky:yes" likewise of photos that show it.
- compare: "yes" or "no" where the image has more of it than the reference; "image" or "reference", which of the two has
  it; "category", what sets them apart.
- reference: "yes" or "no" where the reference itself has it; also with the two swapped.
- metric: "with" or "without" a reference, and after a colon the unit that belongs to the value.
- rating: the worst and the best value of the stated scale, "0:100".
- unanswerable: nothing in the image or in the measurements tells, so undetermined is right.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agenticiqa.eval.research.concepts import CONCEPTS, MAIN
from agenticiqa.eval.research.marking import UNDETERMINED, Form
from agenticiqa.eval.research.recipes import OPPOSITE, PLACES, Content, Recipe
from agenticiqa.eval.research.wordings import Wording
from agenticiqa.signatures.categories import BLURS, COMPRESSION

VISIBLE_LEVELS = (3, 4, 5)
STRONG_LEVELS = (4, 5)  # of exposure, contrast and color also where others are visible: photos differ in them
PHOTOS = 2  # for each kind and level of distortion, so that images are shared by questions
ASKED = 4  # images for each wording written by hand
ASKED_OF_TEMPLATE = 2
DAMAGED_PLACES = ("left", "right", "top", "bottom", "center", "top left", "bottom right")
LOSES_DETAIL = (BLURS, COMPRESSION)  # so that a part without detail does not show it
# By level, the words for a severity that are true.
SEVERITIES: Mapping[int, tuple[str, ...]] = {
    0: ("none",),
    1: ("none", "slight"),
    2: ("slight", "moderate"),
    3: ("moderate", "severe"),
    4: ("severe", "extreme"),
    5: ("severe", "extreme"),
}
OTHER_ANSWER = {"yes": "no", "no": "yes", "image": "reference", "reference": "image"}


@dataclass(frozen=True)
class Question:
    """A question, the image and the reference that it is asked of, and the answers that are true (see ``marking``)."""

    kind: str
    style: str
    about: str
    text: str
    image: Recipe
    reference: Recipe | None
    form: Form
    accepted: tuple[str, ...]
    metric: str = ""


def questions(wordings: Iterable[Wording], contents: Iterable[Content]) -> list[Question]:
    """The questions of these wordings on these photos, in a fixed order."""
    photos = Photos(list(contents))
    made: dict[tuple[str, Recipe, Recipe | None], Question] = {}
    for wording in wordings:
        for question in MAKERS[wording.kind](wording, photos):
            made.setdefault((question.text, question.image, question.reference), question)
    return list(made.values())


class Photos:
    """Picks photos and distortions for a question; the same question always gets the same ones."""

    def __init__(self, contents: Sequence[Content]) -> None:
        self.contents = contents

    def pristine(self, needs: str, key: str) -> Recipe:
        """A pristine photo that has what a concept needs."""
        suited = self.suited(needs)
        return Recipe(suited[_number(key) % len(suited)].name)

    def suited(self, needs: str) -> Sequence[Content]:
        """The photos that have what is needed, or all if that is nothing."""
        return [content for content in self.contents if content.suits(needs)]

    def distorted(self, kinds: Sequence[str], levels: Sequence[int], needs: str, key: str, place: str = "") -> Recipe:
        """A photo with one of the kinds at one of the levels."""
        number = _number(key)
        kind, level = kinds[number % len(kinds)], levels[number // 7 % len(levels)]
        suited = self.suited(needs)
        start = _number(f"{kind}-{level}")
        few = [suited[(start + step) % len(suited)] for step in range(min(PHOTOS, len(suited)))]
        return Recipe(few[number // 53 % len(few)].name, kind, level, place)

    def with_it(self, concept: str, key: str, levels: Sequence[int] = (), place: str = "") -> Recipe:
        """A photo that shows a concept, by default at the levels at which nobody would deny it."""
        made = CONCEPTS[concept]
        levels = levels or (STRONG_LEVELS if made.needs == "neutral" else VISIBLE_LEVELS)
        needs = "detail" if place and made.category in LOSES_DETAIL else made.needs
        return self.distorted(made.shown_by, levels, needs, key, place)

    def without_it(self, concept: str, key: str) -> Recipe:
        """A photo with another visible distortion, that does not show a concept."""
        return self.distorted(CONCEPTS[concept].absent_in, STRONG_LEVELS, CONCEPTS[concept].needs, key)

    def cases(self, wording: Wording) -> Iterator[tuple[Recipe, bool]]:
        """Photos with and without what a wording asks about, and which it is."""
        concept, key = wording.about, wording.text
        cases = [
            (self.with_it(concept, key), True),
            (self.pristine(CONCEPTS[concept].needs, key), False),
            (self.with_it(concept, f"{key} again"), True),
            (self.without_it(concept, key), False),
        ]
        if wording.is_template:
            turn = _number(key) % 2 * 2
            cases = cases[turn : turn + ASKED_OF_TEMPLATE]
        yield from cases


def presence(wording: Wording, photos: Photos) -> Iterator[Question]:
    """Whether the image has it, yes or no."""
    for image, has_it in photos.cases(wording):
        yield _question(wording, image, "yes_no", _either(wording.truth, has_it))


def degree(wording: Wording, photos: Photos) -> Iterator[Question]:
    """How much of it the image has."""
    concept = CONCEPTS[wording.about]
    for turn, level in enumerate((0, 5, 3, 4)[: ASKED_OF_TEMPLATE if wording.is_template else ASKED]):
        key = f"{wording.text} {turn}"
        image = (
            photos.distorted(concept.shown_by[:1], (level,), concept.needs, key)  # WebP ends below "extreme"
            if level
            else photos.pristine(concept.needs, wording.text)
        )
        if wording.tags:
            yield _question(wording, image, "letter", *_letters(wording, level))
        else:
            yield _question(wording, image, "severity", *SEVERITIES[level])


def choice(wording: Wording, photos: Photos) -> Iterator[Question]:
    """One of the options offered."""
    if wording.about in CONCEPTS:
        for turn, level in enumerate((5, 0, 4, 0)):
            key = f"{wording.text} {turn}"
            needs = CONCEPTS[wording.about].needs
            image = photos.with_it(wording.about, key, (level,)) if level else photos.pristine(needs, key)
            yield _question(wording, image, "letter", *_letters(wording, level))
        return
    for letter, concept in wording.tags.items():
        if concept in CONCEPTS:
            image = photos.with_it(concept, wording.text + letter, STRONG_LEVELS)
            yield _question(wording, image, "letter", letter)


def which(wording: Wording, photos: Photos) -> Iterator[Question]:
    """The category of the only distortion."""
    start = _number(wording.text)
    for turn in range(ASKED):
        concept = MAIN[(start + 3 * turn) % len(MAIN)]
        image = photos.with_it(concept, f"{wording.text} {turn}", STRONG_LEVELS)
        yield _question(wording, image, "category", CONCEPTS[concept].category)


def where(wording: Wording, photos: Photos) -> Iterator[Question]:
    """Where the damage is."""
    offered = list(wording.tags.values()) or DAMAGED_PLACES
    start = _number(wording.text)
    for turn in range(ASKED):
        place = offered[(start + turn) % len(offered)]
        image = photos.with_it(wording.about, f"{wording.text} {turn}", STRONG_LEVELS, place)
        if wording.tags:
            yield _question(wording, image, "letter", *(key for key, tag in wording.tags.items() if tag == place))
        else:
            yield _question(wording, image, "place", place)


def half(wording: Wording, photos: Photos) -> Iterator[Question]:
    """Which half is the damaged one, or the other one."""
    axis, _, asks_clean = wording.truth.partition("-")
    for place in ("left", "right") if axis == "lr" else ("top", "bottom"):
        for turn in range(ASKED // 2):
            image = photos.with_it(wording.about, f"{wording.text} {place} {turn}", STRONG_LEVELS, place)
            true = OPPOSITE[place] if asks_clean else place
            if wording.tags:
                yield _question(wording, image, "letter", *(key for key, tag in wording.tags.items() if tag == true))
            else:
                yield _question(wording, image, "place", true)


def subject(wording: Wording, photos: Photos) -> Iterator[Question]:
    """Whether a part of the image has it."""
    place, _, answer = wording.truth.partition(":")
    if place not in PLACES:
        there = photos if place == "all" else Photos(photos.suited(place))
        for image, has_it in there.cases(wording):
            yield _question(wording, image, "yes_no", _either(answer, has_it))
        return
    for turn in range(ASKED):
        damaged = OPPOSITE[place] if turn % 2 else place
        image = photos.with_it(wording.about, f"{wording.text} {turn}", STRONG_LEVELS, damaged)
        yield _question(wording, image, "yes_no", _either(answer, damaged == place))


def compare(wording: Wording, photos: Photos) -> Iterator[Question]:
    """What sets the image apart from its reference."""
    if wording.truth == "category":
        for question in which(wording, photos):
            yield _with_reference(question)
        return
    for image, has_it in photos.cases(wording):
        pristine = Recipe(image.content)
        if wording.truth in ("yes", "no"):
            if image != pristine:
                yield _question(wording, image, "yes_no", _either(wording.truth, has_it), reference=pristine)
        elif has_it:
            yield _question(wording, image, *_of_two(wording, wording.truth), reference=pristine)
            yield _question(wording, pristine, *_of_two(wording, OTHER_ANSWER[wording.truth]), reference=image)


def reference(wording: Wording, photos: Photos) -> Iterator[Question]:
    """Whether the reference itself has it."""
    for image, has_it in photos.cases(wording):
        pristine = Recipe(image.content)
        if has_it:
            yield _question(wording, image, "yes_no", _either(wording.truth, False), reference=pristine)
            yield _question(wording, pristine, "yes_no", _either(wording.truth, True), reference=image)


def metric(wording: Wording, photos: Photos) -> Iterator[Question]:
    """The value of a metric; the accepted range is computed from the pixels when the images are there."""
    given, _, unit = wording.truth.partition(":")
    for turn, concept in enumerate(("noise", "blur", "compression")):
        image = photos.with_it(concept, f"{wording.text} {turn}")
        if given == "with":
            yield _question(
                wording,
                image,
                "number",
                *([unit] if unit else []),
                reference=Recipe(image.content),
                metric=wording.about,
            )
        elif given == "none":
            yield _question(wording, image, "number", *([unit] if unit else []), metric=wording.about)
        else:
            yield _question(wording, image, "undetermined", UNDETERMINED)


def rating(wording: Wording, photos: Photos) -> Iterator[Question]:
    """A number on the stated scale: in its better half for pristine photos, in its worse half for extreme damage."""
    worst, best = map(float, wording.truth.split(":"))
    key, about = wording.text, wording.about
    if about == "quality":
        kinds = ("gaussian_blur", "white_noise", "jpeg", "motion_blur", "impulse_noise", "defocus")
        cases = [
            (photos.pristine("sharp", key), True),
            (photos.distorted(kinds, (5,), "", key), False),
            (photos.pristine("sharp", f"{key} again"), True),
            (photos.distorted(kinds, (5,), "", f"{key} again"), False),
        ]
    else:
        cases = [
            (photos.pristine(CONCEPTS[about].needs, key), True),
            (photos.with_it(about, key, (5,)), False),
            (photos.without_it(about, key), True),
            (photos.with_it(about, f"{key} again", (5,)), False),
        ]
    for image, is_good in cases:
        middle = (worst + best) / 2
        low, high = sorted((middle, best) if is_good else (worst, middle))
        yield _question(wording, image, "number", str(low), str(high))


def unanswerable(wording: Wording, photos: Photos) -> Iterator[Question]:
    """What is not in the image, or what no measurement tells."""
    concept = wording.about if wording.about in CONCEPTS else "blur"
    key = wording.text
    shown = photos.distorted(CONCEPTS[concept].shown_by, STRONG_LEVELS, "no people", key)
    for image in (shown, photos.pristine("no people", key)):
        yield _question(wording, image, "undetermined", UNDETERMINED)


MAKERS = {
    "presence": presence,
    "negation": presence,
    "degree": degree,
    "choice": choice,
    "which": which,
    "where": where,
    "half": half,
    "subject": subject,
    "compare": compare,
    "reference": reference,
    "metric": metric,
    "rating": rating,
    "unanswerable": unanswerable,
}


def _question(
    wording: Wording, image: Recipe, form: Form, *accepted: str, reference: Recipe | None = None, metric: str = ""
) -> Question:
    return Question(wording.kind, wording.style, wording.about, wording.text, image, reference, form, accepted, metric)


def _with_reference(question: Question) -> Question:
    return Question(
        question.kind,
        question.style,
        question.about,
        question.text,
        question.image,
        Recipe(question.image.content),
        question.form,
        question.accepted,
    )


def _either(answer: str, holds: bool) -> str:
    return answer if holds else OTHER_ANSWER[answer]


def _of_two(wording: Wording, answer: str) -> tuple[Form, str]:
    if not wording.tags:
        return "image", answer
    return "letter", next(letter for letter, tag in wording.tags.items() if tag == answer)


def _letters(wording: Wording, level: int) -> list[str]:
    """The letters of the options that are true at a level: "3-5" covers 3, 4 and 5."""
    found = []
    for letter, tag in wording.tags.items():
        first, _, last = tag.partition("-")
        if int(first) <= level <= int(last or first):
            found.append(letter)
    return found


def _number(key: str) -> int:
    return zlib.crc32(key.encode())
