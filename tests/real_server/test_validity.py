"""The script that measures the validity of answers runs against a server. Its figures are no part of the test."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.llama_server import LlamaServer

pytestmark = pytest.mark.real_server


def test_a_table_has_a_row_for_each_stage(server: LlamaServer, tmp_path: Path) -> None:
    script = Path(__file__).with_name("validity.py")
    options = ["--api-base", server.url, "--requests", "1", "--modes", "auto", "--stages", "answering"]
    done = subprocess.run(
        [sys.executable, str(script), *options], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "| answering | 1 of 1 |" in done.stdout
