/*
 * own_files.h: the files in which the advisor keeps values for the next boot.
 *
 * The root helper writes them, the rules print commands that append to the
 * first.  A sysctl.d file whose name sorts after ours wins over it.
 */
#ifndef KA_OWN_FILES_H
#define KA_OWN_FILES_H

#define KA_SYSCTL_DIRECTORY "/etc/sysctl.d"
#define KA_SYSCTL_FILE "60-kernel-advisor.conf"
#define KA_TMPFILES_DIRECTORY "/etc/tmpfiles.d"
#define KA_TMPFILES_FILE "kernel-advisor.conf"

#endif							/* KA_OWN_FILES_H */
