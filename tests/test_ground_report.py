"""The report of `make repro` tells identical from within tolerance from different."""

import base64
import io
import json
import os
import re
import subprocess

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from PIL import Image

from psrl import paths, report


def drawing(shift: float = 0.0, label: str = "x") -> bytes:
    figure = Figure(figsize=(3, 2))
    axes = figure.subplots()
    axes.plot([0, 1 + shift, 2], [0, 1, 4 + shift], marker="o")
    axes.set(xlabel=label, xlim=(0, 3), ylim=(0, 5))
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "test"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def picture(level: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), level, np.uint8)).save(buffer, format="png")
    return buffer.getvalue()


def notebook(output: dict, source: str = "1") -> bytes:
    return json.dumps({"cells": [{"source": source, "outputs": [output]}]}).encode()


def html(svg: bytes) -> dict:
    return {"data": {"text/html": f'<img src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"/>'}}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("a.csv", b"x,y\n1,0.123456789\n", b"x,y\n1,0.12345678\n"),
        ("a.csv", b"episode,return,seconds\n1,2.5,3.1\n", b"episode,return,seconds\n1,2.5,9.9\n"),
        ("a.csv", b"metric,value\nloss,2.5\nseconds_plan,3.1\n", b"metric,value\nloss,2.5\nseconds_plan,9.9\n"),
        ("a.md", b"| psrl | 8.2 |", b"| psrl | 8.3 |"),
        ("a.json", b'{"x": 1.5e-07}', b'{"x": 1.6e-07}'),
        ("a.svg", drawing(), drawing(1e-4)),
        ("a.png", picture(100), picture(101)),
        ("a.ipynb", notebook({"text": "a 1.25\n"}), notebook({"text": ["a 1.26\n"]})),
        ("a.ipynb", notebook(html(drawing())), notebook(html(drawing(1e-4)))),
    ],
)
def test_last_digits_are_within_tolerance(name, old, new):
    assert old != new
    assert report.compare(name, old, new) is None


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("a.csv", b"x\n0.123456\n", b"x\n0.1236\n", "0.123456 became 0.1236"),
        ("a.csv", b"x\n5\n", b"x\n6\n", "5 became 6"),
        ("a.csv", b"metric,value\nloss,2.5\n", b"metric,value\nloss,9.9\n", "2.5 became 9.9"),
        ("a.csv", b"x\n5\n", b"x\n5\n5\n", "other words"),
        ("a.md", b"| psrl | 8.2 |", b"| psrl | 8.5 |", "8.2 became 8.5"),
        ("a.md", b"yes 1.0", b"no 1.0", "other words"),
        ("a.svg", drawing(), drawing(0.5), "became"),
        ("a.svg", drawing(), drawing(label="time"), "."),
        ("a.png", picture(100), picture(120), "levels"),
        ("a.bin", b"\xff\x01", b"\xff\x02", "other bytes"),
        ("a.ipynb", notebook({"text": "a 1.25\n"}), notebook({"text": "a 1.5\n"}), "cell 1: 1.25 became 1.5"),
        ("a.ipynb", notebook({"text": "1"}), notebook({"text": "1"}, source="2"), "other cells"),
        ("a.ipynb", notebook({"text": "1"}), notebook(html(drawing())), "cell 1 shows other things"),
        ("a.ipynb", notebook(html(drawing())), notebook(html(drawing(0.5))), "cell 1: .* became"),
    ],
)
def test_more_than_last_digits_differ(name, old, new, reason):
    found = report.compare(name, old, new)
    assert found is not None
    assert re.search(reason, found)


@given(st.floats(-1e9, 1e9, allow_subnormal=False), st.floats(-1, 1))
def test_the_relative_tolerance_is_what_it_says(value, share):
    old = f"{value:.17e}"
    inside, outside = f"{value * (1 + 0.9e-6 * share):.17e}", f"{value * (1 + 3e-6):.17e}"
    assert report.compare("a.csv", old.encode(), inside.encode()) is None
    assert value == 0 or report.compare("a.csv", old.encode(), outside.encode()) is not None


def test_the_report_counts_and_its_exit_code_says_whether_something_differs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    files = {
        "figures/01_a.svg": drawing(),
        "figures/01_b.svg": drawing(),
        "notebooks/01_x.ipynb": notebook({"text": "1.25"}),
        "notebooks/01_x.py": b"1",
        "results/tables/t.csv": b"x\n1\n",
        "results/runs/r.csv": b"x\n1\n",
        "results/provenance/r.json": b"{}",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    os.utime(tmp_path / "results/runs/r.csv", (0, 0))
    start = tmp_path / "started"
    start.touch()
    os.utime(start, (1, 1))

    (tmp_path / "results/provenance/r.json").write_text('{"machine": "another"}')
    assert report.main(start) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[-1] == "5 identical, 0 within tolerance, 0 differ"
    assert "figures: 2 identical: 01_a, 01_b" in text and "1 kept as committed" in text

    (tmp_path / "figures/01_a.svg").write_bytes(drawing(1e-4))
    assert report.main(start) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "4 identical, 1 within tolerance, 0 differ"

    (tmp_path / "results/tables/t.csv").write_text("x\n2\n")
    (tmp_path / "figures/01_b.svg").unlink()
    (tmp_path / "figures/01_c.svg").write_bytes(drawing())
    assert report.main(start) == 1
    text = capsys.readouterr().out
    assert "results/tables/t.csv: 1 became 2" in text
    assert "figures/01_b.svg: is missing" in text and "figures/01_c.svg: is not committed" in text
    assert text.splitlines()[-1] == "2 identical, 1 within tolerance, 3 differ"
