# Everyday commands.  `make demo` and `make test` need a Python of PYTHONS, with venv, and a package index.
# The tool is installed plainly, not editably, so that only `reconcile` lands in site-packages; an edited source
# makes the next target install it again (seconds).
PYTHON ?= python3
# What constraints.lock has packages for. If $(PYTHON) is none of these, the first that is found is taken.
PYTHONS := 3.14 3.13 3.12 3.11 3.10
EXTRAS := onnx,pandas,plots,tf,torch,test,lint
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check
# As many as two cores: each worker imports the frameworks, and most tests compute.
JOBS ?= 2
SOURCES := $(shell find reconcile adapters model_zoo -type f ! -name '*.pyc')

.PHONY: demo test removals measure proofs slow keras keras-backends llm transformers diffusers small-models audit mfu libraries matrix pairs fresh releases gradients witness programs formulas sweep fuzz browser screenshots lint legacy format bench bench-gallery gallery scorecard counters docs site pictures lock home-matrix dist fresh-machine clean

demo: $(VENV)/.installed
	$(BIN)/reconcile run --model gru_demo

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

# What is left out of `make test`, in one session of pytest: it collects once, and no core waits for the last file of each part.
# `.ci/run` takes KINDS="matrix or browser": the numbers in the environments they were published in, and the page in Chromium.
# `make slow`, `matrix`, `browser` and `site` run the parts.
KINDS ?= slow or matrix or browser
proofs: $(VENV)/.browser $(VENV)/.dask $(VENV)/.installed
	.ci/chromium
	$(BIN)/python -m pytest -m "($(KINDS)) and not heavy" -p tests.home.noskip -n $(JOBS) --dist loadfile \
	    -p tests.home.longest_first --no-loadscope-reorder --durations=40 --ignore tests/browser/test_site.py

# What proves in full what `make test` proves in part. It starts a framework many times (Keras' own steps, packages from outside,
# other interpreters), and runs a network of each kind: proofs, closed forms, figures in print, rows of the committed gallery and
# of the scorecard run again. Sweeps are killed and resumed.
slow: $(VENV)/.dask $(VENV)/.installed
	$(BIN)/python -m pytest -m "slow and not heavy" -p tests.home.noskip -n $(JOBS) --dist loadfile --durations=25

# Every published number on the versions it was taken on: makes the named environments (minutes, a package index; once).
# Needs Python 3.6 and 3.8 on PATH, through uv or under pyenv's root; a missing environment or a skipped test fails.
matrix: $(VENV)/.installed
	$(BIN)/python -m pytest -m matrix -p tests.home.noskip -n $(JOBS) --dist loadfile --durations=15

# Classes that transformers has in both frameworks, each pair from one configuration: half an hour on two busy cores, writes
# reports/pairs.md. NAMES="BertModel ..." runs some and writes nothing.
pairs: $(VENV)/.installed
	$(BIN)/python -m tests.matrix.transformers_pairs $(NAMES)

# Every formula beside the training step of six full-size language models: minutes, writes reports/llm.md.
llm: $(VENV)/.installed
	PYTHONPATH=. $(BIN)/python -m tests.matrix.llm_page

# Tests that are too long for CI have one marker, `heavy`; what is a target of its own is told apart by its files.
RELEASES = tests/matrix/test_newest.py tests/matrix/test_reference_loops.py
GRADIENTS = tests/zoo/test_parity.py::test_gradients_are_equal tests/matrix/test_jax_zoo.py::test_outputs_and_gradients_are_equal
PROGRAMS = tests/products/authors/test_reproduce.py
FORMULAS = tests/zoo/test_every_formula.py
FUZZ = tests/fuzz

# Every network that `make slow` leaves out, every section of docs/ that takes minutes, every JAX side, OlmoEarth, and inductor on
# every layer: an hour. `make site` and `make browser` have the pages.
fresh: $(VENV)/.installed
	$(BIN)/python -m pytest -m "heavy and not browser" -p tests.home.noskip -n $(JOBS) --dist load \
	    $(addprefix --deselect=,$(RELEASES) $(GRADIENTS) $(PROGRAMS) $(FORMULAS) $(FUZZ))

