"""What README.md tells people to type works, and what it and the notebooks link to is there."""

import re
import shlex
import subprocess
import sys

import gymnasium
import nbformat
import numpy as np
import pytest
import tiny
import torch
from conftest import ROOT
from gymnasium.envs.classic_control import PendulumEnv

from psrl import cli, config, engine, learner, paths, settings, tasks
from psrl.agent import MPCPSRL

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
PYTHON = [code for kind, code in BLOCKS if kind == "python"]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("notebooks/*.ipynb"))]


def commands(block: str) -> list[list[str]]:
    """The words of each line, without comments and without variables set before the command."""
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    return [[word for word in words if not re.match(r"[A-Z_]+=", word)] for words in lines if words]


SHELL = [words for kind, block in BLOCKS if kind == "sh" for words in commands(block)]
# in the section on experiments of one's own; those for a cluster need one
OWN = [words for words in SHELL if words[0] == "psrl" and "--profile" not in words and words != ["psrl", "sweep"]]


@pytest.fixture
def toy(tmp_path):
    """A folder with a params.yaml of toy sizes: the same commands, in seconds."""
    experiment = {"task": "pendulum", "method": "psrl", "seeds": [0], "episodes": 2}
    return tiny.repository(tmp_path, {"pendulum-toy": experiment})


def python(code: str, folder) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=tiny.environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def snippet(word: str) -> str:
    """The one python block that contains a word; it has fewer than fifteen lines."""
    (code,) = (code for code in PYTHON if word in code)
    assert len([line for line in code.splitlines() if line.strip()]) < 15
    return code


def test_every_command_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for program, *arguments in SHELL:
        if program == "make":
            assert set(arguments) <= targets
        elif program == "psrl":
            cli._parser().parse_args(arguments)  # exits where it does not understand
        elif program == "python":
            assert (ROOT / arguments[0]).is_file()
        else:
            assert program == "ray", f"what is {program}?"


def test_own_experiments_run(toy):
    assert len(OWN) == 4
    # one process for all, so that the imports are paid once
    python(f"from psrl.cli import main\nfor words in {OWN}:\n    assert main(words[1:]) == 0, words", toy)
    tables = {path.name.split("-")[0] for path in toy.glob("build/runs/*.csv")}
    assert tables == {"cartpole", "pendulum"}, "each run wrote its table"
    assert (toy / "results/runs/pendulum-toy.csv").is_file(), "the sweep wrote the experiment's"


def test_raw_curves_load_in_one_line():
    columns = python(snippet("pandas") + "\nprint(','.join(runs.columns))", ROOT).strip()
    assert f"`{columns}`" in README, "README names the columns"


@pytest.fixture
def clean():
    """The registries as they were, after a snippet has added to them."""
    before, known = dict(tasks.TASKS), dict(gymnasium.registry)
    yield
    for registry, kept in ((tasks.TASKS, before), (gymnasium.registry, known)):
        registry.clear()
        registry.update(kept)


@pytest.mark.parametrize("word", ["tasks.TASKS", "class Timid"])
def test_own_task_and_own_method_run_two_episodes(word, toy, clean, monkeypatch, capsys):
    monkeypatch.setattr(paths, "PARAMS", toy / "params.yaml")
    namespace = {"__name__": "snippet"}
    exec(snippet(word), namespace)
    assert len(re.findall(r"\[[^\]]*\d[^\]]*\]", capsys.readouterr().out)) == 2, "it prints two returns"
    made = namespace["learner"]
    assert made.task.name == "anywhere" or type(made).__name__ == "Timid"
    assert made.data["x"].shape[1] == 2 * tiny.TASK["steps"] and bool(made.data["x"].isfinite().all())
    state, action = made.data["x"].split([made.task.state_dim, made.task.action_dim], dim=-1)
    following = state + made.data["change"]
    if made.task.name == "anywhere":
        expected = made.task.reward(state, action, following, None)
        torch.testing.assert_close(made.data["reward"][..., 0], expected, atol=1e-3, rtol=1e-3, msg="the environment's")


def test_an_environment_that_ends_an_episode_is_refused(toy, clean, monkeypatch):
    monkeypatch.setattr(paths, "PARAMS", toy / "params.yaml")
    monkeypatch.setattr(PendulumEnv, "step", lambda self, action: (np.zeros(3, np.float32), 0.0, True, False, {}))
    with pytest.raises(config.ConfigError, match="the environment of anywhere ended an episode by itself"):
        exec(snippet("tasks.TASKS"), {"__name__": "snippet"})


class Timid(MPCPSRL):
    def plan(self, state, mean, at_step):
        return super().plan(state, mean, at_step) / 2


