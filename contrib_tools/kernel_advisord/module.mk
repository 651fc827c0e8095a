# kernel_advisord: the root helper, its units and man page, and its tests.
#
#   make advisord                        the daemon
#   make install-advisord                daemon, units, man page, example of the bounds file;
#                                        uninstall-advisord takes them away again
#   make unit-advisord                   unit tests with AddressSanitizer and UBSan
#   make unit-advisord-valgrind          the same under valgrind
#   make fuzz-advisord FUZZ_SECONDS=10   libFuzzer programs (clang)
#   make rootcheck-advisord              the real daemon, as root: prove with PROVE_FLAGS (--timer), TAP
#
# The top Makefile includes this file; all of it also works without PostgreSQL:
# `make -f contrib_tools/kernel_advisord/module.mk advisord`, from the top of the tree.

ADVISORD = contrib_tools/kernel_advisord
ADVISORD_BUILD = $(ADVISORD)/build

PKG_CONFIG ?= pkg-config

# The helper belongs to the machine.  Its place follows from the server's all the same: with a distribution's server
# below /usr (or none named) it is where systemd looks, with one below /usr/local there, and that of any other server,
# as of a private copy, stays below that server's directory.
ADVISORD_PREFIX ?= $(if $(filter-out /usr/%,$(bindir)),$(patsubst %/,%,$(dir $(bindir))),$(if $(filter /usr/local/%,$(bindir)),/usr/local,/usr))
ADVISORD_SBINDIR ?= $(ADVISORD_PREFIX)/sbin
ADVISORD_MANDIR ?= $(ADVISORD_PREFIX)/share/man
ADVISORD_DOCDIR ?= $(ADVISORD_PREFIX)/share/doc/kernel_advisord
ADVISORD_UNITDIR ?= $(if $(filter /usr,$(ADVISORD_PREFIX)),$(or $(shell $(PKG_CONFIG) --variable=systemdsystemunitdir systemd 2>/dev/null),/lib/systemd/system),$(ADVISORD_PREFIX)/lib/systemd/system)

.DEFAULT_GOAL := $(or $(.DEFAULT_GOAL),advisord)

ifneq ($(filter-out clean distclean maintainer-clean clean-advisord unit unit-valgrind fuzz probe %-probe %-probe-valgrind,$(or $(MAKECMDGOALS),all)),)
define advisord_need
ifneq ($$(shell $(PKG_CONFIG) --exists $(1) && echo found),found)
$$(error kernel_advisord: $(1) is missing: install $(2) (Debian, Ubuntu) or $(3) (Fedora, RHEL), and pkg-config)
endif
endef
$(eval $(call advisord_need,libcap,libcap-dev,libcap-devel))
$(eval $(call advisord_need,libseccomp,libseccomp-dev,libseccomp-devel))
endif

ADVISORD_LIBRARIES = libcap libseccomp
ADVISORD_CFLAGS = -std=gnu11 -g -Wall -Wextra -Werror -MMD -MP -fno-omit-frame-pointer \
	-I$(ADVISORD) -Isrc/core -Itest/unit $(shell $(PKG_CONFIG) --cflags $(ADVISORD_LIBRARIES))
ADVISORD_LIBS = $(shell $(PKG_CONFIG) --libs $(ADVISORD_LIBRARIES))
ADVISORD_HARDENING = -O2 -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE
ADVISORD_LDFLAGS = -pie -Wl,-z,relro,-z,now

