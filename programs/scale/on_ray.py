"""Run shards on a cluster: Ray Data passes the lines of the plan to workers that keep the program loaded.

Only lines of the plan and outcomes, a few hundred bytes each, pass through Ray. A worker reads the images and writes
the file of its shard itself. Only the files count (``run_shards.run_shards``), even if Ray loses or repeats a shard:
each file is complete, and a shard without a file is tried again.
"""

import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import orjson

from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.backends.limits import RunLimits
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.scale.limits import ClusterLimits, LimitActor
from agenticiqa.programs.scale.shard_assessor import Engine, PlannedShard, ShardAssessor, ShardOutcome, ShardRun

logger = logging.getLogger(__name__)

ADDRESS = "RAY_ADDRESS"  # the environment variable with the address of a cluster; ``ray job submit`` sets it
OBJECT_STORE = 128 * 2**20  # bytes for a cluster on this machine; lines of the plan need little memory


@contextmanager
def ray_engine(limits: RunLimits, workers: int | None, in_flight: int | None) -> Iterator[Engine]:
    """Yield an engine for ``run_shards`` with at most ``workers`` workers, by default one per processor.

    The cluster is the one at ``$RAY_ADDRESS``, else one on this machine, which is started with the first shards and
    ends with the context. Raises UserError if Ray is not installed or cannot be reached.
    """
    ray = _ray()
    with ExitStack() as stack:

        @cache
        def limit_actor() -> Any:
            _connect(ray, workers)
            stack.callback(ray.shutdown)
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            # On this command's node, so that it does not stop with a worker's node.
            here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
            actor = ray.remote(num_cpus=0, scheduling_strategy=here)(LimitActor)
            return actor.remote(limits.own.max_calls, limits.own.max_usd, in_flight)

        def engine(run: ShardRun, todo: Sequence[PlannedShard]) -> Iterator[ShardOutcome]:
            handle = limit_actor()
            pool = min(workers or int(ray.cluster_resources().get("CPU", 1)), len(todo))
            lines = _outcomes(run, todo, handle, pool)
            yield from _until_stopped(lines, handle.halt.remote)

        yield engine


def _ray() -> Any:
    # Ray reads this when it is imported and when a cluster starts; otherwise it sends usage statistics.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # failures are reported by shard
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise UserError("--engine ray needs Ray: run pip install 'agenticiqa[ray]'") from error
    return ray


def _connect(ray: Any, workers: int | None) -> None:
    quiet = {"log_to_driver": logger.isEnabledFor(logging.DEBUG), "logging_level": logging.ERROR}
    try:
        if os.environ.get(ADDRESS):
            ray.init(**quiet)
        else:
            cores = workers or available_cores()
            size = {"num_cpus": cores, "num_gpus": 0, "object_store_memory": OBJECT_STORE}
            ray.init(address="local", include_dashboard=False, **size, **quiet)
    except Exception as error:  # Ray raises plain exceptions with many lines
        ray.shutdown()
        place = f"at ${ADDRESS} {os.environ[ADDRESS]}" if os.environ.get(ADDRESS) else "on this machine"
        why = str(error).strip().partition("\n")[0]
        raise UserError(f"no Ray cluster could be reached or started {place} ({why})") from error
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _outcomes(run: ShardRun, todo: Sequence[PlannedShard], limit_actor: Any, pool: int) -> Iterator[ShardOutcome]:
    """Yield the outcomes of the shards as Ray Data yields them, without shards of stopped workers."""
    import ray

    context = ray.data.DataContext.get_current()
    context.max_errored_blocks = -1  # a failed shard affects no others
    context.enable_progress_bars = False
    all_remote = all("://" in name for name in (run.output, *run.names))
    worker_run = replace(run, folder="" if all_remote else os.getcwd(), output=_absolute(run.output))
    # Ray deprecates two arguments without a replacement before version 2.64, which bounds the extra ``ray``.
    warnings.filterwarnings("ignore", message=".*is deprecated and will be removed in Ray")
    items = [{"start": shard.start, "end": shard.end} for shard in todo]
    assessed = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
        ShardAssessor,
        fn_constructor_args=(worker_run, partial(ClusterLimits, limit_actor)),
        batch_size=1,
        num_cpus=1,
        # One shard at a time, so that a stopped worker loses only one; ``run_shards`` tries it again.
        compute=ray.data.ActorPoolStrategy(
            min_size=1, max_size=pool, initial_size=pool, max_tasks_in_flight_per_actor=1
        ),
        ray_remote_args_fn=_own_retries,
    )
    for row in assessed.iter_rows():
        yield ShardOutcome(**orjson.loads(row["outcome"]))


def _until_stopped(outcomes: Iterator[ShardOutcome], halt: Callable[[], Any]) -> Iterator[ShardOutcome]:
    """Yield the outcomes, read in another thread; at Ctrl-C or a limit, the workers write their rows and end."""
    received: SimpleQueue[ShardOutcome | BaseException | None] = SimpleQueue()

    def receive() -> None:
        try:
            for outcome in outcomes:
                received.put(outcome)
            received.put(None)
        except BaseException as error:  # the thread that receives the error handles it
            received.put(error)

    Thread(target=receive, daemon=True).start()
    interrupted: KeyboardInterrupt | None = None
    while True:
        try:
            outcome = received.get()
        except KeyboardInterrupt as error:
            logger.warning("interrupted: waiting for the images under way; press Ctrl-C again to abort")
            interrupted = error
            halt()
            continue
        if outcome is None:
            break
        if isinstance(outcome, BaseException):
            # Ray has many kinds of errors, with texts of many lines.
            why = str(outcome).strip().splitlines() or [type(outcome).__name__]
            yield ShardOutcome(-1, stopped_by=f"Ray ended the run: {why[0]}")
            break
        if outcome.stopped_by:
            halt()
        yield outcome
    if interrupted:
        raise interrupted


def _own_retries() -> dict[str, int]:
    """Return the options to replace a stopped worker without giving its shard to the next worker."""
    return {"max_restarts": -1, "max_task_retries": 0}


def _absolute(place: str) -> str:
    return place if "://" in place else str(Path(place).absolute())
