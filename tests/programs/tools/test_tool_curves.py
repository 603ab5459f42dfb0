"""The file of the shipped curves."""

from importlib import resources
from pathlib import Path

from agenticiqa.programs.tools.tool_curves import read_tool_curves, write_tool_curves


def test_the_shipped_file_is_what_a_fit_writes(tmp_path: Path) -> None:
    """So a fit of one tool changes the lines of this tool alone."""
    write_tool_curves(tmp_path / "again.yaml", read_tool_curves("default"))
    shipped = resources.files("agenticiqa.configs") / "tool_curves" / "default.yaml"
    assert (tmp_path / "again.yaml").read_text() == shipped.read_text()
