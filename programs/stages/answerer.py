"""The Answerer: a model answers a question that does not request a score, by letter or in words (paper, Sec. 3.3)."""

from contextlib import suppress

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.images import LoadedImage, prompt_inputs
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.evidence import format_evidence
from agenticiqa.programs.stages.progress import evidence_summary
from agenticiqa.programs.stages.protocols import Answered
from agenticiqa.programs.stages.salvage import salvaged_answers
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.signatures.answers.letters import letter_of
from agenticiqa.signatures.answers.requested import Requested
from agenticiqa.signatures.summarizer import Answer, AnswerQuestion
from agenticiqa.signatures.types import ExecutorOutput

SALVAGED = "The option was taken from a rejected answer and may be wrong."


class Answerer(StageModule):
    """Asks a model for an answer: one of the letters offered, or words.

    Unless ``strict``, a letter is also read from rejected answers.
    """

    def __init__(self, *, backend: Backend | None = None, attempts: int = 3, strict: bool = False) -> None:
        super().__init__()
        self.ask: CheckedPredict[Answer] = CheckedPredict(
            AnswerQuestion, stage="answering", backend=backend, attempts=attempts
        )
        self.strict = strict

    def forward(
        self,
        image: LoadedImage,
        query: str,
        evidence: ExecutorOutput,
        options: dict[str, str],
        reference: LoadedImage | None,
    ) -> Answered:
        """See ``protocols.AnswererStage``."""

        def letter_or_words(answer: Answer) -> str:
            if not options:
                return answer.final_answer
            letter = letter_of(answer.final_answer, options)
            if letter is None:
                raise Rejected(
                    f"final_answer {answer.final_answer!r} is none of the letters offered ({', '.join(options)})"
                )
            return letter

        def check(answer: Answer) -> None:
            answer.final_answer = letter_or_words(answer)

        listed = "\n".join(f"{letter}. {text}" for letter, text in options.items())
        inputs = {
            **prompt_inputs(image, reference),
            "query": query,
            "evidence": format_evidence(evidence, rates=False),
            "options": listed or None,
        }
        try:
            requested = Requested(choices={"final_answer": list(options)} if options else {})
            reply = self.ask(inputs=inputs, check=check, evidence=evidence_summary(evidence), requested=requested)
        except Unanswered as gave_up:
            for answer in salvaged_answers(gave_up) if options and not self.strict else ():
                with suppress(Rejected):
                    reason = f"{answer.quality_reasoning} ({SALVAGED})"
                    return Answered(letter_or_words(answer), reason, gave_up.rejected_answers)
            raise
        return Answered(reply.answer.final_answer, reply.answer.quality_reasoning, reply.rejected_answers)
