"""Numbers on tiny fixed configurations: every method's on the Pendulum, and on the other tasks those of MPC-PSRL with
the reward given, which act in all that a task brings: its physics, rewards, goals and planner. They may change only
together with a version.

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
CASES = {method: (method, "pendulum", 0.01) for method in METHODS} | {
    "psrl on cartpole": ("psrl", "cartpole", 0.01),
    "psrl on reacher": ("psrl", "reacher", 0.0),
    "psrl on pusher": ("psrl", "pusher", 0.0),
}


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


def version(case: str) -> int:
    method, *_ = CASES[case]
    return config.read_params(tiny.ROOT / "params.yaml")["methods"][method]["version"]


def stored_run(case: str) -> Run:
    """The configuration beside the numbers, so that a change of params.yaml does not touch this test."""
    stored = GOLDEN[case]["configuration"]
    where = f"tests/golden.json: {case}"
    settings = build(SETTINGS[stored["method"]], stored["settings"], where)
    return build(Run, stored | {"settings": settings}, where)


@pytest.mark.parametrize("case", CASES)
def test_numbers_change_only_with_the_version(case):
    assert case in GOLDEN, f"{case} has no golden numbers yet: run {COMMAND}"
    stored = GOLDEN[case]
    assert stored["version"] == version(case), f"the version of {stored['configuration']['method']} changed: {COMMAND}"
    assert numbers(stored_run(case)) == close(stored["numbers"]), (
        f"{case} gives other numbers: if that is meant, raise the version of every method in params.yaml whose results "
        f"change (all, if a task does), so that they count as stale, and run {COMMAND}"
    )


@pytest.mark.parametrize("case", CASES)
def test_a_run_of_fewer_episodes_continues_exactly(case):
    run = stored_run(case)
    expected = numbers(run)
    for stop in range(1, run.episodes):
        fewer = replace(run, episodes=stop)
        for snapshot in engine.episodes(fewer, "cpu", None):
            content = checkpoint.dumps(fewer, snapshot)
        assert numbers(run, checkpoint.loads(run, content)) == expected


def regenerate() -> None:
    params = tiny.params()
    for case, (method, task, noise) in CASES.items():
        known = GOLDEN.get(case)
        if known and known["version"] == version(case):
            if numbers(stored_run(case)) != close(known["numbers"]):
                sys.exit(f"{case} gives other numbers, but {method} is still version {version(case)}: raise it first")
            continue
        reward = "learned" if case in ("psrl", "psrl-eb") else "oracle"
        seeds = [0, 1] if METHODS[method].batched else [0]
        run = config.resolve(params, task=task, method=method, reward=reward, noise=noise, seeds=seeds, episodes=3)
        GOLDEN[case] = {"version": version(case), "numbers": numbers(run), "configuration": run.as_dict()}
    PATH.write_text(json.dumps({case: GOLDEN[case] for case in CASES}, indent=1) + "\n")


if __name__ == "__main__":
    regenerate()
