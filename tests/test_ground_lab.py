"""`make lab`, asked over its own interface: a .py opens as the notebook of its pair, and saving keeps both in step."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import nbformat
import pytest
from conftest import ROOT

from psrl import paths, pipeline

TOKEN = "test"
SCRIPT = '# %% [markdown]\n# # Toy\n\n# %% tags=["parameters"]\nsize = 3\n\n# %%\nprint(size)\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A repository with one pair in it."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / "jupytext.toml", folder / "notebooks")
    (folder / "notebooks" / "01_toy.py").write_text(SCRIPT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "NOTEBOOKS", folder / "notebooks")
        for name, value in pipeline.KERNEL.items():
            patch.setenv(name, value)
        pipeline.execute("01_toy", progress=False)
    return folder


@pytest.fixture(scope="module")
def lab(folder):
    """A JupyterLab server there; ``lab(path)`` gets, ``lab(path, content)`` saves."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--no-browser", f"--port={port}", "--port-retries=0", f"--IdentityProvider.token={TOKEN}"]
    options += ["--allow-root"] if os.name == "posix" and os.getuid() == 0 else []
    command = [Path(sys.executable).with_name("jupyter"), "lab", *options, "--ip=127.0.0.1"]
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)

    def ask(path: str, content: dict | None = None) -> dict:
        body = None if content is None else json.dumps(content).encode()
        headers = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
        address = f"http://127.0.0.1:{port}/{path}"
        with urlopen(Request(address, body, headers, method="PUT" if body else "GET"), timeout=30) as reply:
            return json.load(reply)

    try:
        for _ in range(240):
            assert server.poll() is None, (folder / "log").read_text()
            try:
                ask("api/status")
                break
            except (URLError, ConnectionError):
                time.sleep(0.25)
        yield ask
    finally:
        server.terminate()
        server.wait(20)


def cells(reply: dict) -> list:
    return [(cell["cell_type"], cell["source"], cell.get("outputs", [])) for cell in reply["content"]["cells"]]


def test_both_halves_open_as_the_same_notebook_with_outputs(lab):
    script, shown = lab("api/contents/notebooks/01_toy.py?type=notebook"), lab("api/contents/notebooks/01_toy.ipynb")
    assert script["type"] == shown["type"] == "notebook"
    assert cells(script) == cells(shown)
    assert cells(script)[2][2][0]["text"] == "3\n"


def test_a_double_click_on_a_script_opens_the_notebook(lab):
    settings = lab("lab/api/settings/@jupyterlab/docmanager-extension:plugin")
    assert settings["schema"]["properties"]["defaultViewers"]["default"]["python"] == "Jupytext Notebook"


@pytest.mark.parametrize("half", ["py", "ipynb"])
def test_saving_one_half_keeps_the_pair_in_step(lab, folder, monkeypatch, half):
    path = f"api/contents/notebooks/01_toy.{half}"
    notebook = lab(f"{path}?type=notebook")["content"]
    notebook["cells"][1]["source"] = f"size = {len(half)}"
    lab(path, {"type": "notebook", "format": "json", "content": notebook})
    assert f"size = {len(half)}" in (folder / "notebooks" / "01_toy.py").read_text()
    saved = nbformat.read(folder / "notebooks" / "01_toy.ipynb", as_version=4)
    assert saved.cells[1].source == f"size = {len(half)}" and saved.cells[2].outputs
    monkeypatch.setattr(paths, "NOTEBOOKS", folder / "notebooks")
    pipeline.check_pair("01_toy")
