"""All experiments of params.yaml that are missing or stale, in parallel; results are written as each is complete."""

import os
import traceback
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from psrl import checkpoint, results
from psrl.config import ConfigError, Run
from psrl.learner import units
from psrl.pool import Event
from psrl.progress import Line, duration


def main(runs: dict[str, Run], dry: bool, storage: Path | None, workers: int | None, device: str, wait: bool) -> int:
    """`psrl sweep`; the exit code says whether all experiments selected have their results now."""
    stale = {name: run for name, run in runs.items() if not results.is_current(results.Files.named(name), run)}
    print(f"{len(runs) - len(stale)} of {len(runs)} experiments are current")
    if dry:
        for name, run in stale.items():
            state = "stale" if results.Files.named(name).provenance.exists() else "missing"
            seeds = ", ".join(map(str, run.seeds))
            print(f"{name}: {state}; seeds {seeds}; episodes {run.episodes}; units of work {len(units(run))}")
        return 0
    if not stale:
        return 0
    for name, run in stale.items():
        results.Files.named(name).check()
        if more := results.longer(results.Files.named(name), run):
            raise ConfigError(
                f"experiment {name!r} asks for {run.episodes} episodes and has results of {more}, which would be cut; "
                f"valid: {more} or more, or move {results.Files.named(name).runs} away first"
            )
    sweep = Sweep(stale, storage and storage.resolve())
    sweep.go(workers, device, wait)
    for job in sweep.jobs.values():
        if job.error:
            print(f"{job.label}: {job.error}")
    missing = [name for name in stale if name not in sweep.written]
    if missing:
        print(f"{len(missing)} of {len(stale)} experiments have no results: {', '.join(missing)}")
    return 1 if missing else 0


def refuse_to_replace(published: dict[str, Run], runs: dict[str, Run]) -> None:
    """Published results may get longer, no more: a profile that asks for something else would write over them."""
    for name, run in runs.items():
        before = published.get(name, run)
        longer = replace(before, episodes=run.episodes) == run and run.episodes >= before.episodes
        if not longer and results.is_current(results.Files.named(name), before):
            raise ConfigError(
                f"experiment {name!r} has published results of {before.episodes} episodes, which this profile would "
                "replace by others; valid: a profile that adds experiments, or episodes to them"
            )


