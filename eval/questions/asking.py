"""Ask the program the questions of a benchmark, store each answer as it comes, and continue interrupted runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from agenticiqa.eval.questions.task import AskedItem, digest_of
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.assess_many import Failure, assess_many
from agenticiqa.programs.batch.job import Job, failure_text
from agenticiqa.programs.batch.results_file import Identity, ResultsFile, Resumed, Row, resume
from agenticiqa.programs.batch.stop_rule import StopRule
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images import name_of
from agenticiqa.programs.result import Assessment

NewRows = Iterator[Row]
Watch = Callable[[NewRows, int, int], NewRows]  # new rows, how many were finished before, how many there are in all


def unwatched(rows: NewRows, finished: int, total: int) -> NewRows:
    """Return the new rows unchanged."""
    return rows


def ask(
    program: AgenticIQA,
    questions: Sequence[AskedItem],
    results: ResultsFile,
    *,
    workers: int = 1,
    watch: Watch = unwatched,
) -> list[Row]:
    """Ask the questions that ``results`` does not hold yet, and return the row of every question, in their order.

    A row is the answer (or ``error`` and the question), with the fields of ``marked_choice`` and the question's
    ``name``, ``rotation``, ``groups`` and ``content``. It is appended as it comes. ``watch`` wraps the new
    rows, for progress. Raises the error that ended the run as ``benchmark.evaluate`` does.
    """
    wanted = {choice.key: _identity(choice) for choice in questions} if results.length else {}
    resumed = resume(results.outlines(), wanted, _row_identity)
    valid, failed = resumed.finished, results.failed()
    todo = [choice for choice in questions if choice.key not in valid]
    todo.sort(key=lambda choice: choice.item.name in failed)  # else images that fail again could end each run
    new = _new_rows(program, todo, results, resumed, StopRule(workers, accepted=bool(valid)))
    for _ in watch(new, len(valid), len(questions)):
        pass
    return [*results.rows(valid[choice.key] for choice in questions)]


def marked_choice(choice: AskedItem, row: Mapping[str, Any]) -> Row:
    """Return the marks of an answer to a question with options.

    ``truth`` and ``answer`` are letters. An answer outside the options (also "Unable to determine", or a failure) has
    ``answer`` null, is ``unparsed`` and not ``correct``; no option is guessed instead.
    """
    said = row.get("final_answer")
    answer = said if said in choice.options else None
    return {
        "truth": choice.truth,
        "answer": answer,
        "correct": answer == choice.truth,
        "unparsed": answer is None,
    }


def _new_rows(
    program: AgenticIQA,
    questions: Sequence[AskedItem],
    results: ResultsFile,
    resumed: Resumed[str],
    stop: StopRule,
) -> NewRows:
    for choice, job, outcome in _outcomes(program, questions, stop):
        made = _failed(job, outcome) if isinstance(outcome, Exception) else outcome
        row = {
            **made,
            "name": choice.item.name,
            "rotation": choice.rotation,
            "content": choice.item.content,
            "groups": dict(choice.item.groups),
            **marked_choice(choice, made),
        }
        resumed.finished[choice.key] = results.append_better(row, resumed.incomplete.get(choice.key))
        yield row
    if stop.ended_by:
        raise stop.ended_by


def _outcomes(
    program: AgenticIQA,
    questions: Sequence[AskedItem],
    stop: StopRule,
) -> Iterator[tuple[AskedItem, Job, Row | Failure]]:
    waiting: dict[int, AskedItem] = {}  # items by the job's id, as two questions of a set may be the same

    def jobs() -> Iterable[Job]:
        for choice in questions:
            job = choice.job
            waiting[id(job)] = choice
            yield job

    def should_stop(outcome: object) -> bool:
        """Return the rule's decision, but go on if a tool that a question names cannot run."""
        return not isinstance(outcome, ToolError) and stop.should_stop(outcome)

    for job, outcome in assess_many(program, jobs(), stop.workers, Assessment.to_dict, should_stop):
        yield waiting.pop(id(job)), job, outcome


def _failed(job: Job, error: Exception) -> Row:
    return {
        "image": job.name,
        "reference": name_of(job.reference) if job.reference else None,
        "query": job.query,
        "options": job.options or {},
        "error": f"{type(error).__name__}: {failure_text(job, error)}",
    }


def _identity(choice: AskedItem) -> Identity:
    item, question = choice.item, _as_text(choice.item.query, choice.options)
    return Identity(
        choice.key, digest_of(item.image), item.content, digest_of(item.reference), question, run_fingerprint=None
    )


def _row_identity(row: Row) -> Identity:
    return Identity(
        image=f"{row['name']}#{row['rotation']}",
        image_sha256=row["image_sha256"],
        reference=row["content"],
        reference_sha256=row["reference_sha256"],
        query=_as_text(row["query"], row.get("options") or {}),
        run_fingerprint=None,
    )


def _as_text(query: str, options: Mapping[str, str]) -> str:
    return "\n".join([query.strip(), *(f"{letter}. {' '.join(text.split())}" for letter, text in options.items())])
