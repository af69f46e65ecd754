"""`psrl bench`: what planning, training and the posterior cost, as ratios measured within one run on one thread.

plan       share of the speed of a plain matrix product that planning reaches, and where its time goes
train      cost per network step of five networks together against one alone in plain eager torch
scaling    growth with population, horizon, iterations, and of the posterior with rows and features
posterior  adding an episode's rows against fitting all rows anew
memory     peak memory of a Pusher run with 200 episodes of data
side       two runs side by side on two cores against one
sweep      eight equal runs through Ray against one run alone
step       an environment step of every method on every task, split into acting and training (psrl/cost.py)
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from statistics import median

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from psrl.agent import MPCPSRL
from psrl.bench_engine import sweep
from psrl.blr import Posterior
from psrl.config import ConfigError, Run, read_params, resolve
from psrl.cost import step
from psrl.engine import cpu_name
from psrl.ensemble import Sampler
from psrl.features import Networks
from psrl.learner import make_learner
from psrl.model import FUSED, Perceptrons, linear
from psrl.mpc import ModelPredictiveControl
from psrl.pets import PETS

PRODUCT = 2048


def best_seconds(function: Callable[[], object], repeats: int) -> float:
    """The quickest of several calls: what else the machine does can only add."""
    function()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def against_product(call: Callable[[], object], operations: int, repeats: int = 15) -> dict[str, float]:
    """Speed of ``call`` and of a float32 product of two square matrices by the same library, taken in turn.

    The speed of the machine drifts by a tenth within a minute, so the share is the median over neighbouring pairs.
    """
    a = torch.randn(PRODUCT, PRODUCT)
    square = (lambda: linear(a, a, None)) if FUSED else (lambda: a @ a)
    pairs = []
    for _ in range(repeats + 1):
        clock = [time.perf_counter()]
        for function in (square, call):
            function()
            clock.append(time.perf_counter())
        pairs.append((2 * PRODUCT**3 / (clock[1] - clock[0]), operations / (clock[2] - clock[1])))
    product, speed = (median(column) for column in zip(*pairs[1:], strict=True))
    return {
        "plan_ms": round(1e3 * operations / speed, 1),
        "gflops": round(speed / 1e9, 1),
        "product_gflops": round(product / 1e9, 1),
        "share": round(median(mine / plain for plain, mine in pairs[1:]), 3),
    }


def ready_agent(task: str, reward: str, trials: int, method: str = "psrl", **planner: int) -> ModelPredictiveControl:
    """An agent after one short random episode and one epoch: its speed does not depend on what it knows."""
    params = read_params()
    params["tasks"][task] |= {"steps": 20, "epochs": {"dynamics": 1, "reward": 1}}
    params["tasks"][task]["planner"] |= planner
    run = resolve(params, task=task, method=method, reward=reward, seeds=list(range(trials)), episodes=2)
    agent = make_learner(run)
    agent.episode()
    agent.learn()
    return agent


def planner_call(agent: ModelPredictiveControl) -> tuple[Callable[[], object], int]:
    """One plan of all trials, and the operations of its matrix products."""
    state = agent._reset(first=False)
    mean = torch.zeros(len(state), agent.settings.planner.horizon, agent.task.action_dim)
    agent.plan(state, mean, 0)
    planner = agent.settings.planner
    per_step = sum(network.flops(planner.population * agent.settings.particles) for network in _networks(agent))
    return lambda: agent.plan(state, mean, 1), per_step * planner.horizon * planner.iterations


def _networks(agent: ModelPredictiveControl) -> list[Perceptrons | Sampler]:
    """What a plan evaluates at every step."""
    if isinstance(agent, PETS):
        return [agent.sampler]
    return [agent.sampled.dynamics, *([agent.sampled.rewards] if agent.sampled.rewards else [])]


def plan(tasks: list[str], trials: tuple[int, ...] = (1, 5)) -> list[dict]:
    """MPC-PSRL with learned reward, and PETS, which is given its reward."""
    rows = []
    for task in tasks:
        for method, reward in (("psrl", "learned"), ("pets", "oracle")):
            for count in trials if method == "psrl" else trials[:1]:
                agent = ready_agent(task, reward, count, method)
                call, operations = planner_call(agent)
                speed = against_product(call, operations)
                rows.append({"task": task, "method": method, "trials": count, **speed, **_where(call)})
    return rows


def _where(call: Callable[[], object]) -> dict[str, float]:
    """Shares of one plan's time by kind of work."""
    kinds = {
        "linear_pointwise": "layers",
        "baddbmm": "layers",
        "normal_": "random",
        "uniform_": "random",
        "erfinv": "random",
        "cat": "copies",
        "copy_": "copies",
    }
    seconds = dict.fromkeys([*kinds.values(), "rest"], 0.0)
    with profile(activities=[ProfilerActivity.CPU]) as record:
        call()
    for event in record.key_averages():
        kind = next((kinds[name] for name in kinds if name in event.key), "rest")
        seconds[kind] += event.self_cpu_time_total / 1e6
    return {f"time_{kind}": round(value / sum(seconds.values()), 3) for kind, value in seconds.items()}