# Every pair on the newest PyTorch (5.4 GB, once), then every release of the counters' packages on the families' layers: writes
# reports/releases, goes on where it was interrupted. GROUP="thop ..." looks at some.
releases: $(VENV)/.installed
	$(BIN)/python -m pytest -m heavy $(RELEASES) -p tests.home.noskip -n $(JOBS) --dist load
	PYTHONPATH=. $(BIN)/python -m tests.zoo.every_release $(GROUP)

# What MKL and oneDNN write of every pair's PyTorch side, and its page (minutes).
witness: $(VENV)/.installed
	PYTHONPATH=. $(BIN)/python -m tests.zoo.witness_page

# The gradients of every pair, in both frameworks and 64 bits. `make test` proves those of four pairs.
gradients: $(VENV)/.installed
	$(BIN)/python -m pytest -m heavy $(GRADIENTS) -p tests.home.noskip -n $(JOBS) --dist load

# Every program that `reconcile counter reproduce` prints, of every counter that needs no environment of its own: half an hour.
# `make slow` runs the cheap ones, and those of one family.
programs: $(VENV)/.installed
	$(BIN)/python -m pytest -m "slow or heavy" $(PROGRAMS) -p tests.home.noskip -n $(JOBS) --dist load

# The polynomials of every pair in reports/formulas.csv are what `reconcile formula` finds. `python -m tests.zoo.every_formula` writes
# them and their page: of all pairs that it lacks, or of those that you name.
formulas: $(VENV)/.installed
	$(BIN)/python -m pytest -m heavy $(FORMULAS) -p tests.home.noskip -n $(JOBS) --dist load

# Sweeps of real models that are killed and resumed, and on a Dask cluster on loopback that loses a worker.
sweep: $(VENV)/.dask
	$(BIN)/python -m pytest -m slow -p tests.home.noskip tests/products/sweep/test_real.py

# Mutated model files and other inputs, and random networks, for MINUTES in all: no traceback, no code run, no file written, no
# count that is none, no total that is not what ran.
# A finding says its seed and the command that replays it; `make fuzz SEED=1` begins there again.
MINUTES ?= 10
SEED ?=
fuzz: $(VENV)/.installed
	FUZZ_MINUTES=$(MINUTES) FUZZ_SEED=$(SEED) $(BIN)/python -m pytest -m heavy -rP -p tests.home.noskip -n $(JOBS) --dist load $(FUZZ)

# The HTML page in Chromium, by its driver: any two ends, hostile names, no mouse, a phone, 20,000 ops.  .ci/chromium
# installs the browser where it is missing and apt can.
browser: $(VENV)/.browser
	.ci/chromium
	$(BIN)/python -m pytest -m browser -p tests.home.noskip tests/browser --ignore tests/browser/test_site.py

# The pictures of the page under docs/pictures, from the committed records of gru_demo.
screenshots: $(VENV)/.browser
	.ci/chromium
	$(BIN)/python -m tests.browser.pictures docs/pictures

# The files of a release, as .github/workflows/release.yml makes them.
dist: $(VENV)/.release
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*
	@rm -rf build flop_reconcile.egg-info

# `make demo` and `make test` on new machines of Debian: its stable release, and its newest packages (root; 8 GB and an hour each).
SUITES ?= trixie sid
fresh-machine:
	for suite in $(SUITES); do .ci/fresh-machine $$suite || exit; done

lint: $(VENV)/.installed legacy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

legacy: $(VENV)/.installed
	$(BIN)/python -m tests.home.legacy

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Every pair of the zoo at its own size, with every counter that runs unasked, a call and a training step: a quarter of an hour.
gallery: $(VENV)/.installed
	$(BIN)/python -m reconcile zoo gallery --out reports --data model_zoo/gallery.json
	$(BIN)/python -m reconcile zoo gallery --pass training --out reports --data model_zoo/steps.json
	PYTHONPATH=. $(BIN)/python docs/built.py

# Every counter on every layer of the families, forward and in training. Only cells of which something changed run again.
scorecard: $(VENV)/.installed
	$(BIN)/python -m reconcile zoo scorecard --out reports/scorecard --data model_zoo/scorecard.json
	PYTHONPATH=. $(BIN)/python docs/built.py

