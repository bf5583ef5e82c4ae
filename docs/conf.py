"""How the site is built: ``make docs``. Nothing on its pages is loaded from the network."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import public  # noqa: E402 - it is found through the line above

import halfseen  # noqa: E402

project = "halfseen"
copyright = "the halfseen developers"
version = release = halfseen.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "class_signatures",
    "command_help",
    "mathml",
]
exclude_patterns = ["_build", "examples", "api/backreferences"]
templates_path = ["_templates"]
nitpicky = False

# Markdown
myst_enable_extensions = [
    "amsmath",
    "attrs_block",
    "colon_fence",
    "deflist",
    "dollarmath",
    "substitution",
]
myst_substitutions = {"release": release}
myst_heading_anchors = 3
html_math_renderer = "mathml"

# Reference
autosummary_generate = True
autosummary_context = {
    "members_by_class": public.members_by_class(),
    "kinds": public.kinds_of_classes(),
}
# Fit.html and fit.html would be one file where upper and lower case are the same.
autosummary_filename_map = {"halfseen.Fit": "halfseen.Fit-class"}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what is taken, in words
autodoc_preserve_defaults = True
toc_object_entries_show_parents = "hide"  # names alone fit in the margin
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "image_srcset": ["2x"],
    "thumbnail_size": (720, 360),
    "image_scrapers": ("matplotlib",),
    "capture_repr": (),
    "reset_modules": ("matplotlib", "strict_warnings.reset"),
    "reset_modules_order": "both",
    "abort_on_example_error": True,
    "backreferences_dir": "api/backreferences",
    "doc_module": ("halfseen",),
    "prefer_full_module": {r"halfseen\.(solvers|samplers|metrics|planning|diagnostics)"},
    "inspect_global_variables": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # seconds: no page says how long it took on somebody's machine
    "write_computation_times": False,
    "download_all_examples": False,
    "notebook_extensions": set(),
}

# Pages
html_theme = "pydata_sphinx_theme"
html_title = "halfseen"
html_static_path = ["_static"]
html_css_files = ["halfseen.css"]
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"index": [], "start": []}
html_theme_options = {
    "logo": {
        "image_light": "_static/logo-light.svg",
        "image_dark": "_static/logo-dark.svg",
        "text": "halfseen",
        "alt_text": "halfseen: home",
    },
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
