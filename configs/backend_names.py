"""Accept the spelling of DSPy and LiteLLM for a model, ``provider/model``."""

# The names of providers before a slash, and before the dot of a backend.
PROVIDER_NAMES = {
    "openai": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
    "google": "google",
    "hosted_vllm": "vllm",
    "vllm": "vllm",
    "sglang": "sglang",
    "ollama": "ollama",
    "ollama_chat": "ollama",
    "llamacpp": "llamacpp",
    "lm_studio": "lmstudio",
    "lmstudio": "lmstudio",
}


def with_dot(backend: str) -> str:
    """Return the name of a backend as ``provider.model``; other names are returned unchanged.

    >>> with_dot("gemini/gemini-2.5-flash")
    'google.gemini-2.5-flash'
    >>> with_dot("vllm.Qwen/Qwen2.5-VL-7B-Instruct")
    'vllm.Qwen/Qwen2.5-VL-7B-Instruct'
    """
    provider, slash, model = backend.partition("/")
    return f"{PROVIDER_NAMES[provider]}.{model}" if slash and provider in PROVIDER_NAMES else backend