def test_a_method_needs_the_three_entries_that_readme_names(monkeypatch):
    params = tiny.params()
    values = {"task": "cartpole", "method": "timid", "seeds": [0], "episodes": 2}
    with pytest.raises(config.ConfigError, match="timid"):
        config.resolve(params, **values)
    monkeypatch.setitem(learner.METHODS, "timid", learner.Method(f"{__name__}:Timid", batched=True))
    monkeypatch.setitem(settings.METHODS, "timid", settings.PSRL)
    params["methods"]["timid"] = params["methods"]["psrl"]
    *_, last = engine.episodes(config.resolve(params, **values), "cpu", None)
    assert len(last.episodes) == 2


def markdown(page) -> str:
    """A page's prose, without code and formulas."""
    text = page.read_text()
    if page.suffix == ".ipynb":
        cells = nbformat.reads(text, as_version=4).cells
        text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.sub(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", markdown(page))
    assert links or page.suffix == ".ipynb"
    near = [link.partition("#")[0] for link in links if not re.match(r"\w+:|#", link)]
    missing = [link for link in near if not (page.parent / link).exists()]
    assert not missing, f"{page.name} links to what is not there: {missing}"


def test_readme_and_tour_lead_to_every_notebook():
    names = {path.name for path in ROOT.glob("notebooks/*.ipynb")}
    tour = ROOT / "notebooks" / "00_tour.ipynb"
    assert names <= set(re.findall(r"\]\(notebooks/(\w+\.ipynb)\)", README))
    assert names - {tour.name} <= set(re.findall(r"\]\((\w+\.ipynb)\)", markdown(tour)))


def tables(text: str) -> list[dict[str, list[str]]]:
    """Of every table in a text: first cell of a row -> its others."""
    found = re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE)
    lines = [[[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()] for table in found]
    return [{first: others for first, *others in table} for table in lines]


RESULTS = README.split("## Results so far")[1].split("\n## ")[0]
LEADS, TIMES = tables(RESULTS)


def test_the_results_are_those_of_the_table():
    """README shows six columns of results/tables/convergence.md, and of its rows those with something in them."""
    reached, lasting = tables((ROOT / "results" / "tables" / "convergence.md").read_text())
    told = {name: cells for name, cells in TIMES.items() if name in reached}

    def expected(name: str) -> list[str]:
        first, second = (dict(zip(table[""], table[name], strict=True)) for table in (reached, lasting))
        paper, ours = first["MPC-PSRL, paper"], first["MPC-PSRL, here"]
        others = [first[f"{method}, here"] for method in ("MPC-PSRL, evidence", "PETS", "MBPO")]
        return [paper, ours, second["MPC-PSRL"], *others]

    names = [name for name in told if name not in ("", "---")]
    assert {name: told[name] for name in names} == {name: expected(name) for name in names}
    done = {name for name in reached if name in lasting and any("[" in cell for cell in expected(name)[1:])}
    assert done <= told.keys()


def shown(cell: nbformat.NotebookNode) -> list[str]:
    """Text and tables that a cell put out."""
    return [out.text if "text" in out else out.data.get("text/markdown", "") for out in cell.get("outputs", [])]


def learned(notebook: str) -> list[str]:
    """What a notebook of results shows at its end."""
    cells = nbformat.read(ROOT / "notebooks" / notebook, as_version=4).cells
    (place,) = (i for i, cell in enumerate(cells) if cell.source.startswith("## What we learned"))
    return shown(cells[place + 1])


def test_the_verdicts_are_counted_as_notebook_13_counts_them():
    counts = r"16 claims: yes \d+, partly \d+, no \d+, undecided \d+, not yet run \d+"
    told = re.search(counts, " ".join(README.split())).group()
    spared = re.search(r"Of the \d+ that are partly right \d+ have", " ".join(README.split())).group()
    printed = learned("13_does_it_reproduce.ipynb")[0]
    assert f"MPC-PSRL: {told}, not planned 0.\n{spared}" in printed


def test_readme_tells_who_is_ahead_as_notebook_13_does():
    """All rows in which something was compared; the corner and the rule below the head are README's own."""
    (whole, _) = (table for text in learned("13_does_it_reproduce.ipynb") for table in tables(text))
    head, _, *rows = whole.items()
    compared = dict(row for row in rows if any("[" in cell for cell in row[1]))
    (_, methods), _, *told = LEADS.items()
    assert methods == head[1] and dict(told) == compared


def test_every_interval_in_readme_is_one_that_a_notebook_printed():
    told = re.findall(r"\[[+-]\d+\.\d+, [+-]\d+\.\d+\]", " ".join(README.split()))
    pages = [nbformat.read(page, as_version=4) for page in ROOT.glob("notebooks/1*.ipynb")]
    printed = " ".join(text for page in pages for cell in page.cells for text in shown(cell))
    assert told and not [interval for interval in told if interval not in printed]
