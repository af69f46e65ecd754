"""What `make repro` found: each figure, table and notebook against the committed one, by bytes, then by value.

Another processor may change last digits. So where the bytes differ the numbers and the points of drawings are compared,
and the report says which of the three it found: identical, same within tolerance, different.
"""

import base64
import csv
import io
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image

from psrl import paths
from psrl.config import ConfigError

RELATIVE = 1e-6  # of a number, or one unit in the last digit printed, whichever is more; whole numbers are exact
POINTS = 0.1  # of a coordinate in a drawing, 1/72 inch each
LEVELS = 1.0  # of a pixel on average, out of 255
TOLERANCE = f"numbers to {RELATIVE:g} or the last digit, drawings to {POINTS:g} pt, pixels to {LEVELS:g} of 255"

TIMES = "seconds"  # how columns and metrics begin that no two runs share
FOLDERS = ("notebooks", "figures", "results")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?(?![\w.]*[A-Za-z_])")
EMBEDDED = re.compile(r"data:image/(svg\+xml|png);base64,([A-Za-z0-9+/=]+)")


def compare(name: str, old: bytes, new: bytes) -> str | None:
    """None where ``new`` says the same as ``old`` within tolerance, else what differs, in a few words."""
    if old == new:
        return None
    kind = PurePosixPath(name).suffix
    if kind == ".png":
        return _pixels(old, new)
    try:
        before, after = old.decode(), new.decode()
    except UnicodeDecodeError:
        return "other bytes"
    if kind == ".svg":
        return _drawing(before, after)
    if kind == ".ipynb":
        return _notebook(json.loads(before), json.loads(after))
    if kind == ".csv":
        before, after = _untimed(before), _untimed(after)
    return _text(before, after)


def _text(old: str, new: str, close: Callable[[str, str], bool] | None = None) -> str | None:
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return "other words"
    for one, other in zip(NUMBER.findall(old), NUMBER.findall(new), strict=True):
        if one != other and not (close or _close)(one, other):
            return f"{one} became {other}"
    return None


def _close(old: str, new: str) -> bool:
    if "." not in old and "e" not in old.lower():
        return False
    digits = len(old.lower().partition("e")[0].partition(".")[2])
    exponent = int(old.lower().partition("e")[2] or 0)
    unit = 10.0 ** (exponent - digits)
    return abs(float(old) - float(new)) <= max(RELATIVE * abs(float(old)), 1.001 * unit if digits else 0.0)


def _drawing(old: str, new: str) -> str | None:
    return _text(_named(old), _named(new), lambda one, other: abs(float(one) - float(other)) <= POINTS)


def _named(svg: str) -> str:
    """Matplotlib names shapes by a hash of their points, so one last digit renames them: number them instead."""
    order = {name: f"shape-{i}" for i, name in enumerate(dict.fromkeys(re.findall(r'\bid="([^"]+)"', svg)))}
    return re.sub(r'(?<=id=")[^"]+|(?<=#)[\w.-]+(?=["\)])', lambda match: order.get(match[0], match[0]), svg)


def _pixels(old: bytes, new: bytes) -> str | None:
    before, after = (np.asarray(Image.open(io.BytesIO(image)).convert("RGBA"), float) for image in (old, new))
    if before.shape != after.shape:
        return "another size"
    difference = np.abs(before - after).mean()
    return None if difference <= LEVELS else f"pixels differ by {difference:.1f} levels"


def _notebook(old: dict, new: dict) -> str | None:
    if [cell["source"] for cell in old["cells"]] != [cell["source"] for cell in new["cells"]]:
        return "other cells"
    for number, (before, after) in enumerate(zip(old["cells"], new["cells"], strict=True), 1):
        one, other = (list(_shown(cell)) for cell in (before, after))
        if [kind for kind, _ in one] != [kind for kind, _ in other]:
            return f"cell {number} shows other things"
        for (kind, was), (_, now) in zip(one, other, strict=True):
            reason = compare(f"output.{kind}", was, now)
            if reason:
                return f"cell {number}: {reason}"
    return None


