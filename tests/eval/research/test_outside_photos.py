"""Recognition of pictures that are not photos."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from agenticiqa.eval.research import outside_photos
from agenticiqa.eval.research.drawn_pictures import drawn


@pytest.mark.slow
def test_folders_and_photos_are_read_and_a_wrong_look_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_samples() -> Iterator[outside_photos.PictureSample]:
        yield from ()

    for name in ("a", "b"):
        Image.fromarray(drawn("window", ord(name))).save(tmp_path / f"{name}.png")
    (tmp_path / "labels.csv").write_text("image,mos\na.png,3\nb.png,4\n")
    monkeypatch.setattr(outside_photos, "skimage_samples", no_samples)
    arguments = [str(tmp_path / "labels.csv"), "--drawn", "0", "--test-on", "graphic", str(tmp_path)]
    assert outside_photos.main(arguments) == 0
    assert re.search(rf"\| graphic: {tmp_path.name} \| 2 \| 100.0%", capsys.readouterr().out)
    assert outside_photos.main(["--drawn", "0", "--test-on", "painting", str(tmp_path)]) == 2
