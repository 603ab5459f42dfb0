"""What is told of a run while it goes on: its steps as log records, a live view, a log file, traces."""
