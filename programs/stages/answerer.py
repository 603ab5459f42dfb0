"""The Answerer: a model answers a question that asks for no score, by a letter or in words (paper, Sec. 3.3)."""

import re

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.evidence import format_evidence
from agenticiqa.programs.stages.flow import Flow, Stage, call
from agenticiqa.programs.stages.protocols import Answered
from agenticiqa.signatures.summarizer import Answer, AnswerQuestion
from agenticiqa.signatures.types import ExecutorOutput


class Answerer(Stage[Answered]):
    """Asks a model for an answer: one of the letters offered, or words."""

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3) -> None:
        super().__init__()
        self.ask: CheckedPredict[Answer] = CheckedPredict(
            AnswerQuestion, stage="answering", backend=backend, attempts=attempts
        )

    def steps(
        self,
        image: LoadedImage,
        query: str,
        evidence: ExecutorOutput,
        options: dict[str, str],
        reference: LoadedImage | None,
    ) -> Flow[Answered]:
        """See ``protocols.Answerer``."""

        def letter_or_words(answer: Answer) -> str:
            if not options:
                return answer.final_answer
            letter = letter_of(answer.final_answer, options)
            if letter is None:
                raise Rejected(
                    f"final_answer {answer.final_answer!r} is none of the letters offered ({', '.join(options)})"
                )
            return letter

        listed = "\n".join(f"{letter}. {text}" for letter, text in options.items())
        inputs = {
            **prompt_inputs(image, reference),
            "query": query,
            "evidence": format_evidence(evidence),
            "options": listed or "none",
        }
        reply = yield from call(self.ask, inputs=inputs, check=letter_or_words)
        return Answered(letter_or_words(reply.answer), reply.answer.quality_reasoning, reply.rejected_answers)


def letter_of(answer: str, options: dict[str, str]) -> str | None:
    """The letter that an answer means, or ``None``: "b", "(B)", "B. Blur" and the option's own text all mean B.

    A letter followed by another option's text, or by any text that is not its own option's, means none.
    """
    stripped = answer.strip()
    by_text = {_plain(text): letter for letter, text in options.items()}
    match = re.fullmatch(r"\(?([A-Za-z])\s*(?:[).:]\s*|$)(.*)", stripped, re.S)
    if match and match[1].upper() in options:
        letter, rest = match[1].upper(), _plain(match[2])
        return letter if not rest or by_text.get(rest) == letter else None
    return by_text.get(_plain(stripped))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
