"""The choice of tools by the measured table, the same for rules and models."""

from dataclasses import asdict, replace

import pytest

from agenticiqa.programs.tools import TOOLS, toolbox
from agenticiqa.programs.tools.catalog import listing
from agenticiqa.programs.tools.srcc_table import Agreement, measured, mos_srcc
from agenticiqa.programs.tools.tool import RELIABLE, Tool, best_for, tools_for
from agenticiqa.signatures.categories import OVERALL
from agenticiqa.signatures.vocabulary import DISTORTIONS

GOOD, FAIR, WRONG = (
    replace(
        TOOLS["NIQE"],
        name=name,
        measured={"Noise": Agreement(noise, 120), OVERALL: Agreement(overall, 300), "Contrast": Agreement(0.2, 120)},
    )
    for name, noise, overall in (("GOOD", 0.97, 0.4), ("FAIR", 0.6, 0.5), ("WRONG", -0.9, -0.1))
)
UNMEASURED = replace(TOOLS["NIQE"], name="LISTED", measured={}, measures="Contrast")


@pytest.mark.parametrize(
    ("category", "tools", "chosen"),
    [
        ("Noise", [GOOD, FAIR, WRONG], GOOD),
        ("Noise", [WRONG, FAIR, GOOD], GOOD),
        ("Contrast", [GOOD, FAIR, WRONG], FAIR),  # none is reliable, so the one that is best overall
        ("Blurs", [GOOD, FAIR], FAIR),
        ("Noise", [WRONG], None),  # misled, so not even alone
        ("Noise", [], None),
        ("Contrast", [GOOD, UNMEASURED], UNMEASURED),  # counts for what it is made for
        ("Noise", [GOOD, UNMEASURED], GOOD),
    ],
)
def test_the_tool_that_follows_a_distortion_best_is_chosen(category: str, tools: list[Tool], chosen: Tool) -> None:
    assert best_for(category, tools) == chosen


def test_a_tool_may_be_chosen_for_what_it_measures_until_the_table_has_a_figure() -> None:
    measured_elsewhere = replace(UNMEASURED, measured={"Noise": Agreement(0.2, 120)})
    assert [measured_elsewhere.strength(name) for name in ("Contrast", "Noise", "Blurs")] == [1.0, 0.2, 0.0]


def test_a_model_chooses_from_the_tools_that_suit_the_distortions() -> None:
    """A tool of another property is not listed; one without figures is, because nothing speaks against it."""
    other = replace(UNMEASURED, name="OTHER", measures="Blurs")
    own = replace(UNMEASURED, name="OWN", measures=OVERALL)
    tools = [GOOD, FAIR, WRONG, UNMEASURED, other, own]
    assert tools_for({"Noise"}, tools) == [GOOD, FAIR, own]
    assert tools_for({"Noise", "Contrast"}, tools) == [GOOD, FAIR, UNMEASURED, own]
    assert tools_for({"Compression"}, tools) == [GOOD, FAIR, WRONG, own], "none follows it"


def test_the_line_for_a_model_quotes_the_figures_the_best_first() -> None:
    assert GOOD.line().endswith("Best for: Noise: SRCC 0.97 (n=120), Overall: SRCC 0.40 (n=300).")
    assert "Noise" not in WRONG.line()
    assert UNMEASURED.line().endswith("Best for: Contrast.")


@pytest.mark.parametrize("kind", ["FR", "NR"])
@pytest.mark.parametrize("category", [OVERALL, *DISTORTIONS])
def test_for_every_category_and_mode_the_choice_is_the_best_of_the_table(kind: str, category: str) -> None:
    tools: list[Tool] = [tool for tool in toolbox().values() if tool.kind == kind]
    chosen = best_for(category, tools)
    assert chosen is not None
    best = max(tool.strength(category) for tool in tools)
    assert chosen.strength(category) == best or best <= RELIABLE


def test_the_listing_has_the_figures() -> None:
    rows = {row["name"]: row for row in listing(toolbox(), "default")}
    assert set(rows) == set(TOOLS)
    for name, row in rows.items():
        figures = measured()[name]
        assert toolbox()[name].measured == figures
        assert row["measured"] == {category: asdict(figures[category]) for category in row["measured"]}, name
        assert all(figures[left_out].srcc < RELIABLE for left_out in figures.keys() - row["measured"].keys()), name
    assert rows["PSNR"]["measured"]["Noise"]["srcc"] > 0.9


def test_the_srcc_with_mos_excludes_the_distortion_levels() -> None:
    """Also the levels of held-out photos; LEARNED-IQA has about the value of its card, and an unknown tool none."""
    assert 0.77 < (mos_srcc("LEARNED-IQA") or 0) < 0.87
    assert (mos_srcc("NIQE") or 0) < 0.6 < 0.9 < (mos_srcc("FR-FUSION") or 0)
    assert mos_srcc("NOTHING") is None
