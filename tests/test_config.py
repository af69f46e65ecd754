"""Any valid configuration runs; any invalid one is refused before work begins, and the field is named."""

import copy
import dataclasses
import math
import re
import typing
from typing import Any, Literal

import numpy as np
import pytest
import tiny
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from psrl import config
from psrl.config import ConfigError, experiment, resolve
from psrl.learner import make_learner
from psrl.settings import METHODS

PARAMS = tiny.params()
quick = settings(suppress_health_check=list(HealthCheck))
RUNNABLE = ("random", "oracle", "psrl", "psrl-eb", "pets")  # quick enough to be run for every example


def small(kind: Any, metadata: Any) -> st.SearchStrategy:
    """Valid values of a field, of a size that runs at once."""
    if dataclasses.is_dataclass(kind):
        return group(kind)
    if typing.get_origin(kind) is Literal:
        return st.sampled_from(typing.get_args(kind))
    if typing.get_origin(kind) is tuple:
        return st.lists(st.floats(0, 1e-3), min_size=3, max_size=3)
    low, high = metadata["low"], metadata["high"]
    if kind is int:
        return st.integers(low or 0, min(high or math.inf, (low or 0) + 3))
    return st.floats(1e-3 if metadata["positive"] else low, min(high or math.inf, 2.0))


def group(kind: type) -> st.SearchStrategy:
    hints = typing.get_type_hints(kind)
    fields = {item.name: small(hints[item.name], item.metadata) for item in dataclasses.fields(kind)}
    return st.fixed_dictionaries(fields).filter(lambda values: valid(kind, values))


def valid(kind: type, values: dict) -> bool:
    try:
        config.build(kind, values, "test")
    except ConfigError:
        return False
    return True


@st.composite
def valid_runs(draw) -> dict:
    method = draw(st.sampled_from(RUNNABLE))
    task = draw(st.sampled_from(config.TASK_NAMES))
    reward = draw(st.sampled_from(["oracle"] if method in ("pets", "oracle") else ["oracle", "learned"]))
    overrides = draw(group(METHODS[method]))
    if overrides.get("scales") == "evidence":  # what would change nothing is refused
        del overrides["bayes"]
    if reward == "learned":
        overrides.pop("planning_reward", None)
    return {
        "task": task,
        "method": method,
        "reward": reward,
        "noise": draw(st.floats(0, 0.1)) if task in config.NOISY_TASKS else 0,
        "seeds": draw(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=2, unique=True)),
        "episodes": 2,
        "overrides": overrides,
    }


def with_steps(steps: int) -> dict:
    params = copy.deepcopy(PARAMS)
    for task in params["tasks"].values():
        task["steps"] = steps
    return params


@given(valid_runs(), st.integers(1, 3))
@settings(quick, max_examples=25)
def test_a_valid_configuration_runs_two_episodes(values, steps):
    run = resolve(with_steps(steps), **values)
    learner = make_learner(run)
    seen: list[int] = []
    for _ in range(2):
        outcome = learner.episode(seen.append)
        assert outcome.returns.shape == (len(run.seeds),)
        assert np.isfinite(outcome.returns).all()
        assert all(np.shape(value) == outcome.returns.shape for value in outcome.metrics.values())
    assert seen == [*range(1, steps + 1)] * 2


def leaves(kind: type, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any, Any]]:
    """Every single setting of a class: its path, type and valid range."""
    found = []
    for item in dataclasses.fields(kind):
        hint = typing.get_type_hints(kind)[item.name]
        if dataclasses.is_dataclass(hint):
            found += leaves(hint, (*path, item.name))
        else:
            found.append(((*path, item.name), hint, item.metadata))
    return found


def wrong(kind: Any, metadata: Any) -> st.SearchStrategy:
    """Values that a field of this type and range cannot have."""
    never = [None, "", "word", [], {}, {"a": 1}, True, float("nan"), float("inf"), -float("inf"), [1, "a"], [[1.0]]]
    choices = [value for value in never if not (kind is str and isinstance(value, str))]
    if kind is int:
        choices += [1.5, "1", 1.0]
    if metadata["low"] is not None:
        choices += [metadata["low"] - 1]
    if metadata["high"] is not None:
        choices += [metadata["high"] + 1]
    if metadata["positive"]:
        choices += [0, -1e-9]
    return st.sampled_from(choices)


@given(st.data())
@settings(quick, max_examples=300)
def test_a_wrong_setting_is_refused_by_name(data):
    method = data.draw(st.sampled_from(list(METHODS)))
    path, kind, metadata = data.draw(st.sampled_from(leaves(METHODS[method])))
    overrides = value = data.draw(wrong(kind, metadata))
    for part in reversed(path):
        overrides = {part: overrides}
    with pytest.raises(ConfigError) as refusal:
        resolve(PARAMS, task="cartpole", method=method, seeds=[0], episodes=1, overrides=overrides)
    assert ".".join(path) in str(refusal.value) and "valid: " in str(refusal.value), (path, value)


@given(st.data())
@settings(quick, max_examples=200)
def test_a_wrong_experiment_is_refused_by_name(data):
    good = {"task": "cartpole", "method": "psrl", "reward": "oracle", "noise": 0.0, "seeds": [0], "episodes": 1}
    name, kind, metadata = data.draw(
        st.sampled_from([(path[0], *rest) for path, *rest in leaves(config.Run) if path[0] in good])
    )
    value = data.draw(wrong(Literal["one"] if name == "method" else kind, metadata))
    params = PARAMS | {"experiments": {"mine": good | {name: value}}}
    with pytest.raises(ConfigError) as refusal:
        experiment("mine", params)
    assert f"experiments.mine.{name}" in str(refusal.value), value


