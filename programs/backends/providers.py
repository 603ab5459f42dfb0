"""The providers that a configuration can name: how each is reached and what its interface supports."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dspy import lm15

OF_LLAMA_CPP = frozenset(
    {"image/jpeg", "image/png"}
)  # the image types that llama.cpp decodes, as a server or in process


@dataclass(frozen=True)
class Provider:
    """One provider.

    ``route`` is lm15's name for its interface, ``key_env`` the environment variable of its key (``None``: a server of
    the user's own, whose address has to be given), ``preset`` the lm15 dialect of a server that lm15 has no route for,
    ``schema_bounds`` whether a schema may contain keywords such as ``maxItems``, ``formats`` the media types that it
    decodes. ``continues`` is what its servers are sent, beside the messages, to continue the last one where that is an
    answer that was begun; ``None`` where they begin a new one. The other fields say what the interface supports; a
    single model or server may lack it: see ``probe``.
    """

    route: str
    key_env: str | None = None
    preset: str | None = None
    takes_top_p: bool = True
    json_object: bool = True
    logprobs: bool = True
    seed: bool = True
    most_logprobs: int = 20
    schema_bounds: bool = True
    formats: frozenset[str] = frozenset({"image/jpeg", "image/png", "image/webp"})
    continues: Mapping[str, Any] | None = None

    def definitions(self) -> tuple[lm15.ProviderDefinition, ...]:
        """The declaration that lm15 needs for a server that it has no route for."""
        if self.preset is None:
            return ()
        access = lm15.AccessPolicy(provider=self.route, base_url="http://localhost/v1")  # the address is always given
        compat = lm15.OpenAIChatCompat.preset(self.preset)
        return (lm15.ProviderDefinition.chat(access, compat=compat, placeholder_key="none"),)


PROVIDERS: dict[str, Provider] = {
    "openai": Provider("openai-chat", "OPENAI_API_KEY"),
    # Newer models refuse top_p beside a temperature; there is no JSON mode, no seed and no log-probabilities.
    "anthropic": Provider(
        "anthropic",
        "ANTHROPIC_API_KEY",
        takes_top_p=False,
        json_object=False,
        logprobs=False,
        seed=False,
        schema_bounds=False,
    ),
    "google": Provider("gemini", "GEMINI_API_KEY"),
    "vllm": Provider("vllm", continues={"continue_final_message": True, "add_generation_prompt": False}),
    "sglang": Provider("sglang", continues={"continue_final_message": True}),
    "ollama": Provider("ollama"),
    # It continues by itself, but refuses to where the model would think first.
    "llamacpp": Provider(
        "llamacpp",
        preset="vllm",
        formats=OF_LLAMA_CPP,
        continues={"chat_template_kwargs": {"enable_thinking": False}},
    ),
    "lmstudio": Provider("lmstudio", preset="lmstudio", json_object=False, logprobs=False),
}
