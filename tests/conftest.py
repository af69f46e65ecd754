"""Every test runs this repository's package, on one thread, as the pipeline does."""

import os
import signal
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and torch are imported
os.environ["PSRL_BATCH"] = "1"

import hypothesis
import torch

import psrl

ROOT = Path(__file__).resolve().parent.parent

torch.set_num_threads(1)
hypothesis.settings.register_profile("psrl", deadline=None, derandomize=True)  # no clock, the same examples every time
hypothesis.settings.load_profile("psrl")
# A shell starts jobs in the background with this signal ignored, and children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart() -> None:
    # An editable install of another clone would be tested silently instead of this one.
    if Path(psrl.__file__).resolve().parent != ROOT / "src" / "psrl":
        pytest.exit(f"psrl is imported from {psrl.__file__}, not from {ROOT}; run `make setup` here", returncode=3)
