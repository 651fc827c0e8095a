# kernel_advisor_contiguity: where pages lie in physical memory; the program and its manual page.
#
# Included by the top Makefile after the modules of the helper and the command line tool.  It is made of the core's
# objects, the tool's JSON and its own; it needs jansson and libproc2, and nothing of the server.  Like the helper it
# belongs to the machine and to root, and goes where the helper goes.  Its parts that read no file are tested by
# test/unit/test_contiguity.c (make unit), the rest by test/root/contiguity.t.

CONTIGUITY_DIR = contrib_tools/contiguity
CONTIGUITY = $(CONTIGUITY_DIR)/kernel_advisor_contiguity
CONTIGUITY_OBJS = $(patsubst %.c,%.o,$(wildcard $(CONTIGUITY_DIR)/*.c))
CONTIGUITY_SBINDIR ?= $(ADVISORD_SBINDIR)
CONTIGUITY_MANDIR ?= $(ADVISORD_MANDIR)/man8

all: $(CONTIGUITY)

$(CONTIGUITY): $(CONTIGUITY_OBJS) $(ADVISOR_DIR)/json.o $(CORE_OBJS)
	$(CC) $(CFLAGS) -o $@ $^ $(LDFLAGS) $(ADVISOR_LIBS)

$(CONTIGUITY_OBJS): private override CPPFLAGS += -DKA_VERSION='"$(ADVISOR_VERSION)"' $(shell $(PKG_CONFIG) --cflags jansson)
$(CONTIGUITY_OBJS): $(wildcard $(CONTIGUITY_DIR)/*.h src/core/*.h src/core/*.def) $(ADVISOR_DIR)/json.h $(EXTENSION).control

install: install-contiguity
install-contiguity: $(CONTIGUITY)
	$(MKDIR_P) '$(DESTDIR)$(CONTIGUITY_SBINDIR)' '$(DESTDIR)$(CONTIGUITY_MANDIR)'
	$(INSTALL_PROGRAM) $(CONTIGUITY) '$(DESTDIR)$(CONTIGUITY_SBINDIR)/kernel_advisor_contiguity'
	$(INSTALL_DATA) $(CONTIGUITY).8 '$(DESTDIR)$(CONTIGUITY_MANDIR)/kernel_advisor_contiguity.8'

uninstall: uninstall-contiguity
uninstall-contiguity:
	rm -f '$(DESTDIR)$(CONTIGUITY_SBINDIR)/kernel_advisor_contiguity' '$(DESTDIR)$(CONTIGUITY_MANDIR)/kernel_advisor_contiguity.8'

clean: clean-contiguity
clean-contiguity:
	rm -f $(CONTIGUITY) $(CONTIGUITY_OBJS)

.PHONY: install-contiguity uninstall-contiguity clean-contiguity
