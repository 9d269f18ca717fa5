# Needs Python >= 3.11 and make; everything else goes into .venv. `make tables` and `make test` are the way in.
PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
PINNED := -c constraints.txt
# Of 600 MB of packages a tenth is ever imported: what is gets its bytecode then.
INSTALL = $(BIN)/python -m pip install --quiet --no-compile $(PINNED)
FROM := pyproject.toml constraints.txt

# Without bytecode on the disk, each of the hundreds of processes that the tests start would compile the package anew.
export PYTHONDONTWRITEBYTECODE :=
# Two processes run the tests and the scores, with arrays so small that the threads of a BLAS would only wait for one another.
test test-slow test-oldest test-newest test-pythons score score-independent score-distributed score-gradients score-left-out snapshot snapshot-all snapshot-peers: export OPENBLAS_NUM_THREADS := 1

DEVICE ?= cpu
ON := $(addprefix -,$(filter-out cpu,$(DEVICE)))

KATEX := 0.16.22
AXE := 4.14.1

#: make tables and make test are the way in.
#:
#: Every day
#:   tables             recompute every published table and print the comparison
#:   test               run the test suite, but for what is marked as slow
#:   lint               ruff: rules and layout
#:   types              mypy, and the tests of the generated signatures
#:   generate           rewrite what is generated: losses.pyi, the list of mutants, the schema of manifests, docs/conventions.md, the table in docs/losses.md, figures
#:   clean              remove .venv and caches
#:
#: The tests, further
#:   test-slow          run what is marked as slow: kills at every write, mutants of every derivation, wide sweeps
#:   fuzz               try 100,000 inputs of the losses against an oracle (INPUTS=, SEED= to repeat a run)
#:   test-oldest        run test and test-slow with the oldest dependencies that are declared
#:   test-newest        run both with the newest ones that there are
#:   test-pythons       run what may depend on it with each Python from 3.11 on (PYTHONS=, those that are not on PATH)
#:   test-machines      run what can depend on the machine under each vector extension, BLAS kernel and NumPy
#:   machines-quick     judge the reference vectors under the highest and the lowest dispatch level of NumPy
#:   test-peers         install released packages and judge their losses
#:   vendored           run exported tests where there is a library and no nceref: NumPy, and PyTorch if it can be installed
#:   environments       run every example of a command in every odd environment, and count the findings
#:   mutate             change 200 places of the package, one at a time, and count how many make test notices
#:   goldens            write anew what every example of a command prints, in tests/commands/golden
#:   references-check   compute every frozen reference of the tests anew, and compare
#:   references         compute those whose formula or case has changed, and freeze them
#:
#: The verifier
#:   score              measure the verifier on the catalogue of known bugs
#:   score-independent  measure it on the second catalogue, which nobody who works on it has read
#:   score-distributed  measure it on programs of several ranks, in PyTorch
#:   score-gradients    measure it on programs with gradients of their own, in NumPy, PyTorch and JAX
#:   score-left-out     measure it on known bugs, each without its right diagnosis
#:   snapshot           judge one in 31 of all programs, and compare verdicts, ids and counts with stored ones; snapshot-all: all;
#:                      snapshot-peers: released packages, and ratios of times and memory to those of PyTorch
#:   audit              judge released packages, and rewrite docs/audit.md
#:
#: The mathematics
#:   check              check every loss against its formula and declared properties
#:   prove              run the evidence of every claim and derive the verdicts
#:   latex              compile every formula of claims, losses and derivations; installs KaTeX with npm where there is no TeX
#:   experiments        run all experiments, rewrite docs/experiments and nceref/theory/analogues.json
#:
#: The site and the package
#:   site               build the documentation into site/; needs node with npm (PYODIDE=folder: serve Python from the site)
#:   test-site          open the pages in a browser, where there is one
#:   report-picture     judge the example of README.md and photograph its report, with a browser; installs PyTorch
#:   dist               build sdist and wheel into dist/, check them, and weigh the wheel
#:   package            the same, and try the wheel in an environment of its own
#:
#: Measurements
#:   bench              measure speed and memory, rewrite docs/performance.md (DEVICE=cuda: on a GPU)
#:   bench-chunked      measure losses of Dask arrays, and add that to docs/performance.md
#:   peers              install PyTorch, which make bench compares with
#:   machines-tables    measure errors by machine, rewrite the tables in docs/reliability.md

