"""The whole pipeline at toy scale in a copy under build/smoke, committed results untouched (`make smoke`)."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import yaml

from psrl.config import apply_profile, read_params

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "smoke"


def copy() -> None:
    """The tracked files as they are now, without anything the pipeline makes, and with the toy parameters."""
    shutil.rmtree(COPY, ignore_errors=True)
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in tracked.stdout.split("\0"):
        made = name.startswith(("results/", "figures/")) or name.endswith(".ipynb") or name == "dvc.lock"
        if name and not made and (ROOT / name).is_file():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, COPY / name)
    profile = yaml.safe_load((ROOT / "profiles" / "smoke.yaml").read_text())
    params = apply_profile(read_params(ROOT / "params.yaml"), profile)
    (COPY / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))


def run(*command: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PSRL_")}
    environment |= {"PSRL_SCALE": "small", "PSRL_TOY": "1", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, cwd=COPY, env=environment)
    if result.returncode:
        sys.exit(f"smoke: `{' '.join(command)}` failed in build/smoke")


def main() -> None:
    start = time.perf_counter()
    copy()
    run("git", "init", "--quiet")
    run("psrl", "sweep")  # all experiments side by side; their stages then find the results current
    run("dvc", "repro")
    experiments = len(read_params(COPY / "params.yaml")["experiments"])
    notebooks, figures = len(list(COPY.glob("notebooks/*.ipynb"))), len(list(COPY.glob("figures/*.svg")))
    seconds = time.perf_counter() - start
    print(f"smoke: {experiments} experiments, {notebooks} notebooks, {figures} figures in {seconds:.0f} s")


if __name__ == "__main__":
    main()
