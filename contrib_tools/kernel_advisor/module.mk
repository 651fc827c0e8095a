# The command line tool: kernel_advisor, its manual page, and a drop-in for systemd as an example.
#
# Included by the top Makefile after PGXS and the helper's module.mk.  It is made
# of the core's objects, the helper's (to do without a daemon) and its own; it
# needs jansson and libproc2, and nothing of the server.  Like every
# program of PGXS it goes to `pg_config --bindir` (on Debian
# /usr/lib/postgresql/NN/bin, one per server version), where it also finds the
# server that belongs to it; ADVISOR_BINDIR=/usr/local/bin puts it elsewhere.

ADVISOR_DIR = contrib_tools/kernel_advisor
ADVISOR = $(ADVISOR_DIR)/kernel_advisor
ADVISOR_OBJS = $(patsubst %.c,%.o,$(wildcard $(ADVISOR_DIR)/*.c))
ADVISOR_LIBS = $(shell $(PKG_CONFIG) --libs libproc2 jansson) -lm
ADVISOR_BINDIR ?= $(bindir)
ADVISOR_MANDIR ?= $(mandir)/man1
ADVISOR_DOCDIR ?= $(docdir)/extension

ADVISOR_VERSION = $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(EXTENSION).control)

all: $(ADVISOR)

$(ADVISOR): $(ADVISOR_OBJS) $(CORE_OBJS) $(ADVISORD_BUILD)/prod/all.a
	$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) $(ADVISOR_LIBS)

$(ADVISOR_OBJS): private override CPPFLAGS += -DKA_VERSION='"$(ADVISOR_VERSION)"' \
	-iquote $(ADVISORD) $(shell $(PKG_CONFIG) --cflags jansson)
$(ADVISOR_OBJS): $(wildcard $(ADVISOR_DIR)/*.h $(ADVISORD)/*.h $(ADVISORD)/*.def src/core/*.h src/core/*.def) $(EXTENSION).control

install: install-advisor
install-advisor: $(ADVISOR)
	$(MKDIR_P) '$(DESTDIR)$(ADVISOR_BINDIR)' '$(DESTDIR)$(ADVISOR_MANDIR)' '$(DESTDIR)$(ADVISOR_DOCDIR)'
	$(INSTALL_PROGRAM) $(ADVISOR) '$(DESTDIR)$(ADVISOR_BINDIR)/kernel_advisor'
	$(INSTALL_DATA) $(ADVISOR).1 '$(DESTDIR)$(ADVISOR_MANDIR)/kernel_advisor.1'
	sed 's|/usr/lib/postgresql/15/bin/kernel_advisor|$(ADVISOR_BINDIR)/kernel_advisor|' $(ADVISOR_DIR)/postgresql-reserve.conf \
		>'$(DESTDIR)$(ADVISOR_DOCDIR)/postgresql-reserve.conf'
	chmod 644 '$(DESTDIR)$(ADVISOR_DOCDIR)/postgresql-reserve.conf'

uninstall: uninstall-advisor
uninstall-advisor:
	rm -f '$(DESTDIR)$(ADVISOR_BINDIR)/kernel_advisor' '$(DESTDIR)$(ADVISOR_MANDIR)/kernel_advisor.1' \
		'$(DESTDIR)$(ADVISOR_DOCDIR)/postgresql-reserve.conf'

clean: clean-advisor
clean-advisor:
	rm -f $(ADVISOR) $(ADVISOR_OBJS)

.PHONY: install-advisor uninstall-advisor clean-advisor
