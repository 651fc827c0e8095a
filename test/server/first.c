/*
 * first.c: starts the sanitizer's runtime before any other library's constructor.
 *
 * Preloaded beside libasan, linked with -z initfirst.  Without it the runtime
 * starts at the first malloc(), and where that is called by a constructor that
 * is inside bindtextdomain() (libgpg-error, which libpq brings along) the
 * runtime's own use of gettext releases a lock that it does not hold, and the
 * next bindtextdomain() waits for ever.
 */
#include <stdlib.h>

__attribute__((constructor)) static void
start_runtime(void)
{
	void	   *volatile memory = malloc(1);

	free(memory);
}
