"""A network's file that is missing."""

import numpy as np
import pytest

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.numerics import networks


def test_a_missing_model_file_is_named(tmp_path):
    with pytest.raises(ToolError, match="cannot be read"):
        networks.run_network(tmp_path / "gone.onnx", "", "reading", np.zeros((1, 3, 32, 32), np.float32))
