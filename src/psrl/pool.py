"""Units of work on Ray: embedded on this machine, or on the cluster at RAY_ADDRESS.

No shared file system is assumed. A worker is a generator that yields a unit's checkpoint after every episode; the
driver keeps it, and hands it to another worker should this one die.
"""

import logging
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlparse

from psrl import checkpoint, engine
from psrl.checkpoint import CheckpointError, Snapshot, Stop
from psrl.config import ConfigError, Run

TRIES = 3  # of starting Ray, and of an episode whose worker dies each time
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # leaves CUDA_VISIBLE_DEVICES alone, and is quiet about it
    "RAY_worker_niceness": "0",  # workers keep the priority of the command
    "OMP_NUM_THREADS": "1",
}
QUIET = {"logging_level": logging.ERROR, "log_to_driver": False}


@dataclass(frozen=True)
class Event:
    """Something that happened to a unit: it was begun, or what the field that is set says."""

    unit: Run
    snapshot: Snapshot | None = None  # an episode is finished
    content: bytes | None = None  # the same as a checkpoint, where the worker has not stored it itself
    died: str | None = None  # its worker is gone; it is begun again from the last checkpoint
    refused: str | None = None  # it cannot go on from its checkpoint; it is begun again from nothing
    failed: Exception | None = None  # it raised, or its workers die again and again: it is given up


@contextmanager
def session(workers: int | None) -> Iterator[float]:
    """Connect to the cluster at RAY_ADDRESS, or start Ray here on the loopback interface; the seconds it took."""
    began = time.monotonic()
    address = os.environ.get("RAY_ADDRESS")
    if address and address.startswith("ray://"):
        raise ConfigError(
            f"RAY_ADDRESS is {address!r}; valid: host:port as `ray start --head` prints it, on a machine of the cluster"
        )
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if not address or urlparse(f"//{address}").hostname in ("127.0.0.1", "localhost"):
        # Ray reads this when it is imported: off, it takes 127.0.0.1 as the address of this machine, here on any system
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    with light_imports():
        import ray

        try:
            _connect(address) if address else _start_here(workers)
            yield time.monotonic() - began
        finally:
            ray.shutdown()


@contextmanager
def light_imports() -> Iterator[None]:
    """Let Ray's processes start in a third of the time.

    A Ray node is seven Python processes; each imports jsonschema, and that builds a grammar of internationalised
    addresses for 1.7 of 2.3 s where it finds rfc3987_syntax, which comes with Jupyter. A module of that name that
    cannot be imported leaves the grammar out. It matters on a busy machine: a node not up within 15 s gives up.
    """
    name, before = "rfc3987_syntax", os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, f"{name}.py").write_text('raise ImportError("left out")\n')
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *([before] if before else [])])
        sys.path.insert(0, folder)
        try:
            yield
        finally:
            sys.path.remove(folder)
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before


def _connect(address: str) -> None:
    import ray

    try:
        if place := re.fullmatch(r"(?:ray://)?([\w.-]+):(\d+)", address):  # Ray would knock for minutes
            socket.create_connection((place[1], int(place[2])), timeout=10).close()
        ray.init(address=address, **QUIET)
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        raise ConfigError(f"RAY_ADDRESS is {address!r}, but no cluster answers there: {error}") from None


def cores() -> int:
    """Those that this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _start_here(workers: int | None) -> None:
    import ray

    for left in reversed(range(TRIES)):
        try:
            ray.init(
                address="local",
                num_cpus=workers or cores(),
                include_dashboard=False,
                object_store_memory=512 * 2**20,
                _node_ip_address="127.0.0.1",
                **QUIET,
            )
            return
        except Exception as error:  # Ray raises this very class; the machine may have been busy for a moment
            ray.shutdown()
            if not left:
                reason = f"Ray did not start here in {TRIES} tries ({error})"
                raise Stop(f"{reason}; when the machine is less busy it may, --workers 1 does without it") from error


def room(device: str, workers: int | None) -> int:
    """How many units may run at once: as asked for, else one per core or GPU that Ray has now."""
    import ray

    return workers or max(1, int(ray.cluster_resources().get("GPU" if device == "cuda" else "CPU", 1)))


def run(
    units: list[tuple[Run, Snapshot | None]], device: str, workers: int | None, storage: Path | None
) -> Iterator[Event | None]:
    """Run units to their end, as many at once as there is room for; their events, and None once a second in between."""
    import ray

    waiting = [(unit, None if storage or not at else checkpoint.dumps(unit, at)) for unit, at in units]
    running: dict = {}  # the stream of a worker's checkpoints -> its unit and the last checkpoint
    tries: dict[Run, int] = {}
    while waiting or running:
        while waiting and len(running) < room(device, workers):
            unit, content = waiting.pop(0)
            share = {"num_cpus": 1, "num_gpus": _gpu_share(workers) if device == "cuda" else 0}
            stream = ray.remote(_work).options(max_retries=0, **share).remote(unit, content, device, storage)
            running[stream] = (unit, content)
            yield Event(unit)
        ready, _ = ray.wait(list(running), num_returns=1, timeout=1.0)
        if not ready:
            yield None
        for stream in ready:
            unit, content = running.pop(stream)
            try:
                fresh = ray.get(next(stream))
            except StopIteration:
                continue
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, CheckpointError) and content is not None:
                    waiting.insert(0, (unit, None))
                    yield Event(unit, refused=str(error.cause))
                else:
                    yield Event(unit, failed=error)
                continue
            except ray.exceptions.RayError as error:
                tries[unit] = tries.get(unit, 1) + 1
                if tries[unit] > TRIES:
                    yield Event(unit, failed=error)
                else:
                    waiting.insert(0, (unit, content))
                    yield Event(unit, died=f"its worker died ({type(error).__name__}), try {tries[unit]} of {TRIES}")
                continue
            tries.pop(unit, None)
            running[stream] = (unit, None if storage else fresh)
            yield Event(unit, checkpoint.loads(unit, fresh), None if storage else fresh)


def _gpu_share(workers: int | None) -> float:
    import ray

    gpus = ray.cluster_resources().get("GPU", 0)
    if not gpus:
        raise ConfigError("--device is 'cuda', but Ray finds no GPU; valid: cpu")
    return min(1.0, gpus / workers) if workers else 1.0


def _work(unit: Run, content: bytes | None, device: str, storage: Path | None) -> Iterator[bytes]:
    """In a worker: go on from ``content``, or from what is in ``storage``; a checkpoint after every episode."""
    engine.use_one_thread()
    if storage:
        for snapshot in engine.saved_episodes(unit, device, storage, checkpoint.load(unit, storage)):
            yield checkpoint.dumps(unit, replace(snapshot, state=None))
    else:
        start = checkpoint.loads(unit, content) if content else None
        for snapshot in engine.episodes(unit, device, start):
            yield checkpoint.dumps(unit, snapshot)