.PHONY: help tables test test-slow test-oldest test-newest test-pythons test-machines machines-quick machines-tables oldest-environment newest-environment test-peers vendored site test-site fuzz goldens references references-check lint types dist package latex report-picture prove score score-independent score-distributed score-gradients score-left-out snapshot snapshot-all snapshot-peers mutate environments generate check bench bench-chunked peers audit experiments clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^#: \{0,1\}//p' Makefile

tables: $(VENV)/installed
	$(BIN)/nceref tables

prove: $(VENV)/installed
	$(BIN)/nceref claims --prove

# Of the known catalogue; SCORED="--dtype float64" scores in one format.
SCORED ?=
score: $(VENV)/installed
	$(BIN)/nceref mutants score $(SCORED)

# Of several ranks, in PyTorch.
score-distributed: $(VENV)/installed-peers
	$(BIN)/nceref mutants score --ranks 2 --dtype float64

score-independent: $(VENV)/installed
	$(BIN)/nceref mutants score --catalogue independent --dtype float64

# With gradients of their own, in NumPy, PyTorch and JAX.
score-gradients: $(VENV)/installed-peers
	$(BIN)/nceref mutants score --catalogue gradients --dtype float64

score-left-out: $(VENV)/installed
	$(BIN)/nceref mutants score --leave-one-out --dtype float64

# Some of the programs of both catalogues and of reports with options, in either format: an even number would draw one
# format alone. All of them take half an hour.
snapshot: $(VENV)/installed
	$(BIN)/python -m tools.snapshot --share 31

snapshot-all: $(VENV)/installed
	$(BIN)/python -m tools.snapshot --sentences

snapshot-peers: $(VENV)/installed-peers
	$(BIN)/python -m tools.snapshot packages
	$(BIN)/python -m benchmarks.ratios

# Takes half an hour on two cores; the same places come up after files have moved.
mutate: $(VENV)/installed-test
	$(INSTALL) coverage
	$(BIN)/python -m benchmarks.mutation

# Half an hour on two cores.
environments: $(VENV)/installed-test
	cd tests && PYTHONPATH=.. ../$(BIN)/python -m commands.environments

check: $(VENV)/installed
	$(BIN)/nceref check

# `make types` has the tests of the stub: mypy reads the whole package for them. Files go to the processes in their own
# order; by default, those with the fewest tests come last, and one of these takes long.
test: $(VENV)/installed-test
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder --ignore tests/test_stubs.py

test-slow: $(VENV)/installed-test
	$(BIN)/python -m pytest -m slow -n 2 --dist loadfile

INPUTS ?= 100000
SEED := $(or $(SEED),$(shell date +%s))

# `make test` tries 500, always the same ones. Takes about ten minutes on two cores.
fuzz: $(VENV)/installed-test
	$(BIN)/python -m pytest tests/fuzz/test_losses.py -n 2 --inputs $(INPUTS) --fuzz-seed $(SEED)

oldest-environment:
	$(PYTHON) -m venv --clear .venv-oldest
	$(PYTHON) -m tools.oldest > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet -c .venv-oldest/constraints.txt --editable ".[test]"

