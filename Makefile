# `make demo` and `make test` are each enough on a fresh machine with Python 3.10+, cc and make.
# Everything lands in $(VENV); stamps there make a second run start at once.
.DEFAULT_GOAL := help
.PHONY: FORCE help venv wheel wheel-arm release demo docs test test-long test-arm test-sanitized fuzz fuzz-parsers durations test-bmv2 \
	bench-guard bench-record lines \
	lint python-lint native-lint generated types format constraints \
	clean distclean
.DELETE_ON_ERROR:

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
ARGS ?=

py := $(VENV)/bin/python
# The pins were resolved for Python 3.11; an older or newer one lets pip resolve again.
pins = $(shell $(PYTHON) -c 'import sys; print("-c constraints.txt" * (sys.version_info[:2] == (3, 11)))')
pip := $(py) -m pip --disable-pip-version-check --quiet
native := $(wildcard $(foreach end,cpp c h hpp,native/*.$(end) native/*/*.$(end) native/*/*/*.$(end))) \
	$(wildcard ina/switch/*.h ina/switch/*/runtime/*.h benchmarks/*.c)
generated_tests := tests/rpc/test_generated.py tests/p4/test_programs.py tests/p4/test_compile.py
# One more than cores, for tests wait; who has done his takes of the others', so that no file ends a run alone.
parallel := -n 3 --dist worksteal
build_tools := scikit-build-core nanobind cmake ninja

help:  ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

$(VENV)/.tools: tools/machine.sh constraints.txt
	@tools/machine.sh build $(PYTHON)
	@test -x $(py) || $(PYTHON) -m venv $(VENV)
	@$(pip) install $(pins) $(build_tools)
	@touch $@

# An editable install finds modules where they were when it was made, and has compiled the sources
# that there were: where one has moved or gone since, with a `git pull` say, it needs another. The list
# is written only where it has changed.
$(VENV)/.modules: $(VENV)/.tools FORCE
	@find ina ina_torch_autoload native -name '*.py' -o -name "*.[ch]pp" -o -name "*.[ch]" | LC_ALL=C sort > $@.now
	@cmp -s $@.now $@ && rm $@.now || mv $@.now $@

FORCE:

$(VENV)/.built: $(VENV)/.tools $(VENV)/.modules pyproject.toml CMakeLists.txt $(native)
	@echo "installing into $(VENV) and building the native extension (first time: some minutes)"
	@PATH="$(abspath $(VENV))/bin:$$PATH" $(pip) install $(pins) --no-build-isolation -e '.[dev]'
	@echo "ina is in $(VENV): . $(VENV)/bin/activate puts it on PATH"
	@touch $@

venv: $(VENV)/.built  ## make the environment and build the extension

# Where ccache is, CMAKE_CXX_COMPILER_LAUNCHER=ccache makes the next one quick.
wheel: $(VENV)/.tools  ## build dist/ina-*.whl for this Python, to be installed elsewhere
	@mkdir -p dist && PATH="$(abspath $(VENV))/bin:$$PATH" $(pip) wheel --no-build-isolation --no-deps -w dist .
	@ls dist/*.whl

# SUITE=trixie for Python 3.12 and later. Nothing of this machine's environment changes.
wheel-arm: $(VENV)/.tools  ## build dist/ina-*-linux_aarch64.whl with a cross compiler, for 64-bit ARM
	@tools/arm.sh wheel $(py)

test-arm: $(VENV)/.tools  ## that wheel under qemu-user: conformance, kernels, WorkerCore (ARGS="-k name")
	@tools/arm.sh test $(py) $(ARGS)

release: $(VENV)/.tools  ## sdist and wheels in dist/, each tried in a fresh environment (ARGS="--python PATH ...")
	@$(py) tools/release.py $(ARGS)

demo: $(VENV)/.built  ## train on real digits through the P4 switch, and with Gloo (ARGS="--loss-rate 0.05")
	@$(VENV)/bin/ina demo $(ARGS)

test: $(VENV)/.built  ## run every test this machine can run (ARGS="-k name")
	@tools/machine.sh test
	@$(VENV)/bin/pytest $(parallel) --durations=10 $(ARGS)

# The rest of what there is to prove: more seeds and packets, soaks, every command of the docs.
test-long: $(VENV)/.built  ## make test, with everything that takes long (an hour or so)
	@tools/machine.sh test
	@INA_LONG_TESTS=1 $(VENV)/bin/pytest $(parallel) --durations=20 $(ARGS); ended=$$?; \
		$(py) -m tests.long_run && exit $$ended

fuzz: $(VENV)/.built  ## 10,000 random networks, jobs and faults in virtual time; continues where it was stopped
	@$(VENV)/bin/ina sim fuzz --seeds 10000 --state out/sim/fuzz.json $(ARGS)

# A build of its own, in build/sanitized; the environment stays as it is.
test-sanitized: $(VENV)/.built  ## tests of the C++ and of compiled programs under ASan and UBSan (ARGS="--short")
	@$(py) tools/sanitized.py $(ARGS)

# clang of the machine, Atheris for the doors that are Python.
$(VENV)/.fuzz: $(VENV)/.built
	@tools/machine.sh fuzz
	@$(pip) install $(pins) atheris
	@touch $@

fuzz-parsers: $(VENV)/.fuzz  ## throw bytes at each door through which they come from outside (ARGS="--seconds 600 DOOR ...")
	@$(py) -m fuzz $(ARGS)

durations: $(VENV)/.built  ## write the seconds of the last make test into tests/durations.json
	@$(py) -m tests.durations write

# sudo's own PATH may lack BMv2: sudo env PATH=$PATH make test-bmv2
test-bmv2: $(VENV)/.built  ## as root: network tests in Mininet, on BMv2 and on the soft switch
	@tools/machine.sh bmv2
	@$(VENV)/bin/pytest bmv2_tests --durations=10 $(ARGS)

docs: $(VENV)/.built  ## make the site of the documentation, with search, in out/site
	@NO_MKDOCS_2_WARNING=1 $(py) -m mkdocs --quiet build --strict
	@echo "out/site/index.html; its search needs a server: $(py) -m http.server -d out/site"

bench-guard: $(VENV)/.built  ## compare ratios with benchmarks/baseline.json (ARGS="--update": write it)
	@$(py) -m benchmarks.guard $(ARGS)

lines: $(VENV)/.built  ## count the lines of what is written by hand: files, median, longest
	@$(py) -m tests.lines

lint: python-lint native-lint generated types  ## ruff, clang-format, generated files, mypy

python-lint: $(VENV)/.built  ## ruff, check and format
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .

types: $(VENV)/.built  ## mypy --strict
	@$(VENV)/bin/mypy

native-lint: $(VENV)/.built  ## clang-format, as an error
	@$(VENV)/bin/clang-format --dry-run -Werror $(native) fuzz/main.cpp

generated: $(VENV)/.built  ## fail when a generated file is not what its source says
	@$(py) -m ina.protocol.emit --check
	@echo "protocol: the P4, C++, scapy, Wireshark and docs forms are those of ina/protocol/spec.py"
	@$(VENV)/bin/pytest -q --no-header $(generated_tests)
	@echo "gRPC code: from controller.proto; compiled P4: from these sources, by their hashes"

format: $(VENV)/.built  ## rewrite Python and C++ in the project's style
	@$(VENV)/bin/ruff check --fix --quiet . || true
	@$(VENV)/bin/ruff format .
	@$(VENV)/bin/clang-format -i $(native) fuzz/main.cpp

bench-record: $(VENV)/.built  ## as root: measure what docs/benchmarks.md shows, and write it there
	@$(py) -m benchmarks.record $(ARGS)

constraints: $(VENV)/.built  ## write constraints.txt from the environment as it is
	@sed -n '/^#/p' constraints.txt > constraints.new
	@$(py) -m pip freeze --exclude-editable | sed 's/+cpu$$//' >> constraints.new
	@mv constraints.new constraints.txt

clean:  ## remove build output, keep the environment
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis $(VENV)/.built

distclean: clean  ## remove the environment too
	rm -rf $(VENV)