def train(tasks: list[str], steps: int = 60) -> list[dict]:
    rows = []
    for task in tasks:
        run = ready_agent(task, "learned", 1).run
        together = {count: _stacked_step(run, count, steps) for count in (1, 5, 10)}
        alone = _plain_step(run, steps)
        rows.append(
            {"task": task, "plain_ms": round(1e3 * alone, 3)}
            | {f"stacked_{n}_ms_each": round(1e3 * seconds / n, 3) for n, seconds in together.items()}
            | {"ratio_of_five": round(together[5] / 5 / alone, 3)}
        )
    return rows


def _sizes(run: Run) -> tuple[list[int], int, int]:
    agent = MPCPSRL(run)
    outputs = agent.task.state_dim
    sizes = [weight.shape[1] for weight in agent.dynamics.networks.weights]
    return sizes, outputs, run.settings.batch


def _stacked_step(run: Run, count: int, steps: int) -> float:
    sizes, outputs, batch = _sizes(run)
    generators = [torch.Generator().manual_seed(i) for i in range(count)]
    networks = Networks(sizes, outputs, run.settings.network.decay, run.settings.learning_rate, generators)
    x, y = torch.randn(count, batch * steps, sizes[0]), torch.randn(count, batch * steps, outputs)
    return best_seconds(lambda: networks.fit(x, y, epochs=1, batch=batch), 5) / steps


def _plain_step(run: Run, steps: int) -> float:
    """One network the usual way: nn.Module, autograd, torch.optim.Adam as it comes."""
    sizes, outputs, batch = _sizes(run)
    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.SiLU()]
    network = nn.Sequential(*layers, nn.Linear(sizes[-1], 2 * outputs))
    low, high = nn.Parameter(torch.full((outputs,), -10.0)), nn.Parameter(torch.full((outputs,), 0.5))
    optimiser = torch.optim.Adam([*network.parameters(), low, high], lr=1e-3)
    x, y = torch.randn(batch * steps, sizes[0]), torch.randn(batch * steps, outputs)

    def epoch() -> None:
        order = torch.randperm(len(x))
        for start in range(0, len(x), batch):
            index = order[start : start + batch]
            mean, logvar = network(x[index]).chunk(2, dim=-1)
            logvar = high - nn.functional.softplus(high - logvar)
            logvar = low + nn.functional.softplus(logvar - low)
            loss = ((mean - y[index]).square() * torch.exp(-logvar) + logvar).mean() + 0.01 * (high - low).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return best_seconds(epoch, 5) / steps