newest-environment:
	$(PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade --editable ".[test]"

# Old releases warn of what newer packages around them deprecate.
test-oldest: oldest-environment
	.venv-oldest/bin/python -m pytest -n 2 --dist loadfile -W ignore::DeprecationWarning

test-newest: newest-environment
	.venv-newest/bin/python -m pytest -n 2 --dist loadfile

# What is marked as `machine`, under each line of the matrix; one that this machine lacks is skipped with its reason.
test-machines: $(VENV)/installed-test oldest-environment newest-environment
	$(BIN)/python -m tools.machines test

# Half a minute; fails where fewer than two levels can be run.
machines-quick: $(VENV)/installed-test
	$(BIN)/python -m tools.machines quick

machines-tables: $(VENV)/installed-test
	$(BIN)/python -m tools.machines errors
	$(BIN)/python -m tools.machines functions

# A version that is not on PATH is left out, with a sentence.
PYTHONS ?=

test-pythons:
	$(PYTHON) -m tools.pythons $(PYTHONS)

# What `make test` skips for want of packages.
test-peers: $(VENV)/installed-peers
	$(BIN)/python -m pytest tests/tolerance tests/verification/audit tests/targets tests/verification/test_modes.py \
		tests/targets/test_own_parameters.py tests/diagnosis/ranks tests/test_readme.py tests/training/quadrants \
		tests/test_torch.py tests/test_jax.py
	$(BIN)/nceref verify --manifest nceref/verification/audit/nceref.toml

# The environment has no nceref, and no NumPy where the library is PyTorch.
vendored: export OPENBLAS_NUM_THREADS := 1
vendored: $(VENV)/installed-test
	for library in numpy torch; do \
		$(PYTHON) -m venv --clear .venv-vendored || exit 1; \
		.venv-vendored/bin/python -m pip install --quiet --no-compile $(PINNED) $$library || \
			{ [ $$library = numpy ] && exit 1; echo "$$library cannot be installed: it is left out"; continue; }; \
		NCEREF_VENDORED_PYTHON=$(CURDIR)/.venv-vendored/bin/python \
			$(BIN)/python -m pytest tests/verification/vectors/test_vendored.py -k "without or quantity" || exit 1; \
	done

# The folder of a release of Pyodide; without it, the page that verifies loads Python from Pyodide's own address.
PYODIDE ?=
site test-site: export NCEREF_PYODIDE := $(or $(PYODIDE),$(NCEREF_PYODIDE))

# Sphinx reads docs and what is generated from declarations; KaTeX sets the formulas. Anything that is wrong ends the build.
site: $(VENV)/installed-site
	@command -v node > /dev/null && command -v npm > /dev/null || \
		{ echo "make site needs node with npm, which set the formulas: they are not on PATH" >&2; exit 1; }
	npm install --silent --no-save --prefix $(VENV) katex@$(KATEX) axe-core@$(AXE)
	rm -rf site
	$(BIN)/python -m tools.site
	$(BIN)/sphinx-build --quiet --fail-on-warning --nitpicky --keep-going -d $(VENV)/doctrees docs site
	$(BIN)/python -m tools.site site

# Needs Chromium on PATH; npm brings what looks for faults of accessibility.
test-site: $(VENV)/installed-site
	npm install --silent --no-save --prefix $(VENV) katex@$(KATEX) axe-core@$(AXE) || echo "npm is missing: accessibility is not tested"
	$(BIN)/python -m pytest tests/site

# What a change does to pages and records is the diff of these.
goldens: $(VENV)/installed-test
	WRITE_GOLDENS=1 $(BIN)/python -m pytest tests/cli/test_every_option.py

# What the tests judge programs by (tests/data/references.npz), from the formulas. `make test` computes one of each loss,
# and refuses those whose formula or case is no longer what they were computed from.
references-check: $(VENV)/installed-test
	$(BIN)/python tests/checks/frozen_references.py check

references: $(VENV)/installed-test
	$(BIN)/python tests/checks/frozen_references.py write

# Pages, records and figures of six seeds each; takes three minutes.
experiments: $(VENV)/installed-dev
	$(INSTALL) --no-build-isolation --editable ".[experiments]"
	for name in contrastive-vs-simple contrastive-vs-simple-digits long-tail long-tail-digits; do \
		$(BIN)/nceref experiment $$name --out docs/experiments > /dev/null || exit 1; \
	done
	rm docs/experiments/*.png
	$(BIN)/python -m tools.analogues

audit: $(VENV)/installed-peers
	$(BIN)/python -c "from nceref.verification.audit.page import update; update('docs/audit.md')"

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy reads losses.pyi in place of losses.py, so the latter is named once more.
types: $(VENV)/installed-dev
	$(BIN)/mypy
	$(BIN)/mypy nceref/losses.py
	$(BIN)/python -m pytest tests/test_stubs.py

# What users install.
dist: $(VENV)/installed-package
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist > /dev/null
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m tools.package weigh dist/*.whl

# Takes a minute, most of it to install the wheel and all that it depends on.
package: dist
	$(BIN)/python -m tools.package try dist/*.whl

# A TeX engine on the path compiles whole documents, text and all; KaTeX compiles the formulas.

latex: $(VENV)/installed-test
	command -v pdflatex || command -v xelatex || command -v lualatex || \
		npm install --silent --no-save --prefix $(VENV) katex@$(KATEX) axe-core@$(AXE)
	REQUIRE_LATEX=1 $(BIN)/python -m pytest tests/theory/test_latex.py

generate: $(VENV)/installed latex
	$(BIN)/python -m tools.stubs
	$(BIN)/python -m mutants
	$(BIN)/python -c "from nceref.cli import losses_page; losses_page.update_table('docs/losses.md')"
	$(BIN)/nceref figures
	$(BIN)/nceref tables conventions --format markdown --out docs
	$(BIN)/python -c "from nceref.verification.manifest.keys import update_schema; update_schema()"
	$(BIN)/python -m tools.notebook

# Asks everything on the CPU, or how it is on the device; a peer that is not installed is named as missing.
bench: $(VENV)/installed
	$(BIN)/python -m benchmarks $(filter-out cpu,$(DEVICE:cuda=device)) \
		--json benchmarks/results$(ON).json --report docs/performance$(ON).md

# docs/_static/report.png, which README.md shows; needs Chromium on PATH.
report-picture: $(VENV)/installed-peers
	$(BIN)/python -m tools.report_picture

# Of arrays of Dask alone; half an hour on two cores.
bench-chunked: $(VENV)/installed
	$(INSTALL) --no-build-isolation --editable ".[dask]"
	$(BIN)/python -m benchmarks chunked --update --json benchmarks/results.json --report docs/performance.md

peers: $(VENV)/installed
	$(BIN)/python -m pip install $(PINNED) --no-build-isolation --editable ".[torch]"

clean:
	rm -rf site docs/generated $(VENV) .venv-oldest .venv-newest .venv-3.* build dist .pytest_cache .mypy_cache .ruff_cache
	find nceref tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The installation is editable: a changed source takes effect at once. It is repeated when the metadata change.
# The build backend is installed first, so that it is pinned like the rest.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nceref needs Python >= 3.11, got " + sys.version + "; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/backend: $(FROM) | $(BIN)/python
	$(INSTALL) hatchling editables
	touch $@

$(VENV)/installed: $(VENV)/backend
	$(INSTALL) --no-build-isolation --editable .
	touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(INSTALL) --no-build-isolation --editable ".[test]"
	touch $@

# Of the last two, the files of the losses are loaded by themselves: what the packages around them need is left out.
$(VENV)/installed-peers: $(VENV)/installed-test
	$(INSTALL) --no-build-isolation --editable ".[peers]"
	$(INSTALL) --no-deps lightly open_clip_torch
	touch $@

$(VENV)/installed-site: $(VENV)/installed-test
	$(INSTALL) --no-build-isolation --editable ".[site]"
	touch $@

$(VENV)/installed-dev: $(VENV)/installed-test
	$(INSTALL) --no-build-isolation --editable ".[dev]"
	touch $@

$(VENV)/installed-package: $(VENV)/installed
	$(INSTALL) --no-build-isolation --editable ".[package]"
	touch $@

# The same in one installation instead of three, on a fresh clone.
$(VENV)/installed-at-once: $(VENV)/backend
	$(INSTALL) --no-build-isolation --editable ".[dev,package]"
	touch $(VENV)/installed
	touch $(VENV)/installed-package
	touch $(VENV)/installed-test
	touch $(VENV)/installed-dev $@
