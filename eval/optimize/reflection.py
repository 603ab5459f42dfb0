"""Ask a model for a better instruction, and refuse unusable ones.

The prompt and the parsing are DSPy's (``dspy.teleprompt.gepa.InstructionProposer``). The descriptions of the answer's
fields and its JSON schema are sent with every instruction. An instruction that contradicts them leads to unusable
answers. Therefore it is refused before any assessment.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dspy
from dspy.teleprompt.gepa import InstructionProposer
from pydantic import ValidationError

from agenticiqa.eval.optimize.items import Assessed, TuningQuestion
from agenticiqa.eval.optimize.search import Proposal, Step, Texts
from agenticiqa.programs.batch.results_file import ResultsFile, kept_rows
from agenticiqa.programs.images import load
from agenticiqa.programs.images.files import digest
from agenticiqa.signatures.harmless import MARKER, harmless

SECTION = "[[ ##"  # DSPy's mark of a field in a request
JSON_KEY = re.compile(r'"(\w+)"\s*:')


def broken(proposed: str, original: type[dspy.Signature]) -> str | None:
    """Return the fault of a proposed instruction, in words for the model that wrote it, or ``None``.

    JSON in the proposal must have no other keys than the answer, or than the instruction of ``original``.
    """
    if MARKER in proposed or SECTION in proposed:
        return f"it contains {MARKER if MARKER in proposed else SECTION!r}, which marks parts of a request"
    allowed = names_of_answer(original) | set(original.fields) | set(JSON_KEY.findall(original.instructions))
    if foreign := sorted({key for key in JSON_KEY.findall(proposed) if key not in allowed}):
        return f"it asks for JSON with {', '.join(foreign)}, which the answer does not have"
    return None


def names_of_answer(signature: type[dspy.Signature]) -> set[str]:
    """Return the keys of a signature's typed output, at any depth, and the choices."""
    names = set[str]()
    for field in signature.output_fields.values():
        if hasattr(field.annotation, "model_json_schema"):
            for part in _parts(field.annotation.model_json_schema()):
                names.update(part.get("properties", {}), map(str, part.get("enum", ())))
    return names


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every mapping within a JSON schema, except its examples."""
    if isinstance(schema, Mapping):
        yield schema
        for key, value in schema.items():
            if key not in ("examples", "default"):
                yield from _parts(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _parts(item)


def _names(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


logger = logging.getLogger(__name__)

ATTEMPTS = 2
UNREADABLE = "the answer held no instruction that could be read"
QUOTED_MOS, QUOTED_WORDS = 2, 6  # numbers that count as a quote: MOS of examples, consecutive words of a question
DECIMAL = re.compile(r"(?<![\d.])\d\.\d+(?!\.?\d)")
TRIED_SHOWN, LONGEST_TRIED = 8, 400
KEEP = """Leave out the form of the answer: its fields, its words to choose from and its scales are described to the
model beside the instruction. Write rules that hold for any image; never mention the content, the file or the opinion
score of an example, nor a question. Say what to look for, how much it should weigh, and where the earlier answers were
wrong in one direction. What counts is what the answers add to the tools: find what observers see and the tools do not.
To repeat or follow the tools' scores gains nothing."""


def quoted(proposed: str, original: str, questions: Sequence[TuningQuestion]) -> str | None:
    """Return the fault of a proposal that quotes the examples, in words for the model that wrote it, or ``None``."""
    mos_values = [question.target for question in questions if question.target is not None]
    numbers = {float(number) for number in DECIMAL.findall(proposed)} - {float(n) for n in DECIMAL.findall(original)}
    known = [number for number in numbers if any(abs(number - mos) < 0.051 for mos in mos_values)]
    if len(known) >= QUOTED_MOS:
        return f"it quotes the opinion scores of examples ({', '.join(f'{number:g}' for number in sorted(known))})"
    if name := next(
        (q.image.stem for q in questions if len(q.image.stem) > 3 and _names(q.image.stem, proposed)), None
    ):
        return f"it names the file of an example ({name})"
    present, before = f" {_words(proposed)} ", _words(original)
    for question in questions:
        if question.answer is None:
            continue  # the question for a rating is the same for all
        for text in (question.query, *question.options):
            words = _words(text).split()
            for place in range(len(words) - QUOTED_WORDS + 1):
                phrase = " ".join(words[place : place + QUOTED_WORDS])
                if f" {phrase} " in present and phrase not in before:
                    return f"it quotes a question of the examples ({phrase!r})"
    return None


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


