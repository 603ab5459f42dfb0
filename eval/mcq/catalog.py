"""All benchmarks of questions by name."""

from agenticiqa.eval.mcq.agenticiqa_eval import AGENTICIQA_EVAL
from agenticiqa.eval.mcq.hub import ABENCH, QBENCH_HF
from agenticiqa.eval.mcq.own import OWN_DESCRIPTIONS, OWN_MCQ, OWN_PLANS
from agenticiqa.eval.mcq.qbench import QBENCH
from agenticiqa.eval.mcq.task import QuestionTask

QUESTION_TASKS: dict[str, QuestionTask] = {
    task.name: task for task in (QBENCH, QBENCH_HF, ABENCH, AGENTICIQA_EVAL, OWN_MCQ, OWN_PLANS, OWN_DESCRIPTIONS)
}
