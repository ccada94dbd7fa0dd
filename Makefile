# The door to gaterq: every target installs what is missing (or says how), builds, and does the whole job.
#
#   make demo        two minutes: a tiny world, the same path as reproduce
#   make reproduce   the paper's tables on the miniature, with a verdict per claim (results/reproduce/report.md)
#   make reproduce WORLD=popqa      the same on real PopQA facts, where the data lies
#   make test        every test;    make test PRESET=asan  under the sanitizers
#   make fuzz        every reader of files under libFuzzer, FUZZ_SECONDS (60) each; needs clang
#   make bench       training, look-ups, layers and codes, each beside its bound of the same run (4 minutes)
#   make lint        warnings as errors, clang-format, cppcheck
#   make doctor      what is installed here
PRESET ?= release
WORLD ?= generated
FUZZ_SECONDS ?= 60
JOBS ?= $(shell nproc)
BUILD := build/$(PRESET)
GATERQ := build/release/gaterq

.PHONY: all packages build tool demo reproduce test fuzz bench lint doctor clean

all: build

packages:
	@scripts/install-packages
	@mkdir -p build

build: packages
	@cmake --preset $(PRESET) -G Ninja > $(BUILD)-configure.log 2>&1 || { cat $(BUILD)-configure.log; exit 1; }
	@cmake --build $(BUILD) --parallel $(JOBS) -- --quiet

# The tool that runs experiments is always the release build.
tool:
	@$(MAKE) --no-print-directory build PRESET=release

demo: tool
	$(GATERQ) run experiments/configs/demo.json

ifeq ($(WORLD),generated)
CONFIG := experiments/configs/reproduce.json
else
CONFIG := experiments/configs/$(WORLD).json
endif

reproduce: tool
	@test -f $(CONFIG) || { echo "make reproduce: WORLD=$(WORLD) is not known; use generated or popqa" >&2; exit 2; }
	$(GATERQ) run $(CONFIG)

test: build
	ctest --test-dir $(BUILD) --output-on-failure --parallel $(JOBS)

fuzz:
	@scripts/install-packages clang libclang-rt-14-dev libomp-14-dev
	@tests/fuzz/run $(FUZZ_SECONDS)

bench: tool
	for name in train lookup layer encode decode score compare; do echo; echo "== $$name"; $(GATERQ) bench $$name || exit $$?; done

lint: packages
	scripts/lint

doctor: tool
	$(GATERQ) doctor

clean:
	rm -rf build
