"""Both halves of every notebook agree; every figure is made by one notebook, shown in it, and named by its stage."""

import base64
import re

import nbformat
import pytest
import yaml
from conftest import ROOT

from psrl import pipeline

NAMES = sorted({file.stem for file in (ROOT / "notebooks").glob("[0-9]*.*") if file.suffix in (".py", ".ipynb")})
STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]


def saved(name: str) -> list[str]:
    """The figures that a notebook's code saves, by name."""
    return re.findall(r'\bsave\(\s*\w+,\s*"([^"]+)"', (ROOT / "notebooks" / f"{name}.py").read_text())


def paths_of(items: list) -> set[str]:
    return {item if isinstance(item, str) else next(iter(item)) for item in items}


def html(name: str) -> str:
    cells = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("data", {}).get("text/html", "") for output in outputs)


def test_there_are_notebooks():
    assert NAMES


@pytest.mark.parametrize("name", NAMES)
def test_pair_agrees(name):
    pipeline.check_pair(name)


@pytest.mark.parametrize("name", NAMES)
def test_committed_notebook_is_executed_to_the_end_and_normalised(name):
    text = (ROOT / "notebooks" / f"{name}.ipynb").read_text()
    notebook = nbformat.reads(text, as_version=4)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    assert counts == list(range(1, len(counts) + 1)), f"execute it with `psrl notebook {name}`"
    pipeline.normalise(notebook)
    assert nbformat.writes(notebook) + "\n" == text, f"saved by JupyterLab? execute it with `psrl notebook {name}`"


@pytest.mark.parametrize("name", NAMES)
def test_figures_of_a_notebook_are_shown_in_it_as_they_are_on_disk(name):
    shown = html(name)
    for figure in saved(name):
        assert figure.startswith(name[:2] + "_"), f"the name of {figure} begins with the notebook's number"
        drawing = base64.b64encode((ROOT / "figures" / f"{figure}.svg").read_bytes()).decode()
        assert drawing in shown, f"figures/{figure}.svg is not the picture in {name}.ipynb"


def test_every_figure_is_made_by_exactly_one_notebook():
    made = [figure for name in NAMES for figure in saved(name)]
    assert sorted(made) == sorted(set(made)), "a figure is saved twice"
    assert sorted(file.stem for file in (ROOT / "figures").glob("*.svg")) == sorted(made)


@pytest.mark.parametrize("name", NAMES)
def test_stage_of_a_notebook_names_its_script_and_all_it_makes(name):
    stage = STAGES.get(name, {})
    outs = [f"notebooks/{name}.ipynb", *(f"figures/{figure}.svg" for figure in saved(name))]
    missing = [out for out in outs if out not in paths_of(stage.get("outs", []))]
    lines = "\n".join(f"      - {out}: {{cache: false, persist: true}}" for out in missing)
    assert not missing, f"in dvc.yaml, stage {name}, outs:\n{lines}"
    made = {path for path in paths_of(stage["outs"]) if path.startswith("figures/")}
    assert made <= set(outs), f"stage {name} names figures that the notebook does not save"
    assert stage["cmd"] == f"psrl notebook {name}" and f"notebooks/{name}.py" in stage["deps"]


def test_every_out_is_kept_in_git_and_survives_a_failing_stage():
    for name, stage in STAGES.items():
        for out in stage.get("do", stage)["outs"]:
            assert next(iter(out.values())) == {"cache": False, "persist": True}, f"{name}: {out}"
