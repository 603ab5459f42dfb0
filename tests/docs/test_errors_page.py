"""The messages quoted in docs/errors.md are those of the code or, where the page says so, of servers."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OF_PYTHON = "certificate verify failed"
FEWEST = 60  # quoted messages on the page


@cache
def texts() -> str:
    """Return all messages, the sources with the reasons that models receive, and the errors of providers."""
    sources = [path for folder in ("programs", "signatures") for path in (ROOT / folder).rglob("*.py")]
    listed = [ROOT / "tests" / "docs" / "messages.txt", ROOT / "tests" / "support" / "provider_errors.yaml"]
    return "\n".join([OF_PYTHON, *(path.read_text(encoding="utf-8") for path in [*listed, *sources])])


def test_the_quoted_messages_exist() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.+?) \| ", page, re.M)
    quoted = [part for cell in cells for part in re.findall(r"`([^`]+)`", cell)]
    assert len(quoted) > FEWEST
    assert [part for part in quoted if part not in texts()] == []
