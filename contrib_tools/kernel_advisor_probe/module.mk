# kernel_advisor_probe: the BPF probe, its unit and man page, and its tests.
#
#   make probe                        the probe
#   make install-probe                probe, unit, sysusers.d file, man page; uninstall-probe takes them away again
#   make unit-probe                   unit tests with AddressSanitizer and UBSan
#   make unit-probe-valgrind          the same under valgrind
#   make fuzz-probe FUZZ_SECONDS=10   libFuzzer programs (clang)
#   make rootcheck-probe              the real probe, as root, on this kernel: prove with PROVE_FLAGS (--timer), TAP;
#                                     waits for the lock of tests that change the kernel's settings, unless the
#                                     caller holds it and says so with KA_KERNEL_HELD=1
#
# The top Makefile includes this file, and builds the probe on request only: it needs libbpf, clang and bpftool, and
# everything else works without.  All of it also works without PostgreSQL, from the top of the tree:
# `make -f contrib_tools/kernel_advisor_probe/module.mk probe`.

PROBE = contrib_tools/kernel_advisor_probe
PROBE_BUILD = $(PROBE)/build

PKG_CONFIG ?= pkg-config
PROBE_CLANG ?= clang
# Debian has it where only root looks.
PROBE_BPFTOOL ?= $(or $(shell PATH="$$PATH:/usr/sbin:/sbin" command -v bpftool 2>/dev/null),bpftool)

# Where it goes follows from the server's place, as for kernel_advisord.
PROBE_PREFIX ?= $(if $(filter-out /usr/%,$(bindir)),$(patsubst %/,%,$(dir $(bindir))),$(if $(filter /usr/local/%,$(bindir)),/usr/local,/usr))
PROBE_SBINDIR ?= $(PROBE_PREFIX)/sbin
PROBE_MANDIR ?= $(PROBE_PREFIX)/share/man
PROBE_SYSUSERSDIR ?= $(PROBE_PREFIX)/lib/sysusers.d
PROBE_UNITDIR ?= $(if $(filter /usr,$(PROBE_PREFIX)),$(or $(shell $(PKG_CONFIG) --variable=systemdsystemunitdir systemd 2>/dev/null),/lib/systemd/system),$(PROBE_PREFIX)/lib/systemd/system)

.DEFAULT_GOAL := $(or $(.DEFAULT_GOAL),probe)

# Asked for the probe, say what is missing; asked for anything else, keep quiet.
PROBE_GOALS := $(filter probe install-probe unit-probe unit-probe-valgrind fuzz-probe probe-tools rootcheck-probe,$(or $(MAKECMDGOALS),$(.DEFAULT_GOAL)))
ifneq ($(PROBE_GOALS),)
define probe_need
ifneq ($$(shell $(PKG_CONFIG) --exists '$(1)' && echo found),found)
$$(error kernel_advisor_probe: $(1) is missing: install $(2) (Debian, Ubuntu) or $(3) (Fedora, RHEL), and pkg-config)
endif
endef
$(eval $(call probe_need,libbpf >= 1.0,libbpf-dev,libbpf-devel))
$(eval $(call probe_need,libcap,libcap-dev,libcap-devel))
ifneq ($(shell $(PROBE_CLANG) --version >/dev/null 2>&1 && echo found),found)
$(error kernel_advisor_probe: $(PROBE_CLANG) is missing: install clang, or name it with PROBE_CLANG=)
endif
ifneq ($(shell $(PROBE_BPFTOOL) version >/dev/null 2>&1 && echo found),found)
$(error kernel_advisor_probe: bpftool is missing: install bpftool (Debian, Fedora) or linux-tools-common and linux-tools-generic (Ubuntu), or name it with PROBE_BPFTOOL=)
endif
endif

PROBE_LIBRARIES = libbpf libcap
PROBE_CFLAGS = -std=gnu11 -g -Wall -Wextra -Werror -MMD -MP -fno-omit-frame-pointer \
	-I$(PROBE) -Icontrib_tools/kernel_advisord -Itest/unit -isystem $(PROBE_BUILD) $(shell $(PKG_CONFIG) --cflags $(PROBE_LIBRARIES))
PROBE_LIBS = $(shell $(PKG_CONFIG) --libs $(PROBE_LIBRARIES))
PROBE_HARDENING = -O2 -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE
PROBE_LDFLAGS = -pie -Wl,-z,relro,-z,now