def _shown(cell: dict):
    """(kind, bytes) of everything a cell shows, pictures inside HTML included."""
    for output in cell.get("outputs", []):
        for kind, content in (output.get("data") or {"text/txt": output.get("text", "")}).items():
            text = content if isinstance(content, str) else "".join(map(str, content))
            if kind == "image/png":
                yield "png", base64.b64decode(text)
                continue
            for inner, picture in EMBEDDED.findall(text):
                yield inner.removesuffix("+xml"), base64.b64decode(picture)
            yield "svg" if kind == "image/svg+xml" else "txt", EMBEDDED.sub("", text).encode()


def _untimed(table: str) -> str:
    rows = list(csv.reader(io.StringIO(table)))
    header = rows[0] if rows else []
    kept = [i for i, column in enumerate(header) if not column.startswith(TIMES)]
    timed = header.index("metric") if "metric" in header else None
    rows = [row for row in rows if timed is None or not row[timed].startswith(TIMES)]
    return "\n".join(",".join(row[i] for i in kept if i < len(row)) for row in rows)


def _git(*arguments: str) -> bytes:
    try:
        return subprocess.run(["git", *arguments], cwd=paths.ROOT, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", None) or str(error).encode()).decode(errors="replace").split("\n")[0]
        raise ConfigError(f"{paths.ROOT} has no commit to compare with ({said}); valid: a clone, with git") from None


def _files(*arguments: str) -> set[str]:
    found = _git(*arguments, "-z", "--", *FOLDERS).decode().split("\0")
    return {name for name in found if name and _published(name)}


def _published(name: str) -> bool:
    """Notebooks with outputs, figures and tables; provenance tells of the machine and is bound to differ."""
    return name.endswith(".ipynb") if name.startswith("notebooks/") else "/provenance/" not in name


def verdicts() -> dict[str, str]:
    """File -> "identical", "within tolerance", or what differs from the commit."""
    committed = _files("ls-tree", "-r", "--name-only", "HEAD")
    changed = _files("diff", "--name-only", "--no-renames", "HEAD")
    found = {name: "identical" for name in committed - changed}
    for name in sorted(changed & committed):
        path = paths.ROOT / name
        reason = compare(name, _git("show", f"HEAD:{name}"), path.read_bytes()) if path.is_file() else "is missing"
        found[name] = reason or "within tolerance"
    new = changed | _files("ls-files", "--others", "--exclude-standard")
    found |= {name: "is not committed" for name in new - committed}
    return dict(sorted(found.items()))


def main(since: Path | None = None) -> int:
    """Print the report; 1 where something differs. Only files newer than ``since`` count as regenerated."""
    try:
        start = since.stat().st_mtime if since else 0.0
    except OSError as error:
        raise ConfigError(f"--since is {str(since)!r}: {error.strerror}; valid: a file that is there") from None
    found = verdicts()
    fresh = {n for n in found if (paths.ROOT / n).is_file() and (paths.ROOT / n).stat().st_mtime >= start}
    print(f"\nRegenerated, compared with the commit ({TOLERANCE}):")
    for title, prefix in (("notebooks", "notebooks/"), ("figures", "figures/"), ("tables", "results/")):
        inside = [name for name in found if name.startswith(prefix)]
        same = [PurePosixPath(name).stem for name in inside if name in fresh and found[name] == "identical"]
        print(f"  {title}: {len(same)} identical{': ' if same else ''}{', '.join(same)}")
        for name in inside:
            if found[name] != "identical":
                print(f"    {name}: {found[name]}")
        kept = [name for name in inside if name not in fresh and found[name] == "identical"]
        if kept:
            print(f"    {len(kept)} kept as committed")
    verdict = list(found.values())
    identical, close = verdict.count("identical"), verdict.count("within tolerance")
    differ = len(verdict) - identical - close
    print(f"{identical} identical, {close} within tolerance, {differ} differ")
    return 1 if differ else 0
