# Tests of the core: no server, and none of its headers.
#
#   make unit                  unit tests with AddressSanitizer and UBSan
#   make unit-valgrind         the same, plain build, under valgrind
#   make fuzz FUZZ_SECONDS=10  one libFuzzer program per parser (clang)
#
# The top Makefile includes this file.  Without a pg_config the same targets
# work as `make -f test/module.mk unit`, from the top of the source tree.
# The machines that tests read are made by test/fixtures/make_machine.py.
# test/unit/test_*.c and test/fuzz/fuzz_*.c are picked up by their names.

PKG_CONFIG ?= pkg-config
UNIT_CC ?= $(CC)
FUZZ_CC ?= clang
FUZZ_SECONDS ?= 10
UNIT_BIN = test/bin

UNIT_LIBRARIES = libproc2 jansson
UNIT_CFLAGS = -std=gnu11 -g -Wall -Wextra -Werror -fno-omit-frame-pointer -MMD -MP \
	-Isrc/core -Itest/unit -Icontrib_tools/kernel_advisor -Icontrib_tools/contiguity -iquote contrib_tools/kernel_advisord $(shell $(PKG_CONFIG) --cflags $(UNIT_LIBRARIES))
UNIT_LIBS = $(shell $(PKG_CONFIG) --libs $(UNIT_LIBRARIES)) -lm

UNIT_SOURCES = $(sort $(wildcard src/core/*.c) $(wildcard $(addprefix contrib_tools/kernel_advisor/,json.c errortext.c plan.c) $(addprefix contrib_tools/contiguity/,requests.c runs.c) contrib_tools/kernel_advisord/knobs.c))
UNIT_TESTS = $(patsubst test/unit/%.c,%,$(sort $(wildcard test/unit/test_*.c)))
FUZZERS = $(patsubst test/fuzz/%.c,%,$(sort $(wildcard test/fuzz/fuzz_*.c)))

# One build per way of looking at the code: asan, plain (for valgrind), fuzz.
UNIT_SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all
asan_CC = $(UNIT_CC)
asan_FLAGS = -O1 $(UNIT_SANITIZE)
plain_CC = $(UNIT_CC)
plain_FLAGS = -O2
fuzz_CC = $(FUZZ_CC)
fuzz_FLAGS = -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all

# $(1): the build.  The core is an archive, so that a program links what it uses.
define unit_build
$(1)_OBJECTS = $$(patsubst %.c,$(UNIT_BIN)/$(1)/%.o,$(UNIT_SOURCES))

$(UNIT_BIN)/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$($(1)_CC) $$(UNIT_CFLAGS) $$($(1)_FLAGS) -c -o $$@ $$<

$(UNIT_BIN)/$(1)/core.a: $$($(1)_OBJECTS)
	@rm -f $$@
	$$(AR) rcs $$@ $$^

$(UNIT_BIN)/$(1)/test_%: $(UNIT_BIN)/$(1)/test/unit/test_%.o $(UNIT_BIN)/$(1)/core.a
	$$($(1)_CC) $$($(1)_FLAGS) -o $$@ $$^ $$(UNIT_LIBS)

$(UNIT_BIN)/$(1)/fuzz_%: $(UNIT_BIN)/$(1)/test/fuzz/fuzz_%.o $(UNIT_BIN)/$(1)/core.a
	$$($(1)_CC) $$(subst fuzzer-no-link,fuzzer,$$($(1)_FLAGS)) -o $$@ $$^ $$(UNIT_LIBS)

-include $$(wildcard $(UNIT_BIN)/$(1)/src/core/*.d $(UNIT_BIN)/$(1)/test/*/*.d $(UNIT_BIN)/$(1)/contrib_tools/*/*.d)
endef
$(foreach build,asan plain fuzz,$(eval $(call unit_build,$(build))))

# Copies of machines: build products, because of the names in /sys/dev/block.
$(UNIT_BIN)/machines/made: test/fixtures/make_machine.py $(shell find test/fixtures/machines -type f 2>/dev/null)
	@rm -rf $(UNIT_BIN)/machines
	python3 test/fixtures/make_machine.py $(UNIT_BIN)/machines
	python3 test/fixtures/make_machine.py --large $(UNIT_BIN)/machines/large-6.12
	@touch $@

unit: $(addprefix $(UNIT_BIN)/asan/,$(UNIT_TESTS)) $(UNIT_BIN)/machines/made
	@ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 \
		test/run_unit $(addprefix $(UNIT_BIN)/asan/,$(UNIT_TESTS))

unit-valgrind: $(addprefix $(UNIT_BIN)/plain/,$(UNIT_TESTS)) $(UNIT_BIN)/machines/made
	@test/run_unit -w 'valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible' \
		$(addprefix $(UNIT_BIN)/plain/,$(UNIT_TESTS))

fuzz: $(addprefix $(UNIT_BIN)/fuzz/,$(FUZZERS))
	@test/run_fuzz $(FUZZ_SECONDS) $(UNIT_BIN)/corpus $(addprefix $(UNIT_BIN)/fuzz/,$(FUZZERS))

clean: clean-unit
clean-unit:
	rm -rf $(UNIT_BIN)

.PHONY: unit unit-valgrind fuzz clean-unit
.PRECIOUS: $(UNIT_BIN)/asan/%.o $(UNIT_BIN)/plain/%.o $(UNIT_BIN)/fuzz/%.o
