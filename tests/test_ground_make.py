"""The first minute of a newcomer: help, a Python that is too old, and one sentence for every bad input."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import ROOT

from psrl.cli import main
from psrl.config import ConfigError, apply_profile, experiments, read_params, resolve

MAKE = shutil.which("make")
needs_make = pytest.mark.skipif(MAKE is None, reason="make is not on this machine")


def make(folder, *arguments):
    return subprocess.run([MAKE, *arguments], cwd=folder, capture_output=True, text=True)


@pytest.fixture
def clone(tmp_path):
    """What setup needs, without a .venv."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    return tmp_path


def python(path, body):
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@needs_make
def test_help_lists_every_target_with_what_it_takes(clone):
    result = make(clone)
    listed = re.findall(r"^  make (\w+) +\S", result.stdout, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    assert sorted(listed) == sorted(phony)
    for target in ("setup", "repro", "test", "smoke", "book", "lock"):
        assert re.search(rf"^  make {target} .*\(.*\d+ (s|min)", result.stdout, re.MULTILINE), f"{target} tells no time"


@needs_make
@pytest.mark.parametrize("target", ["repro", "test"])
def test_a_python_that_is_too_old_gets_one_sentence(clone, target):
    old = "import sys, runpy; sys.argv = sys.argv[1:]; sys.version_info = (3, 9, 2); "
    old += "sys.path.insert(0, 'tools'); runpy.run_path(sys.argv[0], run_name='__main__')"
    interpreter = python(clone / "python3.9", f'exec {sys.executable} -c "{old}" "$@"')
    result = make(clone, target, f"PYTHON={interpreter}")
    assert result.returncode != 0
    sentence = result.stderr.splitlines()[0]
    assert sentence.startswith("Python 3.11 or newer is needed and ") and " is 3.9.2: " in sentence
    assert not (clone / ".venv").exists()


@needs_make
def test_setup_starts_at_once_when_nothing_changed(clone):
    (clone / ".venv").mkdir()
    (clone / ".venv" / ".ready").touch()
    assert make(clone, "setup", "PYTHON=false").returncode == 0
    os.utime(clone / "requirements.lock", (2**31, 2**31))
    assert make(clone, "setup", "PYTHON=false").returncode != 0


@needs_make
def test_a_failing_installation_shows_why_and_is_tried_again(clone):
    (clone / "requirements.lock").write_text("no-such-package-of-psrl==1.0\n")
    pip = 'case "$*" in *venv*) mkdir -p .venv/bin; cp "$0" .venv/bin/python;; *) echo no such thing; exit 1;; esac'
    interpreter = python(clone / "python3", pip)
    run = [sys.executable, "-c", f"import sys, runpy; sys.executable = {str(interpreter)!r}; " + RUN_BOOTSTRAP]
    result = subprocess.run(run, cwd=clone, capture_output=True, text=True)
    assert result.returncode == 1
    assert "no such thing" in result.stderr and "Set-up failed: " in result.stderr.splitlines()[-1]
    assert not (clone / ".venv" / ".ready").exists()


RUN_BOOTSTRAP = "runpy.run_path('tools/bootstrap.py', run_name='__main__')"


def test_ci_is_make_test():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-1] == "exec make test"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("tasks:\n", "task:\n", r"no section 'tasks'; valid: tasks"),
        ("  pendulum:\n", "  pendulums:\n", r"tasks\.pendulums is unknown; valid: .*pendulum"),
        ("  ddpg:\n", "  dpg:\n", r"methods\.dpg is unknown; valid: .*ddpg"),
        ("    steps: 200 ", "    stepz: 200 ", r"tasks\.cartpole\.stepz is unknown; valid: .*steps"),
        ("      horizon: 30 ", "      horizon: soon ", r"planner\.horizon is 'soon'; valid: a whole number at least 1"),
        ("      elites: 50 ", "      elites: 501 ", r"elites is 501; valid: at most population, 500"),
        (
            "experiments:\n",
            "experiments:\n  x: {task: cartpol}\n",
            r"experiments\.x\.task is 'cartpol'; valid: cartpole",
        ),
        ("experiments:\n", "experiments:\n  x: {task: cartpole, method: a2c}\n", r"\.x\.method is 'a2c'; valid: psrl"),
        (
            "experiments:\n",
            "experiments:\n  x: {tasks: cartpole}\n",
            r"experiments\.x\.tasks is unknown; valid: .*task",
        ),
        ("tasks:\n", "tasks: [\n", r"params\.yaml is not valid YAML"),
    ],
)
def test_a_bad_value_in_params_is_named_with_what_is_valid(tmp_path, old, new, reason):
    text = (ROOT / "params.yaml").read_text()
    assert old in text
    (tmp_path / "params.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=reason) as caught:
        experiments(read_params(tmp_path / "params.yaml"))
    assert "\n" not in str(caught.value)


def test_outside_a_repository_the_command_says_where_it_belongs(tmp_path):
    command = Path(sys.executable).with_name("psrl")
    result = subprocess.run([command, "sweep"], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 2
    assert "params.yaml is not there; run psrl inside the repository" in result.stderr


@pytest.mark.parametrize("profile", sorted(file.name for file in (ROOT / "profiles").glob("*.yaml")))
def test_every_profile_is_valid_for_every_task_and_method(profile):
    params = apply_profile(read_params(ROOT / "params.yaml"), yaml.safe_load((ROOT / "profiles" / profile).read_text()))
    experiments(params)
    for task in params["tasks"]:
        for method in params["methods"]:
            resolve(params, task=task, method=method, seeds=[0], episodes=2)


def test_an_unknown_command_is_refused_with_the_valid_ones(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["notebok"])
    assert caught.value.code == 2
    assert "notebook" in capsys.readouterr().err
