"""The pydantic model of a configuration file. Unknown keys are errors; API keys are never in the file."""

import os
from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import yaml
from annotated_types import Ge
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from agenticiqa.configs.backend_names import with_dot
from agenticiqa.configs.bounds import LARGEST_ERROR, LEAST_ERROR
from agenticiqa.configs.options import AdapterKey, Effect, Follows, ImageSettings, LimitKeys, ModelKeys, Of, RequestKeys
from agenticiqa.configs.spelling import did_you_mean
from agenticiqa.configs.user_files import text_of_yaml
from agenticiqa.configs.yaml_json import yaml_value

VARIABLE = "AGENTICIQA_CONFIG"
DEFAULT, PAPER = "model_backends", "paper"
STAGES = ("planner", "executor", "summarizer", "replan")
LEVELS_NEED = "--mode levels needs a model: name one with --backend, or in the section levels of the configuration"

BackendName = Annotated[str, AfterValidator(with_dot)]
LevelsPrompt = Literal["q-realign", "q-align", "onealign", "deqa-score"]
MaxTokens = Annotated[int, Ge(1), Effect.ON_RESULTS]
LARGEST_ETA = 1 / (2 * LEAST_ERROR**2)
ErrorInLevels = Annotated[float, Field(ge=LEAST_ERROR, le=LARGEST_ERROR)]
PlanRules = Literal["fill", "check"]
Rating = Literal["level", "letter"]
StructuredOutputs = Literal["auto", "json_schema", "json_object", "off"]


M = TypeVar("M", bound="Section")


class ConfigError(ValueError):
    """Raised if a configuration file is missing, is not YAML, or has an invalid key or value."""


