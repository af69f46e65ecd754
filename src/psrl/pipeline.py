"""Execute a notebook pair: NAME.py is converted, executed and written as NAME.ipynb, the same bytes every time."""

import hashlib
import os
import re
import sys
import time

import jupytext
import nbformat
from nbformat import NotebookNode

from psrl import paths
from psrl.config import ConfigError

# The kernel's surroundings, fixed so that the same notebook gives the same bytes: sums in one order (one thread),
# sets in one order, and no sliders or growing plots, which need a reader.
KERNEL = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PSRL_BATCH": "1", "JUPYTER_PREFER_ENV_PATH": "1"}
WIDGET = "application/vnd.jupyter.widget-view+json"


class NotebookError(RuntimeError):
    """A cell failed: the notebook, the cell, the line and the exception in one message."""


def names() -> list[str]:
    """All notebooks in reading order: those with either half of a pair."""
    return sorted({file.stem for ending in ("py", "ipynb") for file in paths.NOTEBOOKS.glob(f"[0-9]*.{ending}")})


def read(name: str) -> NotebookNode:
    """The notebook as its .py says, without outputs."""
    script = paths.NOTEBOOKS / f"{name}.py"
    if not script.is_file():
        raise ConfigError(
            f"notebook {name!r} has no notebooks/{name}.py; valid: {', '.join(names()) or 'none is there'}"
        )
    return jupytext.read(script, fmt="py:percent")


def execute(name: str, progress: bool = True) -> int:
    """Execute notebooks/NAME.py in notebooks/, write the pair's .ipynb, and return the number of cells.

    The old .ipynb stays when a cell fails.
    """
    from nbclient.exceptions import DeadKernelError
    from papermill import PapermillExecutionError, execute_notebook

    notebook = read(name)
    os.environ.update(KERNEL)
    bar = {"desc": name, "leave": False} if progress else False
    try:
        done = execute_notebook(
            notebook,
            None,
            kernel_name="python3",
            cwd=paths.NOTEBOOKS,
            progress_bar=bar,
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
        )
    except PapermillExecutionError as error:
        raise NotebookError(_message(name, error)) from None
    except DeadKernelError:
        raise NotebookError(f"notebooks/{name}.py: the kernel died; memory may have run out") from None
    normalise(done)
    paths.write_atomic(paths.NOTEBOOKS / f"{name}.ipynb", nbformat.writes(done) + "\n")
    return len(done.cells)


def execute_all(chosen: list[str]) -> int:
    """Execute the chosen notebooks (all where none is named), one line each; 1 where a cell failed, else 0."""
    chosen = [name.removeprefix("notebooks/").removesuffix(".py") for name in chosen] or names()
    for name in chosen:
        read(name)  # refuses an unknown name before any is executed
    for name in chosen:
        start = time.perf_counter()
        try:
            cells = execute(name, progress=sys.stderr.isatty())
        except NotebookError as error:
            print(f"psrl notebook: {error}", file=sys.stderr)
            return 1
        print(f"{name}: {cells} cells in {time.perf_counter() - start:.0f} s", flush=True)
    return 0


def normalise(notebook: NotebookNode) -> None:
    """Keep what the notebook says and drop what merely happened: times, versions, progress, memory addresses."""
    kept = {key: notebook.metadata[key] for key in ("jupytext", "kernelspec") if key in notebook.metadata}
    language = {key: value for key, value in notebook.metadata.get("language_info", {}).items() if key != "version"}
    notebook.metadata = NotebookNode(kept | ({"language_info": language} if language else {}))
    notebook.metadata.get("jupytext", {}).pop("text_representation", None)
    seen: dict[str, int] = {}
    count = 0
    for cell in notebook.cells:
        tags = cell.metadata.get("tags")
        cell.metadata = NotebookNode({"tags": tags} if tags else {})
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        if cell.cell_type == "code":
            count += bool(cell.source.strip())
            cell.execution_count = count if cell.source.strip() else None
            cell.outputs = _outputs(cell.outputs, count)


def _outputs(outputs: list[NotebookNode], count: int) -> list[NotebookNode]:
    kept: list[NotebookNode] = []
    for output in outputs:
        if output.output_type == "stream":
            if output.name != "stdout":
                continue  # warnings and progress bars
            if kept and kept[-1].output_type == "stream":
                kept[-1].text += output.text  # how a stream is cut into messages is a matter of timing
                continue
        elif WIDGET in output.get("data", {}):
            continue  # a slider or bar lives in its kernel only, under a random name
        if output.output_type == "execute_result":
            output.execution_count = count
        kept.append(output)
    for output in kept:
        texts = output.data if "data" in output else output
        for kind in {"text", "text/plain", "text/html"} & set(texts):
            texts[kind] = re.sub(r" at 0x[0-9a-f]{6,}", "", texts[kind])
    return kept


def check_pair(name: str) -> None:
    """Refuse a pair of which one half is missing or whose halves are not the same notebook. Changes nothing."""
    for ending in ("py", "ipynb"):
        if not (paths.NOTEBOOKS / f"{name}.{ending}").is_file():
            raise ConfigError(
                f"notebook {name!r} lacks its half notebooks/{name}.{ending}; "
                f"valid: both halves, the .py written by hand and the .ipynb by `psrl notebook {name}`"
            )
    script = read(name).cells
    shown = nbformat.read(paths.NOTEBOOKS / f"{name}.ipynb", as_version=4).cells
    for number, (one, other) in enumerate(zip(script, shown, strict=False), 1):
        for part in ("cell_type", "source", "tags"):
            if _part(one, part) != _part(other, part):
                raise ConfigError(
                    f"cell {number} of notebook {name!r} has another {part.replace('_', ' ')} in its .py; "
                    f"valid: the same in both, as `psrl notebook {name}` writes them"
                )
    if len(script) != len(shown):
        raise ConfigError(
            f"notebook {name!r} has {len(script)} cells in the .py and {len(shown)} in the .ipynb; "
            f"valid: the same in both, as `psrl notebook {name}` writes them"
        )


def _part(cell: NotebookNode, part: str) -> str | list[str]:
    return cell.metadata.get("tags", []) if part == "tags" else cell[part]


def _message(name: str, error) -> str:
    """Where a cell failed, by the line of the .py that a person opens."""
    text = (paths.NOTEBOOKS / f"{name}.py").read_text()
    place = text.find(error.source)
    first = text.count("\n", 0, place) + 1 if place >= 0 else None
    trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    arrows = re.findall(r"^-+> *(\d+) (.*)$", trace, re.MULTILINE)
    line = f", line {first + int(arrows[0][0]) - 1}" if first and arrows else ""
    cause = f"{error.ename}: {error.evalue}" if error.evalue else error.ename
    code = "".join(f"\n    {code.strip()}" for _, code in arrows[:1] + arrows[1:][-1:])  # in the cell, and deepest
    return f"notebooks/{name}.py, cell {error.cell_index + 1}{line}: {cause}{code}"
