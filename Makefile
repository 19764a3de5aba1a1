# Every target builds .venv when it is missing or older than the files that describe it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The same versions everywhere, build requirements included.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test attack torch test-torch coverage lint format bench docs package paper figures lock clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.run: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dualtap needs Python 3.11 or later; pass PYTHON=/path/to/python3")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[report]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

# The report is tested in a real browser. Where packages may be installed, it is; elsewhere those
# tests say that they are skipped.
$(VENV)/.browser: $(VENV)/.run
	@if command -v chromium || command -v chromium-browser || command -v google-chrome; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
		apt-get -qq install --yes --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	else echo "no Chromium here: the tests of the report in a browser will be skipped" >&2; fi
	@touch $@

# PyTorch, for the tests of its tensors: several hundred MB, so only where it is asked for; without
# it, those tests say that they are skipped. It is in no constraint, because only pip finds the small
# build for CPUs.
$(VENV)/.torch: $(VENV)/.dev
	$(BIN)/pip install --quiet torch==2.13.0
	@touch $@

demo: $(VENV)/.run ## Recover twenty patterns from two hundred samples, and see it
	$(BIN)/dualtap demo --force

# One process per core, and one BLAS thread in each: threads that wait for each other on a full
# machine take many times as long. Numba's threads sleep while they wait, rather than spin.
PYTEST := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -n auto --dist worksteal

test: $(VENV)/.dev $(VENV)/.browser ## Run the test suite
	$(PYTEST)

attack: $(VENV)/.dev ## Attack it for 20 minutes at most: arrays, files, kills; writes benchmarks/results/reliability.md
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive $(BIN)/python -m benchmarks.attack --minutes 20

torch: $(VENV)/.torch ## Install PyTorch: then no test is skipped

test-torch: $(VENV)/.torch ## Run the tests that need PyTorch, which it installs
	CI=true $(PYTEST) -m torch tests

coverage: $(VENV)/.dev $(VENV)/.browser $(VENV)/.torch ## Run it with coverage, 95 % at least
	$(PYTEST) --cov --cov-report=term

lint: $(VENV)/.dev ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev ## Rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev ## Measure speed against references; writes benchmarks/results/
	$(BIN)/python -m benchmarks

docs: $(VENV)/.dev ## Build the documentation into docs/_build/html
	rm -rf docs/generated # a page of a name that is gone would be a warning
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

# In an environment of its own, as a user would install it: the wheel is imported, not the source.
package: $(VENV)/.run ## Build sdist and wheel into dist/, check both, and try the wheel
	rm -rf dist build/wheel
	$(BIN)/pip install --quiet --editable '.[package]'
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/pip install --quiet "$$(echo dist/*.whl)[report]"
	cd build && wheel/bin/dualtap demo --force --quiet --output demo.png
	cd build && wheel/bin/dualtap dataset groups --force --quiet -o groups.csv
	cd build && wheel/bin/dualtap fit groups.csv --labels label --force --quiet -o model.npz
	cd build && wheel/bin/dualtap show model.npz --data groups.csv --labels label --force --report report.html

paper: $(VENV)/.run ## Run the paper's trials at its own counts (2.5 hours on two cores, resumable) into docs/results
	$(BIN)/dualtap reproduce all --full --out results --export docs/results \
		$(if $(wildcard docs/results/archive.json),--from docs/results)

figures: $(VENV)/.run ## Draw the paper's figures and judge its claims from docs/results into docs/
	$(BIN)/dualtap reproduce claims --full --from docs/results --out results/drawn
	mkdir -p docs/figures
	cp results/drawn/figures/*.png results/drawn/figures/*.svg docs/figures/
	cp results/drawn/claims.md results/drawn/figures.md docs/

lock: ## Resolve constraints.txt anew (needs uv)
	uv pip compile --quiet --universal --all-extras --python-version 3.11 --no-header --no-annotate \
		pyproject.toml requirements-build.in --output-file constraints.txt

clean: ## Remove everything that was built
	rm -rf $(VENV) .peers docs/_build docs/generated docs/tutorials build dist .coverage .mypy_cache .pytest_cache .ruff_cache
