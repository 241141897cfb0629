# `make demo` and `make test` need Python 3.11 or newer and nothing else: each creates its
# environment once and reuses it the next time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test attack bench bench-gpu docs format clean

demo: $(VENV)/.runtime
	$(BIN)/credalearn demo

test: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 -rs

attack: $(VENV)/.dev
	$(BIN)/python scripts/attack.py

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run.py

# On a machine with a CUDA GPU, with the Python that knows it: make bench-gpu GPU_PYTHON=python3
GPU_PYTHON ?= $(BIN)/python
bench-gpu:
	PYTHONPATH=src:experiments $(GPU_PYTHON) benchmarks/gpu.py

docs: $(VENV)/.dev
	$(BIN)/python scripts/fill_docs.py docs/*.md docs/*/*.md experiments/docs/*.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "The site is in site/. To read it: $(BIN)/python -m http.server -d site"

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) demo-output site

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "credalearn needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp per set of packages: pip runs again only when the requirements have changed.
$(VENV)/.runtime: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.dev: pyproject.toml experiments/pyproject.toml constraints.txt tests/reference-packages.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e ./experiments
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/reference-packages.txt
	touch $@ $(VENV)/.runtime
