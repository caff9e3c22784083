# The two commands of the README, and what CI calls. Each makes its own virtual environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# where bytecode isn't kept, each process that the tests start compiles all it imports anew
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo nightly-demo test test-all test-lowest test-pythons docs reproduce
.PHONY: lint lint-types lint-code lint-workflows fuzz faults lock wheel-check gpu-check slurm-check clean
.DEFAULT_GOAL := help

help:
	@echo "make demo         compare two commits of a small PyTorch project"
	@echo "make nightly-demo find what moved over 60 commits"
	@echo "make test         run the tests without processes, and a session of each main path"
	@echo "make test-all     run all tests"
	@echo "make test-lowest  run a part of them with the oldest versions that are allowed"
	@echo "make test-pythons run a part of them with Python 3.12 and 3.13"
	@echo "make reproduce    replay recorded sessions through the rules, in a minute"
	@echo "make lint         ruff, mypy, import contracts, the workflows"
	@echo "make fuzz         hand 100,000 damaged documents to each reader of strangers' bytes"
	@echo "make faults       run commands that write on disks that fail, and kill them"
	@echo "make docs         build the documentation's site in build/docs"
	@echo "make lock         write the commenting job's requirements anew, from PyPI"
	@echo "make wheel-check  build the wheel and try it in a fresh environment"
	@echo "make gpu-check    tests and measurements that need a GPU"
	@echo "make slurm-check  two shards on a Slurm of two nodes: apt-get install slurm-wlm munge"

# pip, not uv: the pinned torch may come from a local index that only pip is told of
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip -c constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[torch,postgres]' --group dev
	# pip compiles on one core; like it, pass over what packages have for newer Pythons, over their tests, and over what is not imported
	$(BIN)/python -m compileall -qq -j 0 -x '/tests/|/testing/_internal/|/(debugpy|fontTools|mypy|mypyc|torchgen)/' $(VENV)/lib || true
	touch $@

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py demo-output

nightly-demo: $(VENV)/.installed
	$(BIN)/python examples/nightly_demo.py nightly-demo-output

reproduce: $(VENV)/.installed
	$(BIN)/python -m benchmarks.corpus score

# a module's tests stay together: they share sessions, which two processes would both run
TESTS := $(BIN)/python -m pytest --numprocesses=2 --dist=loadfile --no-loadscope-reorder --durations=15

test: $(VENV)/.installed
	$(TESTS) -m "core or not (processes or torch or compile or slow)"

test-all: $(VENV)/.installed
	$(TESTS)

test-lowest: $(VENV)/.installed
	$(BIN)/python -m tests.environments lowest

test-pythons: $(VENV)/.installed
	$(BIN)/python -m tests.environments 3.12 3.13

lint: lint-types lint-code lint-workflows

lint-types: $(VENV)/.installed
	$(BIN)/mypy

lint-code: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

lint-workflows: $(VENV)/.installed
	$(BIN)/zizmor --offline --no-progress .github/workflows action.yml actions
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/jactionlint .github/workflows/*.yml action.yml actions/*/action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml actions/*/action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml

faults: $(VENV)/.installed
	FAULTS_MOST=24 $(BIN)/python -m pytest -p no:xdist --timeout=0 tests/test_faults.py

fuzz: $(VENV)/.installed
	FUZZ_INPUTS=100000 $(BIN)/python -m pytest --numprocesses=2 --timeout=0 tests/test_fuzz.py

docs: $(VENV)/.installed
	$(BIN)/python docs/site/build.py build/docs

lock: $(VENV)/.installed
	$(BIN)/python -m tests.workflows.locking

wheel-check: $(VENV)/.installed
	$(BIN)/python -m tests.wheel_check

clean:
	rm -rf $(VENV) demo-output nightly-demo-output dist build

# On a machine with a CUDA device, in an environment that has its torch: make gpu-check BIN=/path/to/bin
gpu-check:
	$(BIN)/python -m benchmarks.gpu.check --json gpu-check.json

slurm-check: $(VENV)/.installed
	CHECK_SLURM=1 $(BIN)/python -m pytest -p no:xdist tests/slurm/test_real_slurm.py