def scaling(tasks: list[str]) -> list[dict]:
    rows = []
    for task in tasks:
        for name, values in {
            "population": (100, 200, 400, 800),
            "horizon": (5, 10, 20, 40),
            "iterations": (1, 2, 4, 8),
        }.items():
            for value in values:
                call, _ = planner_call(ready_agent(task, "oracle", 1, **{"elites": 10, name: value}))
                rows.append(
                    {"task": task, "quantity": f"plan, {name}", "value": value, "ms": 1e3 * best_seconds(call, 5)}
                )
    for size in (32, 64, 128, 256):
        for count in (1000, 4000, 16000):
            phi, y = torch.randn(1, count, size), torch.randn(1, count, 20)
            seconds = best_seconds(lambda phi=phi, y=y: Posterior.fit(phi, y, 1.0, 0.1), 5)
            rows.append(
                {"task": f"{size} features", "quantity": "posterior, rows", "value": count, "ms": 1e3 * seconds}
            )
    return [row | {"ms": round(row["ms"], 3)} for row in rows]


def posterior(added: int = 150) -> list[dict]:
    rows = []
    for size in (48, 54, 200):
        for count in (300, 3000, 30000):
            phi, y = torch.randn(1, count, size), torch.randn(1, count, 20)
            known = Posterior.fit(phi[:, :-added], y[:, :-added], 1.0, 0.1)
            full = best_seconds(lambda phi=phi, y=y: Posterior.fit(phi, y, 1.0, 0.1), 5)
            update = best_seconds(lambda known=known, phi=phi, y=y: known.update(phi[:, -added:], y[:, -added:]), 5)
            rows.append(
                {
                    "features": size,
                    "rows": count,
                    "added": added,
                    "full_ms": round(1e3 * full, 3),
                    "update_ms": round(1e3 * update, 3),
                    "gain": round(full / update, 1),
                }
            )
    return rows


def memory() -> list[dict]:
    """A run with the data of 200 episodes, one fit of one epoch, one plan; its own process, five trials."""
    agent = ready_agent("pusher", "learned", 5)
    rows = 200 * 150
    agent.data = {key: torch.randn(5, rows, value.shape[-1]) for key, value in agent.data.items()}
    agent.learn()
    planner_call(agent)[0]()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return [{"task": "pusher", "trials": 5, "episodes": 200, "peak_gib": round(peak, 2)}]


def side() -> list[dict]:
    """Wall-clock of the same plans in one process, then in two at once."""
    code = (
        "import torch; torch.set_num_threads(1); from psrl.bench import *; import time;"
        "call, _ = planner_call(ready_agent('reacher', 'learned', 5)); call(); s = time.perf_counter();"
        "[call() for _ in range(6)]; print(time.perf_counter() - s)"
    )

    def seconds(processes: int) -> float:
        running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(processes)]
        return max(float(process.communicate()[0]) for process in running)

    one, two = seconds(1), seconds(2)
    return [{"one_s": round(one, 2), "two_at_once_s": round(two, 2), "ratio": round(two / one, 3)}]


BENCHES = {f.__name__: f for f in (plan, train, scaling, posterior, memory, side, sweep, step)}
ARMS = ["reacher", "pusher"]
SMALL = ["cartpole", "pendulum"]
DEFAULT_TASKS = {"plan": ARMS, "train": ARMS, "scaling": ["reacher"], "sweep": ["cartpole"], "step": SMALL + ARMS}


def main(options: argparse.Namespace) -> int:
    """Run the bench ``options.what`` and print it."""
    tasks = DEFAULT_TASKS.get(options.what)
    if options.task is not None:
        valid = list(read_params()["tasks"]) if tasks else []
        if options.task not in valid:
            names = ", ".join(valid) or "none, it has no task to choose"
            raise ConfigError(f"--task is {options.task!r}; valid for bench {options.what}: {names}")
        tasks = [options.task]
    torch.set_num_threads(1)
    rows = BENCHES[options.what](tasks) if tasks else BENCHES[options.what]()
    machine = {"cpu": cpu_name(), "torch": torch.__version__, "threads": "1"}
    if options.json:
        print(json.dumps({"bench": options.what, "machine": machine, "rows": rows}, indent=1))
        return 0
    print("  ".join(f"{key}: {value}" for key, value in machine.items()))
    for row in rows:
        print("  ".join(f"{key}={value}" for key, value in row.items()))
    return 0
