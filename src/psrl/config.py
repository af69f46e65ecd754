"""params.yaml -> frozen configurations. Unknown or impossible values are refused by name before any work begins."""

import dataclasses
import hashlib
import json
import math
import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from psrl import paths, strict_yaml
from psrl.settings import METHODS, setting

TASK_NAMES = ("cartpole", "pendulum", "reacher", "pusher")
NOISY_TASKS = ("cartpole", "pendulum")
LARGEST = 2**63 - 1  # sizes and counts have 64 bits
LISTS = ("experiments", "films", "theory")  # sections whose names are names of files
SECTIONS = ("tasks", "methods", *LISTS)


class ConfigError(ValueError):
    """A value that cannot be used: one sentence that names it and says what is valid."""


@dataclass(frozen=True)
class Run:
    """One experiment, complete: all that decides its numbers."""

    task: Literal["cartpole", "pendulum", "reacher", "pusher"] = setting("the environment")
    method: str = setting("the learner")
    reward: Literal["oracle", "learned"] = setting("whether planner or model are given the reward function")
    noise: float = setting("sd of the environment's noise (Cartpole and Pendulum)", low=0, high=10)
    seeds: tuple[int, ...] = setting("a list of whole numbers, one trial each", low=0, high=2**32 - 1)
    episodes: int = setting("episodes per trial, the random first one included", low=1)
    steps: int = setting("environment steps per episode", low=1)
    settings: Any = setting("the method's settings, an instance of its class in psrl.settings")

    def as_dict(self) -> dict:
        return dataclasses.asdict(self)

    @property
    def hash(self) -> str:
        """Changes when anything that decides the results does."""
        return _hash(self.as_dict())

    @property
    def checkpoint_hash(self) -> str:
        """The same without the number of episodes: asking for more of them continues a run."""
        return _hash({key: value for key, value in self.as_dict().items() if key != "episodes"})

    def with_seeds(self, seeds: tuple[int, ...]) -> "Run":
        return dataclasses.replace(self, seeds=tuple(seeds))


def _hash(content: Mapping) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def read_params(path: Path | None = None) -> dict:
    """The content of a params file, with its sections checked for unknown names."""
    path = Path(path or paths.PARAMS)
    if not path.is_file():
        raise ConfigError(f"{path} is not there; run psrl inside the repository, where params.yaml is")
    return _checked(_read_yaml(path), path.name)


