# make demo and make test do everything on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
ORACLES := $(VENV)/.oracles
EXTRAS := $(VENV)/.extras
DOCS := $(VENV)/.docs
INCLUDED := dev,mujoco

# Where this variable is set, every process would compile all modules of JAX from their sources.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo reproduce test check test-slow torture docs lint types bench tune clean

help:
	@echo "make demo        install, and see what exploration does, in a minute or two (demo/)"
	@echo "make reproduce   install, and reproduce the paper in quick form (reproduction/)"
	@echo "make test        install; lint, types, tests"
	@echo "make check       lint, types and the tests of the core, in less than a minute"
	@echo "make test-slow   learning checks of minutes, the site, Ray, videos, trackio, more cases of other tests"
	@echo "make torture     kills, bad values, bad environments, hostile files; QUICK=1 takes minutes"
	@echo "make docs        the documentation as a site (docs/_build/html/index.html)"
	@echo "make bench       speed beside other libraries (benchmarks/README.md); QUICK=1 takes minutes"
	@echo "make tune        search the settings of every agent again (docs/tuning/)"

$(INSTALLED): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("rove needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[$(INCLUDED)]' || \
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[dev,mujoco]'
	@touch $@

demo: $(INSTALLED)
	$(BIN)/rove demo

reproduce: $(INSTALLED)
	$(BIN)/rove reproduce --quick

# Libraries that tests compare with, or write for. Without them those tests are skipped. A new
# environment gets them in one installation, which is quicker than two.
test check: INCLUDED := dev,mujoco,oracles,tensorboard
# gymnax asks for an older Gymnasium than the newest, with which it works all the same.
$(ORACLES): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check \
		--editable '.[oracles,tensorboard]' && \
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --no-deps \
		'gymnax>=1.0' && touch $@ || echo "their tests are skipped"

# Sphinx and a Jupyter kernel. Without them `make test-slow` skips the tests of site and notebook.
$(DOCS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check \
		--editable '.[docs]' && touch $@ || echo "the tests of the site are skipped"

docs: $(DOCS)
	$(BIN)/python -m sphinx -q -W --keep-going -n docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Tests compile far more than they run. Without LLVM's optimisations, and without the emitters of
# fusions, compiling takes a fifth of the time, and the small programs of tests run half as fast.
# `make test-slow` uses the compiler as it is.
PYTEST := XLA_FLAGS="$$XLA_FLAGS --xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1 \
	--xla_cpu_use_fusion_emitters=false" \
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not slow' -rs

test: lint types $(ORACLES)
	$(PYTEST)

check: lint types $(ORACLES)
	$(PYTEST) -k 'not codes' tests/test_layout.py tests/returns tests/core/test_identities.py \
		tests/core/test_entropy.py tests/posteriors/test_protocol.py tests/posteriors/test_mean_field.py

$(EXTRAS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable '.[ray,watch,trackio]'
	@touch $@

test-slow: $(ORACLES) $(EXTRAS) $(DOCS)
	$(BIN)/python -m pytest -m slow -rs

torture: $(ORACLES) $(EXTRAS)
	$(BIN)/python tests/torture $(if $(QUICK),--quick) --record docs/results/reliability.md

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/pyrefly check --python-interpreter-path $(BIN)/python

bench: $(INSTALLED)
	$(BIN)/python benchmarks/bench.py $(if $(QUICK),--quick)

tune: $(INSTALLED)
	for search in figure-2 figure-3 figure-4 scoreboard deep-sea; do \
		$(BIN)/rove reproduce tuning $$search --out docs/tuning/$$search && \
		cp docs/tuning/$$search/tuned.json src/rove/agents/defaults/$$search.json || exit 1; \
	done

clean:
	rm -rf $(VENV) build dist docs/_build .pytest_cache .ruff_cache