# Every counter on every pair of the zoo, those with environments of their own as well: half an hour, goes on where it was
# interrupted, writes reports/counters.md, also from the training steps of `make gallery`. GROUP="calflops ..." runs some; delete
# reports/counters.csv, which git does not keep, to begin anew.
counters: $(VENV)/.installed
	$(BIN)/python -m tests.zoo.every_counter $(GROUP)

# Every model of keras.applications in both frameworks: half an hour, goes on where it was interrupted.
keras: $(VENV)/.installed
	$(BIN)/python -m reconcile sweep keras.applications --out reports/keras.applications --format json --timeout 1800

# The same on the three backends of Keras; JAX comes with its environment.
keras-backends: $(VENV)/.installed
	$(BIN)/python -m reconcile sweep keras.applications --frameworks tf,torch,jax --environment xla \
		--counter tf.profiler@function --counter flop_counter \
		--out reports/keras.applications/backends --format json --timeout 1800

# Every architecture of transformers, a call and a training step: an hour, goes on where it was interrupted. Needs a Python with
# transformers: make transformers TRANSFORMERS=venv/bin/python
TRANSFORMERS ?= $(BIN)/python
transformers:
	PYTHONPATH=. $(TRANSFORMERS) -m reconcile sweep transformers --out reports/transformers --format json || [ $$? -lt 4 ]
	PYTHONPATH=. $(TRANSFORMERS) -m tests.products.sweep.coverage transformers reports/transformers
	PYTHONPATH=. $(TRANSFORMERS) -m reconcile sweep transformers --pass training --out reports/transformers/training \
		--format json || [ $$? -lt 4 ]

# Every model of diffusers, a call: make diffusers DIFFUSERS=venv/bin/python
DIFFUSERS ?= $(BIN)/python
diffusers:
	PYTHONPATH=. $(DIFFUSERS) -m reconcile sweep diffusers --out reports/diffusers --format json || [ $$? -lt 4 ]
	PYTHONPATH=. $(DIFFUSERS) -m tests.products.sweep.coverage diffusers reports/diffusers

# The tables from which those sweeps make their models, for the releases that are installed: an hour or two.
small-models:
	PYTHONPATH=. $(TRANSFORMERS) -m tools.small_models transformers --found build/transformers.jsonl
	PYTHONPATH=. $(DIFFUSERS) -m tools.small_models diffusers --found build/diffusers.jsonl

# What published figures count: the committed pages and their tables; 40 minutes, go on where they were interrupted.
# An exit of 1 says that some figures are not explained: the pages list them.
AUDIT = $(BIN)/reconcile audit
audit: $(VENV)/.installed
	$(AUDIT) reports/audit/timm/audit.csv --out reports/audit/timm || [ $$? = 1 ]
	$(AUDIT) torchvision --out reports/audit/torchvision || [ $$? = 1 ]
	$(AUDIT) zoo --out reports/audit/zoo || [ $$? = 1 ]
	PYTHONPATH=. $(BIN)/python docs/audits.py

# Every model of torchvision, and one of each module of timm, with three counters; all of timm with one counter; the detectors once
# more, on the CPU.
libraries: $(VENV)/.installed
	$(BIN)/reconcile sweep torchvision --environment timm --device meta --out reports/torchvision --format json || [ $$? = 1 ]
	$(BIN)/reconcile sweep reports/torchvision/detection.toml --out reports/torchvision/detection --format json
	$(BIN)/reconcile sweep reports/timm/models.toml --device meta --out reports/timm --format json
	$(BIN)/reconcile sweep timm --environment timm --device meta --counter flop_counter --out reports/timm/all --format json

# The generated part of docs/: pages of causes, conventions and counters, the command line, the models.
docs: $(VENV)/.installed
	PYTHONPATH=. $(BIN)/python docs/write.py

# The published utilisations in reports/mfu/claims.csv, each as a product of factors, and what trainers divide by: seconds. The
# site has the same.
mfu: $(VENV)/.installed
	$(BIN)/python -m reconcile mfu --table reports/mfu/claims.csv --out reports/mfu || [ $$? = 1 ]
	for of in cards training; do $(BIN)/python -m reconcile mfu --table reports/mfu/$$of/claims.csv --out reports/mfu/$$of || [ $$? = 1 ]; done
	$(BIN)/python -m reconcile mfu trainers > reports/mfu/trainers.md

