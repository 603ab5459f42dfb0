"""Accept the spelling of DSPy and LiteLLM for a model, ``provider/model``."""

# LiteLLM's names of providers that have other names here.
OF_LITELLM = {"gemini": "google", "hosted_vllm": "vllm", "ollama_chat": "ollama", "lm_studio": "lmstudio"}


def with_dot(backend: str) -> str:
    """Return the name of a backend as ``provider.model``; a name with a dot before any slash is returned unchanged.

    >>> with_dot("gemini/gemini-2.5-flash")
    'google.gemini-2.5-flash'
    >>> with_dot("vllm.Qwen/Qwen2.5-VL-7B-Instruct")
    'vllm.Qwen/Qwen2.5-VL-7B-Instruct'
    """
    provider, slash, model = backend.partition("/")
    if not slash or "." in provider:
        return backend
    return f"{OF_LITELLM.get(provider, provider)}.{model}"