def select(patterns: list[str], runs: dict[str, Run]) -> dict[str, Run]:
    """The experiments named or matched (`*` and `?` as in a shell); all where nothing is named."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in runs):
            raise ConfigError(
                f"experiment {pattern!r} is unknown; valid: {', '.join(runs)}, or a pattern such as '*-psrl'"
            )
    return {
        name: run
        for name, run in runs.items()
        if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    }


@dataclass
class Job:
    """A unit and the experiments that need it; two that share one (more episodes, other seeds) compute it once."""

    unit: Run
    names: list[str]
    snapshot: checkpoint.Snapshot | None = None
    running: bool = False
    error: str | None = None

    @property
    def done(self) -> int:
        return len(self.snapshot.episodes) if self.snapshot else 0

    @property
    def left(self) -> int:
        return max(0, self.unit.episodes - self.done)

    @property
    def label(self) -> str:
        seed = f" seed {self.unit.seeds[0]}" if len(self.unit.seeds) == 1 else ""
        return f"{self.names[0]}{seed}"


@dataclass
class Sweep:
    """The stale experiments, their jobs, and what became of them."""

    runs: dict[str, Run]
    storage: Path | None = None
    jobs: dict[str, Job] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, run in self.runs.items():
            for unit in units(run):
                job = self.jobs.setdefault(unit.checkpoint_hash, Job(unit, []))
                job.names.append(name)
                if unit.episodes > job.unit.episodes:
                    job.unit = unit

    def go(self, workers: int | None, device: str, wait: bool) -> None:
        """Compute what is left, here where it is one unit at a time, else on Ray."""
        from psrl import engine, pool

        cluster = "RAY_ADDRESS" in os.environ
        if not cluster:
            device = engine.choose_device(device)
        elif device not in ("cpu", "cuda"):
            raise ConfigError(f"--device is {device!r}; valid on a cluster: cpu, cuda")
        line = Line()
        with ExitStack() as locks:
            for job in sorted(self.jobs.values(), key=lambda job: job.unit.checkpoint_hash):
                try:
                    locks.enter_context(checkpoint.lock(job.unit, self.storage, wait))
                    job.snapshot = checkpoint.load(job.unit, self.storage)
                except checkpoint.Busy as busy:
                    job.error = str(busy)
            self.write_complete(line)
            todo = [job for job in self.jobs.values() if job.left and not job.error]
            if todo and (cluster or min(len(todo), workers or pool.cores()) > 1):
                self._on_ray(todo, device, workers, line)
            else:
                self._here(todo, device, line)

    def _here(self, todo: list[Job], device: str, line: Line) -> None:
        from psrl import engine

        for job in todo:
            try:
                job.snapshot = engine.run_unit(job.unit, device, self.storage)
            except checkpoint.StorageError:
                raise
            except Exception as error:
                self._failed(job, error, line)
            self.write_complete(line)

    def _on_ray(self, todo: list[Job], device: str, workers: int | None, line: Line) -> None:
        from psrl import pool

        line.update("starting Ray")
        with pool.session(workers) as seconds:
            line.say(f"Ray is ready after {seconds:.0f} s; {len(todo)} units of work")
            for event in pool.run([(job.unit, job.snapshot) for job in todo], device, workers, self.storage):
                if event:
                    self._take(event, line)
                line.update(self.status(pool.room(device, workers)))
            line.clear()

    def _take(self, event: Event, line: Line) -> None:
        job = self.jobs[event.unit.checkpoint_hash]
        job.running = True
        if event.content:
            checkpoint.save(job.unit, event.content, self.storage)
        if event.snapshot:
            job.snapshot = replace(event.snapshot, state=None)
            job.running = job.left > 0
            self.write_complete(line)
        if event.died:
            line.say(f"{job.label}: {event.died}; it goes on after episode {job.done}")
        if event.refused:
            checkpoint.set_aside(job.unit, event.refused, self.storage)
            job.snapshot = None
        if event.failed:
            job.running = False
            self._failed(job, event.failed, line)

    def _failed(self, job: Job, error: Exception, line: Line) -> None:
        """Remember the error, keep its traceback, and let the others go on."""
        path = checkpoint.folder(job.unit, self.storage) / "error.txt"
        checkpoint.write(path, "".join(traceback.format_exception(error)))
        cause = getattr(error, "cause", None) or error
        job.error = f"{type(cause).__name__}: {cause} (in full in {path})"
        line.say(f"{job.label} failed: {job.error}")

    def write_complete(self, line: Line) -> None:
        """Write the results of every experiment whose units are all done."""
        for name, run in self.runs.items():
            parts = [(unit, self.jobs[unit.checkpoint_hash].snapshot) for unit in units(run)]
            complete = all(part and len(part.episodes) >= run.episodes for _, part in parts)
            if complete and name not in self.written:
                results.write(results.Files.named(name), run, parts)
                self.written.append(name)
                line.say(f"{name}: done")

    def status(self, workers: int) -> str:
        """What is running, done and left, with an estimate: a job's last episode tells what its next ones take."""
        jobs = self.jobs.values()
        running = [f"{job.label} {job.done}/{job.unit.episodes}" for job in jobs if job.running]
        left = sum(not job.running and job.left > 0 and not job.error for job in jobs)
        text = f"{len(self.written)}/{len(self.runs)} experiments done, {left} units waiting"
        seconds = {id(job): job.snapshot.episodes[-1]["wall"] for job in jobs if job.done > 1}
        if seconds:
            usual = sum(seconds.values()) / len(seconds)
            each = [job.left * seconds.get(id(job), usual) for job in jobs if not job.error]
            text += f", about {duration(max([sum(each) / workers, *each]))} left"
        return f"{text}; running {', '.join(running) or 'nothing'}"
