"""The whole pipeline at toy scale in a copy under build/smoke, committed results untouched (`make smoke`).

The notebooks are executed twice, in two folders side by side, and must give the same bytes.
"""

import filecmp
import os
import shutil
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import yaml

from psrl.config import apply_profile, read_params

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "smoke"
AGAIN = ROOT / "build" / "smoke-again"
STARTED: list[subprocess.Popen] = []


def copy() -> None:
    """The tracked files as they are now, without anything the pipeline makes, and with the toy parameters.

    Measured times (results/bench), known levels (results/levels) and the authors' logs are inputs: they have no toy
    size.
    """
    for folder in (COPY, AGAIN):
        shutil.rmtree(folder, ignore_errors=True)
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in tracked.stdout.split("\0"):
        made = name.startswith(("results/", "figures/")) or name.endswith(".ipynb") or name == "dvc.lock"
        made &= not name.startswith(("results/bench/", "results/levels/", "results/authors.csv"))
        if name and not made and (ROOT / name).is_file():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, COPY / name)
    params = read_params(ROOT / "params.yaml")
    present = {(values["task"], values["method"]) for values in params["experiments"].values()}
    for task, method in product(params["tasks"], params["methods"]):
        if (task, method) not in present:  # not published, but to be seen working from end to end
            params["experiments"][f"toy-{task}-{method}"] = {"task": task, "method": method}
    params = apply_profile(params, yaml.safe_load((ROOT / "profiles" / "smoke.yaml").read_text()))
    (COPY / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))


def start(*command: str, folder: Path = COPY, output: int | None = None) -> subprocess.Popen:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PSRL_")}
    environment |= {"PSRL_SCALE": "small", "PSRL_TOY": "1", "OMP_NUM_THREADS": "1"}
    STARTED.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=output))
    return STARTED[-1]


def finish(process: subprocess.Popen) -> None:
    if process.wait():
        for other in STARTED:
            other.terminate()
        sys.exit(f"smoke: `{' '.join(process.args)}` failed in build/smoke")


def made(folder: Path) -> dict[str, Path]:
    """What notebooks make: themselves, figures and tables."""
    patterns = ("notebooks/*.ipynb", "figures/*", "results/tables/*")
    return {str(file.relative_to(folder)): file for pattern in patterns for file in folder.glob(pattern)}


def main() -> None:
    begin = time.perf_counter()
    copy()
    experiments = read_params(COPY / "params.yaml")["experiments"]
    finish(start("git", "init", "--quiet"))
    studies = start("dvc", "repro", "theory", "filmstrip")
    # One process for all experiments, one for all films, one for all notebooks: at this size quicker than one for each.
    # A stage proves that the pipeline then finds its results current; what was made is recorded as it is.
    finish(start("psrl", "sweep", "--workers", "1"))
    finish(start(sys.executable, "-m", "psrl.film"))
    finish(studies)
    shutil.copytree(COPY, AGAIN)
    both = [start("psrl", "notebook"), start("psrl", "notebook", folder=AGAIN, output=subprocess.DEVNULL)]
    finish(start("dvc", "repro", "--force", "--single-item", f"train@{next(iter(experiments))}"))
    for notebooks in both:
        finish(notebooks)
    finish(start("dvc", "commit", "--force", "--quiet"))
    if start("dvc", "status", "--quiet").wait():
        sys.exit("smoke: everything has been made, and `dvc status` in build/smoke is not up to date")
    first, again = made(COPY), made(AGAIN)
    unstable = [
        n for n in first | again if n not in first or n not in again or not filecmp.cmp(first[n], again[n], False)
    ]
    if unstable:
        sys.exit(f"smoke: executed twice, these differ: {', '.join(sorted(unstable))}")
    kinds = [sum(name.startswith(kind) for name in first) for kind in ("notebooks", "figures")]
    print(
        f"smoke: {len(experiments)} experiments, {kinds[0]} notebooks, {kinds[1]} figures, the same bytes twice, "
        f"{time.perf_counter() - begin:.0f} s"
    )


if __name__ == "__main__":
    main()
