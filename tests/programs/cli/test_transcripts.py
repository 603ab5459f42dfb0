"""Commands print, write and end as their transcripts show; see ``tests/support/transcripts.py``."""

from pathlib import Path

import pytest

from support.transcripts import Scene, replay, scenes


@pytest.mark.recorded
@pytest.mark.parametrize("scene", scenes(Path(__file__).parent / "transcripts"), ids=lambda scene: scene.title)
def test_a_command_does_what_its_transcript_shows(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recording: bool
) -> None:
    replay(scene, tmp_path, monkeypatch, record=recording)
