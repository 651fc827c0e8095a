/*
 * options.h: the command line.
 */
#ifndef KA_TOOL_OPTIONS_H
#define KA_TOOL_OPTIONS_H

#include "ka_base.h"

#define KA_MAX_OPTION_NODES 64

/* Bits, for the table of options. */
typedef enum KaCommand
{
	KA_COMMAND_FACTS = 1,
	KA_COMMAND_ADVISE = 2,
	KA_COMMAND_DOCTOR = 4,
	KA_COMMAND_RESERVE = 8,
	KA_COMMAND_ROLLBACK = 16
} KaCommand;

typedef struct KaOptions
{
	KaCommand	command;
	const char *data_directory;
	const char *facts_file;
	const char *root;			/* "", or without a slash at the end */
	const char *bindir;
	const char *config_file;
	const char *error;
	const char *log_file;
	const char *socket;
	int64_t		time_limit_ms;	/* 0: not given */
	int64_t		change;			/* the argument of rollback; 0: none, but --list */
	int64_t		nodes[KA_MAX_OPTION_NODES];
	size_t		nnodes;
	bool		json;
	bool		estimate;
	bool		drop_caches;
	bool		undo;
	bool		list;
	bool		force;
} KaOptions;

/*
 * Reads and checks all of it.  False: *status is what the program returns, after
 * a message, --help or --version.
 */
extern bool ka_read_options(KaArena *arena, int argc, char **argv, KaOptions *options, int *status);

#endif							/* KA_TOOL_OPTIONS_H */
