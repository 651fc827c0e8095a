/*
 * log.h: one line per event on stderr, which systemd's journal collects.
 */
#ifndef KA_LOG_H
#define KA_LOG_H

/* Syslog's levels; under systemd the line starts with "<level>". */
#define KA_LOG_ERROR	3
#define KA_LOG_WARNING	4
#define KA_LOG_INFO		6

/* The name of the program, in front of each line where systemd does not put one. */
extern void ka_log_start(const char *name);

extern void ka_log(int level, const char *format,...) __attribute__((format(printf, 2, 3)));

/* For what a hostile client can cause as often as it likes: at most one a second, with a count. */
extern void ka_log_hostile(const char *format,...) __attribute__((format(printf, 1, 2)));

#endif							/* KA_LOG_H */