@pytest.mark.parametrize("place", [(), ("set",), ("set", "planner")])
def test_unknown_names_are_refused(place):
    values: dict = {"mistake": 1}
    for part in reversed(place):
        values = {part: values}
    good = {"task": "cartpole", "method": "psrl", "seeds": [0], "episodes": 1}
    with pytest.raises(ConfigError, match=r"\.".join([*place, "mistake is unknown"])):
        experiment("mine", PARAMS | {"experiments": {"mine": good | values}})


@pytest.mark.parametrize("section", ["tasks", "methods"])
def test_a_params_file_with_unknown_names_is_refused(section, tmp_path):
    path = tmp_path / "params.yaml"
    for change, named in [
        ({section: {"mistake": {}}}, f"{section}.mistake"),
        ({section: {next(iter(PARAMS[section])): {"mistake": 1}}}, "mistake"),
        ({section: None}, section),
        ({section: {next(iter(PARAMS[section])): 3}}, next(iter(PARAMS[section]))),
    ]:
        path.write_text(str(PARAMS | change))
        with pytest.raises(ConfigError, match=named):
            config.read_params(path)
    with pytest.raises(ConfigError, match=r"experiments\.mine is 3"):
        experiment("mine", PARAMS | {"experiments": {"mine": 3}})
    path.write_text("tasks: [")
    with pytest.raises(ConfigError, match="not valid YAML"):
        config.read_params(path)
    path.write_bytes(b"tasks: caf\xe9")
    with pytest.raises(ConfigError, match="not valid YAML in UTF-8: unacceptable character #x00e9"):
        config.read_params(path)
    path.write_text("tasks: 2021-99-99")
    with pytest.raises(ConfigError, match="not valid YAML in UTF-8: month"):
        config.read_params(path)
    with pytest.raises(ConfigError, match="run psrl inside the repository"):
        config.read_params(tmp_path / "nothing.yaml")
    path.write_text(f"{str(PARAMS)[:-1]}, 'methods': 3}}")
    with pytest.raises(ConfigError, match="'methods' stands twice in the mapping that begins in line 1"):
        config.read_params(path)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"experiment": {}}, "params.yaml.experiment is unknown; valid: experiments, films"),
        ({"films": 3}, "films is 3; valid: a mapping of names"),
        ({"experiments": {3: {}}}, "experiments.3 cannot name a file"),
        ({"experiments": {"a/../../b": {}}}, "experiments.a/../../b cannot name a file"),
    ],
)
def test_sections_hold_names_of_files(change, named, tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(str(PARAMS | change))
    with pytest.raises(ConfigError, match=re.escape(named)):
        config.read_params(path)


def test_a_missing_setting_is_refused():
    params = copy.deepcopy(PARAMS)
    del params["tasks"]["cartpole"]["planner"]["horizon"]
    with pytest.raises(ConfigError, match=r"planner\.horizon is missing"):
        resolve(params, task="cartpole", method="psrl", seeds=[0], episodes=1)


@given(st.data())
@settings(quick, max_examples=60)
def test_the_hash_follows_every_setting_and_the_checkpoint_all_but_episodes(data):
    base = {"task": "cartpole", "method": "psrl", "seeds": [0, 1], "episodes": 3, "noise": 0.01}
    run = resolve(PARAMS, **base)
    path, kind, metadata = data.draw(st.sampled_from(leaves(METHODS["psrl"])))
    old = run.as_dict()["settings"]
    for part in path:
        old = old[part]
    overrides = data.draw(small(kind, metadata))
    if overrides == (list(old) if isinstance(old, tuple) else old):
        return
    for part in reversed(path):
        overrides = {part: overrides}
    try:
        other = resolve(PARAMS, **base, overrides=overrides)
    except ConfigError:  # fields that must agree with each other
        return
    assert other.hash != run.hash and other.checkpoint_hash != run.checkpoint_hash
    longer = resolve(PARAMS, **(base | {"episodes": 4}))
    assert longer.hash != run.hash and longer.checkpoint_hash == run.checkpoint_hash
    assert resolve(PARAMS, **base).hash == run.hash


def test_every_experiment_of_the_repository_is_valid():
    runs = config.experiments(config.read_params(tiny.ROOT / "params.yaml"))
    assert runs
    hashes = [run.hash for run in runs.values()]
    assert len(set(hashes)) == len(hashes), "two experiments are the same"


def test_overrides_join_and_the_later_holds():
    texts = ["planner.horizon=20", "planner.elites=4", "sample=step", "planner.horizon=30"]
    assert config.parse_overrides(texts) == {"planner": {"horizon": 30, "elites": 4}, "sample": "step"}


@pytest.mark.parametrize("text", ["1e-3", "1E-3", "0.001", "+1.e-3"])
def test_a_number_may_be_written_as_one_writes_numbers(text):
    """YAML 1.1 takes 1e-3 for a word."""
    values = {"task": "cartpole", "method": "psrl", "seeds": [0], "episodes": 1}
    overrides = config.parse_overrides([f"learning_rate={text}", f"network.decay=[{text}, 0, {text}]"])
    run = resolve(PARAMS, **values, overrides=overrides)
    assert run.settings.learning_rate == 1e-3 and run.settings.network.decay == (1e-3, 0.0, 1e-3)
