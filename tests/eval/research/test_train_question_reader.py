"""The training examples of the network that reads questions, and that its file computes the trained network."""

import random
from pathlib import Path

import numpy as np
import pytest

from agenticiqa.eval.research.reader_examples import (
    MEASURED_ONLY,
    UNKNOWN,
    Example,
    examples_of,
    intent_of,
    training_examples,
)
from agenticiqa.eval.research.wordings import Wording, read_wordings, wordings_file
from agenticiqa.programs.offline.answers.question_reader import INTENTS, MEANINGS, NETWORK, VOCABULARY


def wording(kind: str, about: str, truth: str, text: str, tags: dict[str, str] | None = None) -> Wording:
    return Wording(kind, "plain", about, truth, text, tags or {})


@pytest.mark.parametrize(
    ("kind", "truth", "intent"),
    [
        ("presence", "yes", "yes"),
        ("negation", "no", "no"),
        ("subject", "left:no", "part-no"),
        ("half", "tb-clean", "half-clean"),
        ("compare", "image", "compare-image"),
        ("reference", "yes", "reference-yes"),
        ("rating", "1:5", "rating-high"),
        ("rating", "10:0", "rating-low"),
        ("where", "-", "where"),
        ("degree", "-", "degree"),
        ("degree", "part", "part-degree"),
    ],
)
def test_kind_and_truth_determine_the_intent(kind: str, truth: str, intent: str) -> None:
    assert intent_of(wording(kind, "noise", truth, "?")) == intent
    assert intent in INTENTS


@pytest.mark.parametrize("kind", ["which", "choice"])
def test_questions_about_a_part_have_their_own_intent(kind: str) -> None:
    assert intent_of(wording(kind, "any", "-", "What ails the peacock?")) == "which"
    assert intent_of(wording(kind, "any", "part", "What ails the peacock?")) == "part-which" in INTENTS


def test_options_are_examples_alone_and_after_their_question() -> None:
    graded = wording("choice", "blur", "-", "How soft? A. Sharp B. Very soft", {"A": "0", "B": "3-5"})
    named = wording("choice", "any", "-", "What is wrong? A. Mushy B. Speckles", {"A": "blur", "B": "noise"})
    yes = wording("choice", "dark", "-", "Is it underexposed? A. Yes B. No", {"A": "1-5", "B": "0"})
    blur, noise, dark, none, amount = map(MEANINGS.index, ("blur", "noise", "dark", "none", "amount"))
    assert examples_of([graded, named, yes]) == [
        Example("How soft?", INTENTS.index("degree"), blur),
        Example("How soft? A. Sharp B. Very soft", INTENTS.index("degree"), blur),
        Example("Sharp", UNKNOWN, UNKNOWN, 0.0),
        Example("How soft? Sharp", UNKNOWN, none, 0.0),
        Example("Very soft", UNKNOWN, blur, 4.0),
        Example("How soft? Very soft", UNKNOWN, blur, 4.0),
        Example("What is wrong?", INTENTS.index("which"), none),
        Example("What is wrong? A. Mushy B. Speckles", INTENTS.index("which"), none),
        Example("Mushy", UNKNOWN, blur),
        Example("What is wrong? Mushy", UNKNOWN, blur),
        Example("Speckles", UNKNOWN, noise),
        Example("What is wrong? Speckles", UNKNOWN, noise),
        Example("Is it underexposed?", INTENTS.index("yes"), dark),
        Example("Yes", UNKNOWN, amount, 3.0),
        Example("Is it underexposed? Yes", UNKNOWN, dark, 3.0),
        Example("No", UNKNOWN, UNKNOWN, 0.0),
        Example("Is it underexposed? No", UNKNOWN, none, 0.0),
    ]


def test_options_without_a_question_are_examples() -> None:
    bare = wording("choice", "blur", "", "A. Sharp B. Very soft", {"A": "0", "B": "3-5"})
    assert examples_of([bare]) == [
        Example("A. Sharp B. Very soft", INTENTS.index("degree"), MEANINGS.index("blur")),
        Example("Sharp", UNKNOWN, UNKNOWN, 0.0),
        Example("Very soft", UNKNOWN, MEANINGS.index("blur"), 4.0),
    ]


def test_options_of_unrelated_questions_are_other_only_after_the_question() -> None:
    other = wording("unanswerable", "any", "-", "Which city is it? A. Rome B. Oslo C. Bern")
    assert Example("Which city is it? Oslo", UNKNOWN, MEANINGS.index("other")) in examples_of([other])
    assert Example("Oslo", UNKNOWN, MEANINGS.index("other")) not in examples_of([other])


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
