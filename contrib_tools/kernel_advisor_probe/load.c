/*
 * load.c: which tracepoints this kernel has, and the programs for them.
 *
 * The kernel's BTF says which tracepoints there are and what their arguments
 * are.  The arguments are no stable interface: a program whose arguments are
 * not the expected ones would be refused by the verifier, or worse, would count
 * nonsense.  So they are compared first, and a source that does not fit is left
 * out.  If the kernel refuses the rest all the same, each is tried alone.
 */
#define _GNU_SOURCE 1

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "load.h"
#include "log.h"
#include "probe.skel.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"
#define ALL_SOURCES ((1U << KA_SOURCE_COUNT) - 1)

/*
 * The arguments that a program uses, and those before them: "*x" is a pointer
 * to struct x, "." is anything.  More may follow.
 */
static const char *const arguments[KA_SOURCE_COUNT][6] = {
	[KA_SOURCE_mm_page_pcpu_drain] = {"*page", "unsigned int"},
	[KA_SOURCE_mm_compaction_try_to_compact_pages] = {"int"},
	[KA_SOURCE_mm_compaction_deferred] = {"*zone", "int"},
	[KA_SOURCE_mm_compaction_begin] = {"*compact_control"},
	[KA_SOURCE_mm_compaction_end] = {"*compact_control", ".", ".", ".", "int"},
	[KA_SOURCE_mm_compaction_kcompactd_wake] = {NULL},
	[KA_SOURCE_mm_vmscan_direct_reclaim_begin] = {NULL},	/* see order_position() */
	[KA_SOURCE_mm_vmscan_direct_reclaim_end] = {"long unsigned int"},
	[KA_SOURCE_mm_page_alloc_extfrag] = {"*page", "int"},
	[KA_SOURCE_sched_process_free] = {"*task_struct"},
};

static const char *const names[KA_SOURCE_COUNT] = {
#define SOURCE_NAME(bit, name, subsystem, lost) #name,
	KA_PROBE_SOURCES(SOURCE_NAME)
#undef SOURCE_NAME
};

static const char *const losses[KA_SOURCE_COUNT] = {
#define SOURCE_LOST(bit, name, subsystem, lost) lost,
	KA_PROBE_SOURCES(SOURCE_LOST)
#undef SOURCE_LOST
};

/* What libbpf said last; shown when loading fails. */
static char last_words[256];

static int __attribute__((format(printf, 2, 0)))
remember(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_WARN)
	{
		vsnprintf(last_words, sizeof(last_words), format, args);
		last_words[strcspn(last_words, "\n")] = '\0';
	}
	return 0;
}

/* ---------------------------------------------------------------- arguments */

static const struct btf_type *
argument_type(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(btf, id);

	while (type && (btf_is_const(type) || btf_is_volatile(type)))
		type = btf__type_by_id(btf, type->type);
	return type;
}

static bool
argument_is(const struct btf *btf, uint32_t id, const char *expected)
{
	const struct btf_type *type = argument_type(btf, id);
	const char *name;

	if (strcmp(expected, ".") == 0)
		return true;
	if (expected[0] == '*')
	{
		if (type == NULL || !btf_is_ptr(type))
			return false;
		type = argument_type(btf, type->type);
		if (type == NULL || !(btf_is_struct(type) || btf_is_fwd(type)))
			return false;
		expected++;
	}
	else if (type == NULL || !btf_is_int(type))
		return false;
	name = btf__name_by_offset(btf, type->name_off);
	return name && strcmp(name, expected) == 0;
}

/* The tracepoint's prototype: btf_trace_NAME is a pointer to a function. */
static const struct btf_type *
prototype(const struct btf *btf, const char *name)
{
	char		typedef_name[96];
	const struct btf_type *type;
	int			id;

	snprintf(typedef_name, sizeof(typedef_name), "btf_trace_%s", name);
	id = btf__find_by_name_kind(btf, typedef_name, BTF_KIND_TYPEDEF);
	type = id > 0 ? btf__type_by_id(btf, (uint32_t) id) : NULL;
	type = type ? btf__type_by_id(btf, type->type) : NULL;
	type = type && btf_is_ptr(type) ? btf__type_by_id(btf, type->type) : NULL;
	return type && btf_is_func_proto(type) ? type : NULL;
}

/* The order is the only plain int; what is beside it differs between kernels. */
static bool
order_position(const struct btf *btf, const struct btf_type *function, unsigned *position)
{
	const struct btf_param *params = btf_params(function);

	for (unsigned i = 0; i < 2 && i + 1 < btf_vlen(function); i++)
	{
		if (argument_is(btf, params[i + 1].type, "int"))
		{
			*position = i;
			return true;
		}
	}
	return false;
}

