"""Build the HTML book of all notebooks in build/book (`make book`): gather its pages in build/book-source, run Sphinx.

Sphinx wants all pages in one folder. Gathered there, notebooks, README and figures keep their paths to each other.
"""

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "build" / "book-source"
PARTS = ["book/*.md", "book/conf.py", "book/_static/*", "book/api/*", "README.md", "CONTRIBUTING.md", "figures/*.svg"]
PARTS += ["notebooks/[0-9]*.ipynb", "notebooks/[0-9]*.py"]


def gather() -> None:
    """Copy the parts, with their times, so that Sphinx sees which have changed; drop what is there no more."""
    copied = set()
    for file in sorted(file for part in PARTS for file in ROOT.glob(part)):
        target = SOURCE / file.relative_to(ROOT / "book" if ROOT / "book" in file.parents else ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
        copied.add(target)
    for file in SOURCE.rglob("*"):
        if file.is_file() and file not in copied:
            file.unlink()


def main() -> int:
    gather()
    import animations

    animations.make(SOURCE / "_static")
    code = sphinx(["-q", "-W", "--keep-going", "-j", "2", str(SOURCE), str(ROOT / "build" / "book")])
    if code == 0:
        print("build/book/index.html")
    return code


if __name__ == "__main__":
    sys.exit(main())
