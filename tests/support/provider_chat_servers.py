"""The servers that speak OpenAI's chat completions, each with its own particulars.

* OpenAI: https://platform.openai.com/docs/api-reference/chat/create, .../guides/error-codes, .../guides/images-vision
* vLLM: https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html; its errors: vllm-project/vllm#6301, #9739
* SGLang: https://docs.sglang.ai/basic_usage/openai_api_vision.html
* Ollama: https://docs.ollama.com/api/openai-compatibility
* llama.cpp: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md; no WebP: cline/cline#8977
* LM Studio: https://lmstudio.ai/docs/developer/openai-compat; no ``json_object``: lmstudio-ai/lmstudio-bug-tracker#189
"""

from support.provider_chat import Chat

SHARED = (
    "model messages temperature top_p max_tokens seed stop stream frequency_penalty presence_penalty response_format"
)
FULL = (
    "max_completion_tokens logprobs top_logprobs n logit_bias metadata modalities parallel_tool_calls prediction "
    "prompt_cache_key prompt_cache_retention reasoning_effort safety_identifier service_tier store stream_options "
    "tool_choice tools user verbosity"
)
MAX_CONTEXT = "This model's maximum context length is 32768 tokens. However, your request has 40312 input tokens."

OPENAI = Chat(
    "openai",
    "openai.gpt-4o-test",
    f"{SHARED} {FULL}",
    {
        "bad_key": (
            401,
            "Incorrect API key provided: sk-te***-key. You can find your API key at "
            "https://platform.openai.com/account/api-keys.",
            "invalid_request_error",
            "invalid_api_key",
        ),
        "context": (
            400,
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 131313 tokens. "
            "Please reduce the length of the messages.",
            "invalid_request_error",
            "context_length_exceeded",
        ),
        "image": (400, "Image is too large.", "invalid_request_error", "image_too_large"),
        "no_images": (
            400,
            "Invalid content type. image_url is only supported by certain models.",
            "invalid_request_error",
            None,
        ),
        "no_model": (
            404,
            "The model `gpt-4o-test` does not exist or you do not have access to it.",
            "invalid_request_error",
            "model_not_found",
        ),
        "overloaded": (503, "The engine is currently overloaded, please try again later", "server_error", None),
        "quota": (
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        ),
        "rate_limit": (
            429,
            "Rate limit reached for gpt-4o-test in organization org-test on tokens per min (TPM): Limit 30000, "
            "Used 29000, Requested 2000. Please try again in 2s.",
            "tokens",
            "rate_limit_exceeded",
        ),
        "server": (
            500,
            "The server had an error while processing your request. Sorry about that!",
            "server_error",
            None,
        ),
    },
    extra={"service_tier": "default", "system_fingerprint": "fp_test"},
)

VLLM = Chat(
    "vllm",
    "vllm.org/model-test",
    f"{SHARED} {FULL}",
    {
        "bad_key": (401, "Unauthorized", "AuthenticationError", None),
        "context": (400, MAX_CONTEXT, "BadRequestError", None),
        "no_images": (400, "At most 0 image(s) may be provided in one prompt.", "BadRequestError", None),
        "no_model": (404, "The model `org/model-test` does not exist.", "NotFoundError", None),
        "overloaded": (503, "Service Unavailable", "ServiceUnavailableError", None),
        "server": (500, "EngineCore encountered an issue.", "InternalServerError", None),
    },
    extra={"service_tier": None, "system_fingerprint": None, "prompt_logprobs": None, "kv_transfer_params": None},
)

SGLANG = Chat(
    "sglang",
    "sglang.org/model-test",
    f"{SHARED} {FULL}",
    {
        "context": (400, MAX_CONTEXT, "BadRequestError", None),
        "overloaded": (503, "The request queue is full.", "ServiceUnavailableError", None),
        "server": (500, "Internal server error", "InternalServerError", None),
    },
    extra={"metadata": {"weight_version": "default"}},
)

OLLAMA = Chat(
    "ollama",
    "ollama.model-test:7b",
    f"{SHARED} logprobs top_logprobs reasoning reasoning_effort stream_options tools",
    {
        "no_model": (404, "model 'model-test:7b' not found", "not_found_error", None),
        "overloaded": (503, "server busy, please try again. maximum pending requests exceeded", "api_error", None),
        "server": (500, "llama runner process has terminated: exit status 2", "api_error", None),
    },
    mimes=("image/jpeg", "image/png", "image/webp"),
    keyed=False,
    extra={"system_fingerprint": "fp_ollama"},
)

LLAMACPP = Chat(
    "llamacpp",
    "llamacpp.model-test",
    f"{SHARED} logprobs top_logprobs n max_completion_tokens stream_options tools tool_choice logit_bias user",
    {
        "bad_key": (401, "Invalid API Key", "authentication_error", None),
        "context": (
            400,
            "the request exceeds the available context size (4096 tokens), try increasing it",
            "exceed_context_size_error",
            None,
        ),
        "no_images": (
            500,
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            "server_error",
            None,
        ),
        "overloaded": (503, "Loading model", "unavailable_error", None),
        "server": (500, "Compute error.", "server_error", None),
    },
    mimes=("image/jpeg", "image/png", "image/bmp", "image/gif"),
    extra={"system_fingerprint": "b7000-test", "timings": {"prompt_n": 10, "predicted_n": 5}},
)

LMSTUDIO = Chat(
    "lmstudio",
    "lmstudio.model-test",
    f"{SHARED} top_k repeat_penalty logit_bias stream_options tools",
    {
        "context": (
            400,
            "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the "
            "model with a larger context length, or provide a shorter input",
            "",
            None,
        ),
        "server": (500, "The model has crashed without additional information.", "", None),
    },
    mimes=("image/jpeg", "image/png", "image/webp"),
    forms=("text", "json_schema"),
    keyed=False,
    logprobs=False,
    extra={"stats": {}, "system_fingerprint": "model-test"},
)
