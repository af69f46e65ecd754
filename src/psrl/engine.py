"""Running a unit of work, episode by episode, so that it can be stopped at any moment and continued exactly."""

import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path

from psrl import checkpoint
from psrl.checkpoint import CheckpointError, Diverged, Snapshot
from psrl.config import ConfigError, Run
from psrl.learner import make_learner, units
from psrl.progress import Bar

PACKAGES = ("torch", "mujoco", "numpy", "gymnasium", "stable-baselines3")
# What a learner says it spent on its actual work.
ACCOUNTED = ("seconds_train", "seconds_plan", "seconds_env", "seconds_evaluate")


def choose_device(name: str) -> str:
    """cpu or cuda, refused where it is not to be had; auto takes cuda where there is one."""
    import torch

    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"--device is {name!r}; valid: auto, cpu, cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device is 'cuda', but torch finds no GPU here; valid: auto, cpu")
    return "cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"


def use_one_thread() -> None:
    """Sums in one order: the same numbers on any number of cores. Parallelism is across units."""
    import torch

    torch.set_num_threads(1)


def machine(device: str) -> dict:
    """What a result may depend on besides its configuration."""
    import torch

    versions = {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
    gpu = torch.cuda.get_device_name() if device == "cuda" else None
    return {"device": device, "cpu": cpu_name(), "gpu": gpu, "threads": torch.get_num_threads(), "versions": versions}


def cpu_name() -> str:
    """With family and model where Linux tells them: processors of one name can differ in speed by two."""
    try:
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    except OSError:
        first = ""
    about = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}
    if "model name" not in about:
        return platform.processor() or platform.machine()
    kind = [f"{key.removeprefix('cpu ')} {about[key]}" for key in ("cpu family", "model") if key in about]
    return ", ".join([about["model name"], *kind])


def episodes(
    unit: Run, device: str, start: Snapshot | None, progress: Callable[[int], None] = lambda step: None
) -> Iterator[Snapshot]:
    """Run what is left of a unit after ``start``; a snapshot after every episode.

    The metric seconds_engine is all time but the learner's training, planning and environment steps: making and loading
    the learner before its first episode here, saving the snapshot before the others.
    """
    before = start or Snapshot()
    if len(before.episodes) >= unit.episodes:
        return
    clock, cpu_clock = time.perf_counter(), time.process_time()
    learner, here = make_learner(unit, device), machine(device)
    if before.machines and before.machines[-1]["device"] != device:
        begun = before.machines[-1]["device"]
        raise ConfigError(
            f"--device is {device!r}, but this run was begun on {begun}; valid: {begun}, or move its checkpoint "
            f"{unit.checkpoint_hash} away to start over"
        )
    if before.state is not None:
        try:
            learner.load_state_dict(before.state)
        except MemoryError:  # says nothing about the checkpoint
            raise
        except Exception as error:
            if "out of memory" in str(error):  # of a GPU
                raise
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise CheckpointError(f"method {unit.method} cannot continue from it ({reason})") from error
    done, machines = list(before.episodes), before.machines
    if here not in machines:
        machines = [*machines, here]
    while len(done) < unit.episodes:
        began = time.perf_counter()
        try:
            outcome = learner.episode(progress)
        except ValueError as error:
            if not re.search(r"positive definite|\b(nan|inf)\b", str(error)):  # psrl.blr, torch
                raise
            reason, seeds = str(error).splitlines()[0], ", ".join(map(str, unit.seeds))
            raise Diverged(
                f"{unit.task} with {unit.method}, seed {seeds}: episode {len(done) + 1} failed, {reason}; the episodes "
                "before it are saved, and other settings may keep its numbers finite"
            ) from error
        now, cpu_now = time.perf_counter(), time.process_time()
        metrics = {name: [float(value) for value in values] for name, values in outcome.metrics.items()}
        accounted = sum(metrics[name][0] for name in ACCOUNTED if name in metrics) or now - began
        metrics["seconds_engine"] = [now - clock - accounted] * len(outcome.returns)
        returns = [float(value) for value in outcome.returns]
        times = {"seconds": now - began, "wall": now - clock, "cpu": cpu_now - cpu_clock}
        done = [*done, {"returns": returns, "metrics": metrics, **times}]
        clock, cpu_clock = now, cpu_now
        yield Snapshot(learner.state_dict(), done, machines)


def saved_episodes(
    unit: Run,
    device: str,
    root: Path | None,
    start: Snapshot | None,
    progress: Callable[[int], None] = lambda step: None,
) -> Iterator[Snapshot]:
    """`episodes`, each saved before it is yielded; the lock of the unit must be held."""
    try:
        for snapshot in episodes(unit, device, start, progress):
            checkpoint.save(unit, checkpoint.dumps(unit, snapshot), root)
            yield snapshot
    except CheckpointError as error:
        checkpoint.set_aside(unit, str(error), root)
        yield from saved_episodes(unit, device, root, None, progress)


@contextmanager
def locked(parts: Iterable[Run], root: Path | None, wait: bool) -> Iterator[None]:
    """Hold the locks of several units, taken in one order: two processes that wait cannot wait for each other."""
    with ExitStack() as stack:
        for unit in sorted(parts, key=lambda unit: unit.checkpoint_hash):
            stack.enter_context(checkpoint.lock(unit, root, wait))
        yield


def run_unit(unit: Run, device: str, root: Path | None = None) -> Snapshot:
    """Run what is left of a unit in this process, with a progress bar; the lock of the unit must be held."""
    use_one_thread()
    snapshot = start = checkpoint.load(unit, root)
    with Bar(unit, start) as bar:
        for snapshot in saved_episodes(unit, device, root, start, bar.step):
            bar.finished(snapshot)
    return snapshot


def run_here(run: Run, device: str, wait: bool) -> list[tuple[Run, Snapshot]]:
    """Run all units of an experiment in this process, one after another."""
    with locked(units(run), None, wait):
        return [(unit, run_unit(unit, device)) for unit in units(run)]