const char *
ka_check_source(const struct btf *btf, KaProbeSource source, unsigned *order_argument)
{
	static const char *const other = "its arguments are not the known ones";
	const struct btf_type *function = prototype(btf, names[source]);
	unsigned	n;

	if (function == NULL)
		return "this kernel does not have it";
	n = btf_vlen(function);		/* with the tracepoint's own data in front */
	if (source == KA_SOURCE_mm_vmscan_direct_reclaim_begin)
		return order_position(btf, function, order_argument) ? NULL : other;
	for (unsigned i = 0; i < sizeof(arguments[0]) / sizeof(arguments[0][0]) && arguments[source][i]; i++)
	{
		if (i + 1 >= n || !argument_is(btf, btf_params(function)[i + 1].type, arguments[source][i]))
			return other;
	}
	return NULL;
}

/* A begin without its end, or the other way round, counts nothing. */
static uint32_t
without_halves(uint32_t sources)
{
	static const uint32_t pairs[] = {
		1U << KA_SOURCE_mm_compaction_begin | 1U << KA_SOURCE_mm_compaction_end,
		1U << KA_SOURCE_mm_vmscan_direct_reclaim_begin | 1U << KA_SOURCE_mm_vmscan_direct_reclaim_end,
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
	{
		if ((sources & pairs[i]) != pairs[i])
			sources &= ~pairs[i];
	}
	return sources;
}

static void
say_missing(KaProbeSource source, const char *why)
{
	ka_log(KA_LOG_WARNING, "tracepoint %s: %s; not counted: %s", ka_probe_source_name(source), why, losses[source]);
}

/* ---------------------------------------------------------------- loading */

/* NULL: the kernel refuses one of the programs. */
static struct probe *
load_with(uint32_t sources, uint32_t ncpus, unsigned order_argument, bool reads_namespaces)
{
	struct probe *skeleton = probe__open();

	if (skeleton == NULL)
		return NULL;
	for (int i = 0; i < KA_SOURCE_COUNT; i++)
	{
		struct bpf_program *program = bpf_object__find_program_by_name(skeleton->obj, names[i]);

		if (program)
			bpf_program__set_autoload(program, sources >> i & 1);
	}
	skeleton->rodata->reclaim_order_argument = order_argument;
	skeleton->rodata->sees_calls = sources >> KA_SOURCE_mm_compaction_try_to_compact_pages & 1;
	skeleton->rodata->reads_namespaces = reads_namespaces;
	if (bpf_map__set_max_entries(skeleton->maps.slots, ncpus) != 0 || probe__load(skeleton) != 0)
	{
		int			error = errno;

		probe__destroy(skeleton);
		errno = error;
		return NULL;
	}
	return skeleton;
}

/* Loads the programs of these sources, without what a locked-down kernel refuses if need be. */
static struct probe *
load_programs(uint32_t sources, uint32_t ncpus, unsigned order_argument)
{
	struct probe *skeleton = load_with(sources, ncpus, order_argument, true);

	if (skeleton == NULL)
	{
		skeleton = load_with(sources, ncpus, order_argument, false);
		if (skeleton)
			ka_log(KA_LOG_WARNING, "the kernel refuses to let the programs read PIDs of namespaces (lockdown?): not known");
	}
	return skeleton;
}

/* Each alone, to find out which the kernel refuses. */
static uint32_t
loadable(uint32_t sources, uint32_t ncpus, unsigned order_argument)
{
	uint32_t	good = 0;

	for (int i = 0; i < KA_SOURCE_COUNT; i++)
	{
		struct probe *skeleton;

		if (!(sources >> i & 1))
			continue;
		skeleton = load_programs(1U << i, ncpus, order_argument);
		if (skeleton)
			good |= 1U << i;
		else
			say_missing((KaProbeSource) i, strerror(errno));
		probe__destroy(skeleton);
	}
	return good;
}

static void *
map_array(const struct bpf_map *map, size_t bytes)
{
	size_t		page = (size_t) sysconf(_SC_PAGESIZE);
	void	   *at = mmap(NULL, (bytes + page - 1) / page * page, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return at == MAP_FAILED ? NULL : at;
}

/* "[none] integrity confidentiality" */
static void
lockdown_state(char *text, size_t size)
{
	int			fd = open("/sys/kernel/security/lockdown", O_RDONLY | O_CLOEXEC);
	ssize_t		n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (fd >= 0)
		close(fd);
}

static bool
cannot_load(char *error, size_t error_size)
{
	int			cause = errno;
	char		lockdown[64];

	lockdown_state(lockdown, sizeof(lockdown));
	snprintf(error, error_size, "the kernel takes none of the BPF programs: %s%s%s%s%s", strerror(cause),
			 lockdown[0] ? "; lockdown: " : "", lockdown, last_words[0] ? "; " : "", last_words);
	return false;
}

static bool
attach(KaLoaded *loaded)
{
	for (int i = 0; i < KA_SOURCE_COUNT; i++)
	{
		struct bpf_program *program;
		struct bpf_link *link;

		if (!(loaded->sources >> i & 1))
			continue;
		program = bpf_object__find_program_by_name(loaded->skeleton->obj, names[i]);
		link = program ? bpf_program__attach(program) : NULL;
		if (link)
		{
			*(struct bpf_link **) loaded->skeleton->skeleton->progs[i].link = link;
			continue;
		}
		say_missing((KaProbeSource) i, strerror(errno));
		loaded->sources &= ~(1U << i);
	}
	return loaded->sources != 0;
}

bool
ka_load(KaLoaded *loaded, uint32_t unwanted, char *error, size_t error_size)
{
	struct btf *btf;
	unsigned	order_argument = 0;
	int			ncpus = libbpf_num_possible_cpus();

	memset(loaded, 0, sizeof(*loaded));
	libbpf_set_print(remember);
	btf = access(KERNEL_BTF, R_OK) == 0 ? btf__parse(KERNEL_BTF, NULL) : NULL;
	if (btf == NULL)
	{
		snprintf(error, error_size, "%s cannot be read: %s (a kernel with CONFIG_DEBUG_INFO_BTF is needed)",
				 KERNEL_BTF, strerror(errno));
		return false;
	}
	for (int i = 0; i < KA_SOURCE_COUNT; i++)
	{
		const char *missing = unwanted >> i & 1 ? "left out as asked" :
			ka_check_source(btf, (KaProbeSource) i, &order_argument);

		if (missing)
			say_missing((KaProbeSource) i, missing);
		else
			loaded->sources |= 1U << i;
	}
	btf__free(btf);
	loaded->sources = without_halves(loaded->sources);
	loaded->ncpus = ncpus > 0 ? (uint32_t) ncpus : 1;

	errno = ENOENT;
	if (loaded->sources)
		loaded->skeleton = load_programs(loaded->sources, loaded->ncpus, order_argument);
	if (loaded->skeleton == NULL && loaded->sources)
	{
		uint32_t	good = without_halves(loadable(loaded->sources, loaded->ncpus, order_argument));

		if (good && good != loaded->sources)
			loaded->skeleton = load_programs(good, loaded->ncpus, order_argument);
		loaded->sources = good;
	}
	if (loaded->skeleton == NULL)
		return cannot_load(error, error_size);

	loaded->records = map_array(loaded->skeleton->maps.records, KA_RECORDS * sizeof(KaRecord));
	loaded->slots = map_array(loaded->skeleton->maps.slots, loaded->ncpus * sizeof(KaSlot));
	loaded->totals = &loaded->skeleton->bss->totals;
	loaded->dropped = &loaded->skeleton->bss->dropped;
	if (loaded->records == NULL || loaded->slots == NULL)
	{
		snprintf(error, error_size, "the arrays of the BPF programs cannot be mapped: %s", strerror(errno));
		return false;
	}
	for (uint32_t index = KA_RECORDS - 1; index >= KA_RECORD_FIRST; index--)
	{
		if (bpf_map_update_elem(bpf_map__fd(loaded->skeleton->maps.free_records), NULL, &index, BPF_ANY) != 0)
		{
			snprintf(error, error_size, "free records: %s", strerror(errno));
			return false;
		}
	}
	if (!attach(loaded))
		return cannot_load(error, error_size);
	return true;
}

/* ---------------------------------------------------------------- while it runs */

bool
ka_free_record(KaLoaded *loaded, uint32_t index)
{
	KaRecord   *record = &loaded->records[index];
	KaProcessKey key = {.start_ns = record->start_ns, .pid = record->pid};

	/* The key first: nobody finds the record any more when it is emptied. */
	if (bpf_map_delete_elem(bpf_map__fd(loaded->skeleton->maps.processes), &key) != 0 && errno != ENOENT)
		return false;
	memset(record, 0, sizeof(*record));
	return bpf_map_update_elem(bpf_map__fd(loaded->skeleton->maps.free_records), NULL, &index, BPF_ANY) == 0;
}

bool
ka_may_use_maps(void *argument)
{
	const KaLoaded *loaded = argument;
	KaProcessKey nobody = {0};

	/* Kernel threads have no entry. */
	return bpf_map_delete_elem(bpf_map__fd(loaded->skeleton->maps.processes), &nobody) != 0 && errno == ENOENT;
}

uint64_t
ka_missed_events(const KaLoaded *loaded)
{
	uint64_t	missed = 0;

	for (int i = 0; i < KA_SOURCE_COUNT; i++)
	{
		struct bpf_program *program = bpf_object__find_program_by_name(loaded->skeleton->obj, names[i]);
		struct bpf_prog_info info = {0};
		uint32_t	size = sizeof(info);

		if (loaded->sources >> i & 1 && program &&
			bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) == 0)
			missed += info.recursion_misses;
	}
	return missed;
}

void
ka_unload(KaLoaded *loaded)
{
	probe__destroy(loaded->skeleton);
	memset(loaded, 0, sizeof(*loaded));
}
