"""How language models are reached: what each provider takes, what goes over the wire, retries, what was spent."""
