"""All benchmarks of questions by name."""

from agenticiqa.eval.questions.agenticiqa_eval import AGENTICIQA_EVAL
from agenticiqa.eval.questions.qbench import ABENCH, QBENCH, QBENCH_HF
from agenticiqa.eval.questions.task import QuestionTask
from agenticiqa.programs.errors import UserError

QUESTION_TASKS: dict[str, QuestionTask] = {task.name: task for task in (QBENCH, QBENCH_HF, ABENCH, AGENTICIQA_EVAL)}

OF_PAIRS = ("qbench2", "q-bench2", "qbench2-hf", "q-bench2-hf")


def refuse_pairs(name: str) -> None:
    """Raise UserError for a benchmark about pairs of images without a reference among them."""
    if name.lower() in OF_PAIRS:
        raise UserError(
            f"{name} compares two images in a question, which is not supported; use qbench or qbench-hf, which ask "
            "about single images"
        )