def _read_yaml(path: Path) -> Any:
    try:
        return strict_yaml.load(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that is none, a number of too many digits
        raise ConfigError(f"{path} is not valid YAML in UTF-8: {' '.join(str(error).split())}") from None


def _checked(params: Any, where: str) -> dict:
    for section in ("tasks", "methods", "experiments"):
        if not isinstance(params, dict) or not isinstance(params.get(section), dict):
            raise ConfigError(
                f"{where} has no section {section!r}; valid: tasks, methods and experiments, each a mapping"
            )
    _check_names(params, SECTIONS, where)
    for section in LISTS:
        _check_files(params.get(section, {}), section)
    _check_names(params["tasks"], TASK_NAMES, "tasks")
    _check_names(params["methods"], METHODS, "methods")
    for method, values in params["methods"].items():
        _check_names(values, _names(METHODS[method]), f"methods.{method}")
    groups = {name: kind for cls in METHODS.values() for name, kind in _fields(cls) if dataclasses.is_dataclass(kind)}
    for task, values in params["tasks"].items():
        _check_names(values, {"steps", *groups}, f"tasks.{task}")
        for name, value in values.items():
            if name in groups:
                build(groups[name], value, f"tasks.{task}.{name}")
    return params


def experiment(name: str, params: Mapping | None = None, section: str = "experiments") -> Run:
    """The experiment ``name`` of params.yaml, or of another of its sections that lists runs."""
    params = params or read_params()
    listed = params.get(section, {})
    if name not in listed:
        raise ConfigError(f"{section.removesuffix('s')} {name!r} is unknown; valid: {', '.join(listed)}")
    values = listed[name]
    where = f"{section}.{name}"
    _check_names(values, {"task", "method", "reward", "noise", "seeds", "episodes", "set"}, where)
    own = {key: value for key, value in values.items() if key != "set"}
    return resolve(params, where=where, overrides=values.get("set", {}), **own)


def experiments(params: Mapping | None = None) -> dict[str, Run]:
    """All experiments of params.yaml, in its order."""
    params = params or read_params()
    return {name: experiment(name, params) for name in params["experiments"]}


def resolve(params: Mapping, *, where: str = "run", overrides: Mapping | None = None, **values: Any) -> Run:
    """Join an experiment's own values with those of its method and task, then apply ``overrides`` of the settings.

    >>> run = resolve(read_params(), task="pendulum", method="psrl", noise=0.01, seeds=[0, 1], episodes=15,
    ...               overrides={"planner": {"horizon": 25}})
    >>> run.steps, run.reward, run.settings.planner.horizon
    (200, 'oracle', 25)
    """
    task, method = values.get("task"), values.get("method")
    if task not in list(params["tasks"]):
        raise ConfigError(f"{where}.task is {task!r}; valid: {', '.join(params['tasks'])}")
    if method not in list(params["methods"]):
        raise ConfigError(f"{where}.method is {method!r}; valid: {', '.join(params['methods'])}")
    kind = METHODS[method]
    per_task = {key: value for key, value in params["tasks"][task].items() if key in _names(kind)}
    raw = _merge({**per_task, **params["methods"][method]}, overrides or {}, f"{where}.set", _names(kind))
    settings = build(kind, raw, f"{where}.set" if overrides else f"methods.{method}")
    steps = _value(int, params["tasks"][task].get("steps"), {"low": 1}, f"tasks.{task}.steps")
    run = build(Run, {"noise": 0.0, "reward": "oracle", **values, "steps": steps, "settings": settings}, where)
    if run.noise and run.task not in NOISY_TASKS:
        raise ConfigError(
            f"{where}.noise is {run.noise}; valid for {run.task}: 0, only {' and '.join(NOISY_TASKS)} have noise"
        )
    if run.method in ("pets", "oracle") and run.reward == "learned":
        reason = "it has no reward model and plans with the true one"
        raise ConfigError(f"{where}.reward is 'learned'; valid for {run.method}: oracle, {reason}")
    _check_used(run, overrides or {}, where)
    if not run.seeds or len(set(run.seeds)) != len(run.seeds):
        raise ConfigError(f"{where}.seeds is {list(run.seeds)}; valid: at least one whole number, none twice")
    return run


def _check_used(run: Run, overrides: Mapping, where: str) -> None:
    """A setting that changes nothing would count as another experiment with the same numbers."""
    if "bayes" in overrides and getattr(run.settings, "scales", None) == "evidence":
        raise ConfigError(f"{where}.set.bayes is set; valid with scales: evidence: none, they are chosen by evidence")
    if "planning_reward" in overrides and run.reward == "learned":
        raise ConfigError(
            f"{where}.set.planning_reward is {overrides['planning_reward']!r}; valid where the reward is "
            "learned: none, the planner is given none"
        )


def build(kind: type, values: Any, where: str) -> Any:
    """An instance of the dataclass ``kind`` from a mapping, every field checked."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where} is {values!r}; valid: a mapping of {', '.join(_names(kind))}")
    _check_names(values, _names(kind), where)
    checked = {}
    for item in dataclasses.fields(kind):
        if item.name not in values:
            raise ConfigError(f"{where}.{item.name} is missing; valid: {item.metadata['doc']}")
        checked[item.name] = _value(
            dict(_fields(kind))[item.name], values[item.name], item.metadata, f"{where}.{item.name}"
        )
    instance = kind(**checked)
    problem = getattr(instance, "problem", lambda: None)()
    if problem:
        raise ConfigError(f"{where}.{problem}")
    return instance


def parse_override(text: str) -> dict:
    """A setting and its value as one writes them on the command line.

    >>> parse_override("planner.horizon=20")
    {'planner': {'horizon': 20}}
    """
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigError(f"--set {text!r} is not key=value; valid, for example: planner.horizon=20")
    try:
        nested: Any = yaml.safe_load(value)
    except (yaml.YAMLError, ValueError):
        raise ConfigError(f"--set {text!r} is not valid YAML after the =; valid: planner.horizon=20") from None
    for part in reversed(key.split(".")):
        nested = {part: nested}
    return nested


def parse_overrides(texts: Iterable[str]) -> dict:
    """Several of them as one; of two for the same setting the later one holds."""
    merged: dict = {}
    for text in texts:
        merged = _merge(merged, parse_override(text), "--set", None)
    return merged


def profile(name: str) -> dict:
    """What profiles/NAME.yaml says."""
    files = {file.stem: file for file in sorted((paths.ROOT / "profiles").glob("*.yaml"))}
    if name not in files:
        raise ConfigError(f"profile {name!r} is unknown; valid: {', '.join(files) or 'none is there'}")
    return _merge({}, _read_yaml(files[name]), f"profile {name!r}", None)


def read_profile(name: str) -> dict:
    """params.yaml with profiles/NAME.yaml laid over it."""
    params = read_params()
    experiments(params)  # refuses what a profile cannot be laid over
    params = _checked(apply_profile(params, profile(name)), f"profile {name!r}")
    experiments(params)  # refuses a profile that makes an experiment invalid
    return params


def apply_profile(params: Mapping, profile: Mapping) -> dict:
    """params.yaml with a profile laid over it.

    A profile's ``each`` is laid over every experiment, of ``each.set`` what the method has; all else is merged.
    """
    merged = json.loads(json.dumps(params))
    each = _merge({}, profile.get("each", {}), "profile.each", None)
    every_set = _merge({}, each.pop("set", {}), "profile.each.set", None)

    def over(values: Mapping) -> dict:
        sizes = {key: size for key, size in every_set.items() if key in _names(METHODS[values["method"]])}
        return each | ({"set": sizes} if sizes else {})

    merged["experiments"] = {
        name: _merge(values, over(values), "profile.each", None) for name, values in merged["experiments"].items()
    }
    rest = {key: value for key, value in profile.items() if key != "each"}
    return _merge(merged, rest, "profile", None)


def _merge(base: Mapping, over: Any, where: str, valid: Any) -> dict:
    if not isinstance(over, Mapping):
        raise ConfigError(f"{where} is {over!r}; valid: a mapping of settings")
    if valid is not None:
        _check_names(over, valid, where)
    merged = dict(base)
    for key, value in over.items():
        nested = isinstance(merged.get(key), Mapping) and isinstance(value, Mapping)
        merged[key] = _merge(merged[key], value, f"{where}.{key}", None) if nested else value
    return merged


def _fields(kind: type) -> list[tuple[str, Any]]:
    return list(typing.get_type_hints(kind).items())


def _names(kind: type) -> list[str]:
    return [item.name for item in dataclasses.fields(kind)]


def _check_names(values: Any, valid: Any, where: str) -> None:
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where} is {values!r}; valid: a mapping of {', '.join(sorted(map(str, valid)))}")
    for name in values:
        if name not in valid:
            raise ConfigError(f"{where}.{name} is unknown; valid: {', '.join(sorted(map(str, valid)))}")


def _check_files(values: Any, where: str) -> None:
    """A mapping whose names can be those of files."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where} is {values!r}; valid: a mapping of names")
    for name in values:
        if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]*", name):
            raise ConfigError(f"{where}.{name} cannot name a file; valid: a word of letters, digits and _ . -")


