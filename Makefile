# mlo: sh tools/install.sh, or make packages (once), make; make demo, make test.
#
#   make          the command line, ./mlo, from src/ (dev) with the texts of verilog/ and share/ inside
#   make packages installs what mlo and its simulations need and this machine lacks (Debian packages), and says so
#   make deps     the same of everything that tests need: more packages, gigabytes of them, and a Python environment in .venv
#   make demo     a BERT from .onnx to Verilog that is simulated, and its page; it stays in demo/
#   make story    a trained Llama tells its story, in integers and in Verilog that is simulated; it stays in story/
#   make test     deps, build, and what a change is likely to break: minutes
#   make test-all every test, as .ci/run calls it; make costs writes what each may cost, tests/costs.txt; make test-full leaves nothing to the date
#   make mlo.c    the amalgamation, which is committed: one file to drop into another project
#   make format   clang-format over src/ and cli/, as .clang-format says
#   make lint     strict warnings of gcc and clang, as C and as C++; the Verilog in three tools
#   make bench    times and cycles; BENCH="minilm bits" picks some, BENCH=bandwidth=all all that a bench has
#   make synth    what the hardware costs: Yosys for UltraScale+ and ECP5, nextpnr for an LFE5U-85; SYNTH="mvu" picks. Takes many minutes
#   make prove    every proof of tests/formal anew, into proved.txt; a test run makes those that are not in there, and a dated sample
#   make mutants  faults put into the C one at a time, and whether the tests notice, as a table: FILE=src/json.c N=20 SEED=20261125; by default a sample of all, dated
#   make coverage lines, branches and MC/DC of each file under the fast tests, or those in TESTS="roll ops"; MISSING=src/roll.c says which lines (clang-19)
#   make fuzz     the libFuzzer targets, build/fuzz/onnx and build/fuzz/json; tests/test_fuzz.py says how they are run
#   make install  to PREFIX (/usr/local) below DESTDIR: mlo, libmlo.so and .a, mlo.h, pkg-config, CMake, completions; make uninstall takes them away
#   make wheel    build/mlo_compiler-*.whl: Python's way to the library, and the program, with nothing else to install (docs/python.md)
#   make deb      Debian packages mlo, libmlo0, libmlo-dev in build/deb; make dist the source as build/mlo-VERSION.tar.gz
#   make web      build/web/mlo.html: mlo in a browser, one page without anything else (Emscripten)
#   make npm      build/mlo-compiler-*.tgz: the same library for Node.js

CC      ?= cc
CFLAGS  ?= -O2
PREFIX  ?= /usr/local
LIBDIR  ?= lib
# Debian's nanopb comes without a .pc file
LDLIBS  ?= -lprotobuf-nanopb -lcjson -lz -lm
STRICT  := -std=c99 -pedantic -Wall -Wextra -Wconversion
PLUS    := -x c++ -Wall -Werror
PYTHON  := .venv/bin/python

# what mlo is made of and simulates with; and what its tests and packages take
PACKAGES := gcc make libc6-dev libcjson-dev libnanopb-dev zlib1g-dev iverilog verilator g++
TESTING  := nanopb yosys z3 clang libclang-rt-14-dev valgrind qemu-user gcc-arm-linux-gnueabihf libc6-dev-armhf-cross gcc-powerpc-linux-gnu libc6-dev-powerpc-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-system-arm gcc-arm-none-eabi libnewlib-arm-none-eabi gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf ccache jq groff-base locales python3 python3-venv libpython3-dev cmake pkg-config zsh fish chromium dpkg-dev emscripten lintian parallel tcl

