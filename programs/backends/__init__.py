"""From a configuration to models: what each provider takes, what goes over the wire, retries, limits, usage."""
