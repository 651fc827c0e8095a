/*
 * pg_kernel_advisor.c: the entry point of the server library.
 *
 * Preloaded, it reserves shared memory (ring.c), hooks into the checkpointer's
 * log messages (checkpoint.c) and registers the sampler (sampler.c).  Loaded
 * into one backend only, facts() and advise() work without any of that.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "compat.h"
#include "guc.h"
#include "sampler.h"
#include "shared.h"

KA_MODULE_MAGIC("pg_kernel_advisor", "1.0");

void
_PG_init(void)
{
	ka_define_settings();

	/* pg_upgrade starts the server for its own work: nothing to observe. */
	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
		return;

	ka_shared_install(ka_sampler_register());
	ka_checkpoint_hook_install();
}