def _value(kind: Any, value: Any, metadata: Mapping, where: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return build(kind, value, where)
    if typing.get_origin(kind) is Literal:
        if value not in typing.get_args(kind):
            raise ConfigError(f"{where} is {value!r}; valid: {', '.join(typing.get_args(kind))}")
        return value
    if typing.get_origin(kind) is tuple:
        arguments = typing.get_args(kind)
        length = None if arguments[-1] is Ellipsis else len(arguments)
        if not isinstance(value, list | tuple) or length not in (None, len(value)):
            raise ConfigError(f"{where} is {value!r}; valid: a list of {length or 'one or more'} numbers")
        return tuple(_value(arguments[0], item, metadata, where) for item in value)
    if kind in (int, float):
        return _number(kind, value, metadata, where)
    others = {str: "a word", Mapping: "a mapping"}
    if kind in others and not isinstance(value, kind):
        raise ConfigError(f"{where} is {value!r}; valid: {metadata['doc']}, {others[kind]}")
    return value


def _number(kind: type, value: Any, metadata: Mapping, where: str) -> int | float:
    name = "a whole number" if kind is int else "a number"
    low, high, positive = metadata.get("low"), metadata.get("high"), metadata.get("positive")
    if kind is int and high is None and isinstance(value, int) and value > LARGEST:
        high = LARGEST
    limits = [f"at least {low}"] if low is not None else (["above 0"] if positive else [])
    limits += [f"at most {high}"] if high is not None else []
    valid = f"{name} {' and '.join(limits)}".strip()
    number = _finite(kind, value)
    outside = number is None or (low is not None and number < low) or (high is not None and number > high)
    if outside or (positive and number <= 0):
        raise ConfigError(f"{where} is {value!r}; valid: {valid}")
    return number


def _finite(kind: type, value: Any) -> int | float | None:
    """The value as a number of this kind, else None. YAML 1.1 takes 1e-3 for a word; here it is a number."""
    if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float | str):
        return None
    try:
        return kind(value) if math.isfinite(float(value)) else None
    except (ValueError, OverflowError):
        return None
