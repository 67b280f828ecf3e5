# The commands of the course. Each sets up what it needs and can be rerun; `make` lists them.

# The first Python 3.11 or newer; another one: make PYTHON=/path/to/python course
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3.14 python3 python,\
  $(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
BIN := .venv/bin
READY := .venv/ready
INSTALL := pip install -r requirements.txt -c constraints.txt -e .
CODE := seqlib tests book/_ext $(wildcard benchmarks nbgrader_config.py)
ASSIGNMENTS := attention

# One thread a process: the tests and the chapters already run side by side.
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DELETE_ON_ERROR:
.PHONY: help course test book site bench experiments lint wheel readme

help: ## list the commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 22

# ---------------------------------------------------------------- set-up

$(READY): requirements.txt constraints.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: the course needs Python 3.11 or newer, and found" \
	  "none; install it, or name it: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Setting up .venv with $$($(PYTHON) --version); the first time takes some minutes."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { echo "error: $(PYTHON) -m venv" \
	  "failed; on Debian and Ubuntu install the package python3-venv" >&2; exit 1; }
	@$(BIN)/python -m $(INSTALL) || { echo "error: pip could not install the requirements;" \
	  "its message above says what is missing" >&2; exit 1; }
	@touch $@

# ---------------------------------------------------------------- the two commands

course: $(READY) ## book, release, sample class graded in the sandbox, class report
	@echo "1/4  The book"
	@$(MAKE) --no-print-directory book
	@echo "2/4  The assignments"
	@for name in $(ASSIGNMENTS); do $(BIN)/seqlib release $$name || exit 1; done
	@echo "3/4  A sample class, graded in the sandbox"
	@$(BIN)/python -m seqlib.grading.samples attention
	@$(BIN)/seqlib grade attention
	@echo "4/4  The class report"
	@$(BIN)/seqlib report attention
	@echo
	@echo "The book          _build/html/index.html"
	@echo "The assignments   assignments/attention/attention.ipynb"

test: $(READY) book ## the tests
	@$(BIN)/pytest -n 2 --dist worksteal

# ---------------------------------------------------------------- parts

book: $(READY) ## the book alone, into _build/html; every warning is an error
	@$(BIN)/jupyter-book build . -W -n --keep-going

site: book ## the site as it is served
	@echo "The site is the book: _build/html. Notebooks that run in the browser are not part" \
	  "of it yet."

bench: $(READY) ## speed beside what a user would pick instead
	@$(BIN)/python -m benchmarks

experiments: $(READY) ## rerun the long computations and write their result files
	@$(BIN)/python -m seqlib.experiments

lint: $(READY) ## style of the code
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)

wheel: $(READY) ## the package seqlib-course, into dist
	@rm -rf build # files of an earlier state would go into the package
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/seqlib_course-*.whl

readme: $(READY) ## write the topic table into README.md anew
	@PYTHONPATH=book/_ext $(BIN)/python -m course_book
