"""The file of the shipped curves."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.tool_curves import read_tool_curves, usable, write_tool_curves


def test_the_shipped_file_is_what_a_fit_writes(tmp_path: Path) -> None:
    """So a fit of one tool changes the lines of this tool alone."""
    write_tool_curves(tmp_path / "again.yaml", read_tool_curves("default"))
    shipped = resources.files("agenticiqa.configs") / "tool_curves" / "default.yaml"
    assert (tmp_path / "again.yaml").read_text() == shipped.read_text()


@pytest.mark.parametrize(
    ("absurd", "message"),
    [
        ({"betas": [1e308] * 5}, "each at most 1e.09 in size"),
        ({"betas": [4, 1, 1e308, 0, 3]}, "each at most 1e.09 in size"),
        ({"raw_range": [-1e308, 1e308]}, "each at most 1e.09 in size"),
        ({"betas": [0, 1, 3, 0, 1e8]}, "the same score all over"),
        ({"betas": [4, 1e8, 1e8, 0, 3]}, "the same score all over"),
        ({"residual": 1e200}, "residual is 1e.200, expected 0.001 to 100 levels"),
        ({"residual": 1e-200}, "residual is 1e-200"),
        ({"residual": -1}, "residual is -1"),
        ({"residual": float("nan")}, "residual is NaN"),
    ],
)
def test_a_curve_of_absurd_numbers_is_refused_when_it_is_read(
    absurd: dict[str, Any], message: str, tmp_path: Path
) -> None:
    entry = {"betas": [4, 1, 3, 0, 3], "raw_range": [0, 6], "fitted_on": "nothing"}
    (tmp_path / "mine.yaml").write_text(json.dumps({"tools": {"PIQE": entry | absurd}}))
    with pytest.raises(ToolError, match=message):
        usable("PIQE", str(tmp_path / "mine.yaml"))
