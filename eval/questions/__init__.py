"""Questions about images whose answers are true by construction, and the share that the program answers rightly."""
