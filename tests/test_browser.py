"""The book and `make lab` as a reader meets them: built for real, opened in Chromium, without a network."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
from conftest import ROOT
from playwright.sync_api import sync_playwright

from psrl import pipeline

CHROMIUM = shutil.which("chromium")
MAKE = shutil.which("make")
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

# What is wrong with a page, as a list of sentences. Code is not prose: there a dollar is a dollar.
WRONG = r"""() => {
    const wrong = [];
    for (const image of document.images) {
        const name = (image.getAttribute("src") || "").slice(0, 60);
        if (!image.naturalWidth) wrong.push(`picture ${name} is not there`);
        if (!image.alt.trim()) wrong.push(`picture ${name} has no alternative text`);
    }
    for (const error of document.querySelectorAll("mjx-merror, [data-mjx-error]")) {
        wrong.push(`equation: ${error.dataset.mjxError || error.textContent}`);
    }
    const equations = document.querySelectorAll(".math").length;
    const drawn = document.querySelectorAll(".math mjx-container svg").length;
    if (drawn < equations) wrong.push(`${drawn} of ${equations} equations are drawn`);
    for (const formula of document.querySelectorAll('mjx-container[display="true"]')) {
        if (formula.scrollWidth > formula.clientWidth + 2) wrong.push(`cut off: ${formula.textContent.slice(0, 60)}`);
    }
    const prose = document.querySelector("main").cloneNode(true);
    prose.querySelectorAll("pre, code, script, style, mjx-container").forEach(part => part.remove());
    const raw = prose.textContent.match(/.{0,30}(\$\$|\\[a-zA-Z]{2,}|\$[^\s$]+\$).{0,30}/);
    if (raw) wrong.push(`TeX is seen as text: ${raw[0]}`);
    return wrong;
}"""


@pytest.fixture(scope="module")
def book() -> Path:
    """The folder that `make book` makes."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, ROOT / "book" / "build.py"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return ROOT / result.stdout.split()[-1].removesuffix("/index.html")


@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine; the system's package manager has one")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def pages(book: Path) -> list[Path]:
    """All pages but the plain listings of source code."""
    found = [page for page in book.rglob("*.html") if page.relative_to(book).parts[0] != "_static"]
    return sorted(page for page in found if not page.name.endswith(".py.html"))


class Attributes(HTMLParser):
    """What a page links to and loads: (tag, address)."""

    def __init__(self, page: Path):
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.names: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag, attributes):
        self.found += [(tag, value) for key, value in attributes if key in ("href", "src", "srcset") and value]
        self.names |= {value for key, value in attributes if key in ("id", "name") and value}


def test_every_notebook_and_every_module_has_its_place(book):
    assert {page.stem for page in (book / "notebooks").glob("*.html") if page.suffixes == [".html"]} == set(
        pipeline.names()
    )
    contents = (book / "index.html").read_text()
    assert all(f'href="notebooks/{name}.html"' in contents for name in pipeline.names())
    source = ROOT / "src"
    parts = [file.relative_to(source).with_suffix("").parts for file in source.glob("psrl/**/*.py")]
    modules = {".".join(part for part in names if part != "__init__") for names in parts} - {"psrl"}
    shown = re.findall(r"automodule:: (\S+)", "".join(file.read_text() for file in (ROOT / "book/api").glob("*.md")))
    assert sorted(shown) == sorted(modules), "book/api names every module once"


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(book):
    parsed = {page: Attributes(page) for page in book.rglob("*.html") if "_static" not in page.parts}
    wrong = []
    for page, attributes in parsed.items():
        for tag, address in attributes.found:
            if re.match(r"https?:|//", address) and tag != "a":
                wrong.append(f"{page.name} loads {address}")
            if re.match(r"\w+:|//", address):
                continue
            path, _, name = address.partition("#")
            target = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
            if not target.is_file():
                wrong.append(f"{page.name} links to {path}, which is not there")
            elif name and target in parsed and unquote(name) not in parsed[target].names:
                wrong.append(f"{page.name} links to {address}, where nothing has that name")
    assert not wrong, "\n".join(wrong)


def test_the_line_under_a_figure_leads_to_the_code_that_saves_it(book):
    for name in pipeline.names():
        lines = (ROOT / "notebooks" / f"{name}.py").read_text().split("\n")
        text = (book / "notebooks" / f"{name}.html").read_text()
        links = re.findall(rf'<small>figures/(\w+)\.svg, drawn by <a href="{name}\.py\.html#L-(\d+)"', text)
        assert len(links) == text.count("<figcaption><small>figures/")
        for figure, line in links:
            saving = "\n".join(lines[int(line) - 1 : int(line) + 2])
            assert re.match(rf'save\(\s*\w+,\s*"{figure}"', saving), f"line {line} of {name}.py does not save {figure}"


