"""The weights of the mean of tool scores, and the choice of tools for a rating."""

from dataclasses import replace

import numpy as np
import pytest

from agenticiqa.programs.fusion.tool_mean import error_covariance, least_error_weights, mean_weights, rating_tools
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.srcc_table import Errors, errors_by_source

FR = [tool for tool in TOOLS.values() if tool.kind == "FR"]
NR = [tool for tool in TOOLS.values() if tool.kind == "NR"]


def test_independent_errors_give_inverse_variance_weights() -> None:
    assert least_error_weights(np.diag([1.0, 4.0, 0.25])) == pytest.approx(np.array([1, 0.25, 4]) / 5.25)


def test_correlated_errors_count_once() -> None:
    twins = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert least_error_weights(twins) == pytest.approx([0.25, 0.25, 0.5])


def test_a_tool_that_repeats_a_better_one_has_weight_zero() -> None:
    repeats = np.array([[0.25, 0.45], [0.45, 1.0]])
    assert least_error_weights(repeats).tolist() == [1.0, 0.0]
    draw = np.random.default_rng(0)
    for _ in range(50):
        errors = draw.normal(size=(6, 12)) + draw.normal(size=12)
        weights = least_error_weights(np.cov(errors))
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1)
        best = min(float(np.cov(errors)[tool, tool]) for tool in range(6))
        assert weights @ np.cov(errors) @ weights <= best + 1e-12, "never worse than the best tool by itself"


def test_a_tool_for_one_property_is_not_part_of_the_mean() -> None:
    weights = mean_weights(NR, has_reference=False)
    assert {name for name, weight in weights.items() if weight} <= {"LEARNED-IQA", "NIQE", "BRISQUE", "PIQE"}
    assert sum(weights.values()) == pytest.approx(1, abs=1e-3)
    assert mean_weights([TOOLS["BLUR-EXTENT"]], has_reference=False) == {"BLUR-EXTENT": 0.0}
    assert mean_weights([TOOLS["NIQE"]], has_reference=False) == {"NIQE": 1.0}


def test_a_selected_tool_changes_the_mean_by_its_weight() -> None:
    alone, niqe = TOOLS["LEARNED-IQA"], TOOLS["NIQE"]
    weights = mean_weights([alone, niqe], has_reference=False)
    assert 0 < weights["NIQE"] < 0.2 < weights["LEARNED-IQA"]


def test_an_unmeasured_tool_has_the_error_of_its_curve() -> None:
    good = replace(TOOLS["NIQE"], name="MINE", measured={}, curve=None)
    assert "MINE" not in {name for each in errors_by_source().values() for name in each.error}
    weights = mean_weights([TOOLS["LEARNED-IQA"], good], has_reference=False)
    assert 0 <= weights["MINE"] < weights["LEARNED-IQA"]


def test_tools_are_added_only_if_they_improve_the_mean() -> None:
    same = {("HaarPSI", "PSNR"): 1.0, ("HaarPSI", "VIF"): 0.0, ("PSNR", "VIF"): 0.0}
    known = {"reference": Errors({"HaarPSI": 0.5, "PSNR": 0.5, "VIF": 1.0}, same)}
    tools = [TOOLS[name] for name in ("PSNR", "HaarPSI", "VIF")]
    chosen = rating_tools(tools, has_reference=True, known=known)
    assert [tool.name for tool in chosen] == ["PSNR", "VIF"]
    weights = mean_weights(chosen, has_reference=True, known=known)
    assert weights == {"PSNR": 0.8, "VIF": 0.2}


def test_the_shipped_errors_cover_the_embedded_quality_tools() -> None:
    known = errors_by_source()
    assert {"HaarPSI", "PSNR"} <= known["reference"].error.keys() <= {tool.name for tool in FR}
    for source in ("photo", "generated", "ladder"):
        assert {"LEARNED-IQA", "NIQE"} <= known[source].error.keys()
        assert known[source].error.keys() <= {tool.name for tool in NR if tool.rates_overall}
    for tools, has_reference in ((FR, True), ([tool for tool in NR if tool.rates_overall], False)):
        covariance = error_covariance(tools, has_reference)
        assert covariance == pytest.approx(covariance.T)
        assert np.linalg.eigvalsh(covariance).min() > -1e-3
