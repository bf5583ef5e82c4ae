project = "halfseen"
copyright = "the halfseen developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "pydata_sphinx_theme"
exclude_patterns = ["_build"]
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