def test_every_page_is_whole_at_the_width_of_a_desk_and_of_a_phone(book, chromium):
    wrong = []
    page = chromium.new_page(viewport=DESKTOP)
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url}"))
    page.on("request", lambda request: request.url[:5] in ("file:", "data:") or wrong.append(f"asks {request.url}"))
    for path in pages(book):
        wrong.append(str(path.relative_to(book)))
        page.set_viewport_size(DESKTOP)
        page.goto(path.as_uri())
        page.evaluate("() => window.MathJax?.startup?.promise.then(() => null)")
        wrong += page.evaluate(WRONG)
        page.set_viewport_size(PHONE)
        width = page.evaluate("() => document.documentElement.scrollWidth")
        if width > PHONE["width"]:
            wrong.append(f"is {width} pixels wide on a phone")
        if wrong[-1] == str(path.relative_to(book)):
            wrong.pop()
    page.close()
    assert not wrong, "\n".join(wrong)


def test_the_convergence_table_is_readable_on_a_phone(book, chromium):
    page = chromium.new_page(viewport=PHONE)
    page.goto((book / "notebooks" / "12_convergence.html").as_uri())
    table = page.locator("table", has_text="MPC-PSRL, paper").first
    table.scroll_into_view_if_needed()
    letters = table.evaluate(
        "table => Math.min(...[...table.querySelectorAll('td')].map("
        "cell => parseFloat(getComputedStyle(cell).fontSize)))"
    )
    assert letters >= 12
    last = table.locator("tr").nth(1).locator("td").last
    last.scroll_into_view_if_needed()  # the table scrolls in its box, the page does not
    box = last.bounding_box()
    assert 0 <= box["x"] and box["x"] + box["width"] <= PHONE["width"]
    assert page.evaluate("() => window.scrollX") == 0
    page.close()


def test_search_finds_a_word_of_one_notebook(book, chromium):
    page = chromium.new_page(viewport=DESKTOP)
    page.goto((book / "index.html").as_uri())
    page.keyboard.press("Control+K")
    page.keyboard.type("Sudakov")
    page.keyboard.press("Enter")
    page.locator("#search-results li a").first.click()
    page.wait_for_url("**/03_variances.html**")
    assert "Sudakov" in page.locator("main").inner_text()
    page.close()


@pytest.fixture
def lab(tmp_path):
    """`make lab` in a copy of the repository; the address it opens, and the copy."""
    copy = tmp_path / "copy"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "build", "checkpoints", "__pycache__"))
    (copy / ".venv").symlink_to(ROOT / ".venv")
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    (tmp_path / "jupyter_server_config.json").write_text('{"ServerApp": {"allow_root": true, "port_retries": 100}}')
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PSRL_")}
    folders = ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    environment |= dict.fromkeys(folders, str(tmp_path)) | {"BROWSER": str(browser), "PSRL_SCALE": "small"}
    log = tmp_path / "log"
    with log.open("w") as output:
        command = [MAKE, "lab", "-o", ".venv/.ready"]
        server = subprocess.Popen(
            command, cwd=copy, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        for _ in range(240):
            assert server.poll() is None, log.read_text()
            if opened.is_file() and opened.read_text().endswith("\n"):
                break
            time.sleep(0.25)
        yield opened.read_text().strip(), copy
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


@pytest.mark.skipif(MAKE is None, reason="make is not on this machine")
def test_lab_opens_the_tour_and_runs_all_its_cells(lab, chromium):
    address, copy = lab
    tour = copy / "notebooks" / f"{pipeline.names()[0]}.ipynb"
    before = {file: file.read_bytes() for file in (ROOT / "notebooks").glob(f"{tour.stem}.*")}
    page = chromium.new_page(viewport=DESKTOP)
    page.goto(address)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)  # the kernel has started
    page.locator(".lm-MenuBar-itemLabel", has_text=re.compile("^Run$")).click()
    page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Run All Cells$")).click()
    waiting = page.locator(".jp-InputPrompt", has_text="[*]:")
    waiting.first.wait_for(timeout=20_000)
    page.wait_for_function(
        "() => ![...document.querySelectorAll('.jp-InputPrompt')].some(prompt => prompt.textContent.includes('*'))",
        timeout=240_000,
    )
    assert page.locator('[data-mime-type="application/vnd.jupyter.error"]').count() == 0
    old = tour.stat().st_mtime_ns
    page.keyboard.press("Control+S")
    for _ in range(100):
        if tour.stat().st_mtime_ns != old:
            break
        page.wait_for_timeout(100)
    page.close()
    cells = [cell for cell in nbformat.read(tour, as_version=4).cells if cell.cell_type == "code" and cell.source]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    errors = [output for cell in cells for output in cell.outputs if output.output_type == "error"]
    assert not errors
    assert {file: file.read_bytes() for file in before} == before, "the repository's own notebook was changed"
