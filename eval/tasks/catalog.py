"""All data sets by name."""

from agenticiqa.eval.tasks.agiqa3k import AGIQA3K
from agenticiqa.eval.tasks.avt_ai import AVT_AI
from agenticiqa.eval.tasks.bid import BID
from agenticiqa.eval.tasks.biq2021 import BIQ2021
from agenticiqa.eval.tasks.clive import CLIVE
from agenticiqa.eval.tasks.csiq import CSIQ
from agenticiqa.eval.tasks.kadid10k import KADID10K
from agenticiqa.eval.tasks.koniq10k import KONIQ10K
from agenticiqa.eval.tasks.live_md import LIVE_MD
from agenticiqa.eval.tasks.live_r2 import LIVE_R2, LIVE_R2_ORIGINAL
from agenticiqa.eval.tasks.pipal import PIPAL
from agenticiqa.eval.tasks.spaq import SPAQ
from agenticiqa.eval.tasks.task import Task
from agenticiqa.eval.tasks.tid import TID2008, TID2013

FULL_REFERENCE = (LIVE_R2, LIVE_R2_ORIGINAL, LIVE_MD, CSIQ, TID2008, TID2013, KADID10K, PIPAL)
NO_REFERENCE = (CLIVE, KONIQ10K, SPAQ, BID, BIQ2021)
GENERATED = (AGIQA3K, AVT_AI)
TASKS: dict[str, Task] = {task.name: task for task in (*FULL_REFERENCE, *NO_REFERENCE, *GENERATED)}
