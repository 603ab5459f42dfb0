"""The training examples of the network that reads questions, and that its file computes the trained network."""

import random
from pathlib import Path

import numpy as np
import pytest

from agenticiqa.eval.research.reader_examples import MEASURED_ONLY, training_examples
from agenticiqa.eval.research.wordings import read_wordings, wordings_file
from agenticiqa.programs.offline.answers.question_reader import NETWORK, VOCABULARY


@pytest.mark.slow
def test_held_out_sets_are_not_trained_on() -> None:
    texts = {example.text for example in training_examples([], random.Random(0))}
    assert len(texts) > 5_000
    for split in MEASURED_ONLY:
        held = {row.text for row in read_wordings(wordings_file(split)) if not row.tags and len(row.text.split()) > 8}
        assert not held & texts


@pytest.mark.slow
def test_a_tiny_training_writes_a_file_that_computes_the_trained_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch", reason="training needs torch, of the extra train")
    pytest.importorskip("onnxscript", reason="torch's ONNX exporter needs onnxscript, of the extra train")
    pytest.importorskip("safetensors", reason="training needs safetensors, of the extra train")
    import onnxruntime
    import tokenizers

    from agenticiqa.eval.research import train_question_reader as training
    from agenticiqa.eval.research.reader_network import Reader

    made: list[Reader] = []

    def untrained(kept: list[int]) -> Reader:
        made.append(Reader(len(kept)))
        return made[0]

    (tmp_path / "tokenizer.json").write_bytes(VOCABULARY.read_bytes())
    monkeypatch.setattr(training, "package_folder", lambda: tmp_path)
    monkeypatch.setattr(training, "pretrained", untrained)
    monkeypatch.setattr(training, "training_examples", lambda without, rng: training_examples(without, rng)[:64])
    monkeypatch.setattr(training, "TOKENS", 2000)
    assert training.main(["--rounds", "1", "--measure", "dev", "--out", str(tmp_path / "out")]) == 0
    assert "round 1 of 1\ndev: intent " in capsys.readouterr().out

    small = tokenizers.Tokenizer.from_file(str(tmp_path / "out" / VOCABULARY.name))
    full = tokenizers.Tokenizer.from_file(str(VOCABULARY))
    assert small.get_vocab_size() == 2000 + len(training.SPECIAL)
    assert small.encode("Is this image noisy?").tokens == full.encode("Is this image noisy?").tokens
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / NETWORK.name), providers=["CPUExecutionProvider"])
    for text in ("Is this image noisy?", "?"):
        tokens = training.token_numbers(small, [text])
        with torch.no_grad():
            wanted = made[0](torch.nn.functional.pad(tokens, (0, 2)))  # padding changes nothing
        found = session.run(None, {"tokens": tokens.numpy()})[0]
        assert np.corrcoef(found[0], wanted.numpy()[0])[0, 1] > 0.99  # weights in eight bits
