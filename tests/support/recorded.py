"""What to do if a text differs from the recorded one."""

RECORD = "if the change is meant, run `pytest --record` and read the diff"
