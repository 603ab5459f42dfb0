"""All data sets by name."""

from agenticiqa.eval.tasks.kadid10k import KADID10K
from agenticiqa.eval.tasks.live_r2 import LIVE_R2, LIVE_R2_ORIGINAL
from agenticiqa.eval.tasks.task import Task
from agenticiqa.programs.errors import UserError

TASKS: dict[str, Task] = {task.name: task for task in (LIVE_R2, LIVE_R2_ORIGINAL, KADID10K)}


def find_task(name: str) -> Task:
    """The data set of a name. Raises UserError, with all names, if there is none."""
    if name not in TASKS:
        raise UserError(f"there is no data set {name!r}; there are: {', '.join(TASKS)}")
    return TASKS[name]