SRC     := $(wildcard src/*.c src/*/*.c)
CLI     := main.c $(wildcard cli/*.c)
TEXTS   := $(wildcard verilog/*.v share share/* share/*/* src/exact/*.c)

.PHONY: wheel web npm deb dist all ready deps packages testing demo story test test-all test-full costs bench synth fuzz lint format install uninstall clean prove mutants coverage
all: mlo

mlo: build/main.o build/mlo.o
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# (one object, for the program and for the libraries both ways: it takes a minute)
build/mlo.o: $(SRC) mlo.h build/texts.c
	$(CC) $(STRICT) $(CFLAGS) -fPIC -I. -Ibuild -c -o $@ src/mlo.c

build/main.o: $(CLI) mlo.h | build
	$(CC) $(STRICT) $(CFLAGS) -I. -c -o $@ main.c

build/texts.c: $(TEXTS) tools/embed.sh | build
	sh tools/embed.sh verilog share src/exact > $@.part
	mv $@.part $@

build:
	mkdir -p $@

mlo.c: $(SRC) build/texts.c tools/amalgamate.sh
	sh tools/amalgamate.sh src/mlo.c build > $@.part
	mv $@.part $@

deps: .venv/ready
	@echo "deps: everything is there"

packages: NEEDED := $(PACKAGES)
testing: NEEDED := $(PACKAGES) $(TESTING)
packages testing: | build
	@missing=; for p in $(NEEDED); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'install ok installed' || missing="$$missing $$p"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if ! command -v apt-get > /dev/null; then echo "$@: there is no apt-get here; what it would install is$$missing"; exit 1; fi; \
	sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	echo "$@: installing$$missing"; \
	$$sudo apt-get update -qq && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing > build/apt.log 2>&1 || { tail -5 build/apt.log; echo "$@: apt-get failed; see build/apt.log"; exit 1; }

.venv/ready: tests/requirements.txt | testing
	@echo "deps: Python packages into .venv"
	@python3 -m venv .venv
	@.venv/bin/pip install -q --no-compile --disable-pip-version-check -r tests/requirements.txt
	@touch $@

# Variables of the rules above are settled before packages are there, so what needs both calls make again.
demo: packages
	@$(MAKE) --no-print-directory -s mlo
	@sh examples/demo.sh ./mlo
story: packages
	@$(MAKE) --no-print-directory -s mlo
	@sh examples/story.sh ./mlo

test: TIER := --quick
costs: TIER := --costs
test-full: TIER := --full
test test-all test-full costs: testing
	@$(MAKE) --no-print-directory -j2 deps mlo
	@$(PYTHON) tests/run.py ./mlo $(TIER)

prove:
	@status=0; for t in run.py "run.py --mutants" contract.py loop.py ../verilog/benches.py; do $(PYTHON) tests/formal/$$t --all --record -j 2 || status=1; done; exit $$status

bench: mlo
	@if [ -f tests/bench.py ]; then $(PYTHON) tests/bench.py ./mlo $(BENCH); else echo "bench: there is no tests/bench.py yet"; exit 1; fi

synth: mlo .venv/synth
	@$(PYTHON) tests/synth.py ./mlo $(SYNTH)

.venv/synth: tests/requirements-synth.txt .venv/ready
	@echo "synth: Yosys and nextpnr (WebAssembly) into .venv"
	@.venv/bin/pip install -q --disable-pip-version-check -r tests/requirements-synth.txt
	@touch $@

mutants: build/texts.c
	@$(PYTHON) tests/mutants.py $(FILE) -n $(or $(N),20) $(if $(SEED),--seed $(SEED))

coverage: build/texts.c
	@$(PYTHON) tests/coverage.py $(TESTS) $(if $(MISSING),--missing $(MISSING))

fuzz: build/fuzz/onnx build/fuzz/json

# Small blocks: every allocation is one of its own, so that ASan sees a step beyond any of them. The dictionaries do what traced comparisons
# would, at a third of the time.
FUZZ := -std=c99 -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined -DMLO_SMALL_BLOCK=64
build/fuzz/mlo.o: $(SRC) mlo.h build/texts.c
	mkdir -p build/fuzz
	clang $(FUZZ) -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp -I. -Ibuild -c -o $@ src/mlo.c
build/fuzz/%: tests/fuzz/fuzz_%.c tests/fuzz/fuzz.h build/fuzz/mlo.o
	clang $(FUZZ) -fsanitize=fuzzer -o $@ $< build/fuzz/mlo.o -lprotobuf-nanopb -lcjson -lm

lint: build/texts.c
	gcc $(STRICT) -Werror -O2 -I. -Ibuild -c -o build/lint.o src/mlo.c
	gcc $(STRICT) -Werror -O2 -I. -c -o build/lint.o main.c
	clang $(STRICT) -Werror -I. -Ibuild -fsyntax-only src/mlo.c
	clang $(STRICT) -Werror -I. -fsyntax-only main.c
	g++ -std=c++20 $(PLUS) -I. -Ibuild -fsyntax-only src/mlo.c
	g++ -std=c++20 $(PLUS) -I. -fsyntax-only main.c
	clang++ -std=c++17 $(PLUS) -I. -Ibuild -fsyntax-only src/mlo.c
	clang++ -std=c++17 $(PLUS) -I. -fsyntax-only main.c
	sh tests/lint.sh

format:
	clang-format-19 -i $(filter-out src/mlo.c,$(SRC)) $(CLI)

# ---- a package: the command line, the library both ways, and how to find them ----

VERSION := $(shell sed -n 's/^\#define MLO_VERSION "\(.*\)"/\1/p' mlo.h)
MAJOR   := $(firstword $(subst ., ,$(VERSION)))
LIBLIBS ?= -lprotobuf-nanopb -lcjson -lm
TO      := $(DESTDIR)$(PREFIX)
FILLED  := sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@MAJOR@|$(MAJOR)|' -e 's|@LIBS@|$(LIBLIBS)|'

build/libmlo.so.$(VERSION): build/mlo.o tools/mlo.map
	$(CC) $(LDFLAGS) -shared -Wl,-soname,libmlo.so.$(MAJOR) -Wl,--version-script=tools/mlo.map -Wl,-z,defs -o $@ $< $(LIBLIBS)
build/libmlo.a: build/mlo.o
	rm -f $@
	$(AR) rcs $@ $<

INSTALLED := bin/mlo include/mlo.h $(LIBDIR)/libmlo.a $(LIBDIR)/libmlo.so.$(VERSION) $(LIBDIR)/libmlo.so.$(MAJOR) $(LIBDIR)/libmlo.so $(LIBDIR)/pkgconfig/mlo.pc $(LIBDIR)/cmake/mlo/mlo-config.cmake $(LIBDIR)/cmake/mlo/mlo-config-version.cmake \
	share/mlo/mlo.c share/man/man1/mlo.1 share/bash-completion/completions/mlo share/zsh/site-functions/_mlo share/fish/vendor_completions.d/mlo.fish

ready: mlo mlo.c build/libmlo.a build/libmlo.so.$(VERSION)

install: ready
	mkdir -p $(sort $(dir $(addprefix $(TO)/,$(INSTALLED))))
	install -m 755 mlo $(TO)/bin/mlo
	install -m 644 mlo.h $(TO)/include/mlo.h
	install -m 644 mlo.c $(TO)/share/mlo/mlo.c
	install -m 644 build/libmlo.a $(TO)/$(LIBDIR)/libmlo.a
	install -m 755 build/libmlo.so.$(VERSION) $(TO)/$(LIBDIR)/libmlo.so.$(VERSION)
	ln -sf libmlo.so.$(VERSION) $(TO)/$(LIBDIR)/libmlo.so.$(MAJOR)
	ln -sf libmlo.so.$(MAJOR) $(TO)/$(LIBDIR)/libmlo.so
	$(FILLED) tools/mlo.pc.in > $(TO)/$(LIBDIR)/pkgconfig/mlo.pc
	$(FILLED) tools/mlo-config.cmake.in > $(TO)/$(LIBDIR)/cmake/mlo/mlo-config.cmake
	$(FILLED) tools/mlo-config-version.cmake.in > $(TO)/$(LIBDIR)/cmake/mlo/mlo-config-version.cmake
	./mlo help --man > $(TO)/share/man/man1/mlo.1
	./mlo help --completion bash > $(TO)/share/bash-completion/completions/mlo
	./mlo help --completion zsh > $(TO)/share/zsh/site-functions/_mlo
	./mlo help --completion fish > $(TO)/share/fish/vendor_completions.d/mlo.fish

# ---- Debian packages, and the source as one file: same files same bytes ----

EPOCH   = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),1767225600)

deb:
	@rm -rf build/deb
	@$(MAKE) --no-print-directory -s install DESTDIR=$(CURDIR)/build/deb/all PREFIX=/usr LIBDIR=lib/$$(dpkg-architecture -qDEB_HOST_MULTIARCH)
	@SOURCE_DATE_EPOCH=$(EPOCH) sh tools/deb.sh $(VERSION) build/deb/all build/deb
	@rm -rf build/deb/all

dist: | build
	@git ls-files -z > build/dist.list || { echo "dist: the files are those that git knows; this is no clone"; exit 1; }
	@tar --null -T build/dist.list --sort=name --mtime=@$(EPOCH) --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --format=ustar --transform 's|^|mlo-$(VERSION)/|' -cf - | gzip -9n > build/mlo-$(VERSION).tar.gz
	@echo build/mlo-$(VERSION).tar.gz

# ---- a Python wheel: the library with cJSON and nanopb inside, the program with zlib, too ----

THIRD   := build/third
WITHIN  := build/pic/cJSON.o build/pic/pb_common.o build/pic/pb_decode.o build/pic/pb_encode.o
ZLIB    ?= -l:libz.a

$(THIRD)/ready: tools/third.sh | build
	@sh tools/third.sh $(THIRD)
build/pic/%.o: $(THIRD)/ready
	@mkdir -p build/pic
	$(CC) $(CFLAGS) -fPIC -I$(THIRD) -c -o $@ $(or $(wildcard $(THIRD)/$*.c),$(THIRD)/cjson/$*.c)
build/wheel/libmlo.so: build/mlo.o $(WITHIN) tools/mlo.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -s -shared -Wl,-soname,libmlo.so -Wl,--version-script=tools/mlo.map -Wl,-z,defs -o $@ build/mlo.o $(WITHIN) -lm
build/wheel/mlo: build/main.o build/wheel/libmlo.so
	$(CC) $(LDFLAGS) -s -Wl,-rpath,'$$ORIGIN' -o $@ build/main.o build/wheel/libmlo.so build/pic/cJSON.o $(ZLIB) -lm -lpthread

wheel: build/wheel/libmlo.so build/wheel/mlo
	@$(or $(wildcard $(PYTHON)),python3) tools/wheel.py $(VERSION) $^ build

# ---- one page for browsers: the library by Emscripten ----

# (Node.js from elsewhere than Debian does not look where Debian keeps Emscripten's acorn)
EMCC    := NODE_PATH=/usr/share/nodejs emcc
WEBLINK := -s MODULARIZE=1 -s EXPORT_NAME=mlo_module -s ENVIRONMENT=worker,node -s FILESYSTEM=0 -s ALLOW_MEMORY_GROWTH=1 -s MAXIMUM_MEMORY=4GB -s TOTAL_STACK=8MB \
	-s EXPORTED_FUNCTIONS=_malloc,_free,_mlo_close,_mlo_load,_mlo_parse,_mlo_set,_mlo_to,_mlo_stage,_mlo_failure,_mlo_report,_mlo_calibrate,_mlo_hold,_mlo_words,_mlo_run,_mlo_draw,_mlo_signature,_mlo_check \
	-s EXPORTED_RUNTIME_METHODS=ccall,UTF8ToString -s INCOMING_MODULE_JS_API=wasmBinary,instantiateWasm

# what the page's first core takes is code that runs for the first time: the less there is of it, the sooner; who stays longer has -O2
build/web/mlo.js: WEBOPT := -O2
build/web/page.js: WEBOPT := -Os -msimd128
build/web/mlo.o build/web/page.o: $(SRC) mlo.h build/texts.c $(THIRD)/ready
	@mkdir -p build/web
	$(EMCC) -std=c99 $(WEBOPT) -w -I. -Ibuild -I$(THIRD) -c -o $@ src/mlo.c
build/web/mlo.js build/web/page.js: build/web/%.js: build/web/%.o web/bridge.c mlo.h
	$(EMCC) $(WEBOPT) -I. -I$(THIRD) -o $@ $< web/bridge.c $(THIRD)/cjson/cJSON.c $(THIRD)/pb_common.c $(THIRD)/pb_decode.c $(THIRD)/pb_encode.c $(WEBLINK)
build/web/mlo.html: build/web/page.js $(wildcard web/*) tools/web.py examples/bert-tiny.onnx
	python3 tools/web.py build/web/page.wasm build/web/page.js examples/bert-tiny.onnx > $@.part
	mv $@.part $@

web: build/web/mlo.html
	@echo $<

npm: build/web/mlo.js
	@python3 tools/npm.py $(VERSION) build/web/mlo.wasm build/web/mlo.js build

# files, and folders that are mlo's own
uninstall:
	rm -f $(addprefix $(TO)/,$(INSTALLED))
	-rmdir $(TO)/$(LIBDIR)/cmake/mlo $(TO)/share/mlo 2>/dev/null || true

clean:
	rm -rf build demo story mlo
