/*
 * show.h: the published file as text.
 */
#ifndef KA_SHOW_H
#define KA_SHOW_H

/* Prints the file at "path"; 0, or an exit code after a message on stderr. */
extern int	ka_show(const char *path);

#endif							/* KA_SHOW_H */