# All but main.c, so that the tests link the same objects.
ADVISORD_SOURCES = $(filter-out $(ADVISORD)/main.c,$(sort $(wildcard $(ADVISORD)/*.c)))
# Of the core only the reader of the boot settings, and what that needs.
ADVISORD_CORE = $(addprefix src/core/,base.c boot_parse.c collect_boot.c facts.c path.c)

ADVISORD_TESTS = $(patsubst $(ADVISORD)/test/%.c,%,$(sort $(wildcard $(ADVISORD)/test/test_*.c)))
ADVISORD_FUZZERS = $(patsubst $(ADVISORD)/test/%.c,%,$(sort $(wildcard $(ADVISORD)/test/fuzz_*.c)))
ADVISORD_TOOLS = advisord_kill advisord_passfd

# One build per way of looking at the code.
ADVISORD_SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all
advisord_prod_CC = $(CC)
advisord_prod_FLAGS = $(ADVISORD_HARDENING)
advisord_asan_CC = $(CC)
advisord_asan_FLAGS = -O1 $(ADVISORD_SANITIZE)
advisord_plain_CC = $(CC)
advisord_plain_FLAGS = -O2
advisord_fuzz_CC = clang
advisord_fuzz_FLAGS = -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all

# $(1): the build.
define advisord_build
$(ADVISORD_BUILD)/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(advisord_$(1)_CC) $$(ADVISORD_CFLAGS) $$(advisord_$(1)_FLAGS) -c -o $$@ $$<

$(ADVISORD_BUILD)/$(1)/all.a: $$(patsubst %.c,$(ADVISORD_BUILD)/$(1)/%.o,$$(ADVISORD_SOURCES) $$(ADVISORD_CORE))
	@rm -f $$@
	$$(AR) rcs $$@ $$^

$(ADVISORD_BUILD)/$(1)/bin/%: $(ADVISORD_BUILD)/$(1)/$(ADVISORD)/test/%.o $(ADVISORD_BUILD)/$(1)/all.a
	@mkdir -p $$(@D)
	$$(advisord_$(1)_CC) $$(subst fuzzer-no-link,$$(if $$(filter fuzz_%,$$*),fuzzer,fuzzer-no-link),$$(advisord_$(1)_FLAGS)) -o $$@ $$^ $$(ADVISORD_LIBS) -lm

-include $$(wildcard $(ADVISORD_BUILD)/$(1)/$(ADVISORD)/*.d $(ADVISORD_BUILD)/$(1)/$(ADVISORD)/test/*.d $(ADVISORD_BUILD)/$(1)/src/core/*.d)
endef
$(foreach build,prod asan plain fuzz,$(eval $(call advisord_build,$(build))))

advisord: $(ADVISORD)/kernel_advisord

$(ADVISORD)/kernel_advisord: $(ADVISORD_BUILD)/prod/$(ADVISORD)/main.o $(ADVISORD_BUILD)/prod/all.a
	$(CC) $(ADVISORD_HARDENING) $(ADVISORD_LDFLAGS) -o $@ $^ $(ADVISORD_LIBS) -lm

# Fragments memory, for tests and contrib_tools/bench/estimate.
advisord-fragment: $(ADVISORD_BUILD)/fragment
$(ADVISORD_BUILD)/fragment: test/root/fragment.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -o $@ $<

install-advisord: advisord
	install -d '$(DESTDIR)$(ADVISORD_SBINDIR)' '$(DESTDIR)$(ADVISORD_UNITDIR)' '$(DESTDIR)$(ADVISORD_MANDIR)/man8' '$(DESTDIR)$(ADVISORD_DOCDIR)'
	install -m 755 $(ADVISORD)/kernel_advisord '$(DESTDIR)$(ADVISORD_SBINDIR)'
	install -m 644 $(ADVISORD)/kernel_advisord.socket '$(DESTDIR)$(ADVISORD_UNITDIR)'
	sed 's|/usr/sbin/kernel_advisord|$(ADVISORD_SBINDIR)/kernel_advisord|' $(ADVISORD)/kernel_advisord.service \
		>'$(DESTDIR)$(ADVISORD_UNITDIR)/kernel_advisord.service'
	chmod 644 '$(DESTDIR)$(ADVISORD_UNITDIR)/kernel_advisord.service'
	install -m 644 $(ADVISORD)/kernel_advisord.8 '$(DESTDIR)$(ADVISORD_MANDIR)/man8'
	install -m 644 $(ADVISORD)/bounds.conf '$(DESTDIR)$(ADVISORD_DOCDIR)'

uninstall-advisord:
	rm -f '$(DESTDIR)$(ADVISORD_SBINDIR)/kernel_advisord' \
		'$(DESTDIR)$(ADVISORD_UNITDIR)/kernel_advisord.socket' '$(DESTDIR)$(ADVISORD_UNITDIR)/kernel_advisord.service' \
		'$(DESTDIR)$(ADVISORD_MANDIR)/man8/kernel_advisord.8' '$(DESTDIR)$(ADVISORD_DOCDIR)/bounds.conf'
	rmdir '$(DESTDIR)$(ADVISORD_DOCDIR)' 2>/dev/null || true

unit-advisord: $(addprefix $(ADVISORD_BUILD)/asan/bin/,$(ADVISORD_TESTS))
	@ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 \
		test/run_unit $(addprefix $(ADVISORD_BUILD)/asan/bin/,$(ADVISORD_TESTS))

# Not test_privileges: the filter under test kills valgrind, too.
unit-advisord-valgrind: $(addprefix $(ADVISORD_BUILD)/plain/bin/,$(filter-out test_privileges,$(ADVISORD_TESTS)))
	@test/run_unit -w 'valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible' \
		$^

fuzz-advisord: $(addprefix $(ADVISORD_BUILD)/fuzz/bin/,$(ADVISORD_FUZZERS))
	@# Inputs of several records and requests to begin with, or libFuzzer takes long to get there.
	@mkdir -p $(ADVISORD_BUILD)/corpus/fuzz_journal $(ADVISORD_BUILD)/corpus/fuzz_request
	@head -c 720 $(ADVISORD)/journal.c >$(ADVISORD_BUILD)/corpus/fuzz_journal/seed
	@head -c 64 $(ADVISORD)/journal.c >$(ADVISORD_BUILD)/corpus/fuzz_request/seed
	@test/run_fuzz $(or $(FUZZ_SECONDS),10) $(ADVISORD_BUILD)/corpus $(addprefix $(ADVISORD_BUILD)/fuzz/bin/,$(ADVISORD_FUZZERS))

rootcheck-advisord: advisord advisord-fragment $(addprefix $(ADVISORD_BUILD)/plain/bin/,$(ADVISORD_TOOLS))
	cd $(ADVISORD) && prove $(or $(PROVE_FLAGS),--timer) t/*.t

all: advisord
install: install-advisord
uninstall: uninstall-advisord
clean: clean-advisord
clean-advisord:
	rm -rf $(ADVISORD_BUILD) $(ADVISORD)/kernel_advisord

.PHONY: advisord advisord-fragment install-advisord uninstall-advisord unit-advisord unit-advisord-valgrind fuzz-advisord rootcheck-advisord clean-advisord
.PRECIOUS: $(ADVISORD_BUILD)/%.o $(ADVISORD_BUILD)/%.a
