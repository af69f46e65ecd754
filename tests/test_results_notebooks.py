"""The three notebooks of results run, and tell the truth, whatever is published."""

import os
import random
import shutil
import subprocess
import sys

import pytest
import synthetic
from conftest import ROOT

RUN = """
import runpy, sys, matplotlib
matplotlib.use("Agg")
for name in sys.argv[1:]:
    print("==", name)
    runpy.run_path(name)
"""


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_notebooks_of_results_run_with_any_subset(tmp_path, share):
    """As scripts, on invented results of a random subset: nothing may depend on which experiments are there."""
    everything = list(synthetic.complete()["experiments"])
    chosen = random.Random(7).sample(everything, int(share * len(everything))) or ["pusher-random"]
    synthetic.repository(tmp_path, chosen)
    for name in ("films", "bench"):  # they are no experiments
        shutil.copytree(ROOT / "results" / name, tmp_path / "results" / name)
    shutil.copy(ROOT / "results" / "authors.csv", tmp_path / "results")
    names = ["11_experiments", "12_convergence", "13_does_it_reproduce"]
    scripts = [str(ROOT / "notebooks" / f"{name}.py") for name in names]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PSRL_")}
    environment = kept | {"PSRL_BATCH": "1", "PSRL_SCALE": "small", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", "-c", RUN, *scripts]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    assert f"published: {len(chosen)} experiments" in result.stdout
    figures = sorted(file.stem[:2] for file in (tmp_path / "figures").glob("*.svg"))
    assert (figures.count("11"), figures.count("12"), figures.count("13")) == (12, 5, 1)
    assert "not yet run" in (tmp_path / "results" / "tables" / "convergence.md").read_text()
