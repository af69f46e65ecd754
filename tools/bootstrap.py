"""Create .venv with the locked versions (`make setup`). Runs on the system's Python, with its standard library only."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOG = ROOT / "build" / "setup.log"
NEEDED = (3, 11)
# In JupyterLab a double click on a .py opens it as the notebook it is; jupytext provides the viewer.
LAB = {"@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"python": "Jupytext Notebook"}}}


def check_python(version, executable):
    """Exit with one sentence where this Python is too old."""
    if tuple(version[:2]) < NEEDED:
        found = ".".join(map(str, version[:3]))
        sys.exit(
            "Python {}.{} or newer is needed and {} is {}: install one, or name it with "
            "`make setup PYTHON=/path/to/python3.11`.".format(*NEEDED, executable, found)
        )


def run(command, total=0):
    """Run quietly with its output in the log; count the packages that pip names. On failure show the log's end."""
    shown = sys.stderr.isatty()
    seen, tail = 0, []
    with LOG.open("a") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in process.stdout:
            log.write(line)
            tail = [*tail[-11:], line]
            if total and line.startswith(("Collecting ", "Requirement already satisfied: ")):
                seen = min(seen + 1, total)
                if shown:
                    print(f"\r  {seen} of {total} packages", end="", file=sys.stderr, flush=True)
            elif shown and line.startswith("Installing collected packages"):
                print(f"\r  {total} packages found, unpacking ...", end="", file=sys.stderr, flush=True)
    if shown and total:
        print("\r" + 50 * " " + "\r", end="", file=sys.stderr)
    if process.wait():
        sys.exit("".join(tail) + f"Set-up failed: {' '.join(map(str, command))} (all of its output: {LOG})")


def main():
    check_python(sys.version_info, sys.executable)
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_text("")
    lock = ROOT / "requirements.lock"
    pins = [line for line in lock.read_text().splitlines() if "==" in line]
    print(f"Installing {len(pins)} pinned packages into .venv, a few minutes the first time ...", flush=True)
    run([sys.executable, "-m", "venv", VENV])
    pip = [VENV / "bin" / "python", "-m", "pip", "install", "--no-compile", "--progress-bar=off"]
    # The lock is complete where it was made, and pip is twice as quick without resolving it. Elsewhere (a build of
    # torch for GPUs, macOS) something may be missing; then pip looks for it.
    run([*pip, "--no-deps", "-r", lock], total=len(pins))
    if subprocess.run([VENV / "bin" / "python", "-m", "pip", "check"], capture_output=True, cwd=ROOT).returncode:
        run([*pip, "-r", lock], total=len(pins))
    run([*pip, "--no-deps", "--no-build-isolation", "-e", ROOT])
    settings = VENV / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps(LAB))
    (VENV / ".ready").touch()


if __name__ == "__main__":
    main()
