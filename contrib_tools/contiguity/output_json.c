/*
 * output_json.c: what was found, for programs.  doc/contiguity.md describes
 * the keys; what is not known is null.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include <jansson.h>
#include <stdio.h>

#include "kernel_advisor/json.h"
#include "output.h"

/* KA_UNKNOWN is null. */
static json_t *
number(int64_t value)
{
	return value == KA_UNKNOWN ? json_null() : json_integer(value);
}

static json_t *
share(int64_t part, int64_t whole)
{
	return whole > 0 ? json_real((double) part / (double) whole) : json_null();
}

static json_t *
text(const char *value)
{
	return value ? json_string(value) : json_null();
}

static json_t *
runs_of(const KaRunSummary *runs)
{
	return json_pack("{sI, sf, sf, sI, so, so, so, so}",
					 "number", (json_int_t) runs->runs, "mean_pages", runs->mean, "median_pages", runs->median,
					 "longest_pages", (json_int_t) runs->longest,
					 "ascending_share", share(runs->ascending, runs->pages),
					 "descending_share", share(runs->descending, runs->pages),
					 "single_share", share(runs->single, runs->pages),
					 "order", text(ka_pfn_order_name(runs->order)));
}

static json_t *
folios_of(const KaLook *look)
{
	const KaFolios *folios = &look->folios;
	int64_t		steps = folios->after + folios->before + folios->elsewhere;
	json_t	   *orders;

	if (!look->orders_known)
		return json_null();
	orders = json_array();
	for (int order = 0; order < KA_FOLIO_ORDERS; order++)
	{
		if (folios->pages[order] > 0)
			json_array_append_new(orders, json_pack("{si, sI, sI}", "order", order,
													"pages", (json_int_t) folios->pages[order],
													"folios", (json_int_t) folios->folios[order]));
	}
	return json_pack("{so, sI, sI, sI, sI, so, so, so}", "orders", orders,
					 "thp_pages", (json_int_t) folios->thp, "hugetlb_pages", (json_int_t) folios->hugetlb,
					 "unknown_pages", (json_int_t) look->unknown, "steps", (json_int_t) steps,
					 "after_share", share(folios->after, steps), "before_share", share(folios->before, steps),
					 "order", text(ka_pfn_order_name(ka_handed_out(look))));
}

static json_t *
look_of(const KaLook *look)
{
	return json_pack("{sI, sI, sI, sI, so, so}", "page_bytes", (json_int_t) look->page_bytes,
					 "pages", (json_int_t) look->looked, "present", (json_int_t) look->present,
					 "swapped", (json_int_t) look->swapped,
					 "runs", runs_of(&look->runs), "folios", folios_of(look));
}

static json_t *
device_of(const KaDevice *device)
{
	if (device->name == NULL)
		return json_pack("{so, sn}", "filesystem", text(device->filesystem), "name");
	return json_pack("{so, ss, so, so, so, so, so, so}", "filesystem", text(device->filesystem), "name", device->name,
					 "max_segments", number(device->limits.max_segments),
					 "max_segment_bytes", number(device->limits.max_segment_bytes),
					 "max_request_bytes", number(device->limits.max_request_bytes),
					 "read_ahead_bytes", number(device->read_ahead_bytes),
					 "nomerges", number(device->nomerges), "scheduler", text(device->scheduler));
}

static json_t *
requests_of(const KaRequests *requests)
{
	return json_pack("{sI, sI, sI, so, sI, sI, sI}", "bytes", (json_int_t) requests->bytes,
					 "segments", (json_int_t) requests->segments, "requests", (json_int_t) requests->requests,
					 "mean_bytes", share(requests->bytes, requests->requests),
					 "ended_by_segments", (json_int_t) requests->by_segments,
					 "ended_by_size", (json_int_t) requests->by_size,
					 "ended_by_disk", (json_int_t) requests->by_disk);
}

bool
ka_json_file(const KaFileLook *file, const char *path)
{
	bool		on_disk = file->device.name != NULL;

	return ka_json_print(json_pack("{so, so, so, sb, so, so}", "file", text(path), "memory", look_of(&file->look),
									"device", device_of(&file->device), "extents_known", on_disk && file->extents.mapped,
									"write", on_disk ? requests_of(&file->write) : json_null(),
									"read", on_disk ? requests_of(&file->read) : json_null()));
}

bool
ka_json_process(const KaProcessLook *process, int64_t pid)
{
	char		range[40];

	snprintf(range, sizeof(range), "%llx-%llx", (unsigned long long) process->from, (unsigned long long) process->to);
	return ka_json_print(json_pack("{sI, ss, sb, so}", "pid", (json_int_t) pid, "range", range,
									"whole", process->whole, "memory", look_of(&process->look)));
}

bool
ka_json_kernel(const KaKernelLook *kernel)
{
	json_t	   *rows = json_array();

	for (int i = 0; i < KA_PROBE_ROWS; i++)
	{
		const KaProbeRow *row = &kernel->row[i];

		json_array_append_new(rows, json_pack("{ss, sb, so, so}", "memory", row->memory, "fresh_blocks", row->emptied,
											  "missing", text(row->missing),
											  "found", row->missing ? json_null() : look_of(&row->look)));
	}
	return ka_json_print(json_pack("{so, sI, sI, so, so}", "order", text(ka_pfn_order_name(kernel->order)),
									"ballast_pages", (json_int_t) kernel->ballast_pages,
									"ballast_pages_wanted", (json_int_t) kernel->wanted_pages,
									"unusable_index_order4", kernel->unusable_index < 0 ? json_null() : json_real(kernel->unusable_index),
									"rows", rows));
}

static json_t *
pass_of(const KaPass *pass)
{
	if (!pass->done)
		return json_null();
	return json_pack("{sf, sI, sI, sI, sb, sb, so, so}", "mean_request_bytes", pass->mean_bytes,
					 "requests", (json_int_t) pass->ios, "merges", (json_int_t) pass->merges,
					 "device_bytes", (json_int_t) pass->device_bytes, "disturbed", pass->disturbed,
					 "contiguous", pass->contiguous, "memory", look_of(&pass->look),
					 "predicted", requests_of(&pass->predicted));
}

bool
ka_json_measurement(const KaMeasurement *measurement)
{
	return ka_json_print(json_pack("{so, sI, sI, sb, so, so}", "device", device_of(&measurement->device),
									"file_bytes", (json_int_t) measurement->file_bytes,
									"write_bytes", (json_int_t) measurement->write_bytes,
									"extents_known", measurement->extents_mapped,
									"as_found", pass_of(&measurement->found),
									"fresh_blocks", pass_of(&measurement->fresh)));
}

bool
ka_print_facts(KaArena *arena, const KaFacts *facts)
{
	KaJsonSink	sink;
	KaJsonBuilder *builder = ka_json_builder(arena, &sink);

	if (builder == NULL)
		return false;
	(void) ka_facts_encode(facts, &sink);
	return ka_json_print(ka_json_finish(builder));
}