class Section(BaseModel):
    """The base class of all sections: frozen, without unknown keys, NaN or infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class RunSection(Section):
    """The base class of the configuration of a run and its sections: the annotation of each key has its ``Effect``.

    Raises:
        TypeError: A class is defined with a key that declares no effect, or that follows an unknown key.
    """

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        """Check the keys of a subclass."""
        if undeclared := cls.model_fields.keys() - set().union(*map(cls.keys_with, Effect)):
            raise TypeError(
                f"{cls.__name__}.{min(undeclared)} declares no effect on results: annotate it with a member of Effect"
            )

        follows = [mark for field in cls.model_fields.values() for mark in field.metadata if isinstance(mark, Follows)]
        if unknown := {leader for mark in follows for leader in mark.leaders} - cls.model_fields.keys():
            raise TypeError(f"{cls.__name__} has no key {min(unknown)}, which another key follows")

    @classmethod
    def keys_with(cls, mark: Effect | Of) -> set[str]:
        """Return the keys that have this mark.

        Args:
            mark: The effect on results, or what the key belongs to.

        Returns:
            The names of the keys.
        """
        return {name for name, field in cls.model_fields.items() if mark in field.metadata}

    @classmethod
    def keys_following(cls, leader: str) -> set[str]:
        """Return the keys that mean something only together with this key.

        Args:
            leader: The name of the key.

        Returns:
            The names of the keys.
        """
        marks = {
            name: [m for m in field.metadata if isinstance(m, Follows)] for name, field in cls.model_fields.items()
        }
        return {name for name, follows in marks.items() if any(leader in mark.leaders for mark in follows)}

    def recorded(self) -> dict[str, Any]:
        """Return what a run records of this section by value.

        Returns:
            The keys with ``Effect.ON_RESULTS``, also in sections below, as plain JSON types.
        """
        values = self.model_dump(mode="json", include=self.keys_with(Effect.ON_RESULTS))
        sections = {name: part.recorded() for name, part in self if isinstance(part, RunSection)}
        return {name: sections.get(name, value) for name, value in values.items()}


class Price(Section):
    """The price of a model in USD per million tokens; ``batch`` is the share that the Batch API costs.

    A text is a short form: "2.5,10" for input and output.
    """

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    batch: float = Field(default=0.5, ge=0, le=1)

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.count(",") != 1:
            raise ValueError(f"{value!r} is not IN,OUT in USD per million tokens, such as 2.5,10")
        read, written = value.split(",")
        return {"input": read, "output": written}

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        """Return the price of these tokens in USD."""
        return (self.input * input_tokens + self.output * output_tokens) / 1_000_000

    def in_batches(self) -> "Price":
        """Return the price of the same tokens with the Batch API."""
        return Price(input=self.input * self.batch, output=self.output * self.batch, batch=1)


class StageConfig(RunSection, RequestKeys):
    """The backend of one stage and its parameters; ``RequestKeys`` has two of them, which are also options.

    ``backend`` is ``offline`` (rules and measurements; nothing is sent), ``dspy`` (the model that the Python program
    gives to DSPy, whose own settings come first) or ``provider.model``, such as ``openai.gpt-4o`` (or
    ``openai/gpt-4o``). With
    ``api_base`` the calls go to that OpenAI-compatible server. Its key is read from the environment variable that
    ``api_key_env`` names; without ``api_key_env``, no key is sent.
    """

    backend: Annotated[BackendName, Effect.ON_RESULTS, Of.SERVER] = "offline"
    api_base: Annotated[str | None, Effect.NONE, Of.SERVER, Follows(("backend",))] = None
    api_key_env: Annotated[str | None, Effect.NONE, Of.SERVER, Follows(("backend", "api_base"))] = None
    fallback_backend: Annotated[BackendName | None, Effect.ON_RESULTS, Follows(("backend",))] = None
    fallback_api_base: Annotated[str | None, Effect.NONE, Follows(("backend", "fallback_backend"))] = None
    fallback_api_key_env: Annotated[
        str | None, Effect.NONE, Follows(("backend", "fallback_backend", "fallback_api_base"))
    ] = None
    temperature: Annotated[float | None, Effect.ON_RESULTS] = Field(
        default=0.0, ge=0, le=2, description="null: the default of the model"
    )
    top_p: Annotated[float | None, Effect.ON_RESULTS] = Field(default=None, gt=0, le=1)
    seed: Annotated[int | None, Effect.ON_RESULTS, Of.SERVER] = Field(default=None, ge=0)
    max_retries: Annotated[int, Effect.NONE, Of.SERVER] = Field(
        default=3, ge=0, description="retries after an error of the network or server"
    )
    structured_outputs: Annotated[StructuredOutputs, Effect.ON_RESULTS] = "auto"
    logprobs: Annotated[Literal["auto"] | bool, Effect.ON_RESULTS] = "auto"
    price: Annotated[Price | None, Effect.NONE, Of.SERVER, Follows(("backend",))] = None

    @property
    def is_offline(self) -> bool:
        """Whether this stage runs without any language model."""
        return self.backend == "offline"


class PlannerConfig(StageConfig):
    """The section of the Planner. With ``on_failure: rules`` the offline rules plan if the model fails to.

    With ``rules: fill`` the model writes five keys of the plan, and the rules of the paper set ``reference_mode`` and
    the flags. With ``check`` it writes all seven keys, as in the paper, and the rules only say what they would change.
    """

    top_p: Annotated[float | None, Effect.ON_RESULTS] = Field(default=0.1, gt=0, le=1)
    sees_images: Annotated[bool, Effect.ON_RESULTS] = True
    on_failure: Annotated[Literal["error", "rules"], Effect.ON_RESULTS] = "error"
    rules: Annotated[PlanRules, Effect.ON_RESULTS] = "fill"


class ExecutorConfig(StageConfig):
    """The section of the Executor. With ``select: model`` the model selects the tools for a rating, too.

    With ``table`` a rating uses the tools with the least error in ``tool_table.yaml``. With a simulated model, its
    choice made no measurable difference (``docs/fidelity.md``). For other questions, the model always selects tools.
    """

    select: Annotated[Literal["table", "model"], Effect.ON_RESULTS] = "table"


class ReplanConfig(StageConfig):
    """The section of replanning, which is part of the Summarizer in the specification.

    The specification sets 512 tokens. A model that reasons before it answers needs more.
    """

    max_tokens: MaxTokens = 512


class SummarizerConfig(StageConfig):
    """The section of the Summarizer, with 512 tokens as in the specification.

    A model that reports the log-probabilities of its tokens names a level in a rating. With ``rating: letter`` it
    chooses a letter from A (Excellent) to E (Bad), as in the paper. Any other model writes the probabilities.
    """

    max_tokens: MaxTokens = 512
    rating: Annotated[Rating, Effect.ON_RESULTS] = "level"


class LevelsConfig(StageConfig):
    """The section of a model that completes a fixed text with a quality level, instead of the summarizer's rating.

    One token is generated and read with its alternatives. ``prompt`` is the text that a family of models was trained
    on.
    """

    max_tokens: MaxTokens = 1
    structured_outputs: Annotated[StructuredOutputs, Effect.ON_RESULTS] = "off"
    logprobs: Annotated[Literal["auto"] | bool, Effect.ON_RESULTS] = True
    prompt: Annotated[LevelsPrompt, Effect.ON_RESULTS] = "q-realign"

    @field_validator("backend")
    @classmethod
    def _asks_a_model(cls, backend: str) -> str:
        if backend == "offline":
            raise ValueError("name a model that rates quality levels, such as vllm.q-future/Q-ReAlign-Mini-0.8B")
        return backend


class FusionConfig(RunSection):
    """The parameters that combine tool scores and the model's probabilities into one score.

    Their defaults, ``eta`` 1 and ``model_error`` 0, are the paper's formula, except for the mean of the tool scores:
    tools which the program itself chooses have weights, and tools of a single property are left out. With
    ``mean: plain``, every tool that was executed counts equally. ``fusion: paper`` is a short form of all three,
    equations 1 to 4 of the paper.

    ``profile`` is a file that ``calibrate fusion`` wrote for the summarizer's model. It has both errors, so it
    excludes these keys. ``fusion: FILE`` is a short form. A relative path starts at the configuration's folder.
    """

    eta: Annotated[float | None, Effect.ON_RESULTS, Of.PROFILE] = Field(
        default=None, ge=0, le=LARGEST_ETA, description="1 / (2 s^2); s: standard error of the tool mean in levels"
    )
    model_error: Annotated[float | None, Effect.ON_RESULTS, Of.PROFILE] = Field(
        default=None, ge=0, le=LARGEST_ERROR, description="standard error of the model's rating in levels"
    )
    mean: Annotated[Literal["plain"] | None, Effect.ON_RESULTS, Of.PROFILE] = Field(
        default=None, description="plain: every executed tool counts equally in the tool mean"
    )
    profile: Annotated[str | None, Effect.BY_CONTENT] = Field(
        default=None, min_length=1, description="path of a fusion profile, instead of eta and model_error"
    )

    @model_validator(mode="before")
    @classmethod
    def _file_or_section(cls, value: object) -> object:
        if value == "paper":
            return {"eta": 1, "model_error": 0, "mean": "plain"}
        return {"profile": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _profile_stands_alone(self) -> "FusionConfig":
        if self.profile is not None and (others := sorted(self.model_fields_set & self.keys_with(Of.PROFILE))):
            raise ValueError(f"the fusion profile already sets these values: remove {' and '.join(others)}")
        return self

    @property
    def has_errors(self) -> bool:
        """Whether the errors are set, by a profile or by hand."""
        return any(getattr(self, key) is not None for key in ("profile", *self.keys_with(Of.PROFILE)))

    def with_errors(self, other: "FusionConfig") -> "FusionConfig":
        """Return this rule and its parameters with the errors or the profile of another section, and what else it sets.

        Args:
            other: The other section.

        Returns:
            The changed section.
        """
        unset = dict.fromkeys(("profile", *self.keys_with(Of.PROFILE)))
        return self.model_copy(update={**unset, **other.model_dump(exclude_unset=True)})


class Config(RunSection, AdapterKey, ModelKeys, ImageSettings, LimitKeys):  # type: ignore[misc]  # mypy: is Section frozen?
    """A complete configuration; the classes of ``configs/options.py`` describe the keys that are inherited from there.

    Attributes:
        planner: The Planner's section.
        executor: The Executor's section.
        summarizer: The Summarizer's section.
        replan: The section of replanning.
        levels: A model that rates the image in place of the summarizer stage; by default none.
        keep_history: Whether to keep DSPy's history of calls, with images as hash and size.
        attempts: The most requests per stage to get a usable answer, 1 to 10.
        max_replan_iterations: The most new plans for one question, 0 to 10.
        fusion: How tool scores and the model's probabilities are combined.
        tool_curves: The curves from tool values to 1..5: a shipped name, or a YAML file.
        pyiqa: The pyiqa metrics to add to the toolbox; they need the extra ``pyiqa``.
    """

    planner: Annotated[PlannerConfig, Effect.BY_CONTENT] = PlannerConfig()
    executor: Annotated[ExecutorConfig, Effect.BY_CONTENT] = ExecutorConfig()
    summarizer: Annotated[SummarizerConfig, Effect.BY_CONTENT] = SummarizerConfig()
    replan: Annotated[ReplanConfig, Effect.BY_CONTENT] = ReplanConfig()
    levels: Annotated[LevelsConfig | None, Effect.BY_CONTENT] = Field(
        default=None, description="a model that rates the image in place of the summarizer stage"
    )
    keep_history: Annotated[bool, Effect.NONE] = Field(
        default=False, description="keep DSPy's history of calls, with images as hash and size"
    )
    attempts: Annotated[int, Effect.ON_RESULTS] = Field(
        default=3, ge=1, le=10, description="most requests per stage to get a usable answer"
    )
    max_replan_iterations: Annotated[int, Effect.ON_RESULTS] = Field(default=2, ge=0, le=10)
    fusion: Annotated[FusionConfig, Effect.ON_RESULTS] = FusionConfig()
    tool_curves: Annotated[str, Effect.BY_CONTENT] = Field(
        default="default", description="a shipped set of tool curves, or a YAML file"
    )
    pyiqa: Annotated[list[str], Effect.ON_RESULTS] = Field(
        default=[], description="pyiqa metrics to add to the toolbox (needs the pyiqa extra)"
    )

    @field_validator(*STAGES, mode="before")
    @classmethod
    def _with_the_stages_own_defaults(cls, section: object) -> object:
        """Keep only the values that were set in a plain ``StageConfig``; the rest gets the defaults of the stage."""
        return section.model_dump(exclude_unset=True) if type(section) is StageConfig else section

    def with_backend(
        self,
        backend: str | None,
        api_base: str | None = None,
        api_key_env: str | None = None,
        price: Price | str | None = None,
    ) -> "Config":
        """Return the configuration with every stage on one model and no fallback; nothing is sent elsewhere.

        As in a section with a backend of its own, neither an address nor a key nor a price is kept.

        Args:
            backend: "offline", "dspy", or ``provider.model`` such as "openai.gpt-4o"; ``None`` changes nothing.
            api_base: The address of an OpenAI-compatible server, if the model is not at its provider.
            api_key_env: The environment variable with the key of that server.
            price: The price of the model, if it is not known.

        Returns:
            The changed configuration.

        Raises:
            ConfigError: The price is invalid, or the other arguments have no effect, because no model is named.
        """
        server = {"api_base": api_base, "api_key_env": api_key_env, "price": price}
        if backend in (None, "offline", "dspy") and any(server.values()):
            raise ConfigError("api_base, api_key_env and price need backend, the name of a model")
        if backend is None:
            return self
        model = checked(StageConfig, {"backend": backend, **server}, f"backend {backend}")
        changes = {key: getattr(model, key) for key in ("backend", *StageConfig.keys_following("backend"))}
        return self.model_copy(update={name: s.model_copy(update=changes) for name, s in self.sections.items()})

    def with_request_keys(self, values: Mapping[str, object]) -> "Config":
        """Return the configuration with these keys of ``RequestKeys`` in every section.

        The section ``levels``, also as ``in_mode`` makes it, gets only those about its server: its answer is one token.

        Args:
            values: The new values by key.

        Returns:
            The changed configuration.
        """
        of_levels = {key: value for key, value in values.items() if key in StageConfig.keys_with(Of.SERVER)}
        changed = {
            name: section.model_copy(update=of_levels if name == "levels" else values)
            for name, section in self.sections.items()
        }
        return self.model_copy(update=changed)

    def with_tuned_fusion(self) -> "Config":
        """Return this configuration with the profile fitted with its tuned prompts, unless it configures the fusion.

        Returns:
            The changed configuration, or this one if there is no such profile.
        """
        fitted = None if self.prompts is None else Path(self.prompts) / "fusion.yaml"
        if fitted is None or self.fusion.has_errors or not os.path.isfile(fitted):
            return self
        return self.model_copy(update={"fusion": self.fusion.with_errors(FusionConfig(profile=str(fitted)))})

    def without_fusion(self) -> "Config":
        """Return this configuration with its prompts and its fusion without errors, for fitting a profile.

        Returns:
            The changed configuration.
        """
        folder = None if self.prompts is None else Path(self.prompts)
        prompts = str(folder / "prompts.json") if folder and os.path.isdir(folder) else self.prompts
        return self.model_copy(update={"fusion": self.fusion.with_errors(FusionConfig()), "prompts": prompts})

    def in_mode(self) -> "Config":
        """Apply the mode.

        ``fast`` analyzes and reviews offline, by measurements and rules, and plans only once. ``levels`` asks one model
        for a quality level and nothing else; without a section of that name, the summarizer's.

        Returns:
            The configuration of the program; for ``full`` this one.

        Raises:
            ConfigError: The mode is ``levels``, and neither section names a model.
        """
        if self.mode == "full":
            return self
        changes: dict[str, object] = {
            "executor": ExecutorConfig(),
            "replan": ReplanConfig(),
            "max_replan_iterations": 0,
        }
        if self.mode == "levels":
            if self.levels is None and self.summarizer.is_offline:
                raise ConfigError(LEVELS_NEED)
            server = self.summarizer.model_dump(include=StageConfig.keys_with(Of.SERVER))
            changes |= {
                "planner": PlannerConfig(),
                "summarizer": SummarizerConfig(),
                "levels": self.levels or LevelsConfig(**server),
                "fusion": self.fusion.with_errors(FusionConfig(eta=1, model_error=0)),
            }
        return self.model_copy(update=changes)

    @property
    def files(self) -> list[str]:
        """The files that this configuration names: adapter, fusion profile, tool curves and tuned prompts."""
        named = [self.adapter, self.fusion.profile, self.tool_curves]
        if self.prompts is not None:
            named += [self.prompts, str(Path(self.prompts) / "prompts.json"), str(Path(self.prompts) / "fusion.yaml")]
        return [path for path in named if path is not None]

    @property
    def sections(self) -> dict[str, StageConfig]:
        """The sections that may ask a model, by name: the four stages, and ``levels`` where it is set."""
        stages: dict[str, StageConfig] = {name: getattr(self, name) for name in STAGES}
        return stages if self.levels is None else {**stages, "levels": self.levels}

    @property
    def image_settings(self) -> ImageSettings:
        """The keys that determine how images are read and sent."""
        return ImageSettings(**{key.name: getattr(self, key.name) for key in fields(ImageSettings)})

    @property
    def is_offline(self) -> bool:
        """Whether no stage asks a language model."""
        return self.mode != "levels" and all(section.is_offline for section in self.sections.values())


def load_config(given: str | os.PathLike[str] | Mapping[str, object] | None = None) -> Config:
    """Read and check a configuration.

    Args:
        given: A file, a shipped name, or a mapping of sections; by default ``$AGENTICIQA_CONFIG``, or else the shipped
            default configuration.

    Returns:
        The configuration; relative paths in a file start from its folder.

    Raises:
        ConfigError: There is no such file, or it has an unexpected key or value; in one line.
    """
    if isinstance(given, Mapping):
        return checked(Config, dict(given), "configuration (a mapping)")
    wanted = os.fspath(given) if given is not None else os.environ.get(VARIABLE) or DEFAULT
    return _with_paths_from(Path(wanted).parent, read_model(Config, "configuration", wanted))


def read_model(model: type[M], kind: str, wanted: str) -> M:
    """Read a YAML file or a shipped one by name. Raises ConfigError; its message calls the file a ``kind``."""
    name = f"{kind} {wanted}"
    try:
        text = text_of_yaml(Path(wanted), resources.files(__package__) / f"{wanted}.yaml")
        if text is None:
            raise ConfigError(f"{name}: no such file, and no {kind} of that name is shipped; {_shipped(kind)}")
        return checked(model, yaml_value(text) or {}, name)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from error


def _shipped(kind: str) -> str:
    """Return which files of a kind are shipped, as a clause."""
    if kind == "policy":
        return "the shipped one is gate"
    files = resources.files(__package__).joinpath("providers").iterdir()
    return f"shipped are {', '.join([DEFAULT, PAPER, *sorted(f'providers/{Path(file.name).stem}' for file in files)])}"


def checked(model: type[M], value: object, name: str) -> M:
    """Return the value as a model. Raises ConfigError, in one line that begins with the name."""
    if model is Config and isinstance(value, dict):
        value = _with_keys_for_all_stages(value, name)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        wrong = "; ".join(_explain(model, item["loc"], item["type"], item["msg"]) for item in error.errors())
        raise ConfigError(f"{name}: {wrong}") from error


def _with_keys_for_all_stages(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a configuration with the keys of a stage at its top moved into each stage, where a section overrides them.

    A section with another model or server gets only the parameters, so that a key is never sent to another server. The
    section ``levels``, if any, gets its server. Raises ConfigError for an invalid value, once.
    """
    common = {key: value[key] for key in value if key in StageConfig.model_fields}
    checked(StageConfig, common, name)
    changed = {key: value[key] for key in value if key not in common}
    for stage in STAGES if value.get("levels") is None else (*STAGES, "levels"):
        section = value.get(stage) or {}
        own = section.model_dump(exclude_unset=True) if isinstance(section, StageConfig) else section
        if isinstance(own, Mapping):  # otherwise an error of the model
            others = set().union(*map(StageConfig.keys_following, own))
            wanted = common.keys() & StageConfig.keys_with(Of.SERVER) if stage == "levels" else common.keys()
            changed[stage] = {**{key: common[key] for key in wanted - others}, **own}
    return changed


