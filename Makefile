# The commands of the course. Each sets up what it needs and can be rerun; `make` lists them.

# The first Python 3.11 or newer; another one: make PYTHON=/path/to/python course
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3.14 python3 python,\
  $(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
BIN := .venv/bin
READY := .venv/ready
SITE := PYTHONPATH=book/_ext $(BIN)/python -m course_site
INSTALL := pip install -r requirements.txt -c constraints.txt -e .
CODE := seqlib tests book/_ext $(wildcard benchmarks nbgrader_config.py)
ASSIGNMENTS := $(sort $(notdir $(wildcard solutions/*)))
REPORT := grading/reports/attention/index.html
MISSING := "import json; print(', '.join(f['protection'] for f in \
  json.load(open('.venv/doctor.json')) if not f['holds']))"

# One thread a process: the tests and the chapters already run side by side.
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DELETE_ON_ERROR:
.PHONY: help course sample-class test slow book site bench listing experiments lint wheel readme matrix

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
	@echo "== 1/4  The book"
	@$(MAKE) --no-print-directory book
	@echo "== 2/4  The assignments"
	@$(BIN)/seqlib release $(ASSIGNMENTS)
	@echo "== 3/4  A sample class"
	@$(MAKE) --no-print-directory sample-class
	@echo "== 4/4  Done"
	@echo "The book           _build/html/index.html"
	@for name in $(ASSIGNMENTS); do \
	  echo "An assignment      assignments/$$name/$$name.ipynb"; done
	@if test -f $(REPORT); then \
	  echo "The graded class   grading/autograded, gradebook grading/gradebook.db"; \
	  echo "Its report         $(REPORT)"; fi

# Never mixed with a class of the instructor's own. Where the sandbox is not safe, only the
# samples that a sandbox is not needed for.
sample-class: $(READY)
	@for dir in grading/submitted/*/; do \
	  test ! -d "$$dir" || ls "$$dir"*/.sample > /dev/null 2>&1 || own="$$dir"; \
	done; \
	if test -n "$$own"; then \
	  echo "grading/submitted holds a class of your own: the sample class is left out."; \
	  exit 0; \
	fi; \
	if $(BIN)/seqlib doctor --json > .venv/doctor.json 2> .venv/doctor.txt; then \
	  harmless=; trust=; \
	else \
	  echo "Only harmless samples are graded, since this machine protects too little; missing:" \
	    "$$($(BIN)/python -c $(MISSING) 2> /dev/null || tail -n 1 .venv/doctor.txt)"; \
	  harmless=--harmless; trust=--trust-students; \
	fi; \
	$(BIN)/python -m seqlib.grading.samples attention $$harmless && \
	$(BIN)/seqlib grade attention $$trust && \
	$(BIN)/seqlib report attention

test: $(READY) book ## the tests
	@$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

slow: $(READY) book ## the tests that take long: sample classes, red team, books that must fail
	@$(BIN)/pytest -n 2 --dist worksteal --durations 30 -m slow

# ---------------------------------------------------------------- parts

book: $(READY) ## the book alone, into _build/html; every warning is an error
	@$(BIN)/jupyter-book build . -W -n --keep-going

# WHEELS names a folder with official wheels of Pyodide; without it they come from PyPI.
site: $(READY) ## the book with notebooks that run in the browser, as a PDF, and an archive
	@$(SITE) prepare $(if $(WHEELS),--wheels "$(WHEELS)")
	@$(MAKE) --no-print-directory book
	@$(SITE) pdf
	@$(SITE) pack

bench: $(READY) ## speed beside what a user would pick instead
	@for file in $$(grep -l '^if __name__' benchmarks/*.py); do \
	  name=$$(basename $$file .py); \
	  echo "== $$name"; \
	  $(BIN)/python -m benchmarks.$$name || exit 1; \
	done

listing: $(READY) ## every function with its equations and what it is tested against
	@PYTHONPATH=tests $(BIN)/python tests/listing.py

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

matrix: $(READY) ## judge every known mistake of the assignments anew, for the page of the kill matrix
	@PYTHONPATH=book/_ext $(BIN)/python -m course_book.judging
