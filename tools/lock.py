"""Resolve the ranges of pyproject.toml: exact versions into requirements.lock and environment.yml (`make lock`)."""

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What a GPU build of torch brings along. It pins these itself, and other machines have no use for them.
GPU = ("nvidia-", "cuda-", "triton")
NOTE = "# Written by `make lock` from the ranges in pyproject.toml (Python 3.11); a test fails when they disagree.\n"


def resolve(project: dict) -> dict[str, str]:
    """Name -> version of everything that the package and all its extras need, the package itself excepted."""
    extras = ",".join(project["optional-dependencies"])
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        subprocess.run([*command, "--report", report, f"{ROOT}[{extras}]"], check=True)
        found = [item["metadata"] for item in json.loads(report.read_text())["install"]]
    versions = {item["name"].lower().replace("_", "-"): item["version"].partition("+")[0] for item in found}
    return {n: versions[n] for n in sorted(versions) if n != project["name"] and not n.startswith(GPU)}


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    print("resolving, about two minutes ...", flush=True)
    pins = [f"{name}=={version}" for name, version in resolve(project).items()]
    (ROOT / "requirements.lock").write_text(NOTE + "".join(f"{pin}\n" for pin in pins))
    head = f"name: {project['name']}\nchannels: [conda-forge]\ndependencies:\n  - python=3.11\n  - pip\n  - pip:\n"
    (ROOT / "environment.yml").write_text(NOTE + head + "".join(f"      - {pin}\n" for pin in [*pins, "-e ."]))
    print(f"{len(pins)} pins in requirements.lock and environment.yml")


if __name__ == "__main__":
    main()
