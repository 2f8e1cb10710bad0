"""Sphinx: how the site is made of docs/*.md, the docstrings, the errors and the examples.

    python -m sphinx -n -W -b html docs build/site

makes plain files that need no network. `docs/site` has the parts that are ours.
"""

import logging
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

sys.path.insert(0, str(ROOT))
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
os.environ["MATPLOTLIBRC"] = str(ROOT / "docs" / "matplotlibrc")  # kernels of notebooks read both
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # pages say that they were made on a CPU

# Kernels and what runs them say only what is wrong.
KERNELS = ROOT / "build" / "ipython"
(KERNELS / "profile_default").mkdir(parents=True, exist_ok=True)
(KERNELS / "profile_default" / "ipython_kernel_config.py").write_text(
    f"c = get_config()\nc.IPKernelApp.log_level = {logging.ERROR}\n", "utf-8"
)
os.environ["IPYTHONDIR"] = str(KERNELS)
logging.getLogger("traitlets").setLevel(logging.WARNING)

from tracegraph import __version__  # noqa: E402

project = "tracegraph"
author = "the authors of tracegraph"
copyright = "the authors of tracegraph, Apache-2.0"
version = release = __version__
html_title = f"tracegraph {release}"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "docs.site.extension",
]
exclude_patterns = ["figures", "site", "reference/numpy_lib"]
keep_warnings = True

# Markdown: the dialect of GitHub, where the same files are read.
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["mystnb.unknown_mime_type"]

# Notebooks: executed in the build, and again only after a change.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks")
nb_execution_timeout = 60
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

# Docstrings: one backtick is code; sections are Google's.
default_role = "literal"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 110
napoleon_numpy_docstring = False
napoleon_use_rtype = False
# Types in signatures are those of typing and NumPy; errors must be ours, or these of NumPy.
nitpick_ignore_regex = [
    ("py:class|py:data|py:obj", r".*"),
    ("py:exc", r"(numpy\..*|AxisError|LinAlgError)"),
]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_favicon = "_static/favicon.svg"
html_math_renderer = "mathml"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ |In \[\d*\]: "
copybutton_prompt_is_regexp = True
