# Everything here works from a fresh clone with Python >= 3.11 and make, nothing else installed.

VENV := .venv
BIN  := $(VENV)/bin
PYTHON ?=
WORKERS ?= auto
CORES = $$(getconf _NPROCESSORS_ONLN)

# One process per core instead of threads: two BLAS threads on a busy core wait for each other.
export OPENBLAS_NUM_THREADS ?= 1
# Hundreds of processes are started here: what Python compiles, it keeps, as numba does.
export PYTHONDONTWRITEBYTECODE :=
# What tests and documents call by name is what is installed here.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help install demo test test-long test-elsewhere test-rehearsal check style types layers docs docs-check notebooks notebooks-check \
    site oracle torchrec wheel bench promise promise-torch held-out coverage rehearse campaign \
    reproduce clean

help:  ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
install: $(VENV)/.has-run  ## Make .venv with what running takes
demo: $(VENV)/.has-run  ## Set up what running takes, then simulate the first scenario
	@$(BIN)/cprsim run scenarios/quickstart.yaml
# All tests of a file run in one process: what they share is made once.
test: $(VENV)/.has-test  ## Run the tests, one process per core (WORKERS=1 for one)
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile -q -m "not long"
test-long: $(VENV)/.has-test  ## Run the tests that take their time: damaged inputs, kills, random scenarios
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal -q -m long --ignore=tests/rehearsal
# What differs on another processor: OpenBLAS's kernels, glibc's and numpy's loops, numba's machine code.
ELSEWHERE := OPENBLAS_CORETYPE=Prescott GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA \
    NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4 AVX512_ICL AVX512_SPR" NUMBA_CPU_NAME=generic
test-elsewhere: $(VENV)/.has-test  ## Goldens and fits as on another processor (x86 without AVX2 and FMA)
	@$(ELSEWHERE) $(BIN)/pytest -n $(WORKERS) --dist loadfile -q -m "not long" tests/golden tests/fitting
test-rehearsal: $(VENV)/.has-test  ## Run the long tests of rehearsals (5 minutes on an idle machine; not part of check)
	@$(BIN)/pytest -q -m long tests/rehearsal
check: $(VENV)/.has-check  ## Everything that has to hold before a commit
	@printf '%s\n' style types layers site | xargs -n 1 -P $(CORES) .ci/stage
	@printf '%s\n' test test-elsewhere test-long docs-check notebooks-check | xargs -n 1 .ci/stage
style: $(VENV)/.has-test
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/ruff check --quiet .
types: $(VENV)/.has-test
	@$(BIN)/mypy
layers: $(VENV)/.has-test
	@$(BIN)/lint-imports --no-logo
docs: $(VENV)/.has-test  ## Bring the outputs and figures shown in the documentation up to date
	@$(BIN)/cog -I docs -r $(COGGED)
docs-check: $(VENV)/.has-test
	@printf '%s\n' $(COGGED) | xargs -n 1 -P $(CORES) $(BIN)/cog -I docs --check --diff --check-fail-msg="run: make docs"
# Strict: a warning, a lost link or anchor, or a page that is in no menu ends it.
site: $(VENV)/.has-check  ## Build the documentation as a site, in build/site, which opens without a server
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
notebooks: $(VENV)/.has-check  ## Run the notebooks and store their outputs
	@printf '%s\n' notebooks/*.ipynb | sort -r | xargs -n 1 -P $(CORES) $(BIN)/python notebooks/remake.py
notebooks-check: $(VENV)/.has-check
	@printf '%s\n' notebooks/*.ipynb | sort -r | xargs -n 1 -P $(CORES) $(BIN)/python notebooks/remake.py --check
oracle: $(VENV)/.has-oracle  ## Compare the training kernel with PyTorch, run docs/own-model.md (installs its CPU build)
	@$(BIN)/pytest -q -m "not long" tests/torch
torchrec: $(VENV)/.has-oracle  ## Try TorchRec's tables in `cprsim.torch` (installs its CPU build; outside CI)
	@$(BIN)/pip install -q -c constraints.txt fbgemm-gpu-cpu==1.8.0 tensordict==0.15.3 torchmetrics==1.0.3 pyre-extensions==0.0.32 tqdm
	@$(BIN)/pip install -q --no-deps torchrec==1.9.2
	@$(BIN)/pytest -q -n 0 tests/torch/test_torchrec.py
wheel: $(VENV)/.has-test  ## Build the package, try its wheel in an empty environment (about 3 minutes)
	@tests/installed/try_wheel $(BIN)/python
bench: $(VENV)/.has-run  ## Measure the simulator's speed
	@for script in benchmarks/bench_*.py; do $(BIN)/python "$$script" || exit 1; done
rehearse: $(VENV)/.has-run  ## Run a scenario on real processes beside its prediction (about 3 minutes)
	@$(BIN)/cprsim rehearse scenarios/rehearsal.yaml --strategies full,partial,cpr,cpr-mfu \
	    --set job.useful='20 s' --set kernel.samples=66000
campaign: $(VENV)/.has-run  ## Rehearse ten failure traces and one run of 20 minutes (up to 3 hours; resumes)
	@$(BIN)/python -m benchmarks.campaign
promise: $(VENV)/.has-run  ## Compare the selector's intervals with losses measured on fresh data (half an hour of CPU time)
	@$(BIN)/python benchmarks/promise.py
promise-torch: $(VENV)/.has-oracle  ## The promise for a PyTorch model
	@$(BIN)/python benchmarks/promise.py --torch
held-out: $(VENV)/.has-oracle  ## Compare predicted losses with runs that took no part in a fit (CPRSIM_DATA: real clicks too)
	@$(BIN)/python benchmarks/held_out.py
coverage: $(VENV)/.has-test  ## How often intervals hold the truth and warnings come (CASES='fits ledger': these alone)
	@$(BIN)/python -m benchmarks.interval_coverage $(CASES) --journal results/coverage.json
reproduce: $(VENV)/.has-run  ## Make the paper's results again and keep them in results/reproduction
	@$(BIN)/cprsim reproduce --keep
clean:  ## Remove the virtual environment and every cache; results stay
	@rm -rf $(VENV) $(VENV).unfinished build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Files with blocks that cog fills with the output of a command.
COGGED := $(shell grep -lF '[[[cog' docs/*.md README.md)

# .venv/.has-run, .has-test, .has-check and .has-oracle say what is installed, until pyproject.toml or constraints.txt change.
# `.venv.unfinished` names the process that installs: where an earlier one was cut off, the next begins afresh.
EXTRAS_run := .
EXTRAS_test := .[dev]
EXTRAS_check := .[dev,notebooks,site]
EXTRAS_oracle := .[dev,torch]
COVERS_test := run
COVERS_check := run test
COVERS_oracle := run test
$(VENV)/.has-%: pyproject.toml constraints.txt
	@EXTRAS="$(EXTRAS_$*)" VENV=$(VENV) PYTHON="$(PYTHON)" ./.ci/install
	@touch $@ $(addprefix $(VENV)/.has-,$(COVERS_$*))
