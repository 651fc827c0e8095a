# pg_kernel_advisor: the server library, its SQL, the command line tool and the root helper.
#
#   make                 everything; PG_CONFIG=/path/to/pg_config picks the server
#   make install         library, control file, install script, command line tool, helper, units, man pages
#   make installcheck    pg_regress and TAP tests against the installed extension
#   make unit            unit tests of the core (no server)
#   make probe           the BPF probe, make install-probe installs it: on request only, since it needs libbpf, clang and
#                        bpftool, and everything else works without

EXTENSION = pg_kernel_advisor
MODULE_big = pg_kernel_advisor
DATA = $(wildcard pg_kernel_advisor--*.sql)

CORE_OBJS = $(patsubst %.c,%.o,$(wildcard src/core/*.c))
# The helper's own protocol and table of knobs: built here with the server's flags.
HELPER_OBJS = $(addprefix contrib_tools/kernel_advisord/,client.o knobs.o protocol.o)
# The reader of the probe's file, likewise; it needs nothing of what the probe needs.
PROBE_OBJS = contrib_tools/kernel_advisor_probe/probe_file.o
# The HTML report's style, script and charts, as texts in the library.
REPORT_ASSETS = src/report_assets
OBJS = $(patsubst %.c,%.o,$(filter-out $(REPORT_ASSETS).c,$(wildcard src/*.c))) $(REPORT_ASSETS).o $(CORE_OBJS) $(HELPER_OBJS) $(PROBE_OBJS)

REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS_OPTS = --inputdir=. --load-extension=pg_kernel_advisor
TAP_TESTS = 1

PG_CONFIG ?= pg_config
PKG_CONFIG ?= pkg-config
NEEDS_LIBRARIES := $(filter-out clean distclean maintainer-clean unit unit-valgrind fuzz %-advisord probe %-probe %-probe-valgrind,$(or $(MAKECMDGOALS),all))

ifneq ($(NEEDS_LIBRARIES),)
ifneq ($(shell $(PG_CONFIG) --version >/dev/null 2>&1 && echo found),found)
$(error $(PG_CONFIG) does not run: install postgresql-server-dev-NN, or name it with PG_CONFIG=)
endif
define need
ifneq ($$(shell $(PKG_CONFIG) --exists $(1) && echo found),found)
$$(error $(1) is missing: install $(2) (Debian, Ubuntu) or $(3) (Fedora, RHEL), and pkg-config)
endif
endef
$(eval $(call need,libproc2,libproc2-dev,procps-ng-devel))
$(eval $(call need,jansson,libjansson-dev,jansson-devel))
endif

# The server's headers are not ours to warn about: -isystem wins over PGXS's -I.
WARNINGS = -Wall -Wextra -Werror -Wno-declaration-after-statement
PG_CPPFLAGS = -isystem $(shell $(PG_CONFIG) --includedir-server) -Isrc -Isrc/core -Icontrib_tools \
	$(shell $(PKG_CONFIG) --cflags libproc2)
PG_CFLAGS = $(WARNINGS)
# The server was built with gcc: clang is not to complain of gcc's flags.
ifneq ($(findstring clang,$(shell $(CC) --version 2>/dev/null)),)
PG_CFLAGS += -Wno-ignored-optimization-argument -Wno-unknown-warning-option
endif
SHLIB_LINK = $(shell $(PKG_CONFIG) --libs libproc2)

# No bitcode: these functions gain nothing from inlining into queries.
override with_llvm = no

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
override with_llvm = no

include contrib_tools/kernel_advisord/module.mk
include contrib_tools/kernel_advisor/module.mk
include contrib_tools/contiguity/module.mk
include contrib_tools/kernel_advisor_probe/module.mk
include test/module.mk

# name, file: each byte is written as an octal escape, which any compiler takes.
define asset_text
@{ echo 'const char $(1)[] ='; od -An -v -to1 '$(2)' | sed 's/ /\\/g; s/^/"/; s/$$/"/'; echo '"";'; } >>$@.new

endef
REPORT_TEXTS = \
	ka_uplot_css,third_party/uplot/uPlot.min.css \
	ka_uplot_js,third_party/uplot/uPlot.iife.min.js \
	ka_uplot_license,third_party/uplot/LICENSE \
	ka_report_css,src/report/report.css \
	ka_report_body,src/report/body.html \
	ka_report_js,src/report/report.js
comma = ,
text_name = $(firstword $(subst $(comma), ,$(1)))
text_file = $(lastword $(subst $(comma), ,$(1)))

$(REPORT_ASSETS).c: $(foreach text,$(REPORT_TEXTS),$(call text_file,$(text))) Makefile
	@echo '#include "report_assets.h"' >$@.new
	$(foreach text,$(REPORT_TEXTS),$(call asset_text,$(call text_name,$(text)),$(call text_file,$(text))))
	mv $@.new $@

clean: clean-report
clean-report:
	rm -f $(REPORT_ASSETS).c $(REPORT_ASSETS).c.new
.PHONY: clean-report

$(OBJS): $(wildcard src/*.h src/*.def src/core/*.h src/core/*.def $(addprefix contrib_tools/kernel_advisord/,client.h knobs.h knobs.def protocol.h) contrib_tools/kernel_advisor_probe/probe_file.h)
