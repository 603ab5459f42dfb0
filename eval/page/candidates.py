"""The page of the instructions that a search by GEPA tried: each with its score, what it came from, and its texts."""

from collections.abc import Mapping, Sequence

from agenticiqa.programs.page.render import PACKAGES, render

PACKAGE = "agenticiqa.eval.page"


def candidates_page(
    candidates: Sequence[Mapping[str, str]], parents: Sequence[Sequence[int | None]], scores: Sequence[float]
) -> str:
    """The HTML of candidates, the first of which is the original, in the order in which they were found.

    A candidate has its instructions by predictor, ``parents`` the numbers of those that it was made from, ``scores``
    the mean score on the validation images.
    """
    found = [
        {
            "number": number,
            "score": f"{score:.4f}",
            "best": score == max(scores),
            "parents": [parent for parent in before if parent is not None],
            "texts": [
                (name, text, any(candidates[parent].get(name) != text for parent in before if parent is not None))
                for name, text in candidate.items()
            ],
        }
        for number, (candidate, before, score) in enumerate(zip(candidates, parents, scores, strict=True))
    ]
    values = {"title": "Instructions tried", "found": found}
    return render("report/candidates.html", values, {**PACKAGES, "report": PACKAGE})
