"""What makes a stage stale, asked of DVC itself in a copy of the repository whose results are stand-ins."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import ROOT
from dvc.repo import Repo

DVC = [sys.executable, "-m", "dvc"]


def dvc(folder: Path, *arguments: str) -> str:
    return subprocess.run([*DVC, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def stale(folder: Path) -> set[str]:
    with Repo(str(folder)) as repository:
        return {name.rpartition("dvc.yaml:")[2] for name in repository.status()}  # from elsewhere it names the file


def outs(params: dict) -> set[str]:
    """Every file the pipeline makes, with the keys of params.yaml filled in."""
    found = set()
    for stage in yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"].values():
        each = stage.get("foreach", [""])
        keys = params[each.strip("${}")] if isinstance(each, str) else each
        for out in stage.get("do", stage)["outs"]:
            found |= {next(iter(out)).replace("${key}", key).replace("${item}", key) for key in keys}
    return found


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The repository's pipeline with one experiment more per task, all its stages recorded as done."""
    folder = tmp_path_factory.mktemp("repository")
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    for task in params["tasks"]:
        for method in ("psrl", "random"):
            params["experiments"][f"{task}-{method}-more"] = {
                **{"task": task, "method": method, "reward": "oracle", "noise": 0.0},
                **{"episodes": 2, "seeds": [0]},
            }
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    for name in ("dvc.yaml", ".dvcignore", ".dvc/config", "profiles/paper.yaml"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for name in ("src", "notebooks"):
        ignored = shutil.ignore_patterns("*.egg-info", "__pycache__", "*.ipynb", ".ipynb_checkpoints")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copytree(ROOT / "results" / "bench", folder / "results" / "bench")
    shutil.copy(ROOT / "results" / "authors.csv", folder / "results")
    for name in outs(params):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    dvc(folder, "commit", "--force", "--quiet")
    return folder


@pytest.fixture
def edit(copy):
    """Change params.yaml for one test."""
    path = copy / "params.yaml"
    before = path.read_text()

    def edit(change) -> dict:
        params = yaml.safe_load(before)
        change(params)
        path.write_text(yaml.safe_dump(params, sort_keys=False))
        return params["experiments"]

    yield edit
    path.write_text(before)


def test_a_comment_in_the_source_leaves_everything_clean(copy):
    assert stale(copy) == set()
    for file in (copy / "src").rglob("*.py"):
        file.write_text(file.read_text() + "\n# a comment\n")
    assert stale(copy) == set()


@pytest.mark.parametrize("task", ["cartpole", "pusher"])
def test_a_hyperparameter_of_a_task_makes_exactly_its_experiments_stale(copy, edit, task):
    experiments = edit(lambda params: params["tasks"][task]["planner"].update(horizon=7))
    trained = {name.removeprefix("train@") for name in stale(copy) if name.startswith("train@")}
    assert trained == {name for name, values in experiments.items() if values["task"] == task}


def test_a_method_s_version_makes_exactly_its_experiments_stale(copy, edit):
    experiments = edit(lambda params: params["methods"]["psrl"].update(version=99))
    trained = {name.removeprefix("train@") for name in stale(copy) if name.startswith("train@")}
    assert trained == {name for name, values in experiments.items() if values["method"] == "psrl"}


def test_one_experiment_s_own_values_touch_no_other(copy, edit):
    edit(lambda params: params["experiments"]["reacher-psrl-more"].update(episodes=3))
    assert {name for name in stale(copy) if name.startswith("train@")} == {"train@reacher-psrl-more"}


def test_a_script_makes_its_notebook_stale_and_a_half_written_file_nothing(copy):
    script = next((copy / "notebooks").glob("01_*.py"))
    before = script.read_text()
    script.write_text(before + "\n# %%\n1\n")
    assert stale(copy) == {script.stem}
    script.write_text(before)
    stray = copy / "results" / "runs" / ".half.csv.1.part"
    stray.write_text("")
    assert stale(copy) == set()
    stray.unlink()


def test_the_committed_pipeline_is_up_to_date():
    assert not (found := stale(ROOT)), f"run `dvc repro` and commit dvc.lock with what it made: {', '.join(found)}"


def test_metrics_and_plots_are_shown(copy):
    (copy / "results" / "tables").mkdir(exist_ok=True)
    (copy / "results" / "tables" / "convergence.json").write_text(json.dumps({"cartpole": {"psrl": 8.2}}))
    assert "8.2" in dvc(copy, "metrics", "show")
    assert "index.html" in dvc(copy, "plots", "show")
    pictures = {file.name for file in (copy / "dvc_plots" / "static").iterdir()}
    assert len(pictures) == len(list((copy / "figures").glob("*.svg")))
