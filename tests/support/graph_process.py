"""A process that runs the graph with its checkpoints in a file, for tests that kill it.

``python graph_process.py CONFIG CHECKPOINTS IMAGE STOP_BEFORE`` starts the graph, prints each node that starts, and
waits without end before the node STOP_BEFORE. ``python graph_process.py CONFIG CHECKPOINTS`` continues from the last
checkpoint and prints the result of the final state as JSON.
"""

import json
import sys
import time

from langgraph.checkpoint.sqlite import SqliteSaver

from agenticiqa import AgenticIQA, build_graph

QUERY = "Rate the perceptual quality of this snapshot."
THREAD = {"configurable": {"thread_id": "one"}}


def main(config: str, checkpoints: str, image: str = "", stop_before: str = "") -> None:
    """Run as the module docstring says."""
    with SqliteSaver.from_conn_string(checkpoints) as saver:
        graph = build_graph(AgenticIQA.from_config(config), checkpointer=saver)
        given = {"query": QUERY, "image_path": image} if image else None
        for mode, part in graph.stream(given, THREAD, stream_mode=["tasks", "values"], durability="sync"):
            if mode == "values":
                state = part
            elif "input" in part:  # else it is a node's result
                print(part["name"], flush=True)
                while part["name"] == stop_before:
                    time.sleep(60)
    print(json.dumps(state["summarizer_result"].model_dump()))


if __name__ == "__main__":
    main(*sys.argv[1:])