# The documentation and the reports as a site in build/html, with the pages that are made of committed data and not committed
# themselves (docs/built.py): searchable; `python -m http.server -d build/html` shows it. Then
# a browser opens every page, and axe-core looks at it.
site: $(VENV)/.browser $(VENV)/.installed
	.ci/chromium
	PYTHONPATH=. $(BIN)/python docs/site.py
	$(BIN)/python -m pytest -m browser tests/browser/test_site.py -p tests.home.noskip -n $(JOBS)

# The terminal in docs/pictures/, and gru_demo's report with its own.
pictures: $(VENV)/.installed
	PYTHONPATH=. $(BIN)/python docs/draw.py

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/bench.py

bench-gallery: $(VENV)/.installed
	PYTHONPATH=. $(BIN)/python benchmarks/gallery.py

# Each product, optional framework and optional counter is taken away from a copy, where the rest has to be green. PARTS="products.mfu
# counters.xla all" takes these away; all is every part at once.
removals: $(VENV)/.installed
	PYTHONPATH=. JOBS=2 $(BIN)/python -m tests.home.removals $(PARTS)

# How heavy the house is, in numbers.
measure: $(VENV)/.installed
	PYTHONPATH=. $(BIN)/python -m tests.home.measure

# The home side without any framework, numpy or pandas, on the oldest and the newest Python.
home-matrix: $(VENV)/.installed
	.ci/home-matrix 3.10 3.13

# One resolution for Python 3.10 and later and every platform.  Pins stay as they are unless `make lock UPGRADE=--upgrade`.
# constraints.lock has the versions of every extra. requirements.lock has the hashes of what `make demo` and `make test` install, and
# release.lock those of what makes a release. PyTorch is not among them: its wheels for a CPU come from another index than those for a
# GPU, and the former need a tenth of the room; so it is held to its version alone.
COMPILE = $(BIN)/uv pip compile --quiet --no-annotate --custom-compile-command 'make lock'
HASHED = $(COMPILE) --generate-hashes --constraint constraints.lock
lock: $(VENV)/.deps
	$(COMPILE) --universal --python-version 3.10 --all-extras $(UPGRADE) pyproject.toml --output-file constraints.lock
	echo "torch; python_version < '3'" | $(HASHED) --universal --python-version 3.10 --override - --extra $(EXTRAS) pyproject.toml \
	    --output-file requirements.lock
	$(HASHED) --python-platform linux --python-version 3.13 --extra release pyproject.toml --output-file release.lock

# pip takes no folder with hashes, so what is not this one comes first.
$(VENV)/.deps: pyproject.toml constraints.lock requirements.lock
	python=$$(.ci/find-python $(PYTHON) $(PYTHONS)) && "$$python" -m venv $(VENV)
	@echo "Installing the frameworks and tools pinned in requirements.lock (about a minute; nothing is printed)"
	$(PIP) install --require-hashes --no-deps --requirement requirements.lock
	$(PIP) install --constraint constraints.lock '.[$(EXTRAS)]'
	@touch $@

# `build` goes first and last: setuptools would put a file deleted since into the next wheel.
$(VENV)/.installed: $(VENV)/.deps $(SOURCES)
	@rm -rf build
	$(PIP) install --no-deps --no-build-isolation --force-reinstall .
	@rm -rf build flop_reconcile.egg-info
	@touch $@

$(VENV)/.browser: $(VENV)/.installed
	$(PIP) install --no-build-isolation --constraint constraints.lock '.[browser]'
	@rm -rf build flop_reconcile.egg-info
	@touch $@

$(VENV)/.dask: $(VENV)/.installed
	$(PIP) install --no-build-isolation --constraint constraints.lock '.[dask]'
	@rm -rf build flop_reconcile.egg-info
	@touch $@

$(VENV)/.release: $(VENV)/.installed
	$(PIP) install --no-build-isolation --constraint constraints.lock '.[release]'
	@rm -rf build flop_reconcile.egg-info
	@touch $@

clean:
	rm -rf $(VENV) .venv-home build dist flop_reconcile.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
