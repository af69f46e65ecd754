"""Sphinx's settings for the book: every committed notebook with its outputs, and the API. Nothing needs a network.

`book/build.py` copies this file beside the pages it gathers.
"""

import json
import re
from importlib.resources import files
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

project = html_title = "MPC-PSRL"

extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["README.md"]  # parts of it are included in index.md
html_theme = "sphinx_book_theme"
html_theme_options = {
    "home_page_in_toc": True,
    "show_toc_level": 2,
    "use_download_button": True,
    "use_fullscreen_button": False,
    "navbar_persistent": [],  # the search field is in the side bar
    "footer_content_items": [],
}
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_favicon = "_static/icon.svg"

# Notebooks are committed with their outputs. A committed output holds no widget, so no script of widgets is needed.
nb_execution_mode = "off"
nb_ipywidgets_js = {}
nb_render_markdown_format = "myst"
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"
myst_enable_extensions = ["dollarmath"]
myst_dmath_double_inline = True  # as in JupyterLab, $$ may stand within a paragraph
myst_heading_anchors = 3

# MathJax as one file that carries its glyphs: it needs no server, no font and no network.
html_static_path.append(str(files("sphinx-mathjax-offline") / "static" / "mathjax" / "tex-svg.js"))
mathjax_path = "tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
add_module_names = False
default_role = "code"  # single backquotes in docstrings are code, as in Markdown


def fold_code(app, docname, source):
    """Fold code that draws or is long: in a book prose, numbers and figures come first, and code is one click away."""
    if not docname.startswith("notebooks/"):
        return
    notebook = json.loads(source[0])
    for cell in notebook["cells"]:
        code = "".join(cell["source"])
        if cell["cell_type"] == "code" and (re.search(r"^save\(", code, re.MULTILINE) or code.count("\n") > 15):
            cell["metadata"].setdefault("tags", []).append("hide-input")
    source[0] = json.dumps(notebook)


def link_sources(app, pagename, templatename, context, doctree):
    """A figure names the line that draws it: let the link lead to that line of the page `write_sources` makes."""
    if "body" in context:
        context["body"] = re.sub(r'href="(\d\d_\w+\.py)#L(\d+)"', r'href="\1.html#L-\2"', context["body"])


def as_markdown(app, what, name, obj, options, lines):
    """Docstrings are written as Markdown is, so that |x|, f* and an indented block of code need no escapes."""
    text = "\n".join(lines)
    pieces = re.split(r"(`[^`]*`|\*\w[^*\n]*\*)", text)  # code and *stressed* words stay as they are
    pieces[::2] = [re.sub(r"\||\*(?! )", r"\\\g<0>", piece) for piece in pieces[::2]]
    lines[:] = re.sub(r":(\n\n {4})", r"::\1", "".join(pieces)).split("\n")


def write_sources(app, exception):
    """The .py of every notebook as a page with numbered lines."""
    if exception:
        return
    for script in sorted(Path(app.srcdir, "notebooks").glob("[0-9]*.py")):
        form = HtmlFormatter(full=True, title=script.name, linenos="inline", lineanchors="L", anchorlinenos=True)
        page = highlight(script.read_text(), PythonLexer(), form)
        Path(app.outdir, "notebooks", f"{script.name}.html").write_text(page)


def setup(app):
    app.connect("autodoc-process-docstring", as_markdown)
    app.connect("source-read", fold_code)
    app.connect("html-page-context", link_sources)
    app.connect("build-finished", write_sources)