def _with_paths_from(folder: Path, config: Config) -> Config:
    """Return the configuration with relative paths of its files resolved from ``folder``."""
    paths = {"adapter": config.adapter, "prompts": config.prompts, "profile": config.fusion.profile}
    changes: dict[str, object] = {key: str(folder / os.path.expanduser(path)) for key, path in paths.items() if path}
    if os.path.isfile(folder / config.tool_curves):  # else the name of shipped curves
        changes["tool_curves"] = str(folder / config.tool_curves)
    if profile := changes.pop("profile", None):
        changes["fusion"] = config.fusion.model_copy(update={"profile": str(profile)})
    return config.model_copy(update=changes)


def _explain(section: type[BaseModel], location: tuple[int | str, ...], kind: str, message: str) -> str:
    where = ".".join(map(str, location)) or "the file"
    if kind == "value_error":  # a message of ours
        message = message.removeprefix("Value error, ")
        return f"{where}: {message}" if location else message
    if kind != "extra_forbidden":
        return f"{where}: {message}"
    for part in location[:-1]:
        annotation = section.model_fields[str(part)].annotation
        for inner in (annotation, *get_args(annotation)):  # a section, or one that may be null
            section = inner if isinstance(inner, type) and issubclass(inner, BaseModel) else section
    keys = [*section.model_fields, *(StageConfig.model_fields if section is Config else ())]
    return f"unknown key {where!r}" + did_you_mean(str(location[-1]), keys, f"one of {', '.join(keys)}")
