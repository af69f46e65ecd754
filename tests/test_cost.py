"""The prices of an environment step: all methods have one, split as their training grows, and they add up."""

import json

import numpy as np
import pytest
import tiny
import yaml

from psrl import cost, paths
from psrl.config import ConfigError
from psrl.paper import MODEL_FREE


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """What the bench prints at toy sizes, where notebooks would look for it."""
    monkeypatch.setattr(paths, "PARAMS", tiny.repository(tmp_path) / "params.yaml")
    rows = cost.step(["pendulum"])
    monkeypatch.setattr(cost, "FILE", tmp_path / "step.json")
    cost.FILE.write_text(json.dumps({"rows": rows}))
    return cost.read()


def test_every_method_is_priced_where_it_is_run(measured):
    both = {(method, reward) for method in ("psrl", "psrl-eb", "mbpo") for reward in ("oracle", "learned")}
    wanted = both | {("pets", "oracle")} | {(method, "learned") for method in MODEL_FREE}
    assert {key[1:] for key in measured} == wanted
    for (_, method, _), price in measured.items():
        grows = method in cost.PLANNERS
        assert price.act > 0 and (price.growth > 0) == grows and (price.train > 0) != grows
        assert (price.update > 0) == (method == "psrl")


def test_prices_add_up():
    """Free while it only explores; then the k-th episode trains on the k - 1 before it."""
    price = cost.Cost(act=10.0, train=3.0, growth=2.0, update=0.5, first=2)
    np.testing.assert_array_equal(price.per_step(5), [0, 0, 17, 19, 21])


def test_a_file_that_is_no_measurement_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "FILE", tmp_path / "step.json")
    for content in (None, "{}", '{"rows": [{"task": "pendulum"}]}'):
        if content:
            cost.FILE.write_text(content)
        with pytest.raises(ConfigError, match="psrl bench step --json"):
            cost.read()


def test_prices_are_per_step_and_per_trial(tmp_path, monkeypatch):
    params = tiny.params()
    params["methods"]["sac"] |= {"random_steps": 20, "train_after": 60}  # episodes of 20 steps
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params.yaml")
    monkeypatch.setattr(cost, "_seconds", lambda call: 1.0)
    price = cost._planner("pendulum", "psrl", "oracle")
    assert price["act_ms"] == pytest.approx(1000 / 5), "a plan serves five trials"
    assert price["growth_ms"] == price["update_ms"] == pytest.approx(1000 / (5 * 20)), "a fit serves 20 steps of each"
    assert cost._actor("pendulum", "sac", "learned")["first"] == 3, "it trains after 60 steps"
