"""Where a unit of work stands, on disk: written whole or not at all, checked when read, never shared by two processes.

A unit's folder is checkpoints/<hash of its configuration>. Its file `checkpoint` is one line, `psrl checkpoint <format>
<hash> <sha256 of the rest>`, and then what torch.save wrote.
"""

import errno
import fcntl
import hashlib
import io
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from psrl import paths
from psrl.config import ConfigError, Run

FORMAT = 1
MAGIC = b"psrl checkpoint "
FULL = (errno.ENOSPC, errno.EDQUOT)  # no room on the disk, or none left of one's share


class CheckpointError(ValueError):
    """A checkpoint that must not be used, and why."""


class Stop(RuntimeError):
    """A reason to stop that is nobody's mistake, in a sentence; running the same command later goes on."""


class Busy(Stop):
    """Another process works on the same unit."""


class StorageError(Stop):
    """A file could not be written; what was there before is whole."""


class Diverged(Stop):
    """A method's numbers are no longer finite, so it cannot go on."""


@dataclass
class Snapshot:
    """A unit after some episodes: enough to go on, and all results so far."""

    state: dict | None = None  # of the learner
    # one entry per episode: returns [B], metrics {name: [B]}, seconds of the episode, wall and cpu seconds all included
    episodes: list[dict] = field(default_factory=list)
    machines: list[dict] = field(default_factory=list)  # versions and hardware, one entry per kind that took part


def dumps(unit: Run, snapshot: Snapshot) -> bytes:
    import torch

    buffer = io.BytesIO()
    torch.save(vars(snapshot), buffer)
    payload = buffer.getvalue()
    digest = hashlib.sha256(payload).hexdigest()
    return MAGIC + f"{FORMAT} {unit.checkpoint_hash} {digest}\n".encode() + payload


def loads(unit: Run, content: bytes) -> Snapshot:
    """The snapshot in a checkpoint's bytes, or CheckpointError: damaged, another format, another configuration."""
    header, _, payload = content.partition(b"\n")
    words = header.removeprefix(MAGIC).decode(errors="replace").split(" ")
    if not header.startswith(MAGIC) or len(words) != 3:
        raise CheckpointError("it is not a checkpoint")
    if words[0] != str(FORMAT):
        raise CheckpointError(f"its format is {words[0]}, this version of psrl reads {FORMAT}")
    if words[1] != unit.checkpoint_hash:
        raise CheckpointError(f"it belongs to configuration {words[1]}, not to {unit.checkpoint_hash}")
    if words[2] != hashlib.sha256(payload).hexdigest():
        raise CheckpointError("it is truncated or damaged: its checksum differs")
    try:
        return Snapshot(**_read(payload))
    except MemoryError:  # says nothing about the checkpoint
        raise
    except Exception as error:
        raise CheckpointError(f"it holds what a checkpoint does not ({type(error).__name__})") from error


def _read(payload: bytes) -> dict:
    """Tensors, arrays and plain values only: reading a checkpoint runs none of its content as code."""
    import numpy as np
    import torch

    rebuild = [np.zeros(1).__reduce__()[0], np.float64(0).__reduce__()[0], np.ndarray, np.dtype]
    kinds = {type(np.dtype(code)) for code in "?bBhHiIlLqQefd"}
    with torch.serialization.safe_globals([*rebuild, *kinds]):
        return torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)


def folder(unit: Run, root: Path | None = None) -> Path:
    return Path(root or paths.CHECKPOINTS) / unit.checkpoint_hash


def write(path: Path, content: bytes | str) -> None:
    """`paths.write_atomic`, with the sentence that a full disk deserves."""
    try:
        paths.write_atomic(path, content)
    except OSError as error:
        first = "Make room" if error.errno in FULL else "Put that right"
        raise StorageError(
            f"cannot write {path}: {error.strerror}; what was there before is whole. {first} and run the same "
            "command again, it goes on from the last saved episode"
        ) from error


def save(unit: Run, content: bytes, root: Path | None = None) -> None:
    write(folder(unit, root) / "checkpoint", content)


def load(unit: Run, root: Path | None = None) -> Snapshot | None:
    """Where the unit stands; None where it has not begun, or where its checkpoint had to be set aside."""
    try:
        content = (folder(unit, root) / "checkpoint").read_bytes()
    except FileNotFoundError:
        return None
    try:
        return loads(unit, content)
    except CheckpointError as error:
        set_aside(unit, str(error), root)
        return None


def set_aside(unit: Run, reason: str, root: Path | None = None) -> None:
    """Refuse a checkpoint: keep it under another name, so that the unit starts over, and say so."""
    path = folder(unit, root) / "checkpoint"
    names = (path.with_name(f"checkpoint.{number}.refused") for number in count(1))
    refused = next(name for name in names if not name.exists())
    os.rename(path, refused)
    print(f"psrl: {path} is refused, as {reason}; kept as {refused.name}, the run starts over", file=sys.stderr)


@contextmanager
def lock(unit: Run, root: Path | None = None, wait: bool = False) -> Iterator[None]:
    """Hold a unit's folder. The kernel drops the lock when the process ends, however it ends."""
    place = folder(unit, root)
    try:
        place.mkdir(parents=True, exist_ok=True)
        file = open(place / "lock", "a+")
    except OSError as error:
        if error.errno in FULL:
            raise StorageError(f"cannot lock {place}: {error.strerror}; make room first") from error
        raise ConfigError(
            f"{place.parent} cannot hold checkpoints: {error.strerror}; valid: a folder one may write to"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            running = f"{holder} is already running {unit.task} {unit.method} ({place})"
            if not wait:
                raise Busy(f"{running}; wait for it with --wait, or come back when it is done") from None
            print(f"psrl: {running}; waiting for it", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        for leftover in place.glob(".*.part"):  # of a process killed while it wrote
            leftover.unlink(missing_ok=True)
        yield