# All but main.c, so that the tests link the same objects; of the helper only its log.
PROBE_SOURCES = $(filter-out $(PROBE)/main.c $(PROBE)/probe.bpf.c,$(sort $(wildcard $(PROBE)/*.c))) contrib_tools/kernel_advisord/log.c

PROBE_TESTS = $(patsubst $(PROBE)/test/%.c,%,$(sort $(wildcard $(PROBE)/test/test_*.c)))
PROBE_FUZZERS = $(patsubst $(PROBE)/test/%.c,%,$(sort $(wildcard $(PROBE)/test/fuzz_*.c)))
# What the tests on the real kernel and the benchmark run beside the probe.
PROBE_TOOLS = $(patsubst $(PROBE)/test/%.c,%,$(sort $(wildcard $(PROBE)/test/probe_*.c)))

# One build per way of looking at the code.
PROBE_SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all
probe_prod_CC = $(CC)
probe_prod_FLAGS = $(PROBE_HARDENING)
probe_asan_CC = $(CC)
probe_asan_FLAGS = -O1 $(PROBE_SANITIZE)
probe_plain_CC = $(CC)
probe_plain_FLAGS = -O2
probe_fuzz_CC = clang
probe_fuzz_FLAGS = -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all

# The BPF object and its skeleton.  Its instruction set, v3, is that of kernels since 5.12.
PROBE_BPF_CFLAGS = -g -O2 -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter -MMD -MP \
	-I$(PROBE) -idirafter /usr/include/$(shell $(CC) -print-multiarch 2>/dev/null) $(shell $(PKG_CONFIG) --cflags libbpf)

$(PROBE_BUILD)/probe.bpf.o: $(PROBE)/probe.bpf.c
	@mkdir -p $(@D)
	$(PROBE_CLANG) $(PROBE_BPF_CFLAGS) -c -o $@ $<

$(PROBE_BUILD)/probe.skel.h: $(PROBE_BUILD)/probe.bpf.o
	$(PROBE_BPFTOOL) gen skeleton $< name probe >$@.new
	mv $@.new $@

# $(1): the build.
define probe_build
$(PROBE_BUILD)/$(1)/%.o: %.c $(PROBE_BUILD)/probe.skel.h
	@mkdir -p $$(@D)
	$$(probe_$(1)_CC) $$(PROBE_CFLAGS) $$(probe_$(1)_FLAGS) -c -o $$@ $$<

$(PROBE_BUILD)/$(1)/all.a: $$(patsubst %.c,$(PROBE_BUILD)/$(1)/%.o,$$(PROBE_SOURCES))
	@rm -f $$@
	$$(AR) rcs $$@ $$^

$(PROBE_BUILD)/$(1)/bin/%: $(PROBE_BUILD)/$(1)/$(PROBE)/test/%.o $(PROBE_BUILD)/$(1)/all.a
	@mkdir -p $$(@D)
	$$(probe_$(1)_CC) $$(subst fuzzer-no-link,$$(if $$(filter fuzz_%,$$*),fuzzer,fuzzer-no-link),$$(probe_$(1)_FLAGS)) -o $$@ $$^ $$(PROBE_LIBS)

-include $$(wildcard $(PROBE_BUILD)/$(1)/$(PROBE)/*.d $(PROBE_BUILD)/$(1)/$(PROBE)/test/*.d)
endef
$(foreach build,prod asan plain fuzz,$(eval $(call probe_build,$(build))))
-include $(wildcard $(PROBE_BUILD)/*.d)

probe: $(PROBE)/kernel_advisor_probe

$(PROBE)/kernel_advisor_probe: $(PROBE_BUILD)/prod/$(PROBE)/main.o $(PROBE_BUILD)/prod/all.a
	$(CC) $(PROBE_HARDENING) $(PROBE_LDFLAGS) -o $@ $^ $(PROBE_LIBS)

install-probe: probe
	install -d '$(DESTDIR)$(PROBE_SBINDIR)' '$(DESTDIR)$(PROBE_UNITDIR)' '$(DESTDIR)$(PROBE_SYSUSERSDIR)' '$(DESTDIR)$(PROBE_MANDIR)/man8'
	install -m 755 $(PROBE)/kernel_advisor_probe '$(DESTDIR)$(PROBE_SBINDIR)'
	sed 's|/usr/sbin/kernel_advisor_probe|$(PROBE_SBINDIR)/kernel_advisor_probe|' $(PROBE)/kernel_advisor_probe.service \
		>'$(DESTDIR)$(PROBE_UNITDIR)/kernel_advisor_probe.service'
	chmod 644 '$(DESTDIR)$(PROBE_UNITDIR)/kernel_advisor_probe.service'
	install -m 644 $(PROBE)/kernel_advisor_probe.sysusers '$(DESTDIR)$(PROBE_SYSUSERSDIR)/kernel_advisor_probe.conf'
	install -m 644 $(PROBE)/kernel_advisor_probe.8 '$(DESTDIR)$(PROBE_MANDIR)/man8'

uninstall: uninstall-probe
uninstall-probe:
	rm -f '$(DESTDIR)$(PROBE_SBINDIR)/kernel_advisor_probe' '$(DESTDIR)$(PROBE_UNITDIR)/kernel_advisor_probe.service' \
		'$(DESTDIR)$(PROBE_SYSUSERSDIR)/kernel_advisor_probe.conf' '$(DESTDIR)$(PROBE_MANDIR)/man8/kernel_advisor_probe.8'

unit-probe: $(addprefix $(PROBE_BUILD)/asan/bin/,$(PROBE_TESTS))
	@ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 test/run_unit $^

unit-probe-valgrind: $(addprefix $(PROBE_BUILD)/plain/bin/,$(PROBE_TESTS))
	@test/run_unit -w 'valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible' $^

fuzz-probe: $(addprefix $(PROBE_BUILD)/fuzz/bin/,$(PROBE_FUZZERS))
	@mkdir -p $(addprefix $(PROBE_BUILD)/corpus/,$(PROBE_FUZZERS))
	@test/run_fuzz $(or $(FUZZ_SECONDS),10) $(PROBE_BUILD)/corpus $^

probe-tools: $(addprefix $(PROBE_BUILD)/plain/bin/,$(PROBE_TOOLS))

rootcheck-probe: probe probe-tools
	cd $(PROBE) && prove $(or $(PROVE_FLAGS),--timer) t/*.t

clean: clean-probe
clean-probe:
	rm -rf $(PROBE_BUILD) $(PROBE)/kernel_advisor_probe

.PHONY: probe install-probe uninstall-probe unit-probe unit-probe-valgrind fuzz-probe probe-tools rootcheck-probe clean-probe
.PRECIOUS: $(PROBE_BUILD)/%.o $(PROBE_BUILD)/%.a
