"""Every method's numbers on a tiny fixed configuration: they may change only together with the method's version.

`python tests/test_golden.py` runs what is new and writes tests/golden.json, once versions in params.yaml are raised.
"""

import json
import sys
from dataclasses import replace

import pytest
import tiny

from psrl import checkpoint, config, engine
from psrl.config import Run, build
from psrl.learner import METHODS
from psrl.settings import METHODS as SETTINGS

PATH = tiny.ROOT / "tests" / "golden.json"
GOLDEN = json.loads(PATH.read_text()) if PATH.exists() else {}
COMMAND = "python tests/test_golden.py"
RTOL = 1e-4


def numbers(run: Run, start: checkpoint.Snapshot | None = None) -> list[dict[str, list[float]]]:
    """Of every episode, [B] each: the returns, and what was measured but for times. Nothing is written.

    The returns of a tiny policy hardly depend on what it has learned; its losses do.
    """
    *_, last = engine.episodes(run, "cpu", start)
    return [
        {"returns": entry["returns"]}
        | {name: list(values) for name, values in entry["metrics"].items() if not name.startswith("seconds")}
        for entry in last.episodes
    ]


def close(stored: list[dict[str, list[float]]]) -> list[dict]:
    """To compare with: sums are rounded differently on other processors."""
    return [{name: pytest.approx(values, rel=RTOL) for name, values in entry.items()} for entry in stored]


def version(method: str) -> int:
    return config.read_params(tiny.ROOT / "params.yaml")["methods"][method]["version"]


def stored_run(method: str) -> Run:
    """The configuration beside the numbers, so that a change of params.yaml does not touch this test."""
    stored = GOLDEN[method]["configuration"]
    where = f"tests/golden.json: {method}"
    settings = build(SETTINGS[method], stored["settings"], where)
    return build(Run, stored | {"settings": settings}, where)


@pytest.mark.parametrize("method", METHODS)
def test_numbers_change_only_with_the_version(method):
    assert method in GOLDEN, f"{method} has no golden numbers yet: run {COMMAND}"
    stored = GOLDEN[method]
    assert stored["version"] == version(method), f"the version of {method} changed: run {COMMAND}"
    assert numbers(stored_run(method)) == close(stored["numbers"]), (
        f"{method} gives other numbers: if that is meant, raise methods.{method}.version in params.yaml, so that its "
        f"results count as stale, and run {COMMAND}"
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_run_of_fewer_episodes_continues_exactly(method):
    run = stored_run(method)
    expected = numbers(run)
    for stop in range(1, run.episodes):
        fewer = replace(run, episodes=stop)
        for snapshot in engine.episodes(fewer, "cpu", None):
            content = checkpoint.dumps(fewer, snapshot)
        assert numbers(run, checkpoint.loads(run, content)) == expected


def regenerate() -> None:
    params = tiny.params()
    for method in METHODS:
        known = GOLDEN.get(method)
        if known and known["version"] == version(method):
            if numbers(stored_run(method)) != close(known["numbers"]):
                sys.exit(f"{method} gives other numbers, but is still version {version(method)}: raise it first")
            continue
        reward = "learned" if method.startswith("psrl") else "oracle"
        seeds = [0, 1] if METHODS[method].batched else [0]
        run = config.resolve(params, task="pendulum", method=method, reward=reward, noise=0.01, seeds=seeds, episodes=3)
        GOLDEN[method] = {"version": version(method), "numbers": numbers(run), "configuration": run.as_dict()}
    PATH.write_text(json.dumps({method: GOLDEN[method] for method in METHODS}, indent=1) + "\n")


if __name__ == "__main__":
    regenerate()