class Reflection:
    """A proposer of new instructions for a predictor: after a refusal it asks again, at most ``ATTEMPTS`` times.

    It refuses answers without an instruction, the current instruction, instructions that break the form of the answer,
    and quotes of the examples. ``originals`` are the signatures of the program before tuning, by predictor. Answers are
    stored in ``kept``, and the same request is not sent again.
    """

    def __init__(
        self, model: dspy.BaseLM, originals: Mapping[str, type[dspy.Signature]], kept: ResultsFile | None = None
    ) -> None:
        self.model, self.originals, self.kept = model, originals, kept
        self.known: dict[str, Proposal] = {}
        for _, row in kept_rows(kept.path) if kept else ():
            self.known[row["key"]] = Proposal(row["texts"], row["name"], tuple(row["refused"]))

    def __call__(
        self,
        name: str,
        texts: Texts,
        assessed: Sequence[Assessed],
        questions: Sequence[TuningQuestion],
        notes: Sequence[str],
        tried: Sequence[Step],
    ) -> Proposal:
        """Return a new instruction of predictor ``name``, from answers and feedback ``notes``. Raises for an outage."""
        key = digest([name, dict(texts), [question.key for question in questions], list(notes), len(tried)])
        if key in self.known:
            return self.known[key]
        examples = [
            {
                "Inputs": {**_images(question), **one.calls[name]["inputs"]},
                "Generated Outputs": one.calls[name]["outputs"],
                "Feedback": about,
            }
            for one, question, about in zip(assessed, questions, notes, strict=True)
        ]
        refused: list[str] = []
        proposed = None
        for _ in range(ATTEMPTS):
            proposed, fault = self._ask(name, texts[name], examples, refused, tried, questions)
            if fault is None:
                break
            logger.warning("the proposed instruction for %s was refused: %s", name, fault)
            refused.append(fault)
        new = None if proposed is None else {**texts, name: proposed}
        self.known[key] = Proposal(new, name, tuple(refused))
        if self.kept:
            self.kept.append({"name": name, "key": key, "texts": new, "refused": refused})
        return self.known[key]

    def _ask(
        self,
        name: str,
        current: str,
        examples: list[dict[str, Any]],
        refused: list[str],
        tried: Sequence[Step],
        questions: Sequence[TuningQuestion],
    ) -> tuple[str | None, str | None]:
        further = f" Your last proposal was refused: {refused[-1]}. Fix exactly this." if refused else ""
        proposer = InstructionProposer(additional_instructions=" ".join(KEEP.split()) + history(tried, name) + further)
        try:
            # DSPy's default adapter differs between versions: this one before 3.5, an XML adapter since then.
            adapter = dspy.settings.adapter or dspy.ChatAdapter()
            with dspy.context(lm=self.model, adapter=adapter, trace=None, disable_history=True):
                proposed: str = proposer({name: current}, {name: examples}, [name])[name]
        except dspy.AdapterParseError:
            return None, UNREADABLE
        except (ValueError, ValidationError, AttributeError):  # an instruction that is blank or not text
            return None, "the instruction was empty"
        if proposed.split() == current.split():
            return None, "the instruction was the same as the current one"
        original = self.originals[name]
        fault = broken(proposed, original) or quoted(proposed, original.instructions, questions)
        return (None, fault) if fault else (proposed, None)


def _images(question: TuningQuestion) -> dict[str, dspy.Image]:
    images = {"image": load(question.image).to_dspy()}
    return images | ({"reference": load(question.reference).to_dspy()} if question.reference else {})


def history(tried: Sequence[Step], name: str) -> str:
    """Describe what earlier proposals added and whether it helped, for the model that writes the next one."""
    lines = []
    for step in [step for step in tried if step.predictor == name and step.looked is not None][-TRIED_SHOWN:]:
        outcome = "helped, and is kept" if step.taken else "did not help"
        lines.append(f'"{harmless(step.added)[:LONGEST_TRIED]}" {outcome}')
    return f" Tried before: {'; '.join(lines)}." if lines else ""
