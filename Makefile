# Each target does all of its own set-up: python3 and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test lowest browser lint bench docs install clean

demo: $(VENV)/base
	$(BIN)/halfseen demo

test: $(VENV)/test browser lint
	SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

# The tests that matter on the oldest versions that are allowed: of files and frames, of commands, of fits.
LOWEST := tests/data tests/cli/test_fit.py tests/cli/test_outputs.py tests/cli/test_others.py \
	tests/test_files.py tests/test_failing_files.py tests/test_results.py tests/solvers/test_fit.py \
	tests/scaling/test_engines.py tests/report/test_content.py
lowest: .lowest/all
	SCIPY_ARRAY_API=1 .lowest/bin/python -m pytest $(LOWEST)

.lowest/all: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv .lowest
	.lowest/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints-lowest.txt \
		--editable ".[report,parquet,dask,formulas]" clarabel hypothesis mpmath pandas polars pytest
	touch $@

# The tests of the report look at it in a real browser, which no Python package brings.
browser:
	@tools/install_chromium

lint: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# All of them, or BENCH=task; QUICK=1 for a short version. Tools in R take part where Rscript is installed.
bench: $(VENV)/bench
	$(BIN)/python -m benchmarks $(BENCH) $(if $(QUICK),--quick)

docs: $(VENV)/docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

install: $(VENV)/all

clean:
	rm -rf $(VENV) .lowest docs/_build docs/auto_examples docs/api/generated docs/api/backreferences

# A stamp for each set of requirements; touching pyproject.toml or the constraints makes them anew.
$(VENV)/python:
	@$(PYTHON) -c 'import sys; sys.exit("halfseen needs Python 3.11 or newer; try make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/base: $(VENV)/python pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

$(VENV)/%: $(VENV)/base
	$(PIP) --editable ".[$*]"
	touch $@
