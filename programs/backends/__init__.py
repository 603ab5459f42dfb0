"""Language models from a configuration: providers, requests, retries, limits and usage."""
