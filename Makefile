# `make demo` and `make test` from a bare machine with Python and make: everything goes into .venv.

PYTHON ?= python3
VENV := .venv
INSTALLED := $(VENV)/installed
DEMO := communities:nodes=30000
ARGS ?=
CAPPED ?= numba torch torch_geometric cloudpickle

.PHONY: demo quick test newest lint docs clean

demo: $(INSTALLED)
	$(VENV)/bin/distgnn partition $(DEMO) --parts 2 --out demo/parts --overwrite
	$(VENV)/bin/distgnn train demo/parts --epochs 60 --hidden-feats 128 --lr 0.01 --run-dir demo/run --overwrite

# Unit tests: one process, generated graphs, seconds each; tests/README.md has the tiers.
quick: $(INSTALLED)
	@$(VENV)/bin/pytest -n 2 -rs -m "not mpi and not slow and not real" $(ARGS)

# Three workers on two cores: each waits a fifth of its time for ranks and programs that it starts.
test: $(INSTALLED)
	@$(VENV)/bin/pytest -n 3 -rs $(ARGS)

# The tests with the newest release of what pyproject.toml caps, in an environment of its own: for a nightly job.
newest:
	@$(MAKE) --no-print-directory VENV=.venv-newest .venv-newest/installed
	@.venv-newest/bin/pip install -qq --upgrade $(CAPPED)
	@.venv-newest/bin/pip show $(CAPPED) | grep -E "^(Name|Version)"
	@.venv-newest/bin/pytest -n 3 -rs $(ARGS)

# Every check runs, also after one that fails; the first exit code that is not 0 is the answer.
lint: $(INSTALLED)
	@code=0; \
	$(VENV)/bin/ruff check . || code=$$?; \
	$(VENV)/bin/ruff format --check . || code=$$?; \
	$(VENV)/bin/python tests/house/check_types.py || code=$$?; \
	if [ -f tests/house/check_links.py ]; then $(VENV)/bin/python tests/house/check_links.py || code=$$?; fi; \
	$(VENV)/bin/python tests/house/check_prose.py || code=$$?; \
	exit $$code

docs: $(INSTALLED)
	@$(VENV)/bin/python -c 'import mkdocs, material, mkdocstrings' 2>/dev/null || $(VENV)/bin/pip install -qq --editable '.[docs]'
	@$(VENV)/bin/python tests/house/make_command_line.py
	@$(VENV)/bin/python tests/house/make_layers.py
	@$(VENV)/bin/python tests/house/make_formats.py
	@$(VENV)/bin/python tests/house/make_site.py

clean:
	@echo "removing $(VENV), build files and caches"
	@rm -rf $(VENV) .venv-newest build dist site *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Editable: a change to the code needs no new installation, a change to pyproject.toml makes one.
$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "DistGNN needs Python 3.10 or newer, $(PYTHON) is not: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { echo "no venv module: on Debian, apt-get install python3-venv" >&2; exit 2; }
	@echo "installing DistGNN, its MPI and the test tools into $(VENV) (once; some minutes)"
	@$(VENV)/bin/pip install -qq --editable '.[all]'
	@touch $@
