"""A notebook pair is executed to the same bytes every time, and says clearly what is wrong when it cannot be."""

import json

import pytest

from psrl import paths, pipeline
from psrl.cli import main
from psrl.config import ConfigError

HEAD = '# %% [markdown]\n# # Toy\n\n# %% tags=["parameters"]\nsize = 3\n'
RESTLESS = """
# %%
import sys, time
import ipywidgets
from IPython.display import display
print("one", end=" ")
sys.stdout.flush()
time.sleep(0.05)
print("two", file=sys.stderr)
print("three", object())
display(ipywidgets.IntSlider())
{"c", "a", "b", object}

# %% [markdown]
# Words.

# %% tags=["nbval-check-output"]
import os
print(os.environ["OMP_NUM_THREADS"], os.path.basename(os.getcwd()), size)
object()
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write notebooks/01_toy.py in an empty repository."""
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    for name, value in pipeline.KERNEL.items():
        monkeypatch.setenv(name, value)
    paths.NOTEBOOKS.mkdir()

    def write(cells: str) -> None:
        (paths.NOTEBOOKS / "01_toy.py").write_text(HEAD + cells)

    return write


def shown() -> dict:
    return json.loads((paths.NOTEBOOKS / "01_toy.ipynb").read_text())


def test_two_executions_give_the_same_bytes_and_only_what_the_notebook_says(write):
    write(RESTLESS)
    assert pipeline.execute("01_toy", progress=False) == 5
    first = (paths.NOTEBOOKS / "01_toy.ipynb").read_bytes()
    pipeline.execute("01_toy", progress=False)
    assert (paths.NOTEBOOKS / "01_toy.ipynb").read_bytes() == first
    cells = shown()["cells"]
    stream, result = cells[2]["outputs"]
    assert stream["text"] == ["one three <object object>\n"]  # merged, without stderr, slider or address
    assert result["execution_count"] == cells[2]["execution_count"] == 2
    assert cells[4]["outputs"][0]["text"] == ["1 notebooks 3\n"]
    assert [cell["metadata"] for cell in cells] == [
        {},
        {"tags": ["parameters"]},
        {},
        {},
        {"tags": ["nbval-check-output"]},
    ]
    assert "version" not in shown()["metadata"]["language_info"]
    assert not {"widgets", "papermill"} & set(shown()["metadata"])


def test_cells_keep_their_ids_when_others_are_added_and_equal_cells_have_different_ones(write):
    write("\n# %%\n1\n\n# %%\n1\n")
    pipeline.execute("01_toy", progress=False)
    before = [cell["id"] for cell in shown()["cells"]]
    assert len(set(before)) == len(before)
    write("\n# %%\nnew = 0\n\n# %%\n1\n\n# %%\n1\n")
    pipeline.execute("01_toy", progress=False)
    after = [cell["id"] for cell in shown()["cells"]]
    assert after[:2] + after[3:] == before


def test_a_failing_cell_is_named_with_its_line_and_the_old_notebook_stays(write, capsys):
    write("\n# %%\n1\n")
    pipeline.execute("01_toy", progress=False)
    old = (paths.NOTEBOOKS / "01_toy.ipynb").read_bytes()
    write("\n# %%\n1\n\n# %%\ndef check(x):\n    assert x < 0, 'too large'\n\ncheck(size)\n")
    assert main(["notebook", "01_toy"]) == 1
    message = capsys.readouterr().err
    assert "notebooks/01_toy.py, cell 4, line 14: AssertionError: too large" in message
    assert "check(size)" in message and "assert x < 0" in message
    assert (paths.NOTEBOOKS / "01_toy.ipynb").read_bytes() == old
    assert [file.name for file in sorted(paths.NOTEBOOKS.iterdir())] == ["01_toy.ipynb", "01_toy.py"]


def test_a_kernel_that_dies_is_reported(write, capsys):
    write("\n# %%\nimport os\nos._exit(1)\n")
    assert main(["notebook", "01_toy"]) == 1
    assert "01_toy.py: the kernel died" in capsys.readouterr().err


def test_an_unknown_notebook_is_refused_with_the_valid_names(write, capsys):
    write("")
    assert main(["notebook", "07_toy"]) == 2
    assert "'07_toy'" in (message := capsys.readouterr().err) and "valid: 01_toy" in message


def test_a_pair_is_checked_without_being_touched(write):
    write("\n# %%\n1\n\n# %%\n2\n")
    with pytest.raises(ConfigError, match=r"lacks its half notebooks/01_toy\.ipynb; valid: .*psrl notebook 01_toy"):
        pipeline.check_pair("01_toy")
    pipeline.execute("01_toy", progress=False)
    before = {file: file.stat().st_mtime_ns for file in paths.NOTEBOOKS.iterdir()}
    pipeline.check_pair("01_toy")
    assert {file: file.stat().st_mtime_ns for file in paths.NOTEBOOKS.iterdir()} == before


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ("\n# %%\n1\n\n# %%\n3\n", "cell 4 .* another source"),
        ("\n# %%\n1\n\n# %% [markdown]\n# 2\n", "cell 4 .* another cell type"),
        ('\n# %% tags=["x"]\n1\n\n# %%\n2\n', "cell 3 .* another tags"),
        ("\n# %%\n1\n", "3 cells in the .py and 4 in the .ipynb"),
    ],
)
def test_halves_that_disagree_are_refused(write, cells, reason):
    write("\n# %%\n1\n\n# %%\n2\n")
    pipeline.execute("01_toy", progress=False)
    write(cells)
    with pytest.raises(ConfigError, match=reason):
        pipeline.check_pair("01_toy")


def test_a_notebook_without_its_script_is_refused(write):
    write("\n# %%\n1\n")
    pipeline.execute("01_toy", progress=False)
    (paths.NOTEBOOKS / "01_toy.py").unlink()
    assert pipeline.names() == ["01_toy"]
    with pytest.raises(ConfigError, match=r"lacks its half notebooks/01_toy\.py"):
        pipeline.check_pair("01_toy")
