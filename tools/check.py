"""All checks one after another, each shown as it runs, and one line that sums them up (`make test`)."""

import os
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "test"
# Two processes: the same on every machine. A file's tests share their fixtures, so they stay together.
PYTEST = ["pytest", "-q", "-rs", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
NBVAL = ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=300", "--nbval-kernel-startup-timeout=120"]
SMALL = {"PSRL_SCALE": "small", "PSRL_FIGURES": str(BUILD / "figures")}


def run(title: str, command: list[str], **environment: str) -> bool:
    print(f"\n== {title}", flush=True)
    start = time.perf_counter()
    code = subprocess.run(command, cwd=ROOT, env={**os.environ, "PSRL_BATCH": "1", **environment}).returncode
    print(f"-- {title}: {'ok' if code == 0 else 'FAILED'}, {time.perf_counter() - start:.0f} s", flush=True)
    return code == 0


def counts() -> dict[str, int]:
    """Passed, failed and skipped over both runs of pytest."""
    total = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for report in BUILD.glob("*.xml"):
        for suite in ElementTree.parse(report).iter("testsuite"):
            total = {key: value + int(suite.get(key, 0)) for key, value in total.items()}
    failed = total["failures"] + total["errors"]
    return {"passed": total["tests"] - failed - total["skipped"], "failed": failed, "skipped": total["skipped"]}


def main() -> int:
    start = time.perf_counter()
    BUILD.mkdir(parents=True, exist_ok=True)
    for report in BUILD.glob("*.xml"):
        report.unlink()
    notebooks = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "notebooks").glob("*.ipynb"))
    steps = {
        "lint": run("lint", ["ruff", "check", "."]),
        "format": run("format", ["ruff", "format", "--check", "."]),
        "tests": run("tests", [*PYTEST, f"--junitxml={BUILD}/tests.xml"]),
        "notebooks": run("notebooks", [*PYTEST, *NBVAL, f"--junitxml={BUILD}/notebooks.xml", *notebooks], **SMALL),
        "smoke": run("smoke", [sys.executable, "tools/smoke.py"]),
    }
    bad = [title for title, passed in steps.items() if not passed]
    found = ", ".join(f"{number} {word}" for word, number in counts().items())
    verdict = f"FAILED: {', '.join(bad)}" if bad else "lint, tests, notebooks and smoke ok"
    print(f"\n{found}; {verdict} ({(time.perf_counter() - start) / 60:.1f} min)")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
