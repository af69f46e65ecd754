"""A checkpoint is read back exactly or refused, and one process at a time works on a unit."""

import errno
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from psrl import checkpoint, paths
from psrl.checkpoint import CheckpointError, Snapshot
from psrl.config import ConfigError, resolve

UNIT = resolve(tiny.params(), task="cartpole", method="random", seeds=[0, 1], episodes=3)
OTHER = replace(UNIT, noise=0.5)
STATE = {
    "weights": torch.arange(6.0).reshape(2, 3),
    "replay": np.arange(4, dtype=np.float32),
    "counts": [1, 2.5, None, (True, "word")],
    "torch": torch.Generator().manual_seed(1).get_state(),
    "numpy": np.random.default_rng(2).bit_generator.state,
    "scalar": np.float64(0.1),
}
EPISODE = {"returns": [1.0, 0.1 + 0.2], "metrics": {"loss": [0.5, 0.25]}, "seconds": 1.0, "wall": 1.1, "cpu": 1.2}
CONTENT = checkpoint.dumps(UNIT, Snapshot(STATE, [EPISODE], [{"device": "cpu"}]))


def test_what_is_read_is_what_was_written():
    snapshot = checkpoint.loads(UNIT, CONTENT)
    state = snapshot.state
    torch.testing.assert_close(state["weights"], STATE["weights"], rtol=0, atol=0)
    np.testing.assert_array_equal(state["replay"], STATE["replay"])
    assert state["replay"].dtype == np.float32
    assert torch.equal(state["torch"], STATE["torch"])
    assert {key: state[key] for key in ("counts", "numpy", "scalar")} == {
        key: STATE[key] for key in ("counts", "numpy", "scalar")
    }
    assert snapshot.episodes == [EPISODE]


def test_more_episodes_are_the_same_unit():
    more = replace(UNIT, episodes=30)
    assert checkpoint.loads(more, CONTENT).episodes == [EPISODE]
    assert checkpoint.folder(more) == checkpoint.folder(UNIT)


@given(st.integers(0, len(CONTENT) - 1))
@settings(max_examples=40)
def test_a_truncated_checkpoint_is_refused(length):
    with pytest.raises(CheckpointError):
        checkpoint.loads(UNIT, CONTENT[:length])


@given(st.integers(0, len(CONTENT) - 1), st.integers(1, 255))
@settings(max_examples=40)
def test_a_damaged_checkpoint_is_refused(place, flip):
    damaged = bytearray(CONTENT)
    damaged[place] ^= flip
    with pytest.raises(CheckpointError):
        checkpoint.loads(UNIT, bytes(damaged))


def test_a_foreign_checkpoint_is_refused():
    with pytest.raises(CheckpointError, match=f"belongs to configuration {UNIT.checkpoint_hash}"):
        checkpoint.loads(OTHER, CONTENT)
    with pytest.raises(CheckpointError, match="format is 999"):
        checkpoint.loads(UNIT, CONTENT.replace(b"checkpoint 1 ", b"checkpoint 999 ", 1))


def test_code_in_a_checkpoint_is_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    trapped = checkpoint.dumps(UNIT, Snapshot({"trap": Trap()}))
    with pytest.raises(CheckpointError, match="UnpicklingError"):
        checkpoint.loads(UNIT, trapped)
    assert not (tmp_path / "sprung").exists()
    pickle.loads(pickle.dumps(Trap()))  # the trap itself works
    assert (tmp_path / "sprung").exists()


def test_refused_checkpoints_are_kept(tmp_path, capsys):
    place = checkpoint.folder(UNIT, tmp_path)
    for content in (CONTENT[:-1], b"something else"):
        checkpoint.save(UNIT, content, tmp_path)
        assert checkpoint.load(UNIT, tmp_path) is None
        assert "refused, as it is" in capsys.readouterr().err
    assert not (place / "checkpoint").exists()
    assert (place / "checkpoint.1.refused").read_bytes() == CONTENT[:-1]
    (place / "checkpoint.1.refused").unlink()  # a free number is used again, a taken one never
    checkpoint.save(UNIT, b"a third", tmp_path)
    assert checkpoint.load(UNIT, tmp_path) is None
    assert (place / "checkpoint.1.refused").read_bytes() == b"a third"
    assert (place / "checkpoint.2.refused").read_bytes() == b"something else"
    checkpoint.save(UNIT, CONTENT, tmp_path)
    assert checkpoint.load(UNIT, tmp_path).episodes == [EPISODE]


@pytest.mark.parametrize(("number", "room"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EROFS, False)])
def test_to_make_room_is_the_advice_for_a_full_disk_only(number, room, tmp_path, monkeypatch):
    def fails(path, content) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(paths, "write_atomic", fails)
    with pytest.raises(checkpoint.StorageError, match=f"cannot write .*{os.strerror(number)}") as stop:
        checkpoint.save(UNIT, CONTENT, tmp_path)
    assert ("Make room" in str(stop.value)) == room


def test_checkpoints_inside_a_file_are_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"file cannot hold checkpoints: .*; valid: a folder"):
        with checkpoint.lock(UNIT, tmp_path / "file"):
            pass


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of UNIT under tmp_path."""
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); from test_checkpoint import UNIT, checkpoint\n"
        "with checkpoint.lock(UNIT, sys.argv[2]): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tiny.ROOT / "tests"), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=tiny.environment()) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_process_stops_until_the_first_is_dead(tmp_path, holder):
    with pytest.raises(checkpoint.Busy, match=f"process {holder.pid} .* is already running cartpole random"):
        with checkpoint.lock(UNIT, tmp_path):
            pass
    with checkpoint.lock(OTHER, tmp_path):
        pass  # another unit is free
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with checkpoint.lock(UNIT, tmp_path):
        pass


def test_a_second_process_can_wait(tmp_path, holder):
    entered = threading.Event()

    def wait() -> None:
        with checkpoint.lock(UNIT, tmp_path, wait=True):
            entered.set()

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.3)
    assert not entered.is_set()
    holder.kill()
    thread.join(timeout=30)
    assert entered.is_set()
