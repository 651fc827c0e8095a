/*
 * output.c: what was found, for people.
 *
 * Invariant: no byte of a path or a kernel file reaches a terminal as a
 * control code.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "output.h"

/* A line: a name, then what is said. */
#define NAME "  %-12s"

/* Room for any size in words. */
#define SIZE_TEXT 32

static void
print_safe(const char *text)
{
	for (; *text; text++)
		putchar((unsigned char) *text < 0x20 || *text == 0x7F ? '?' : *text);
}

static const char *
size_text(char *buffer, double bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
	size_t		unit = 0;

	for (; bytes >= 1024 && unit + 1 < KA_LENGTH(units); unit++)
		bytes /= 1024;
	snprintf(buffer, SIZE_TEXT, unit == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
	return buffer;
}

static const char *
limit_text(char *buffer, int64_t bytes)
{
	return bytes == KA_UNKNOWN ? "unknown" : size_text(buffer, (double) bytes);
}

static double
percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100.0 * (double) part / (double) whole : 0;
}

static const char *
order_text(KaPfnOrder order)
{
	const char *name = ka_pfn_order_name(order);

	return name ? name : "nothing to compare";
}

static void
print_folios(const KaLook *look)
{
	const KaFolios *folios = &look->folios;
	int64_t		steps = folios->after + folios->before + folios->elsewhere;

	printf(NAME, "folios");
	if (!look->orders_known)
	{
		puts("unknown: /proc/kpageflags cannot be read");
		return;
	}
	for (int order = 0; order < KA_FOLIO_ORDERS; order++)
	{
		if (folios->pages[order] > 0)
			printf("order %d: %.1f %%  ", order, percent(folios->pages[order], look->present));
	}
	if (folios->hugetlb > 0)
		printf("(huge pages: %" PRId64 " pages)", folios->hugetlb);
	if (look->unknown > 0)
		printf("(unknown: %" PRId64 " pages)", look->unknown);
	printf("\n" NAME, "steps");
	if (steps == 0)
		puts("one folio, or none next to another in the file");
	else
		printf("from folio to folio: to the one above in memory %.1f %%, below %.1f %%, elsewhere %.1f %%: %s\n",
			   percent(folios->after, steps), percent(folios->before, steps), percent(folios->elsewhere, steps),
			   order_text(ka_handed_out(look)));
}

static void
print_look(const KaLook *look)
{
	const KaRunSummary *runs = &look->runs;
	char		size[SIZE_TEXT];

	printf(NAME "%" PRId64 " of %" PRId64 " in memory (%s, %.1f %%)", "pages", look->present, look->looked,
		   size_text(size, (double) look->present * (double) look->page_bytes), percent(look->present, look->looked));
	if (look->swapped > 0)
		printf(", %" PRId64 " swapped out", look->swapped);
	putchar('\n');
	if (look->present == 0)
		return;
	printf(NAME "%" PRId64 ", mean %.1f pages, median %.1f, longest %" PRId64 "\n", "runs",
		   runs->runs, runs->mean, runs->median, runs->longest);
	printf(NAME "ascending %.1f %%, descending %.1f %%, single pages %.1f %%: %s\n", "",
		   percent(runs->ascending, runs->pages), percent(runs->descending, runs->pages),
		   percent(runs->single, runs->pages), order_text(runs->order));
	print_folios(look);
}

static void
print_device(const KaDevice *device)
{
	char		segment[SIZE_TEXT];
	char		request[SIZE_TEXT];
	char		ahead[SIZE_TEXT];

	printf(NAME, "device");
	if (device->name == NULL)
	{
		printf("none: %s is not on a block device, or it is not known\n", device->filesystem ? device->filesystem : "this");
		return;
	}
	print_safe(device->name);
	printf(" (%s): a request holds ", device->filesystem ? device->filesystem : "file system unknown");
	if (device->limits.max_segments == KA_UNKNOWN)
		printf("segments without a known limit");
	else
		printf("%" PRId64 " segments", device->limits.max_segments);
	printf(" of %s, ", limit_text(segment, device->limits.max_segment_bytes));
	printf("%s at most; read-ahead %s\n", limit_text(request, device->limits.max_request_bytes),
		   limit_text(ahead, device->read_ahead_bytes));
	if (device->nomerges > 0)
		printf(NAME "nomerges is %" PRId64 ": the block layer joins less than predicted\n", "", device->nomerges);
}

static void
print_requests(const char *name, const KaRequests *requests)
{
	char		size[SIZE_TEXT];

	printf(NAME "%" PRId64 " segments, %" PRId64 " requests of %s; ended by segments %" PRId64 ", by size %" PRId64 ", by the disk %" PRId64 "\n",
		   name, requests->segments, requests->requests,
		   size_text(size, requests->requests > 0 ? (double) requests->bytes / (double) requests->requests : 0),
		   requests->by_segments, requests->by_size, requests->by_disk);
}

static bool
printed(void)
{
	return fflush(stdout) == 0 && !ferror(stdout);
}

bool
ka_print_file(const KaFileLook *file, const char *path, bool json)
{
	if (json)
		return ka_json_file(file, path);
	fputs("file ", stdout);
	print_safe(path);
	putchar('\n');
	print_look(&file->look);
	print_device(&file->device);
	if (file->look.present > 0 && file->device.name != NULL)
	{
		if (!file->extents.mapped)
			printf(NAME "%s\n", "", "the file system does not tell where the file lies: taken for one piece");
		print_requests("writing", &file->write);
		print_requests("reading", &file->read);
	}
	return printed();
}

bool
ka_print_process(const KaProcessLook *process, int64_t pid, bool json)
{
	if (json)
		return ka_json_process(process, pid);
	printf("process %" PRId64 ", %" PRIx64 "-%" PRIx64 ": %s\n", pid, process->from, process->to,
		   process->whole ? "all of this shared memory" : "what this process has mapped");
	print_look(&process->look);
	return printed();
}

static void
print_order(const KaKernelLook *kernel)
{
	if (kernel->order != KA_PFN_NOTHING)
		printf("The kernel hands out the pages of fresh blocks in %s order.\n",
			   kernel->order == KA_PFN_ASCENDING || kernel->order == KA_PFN_DESCENDING ?
			   ka_pfn_order_name(kernel->order) : "no");
	else
		puts("How the kernel hands out fresh blocks cannot be told: recycled pages and small blocks were not used up.");
}

bool
ka_print_kernel(const KaKernelLook *kernel, bool json)
{
	if (json)
		return ka_json_kernel(kernel);
	print_order(kernel);
	printf("Before the second row %" PRId64 " pages were taken: all that was recycled or in small blocks would be %" PRId64 ".\n",
		   kernel->ballast_pages, kernel->wanted_pages);
	for (int i = 0; i < KA_PROBE_ROWS; i++)
	{
		const KaProbeRow *row = &kernel->row[i];

		printf("\n%s, %s\n", row->memory, row->emptied ? "from fresh blocks" : "as memory is");
		if (row->missing)
		{
			printf(NAME, "nothing:");
			print_safe(row->missing);
			putchar('\n');
		}
		else
			print_look(&row->look);
	}
	return printed();
}

static void
print_pass(const char *title, const KaPass *pass)
{
	char		size[SIZE_TEXT];

	printf("\n%s\n", title);
	if (!pass->done)
	{
		puts("  the device counted no write");
		return;
	}
	print_look(&pass->look);
	print_requests("predicted", &pass->predicted);
	printf(NAME "%" PRId64 " requests of %s, %" PRId64 " merges\n", "measured", pass->ios,
		   size_text(size, pass->mean_bytes), pass->merges);
	if (pass->disturbed)
		printf(NAME "others wrote to the device meanwhile: %s in all\n", "", size_text(size, (double) pass->device_bytes));
}

bool
ka_print_measurement(const KaMeasurement *measurement, bool json)
{
	char		file[SIZE_TEXT];
	char		write[SIZE_TEXT];

	if (json)
		return ka_json_measurement(measurement);
	printf("A file of %s, written again in pieces of %s through the page cache, then synced\n",
		   size_text(file, (double) measurement->file_bytes), size_text(write, (double) measurement->write_bytes));
	print_device(&measurement->device);
	print_pass("memory as it is", &measurement->found);
	print_pass("memory from large blocks that were made for it", &measurement->fresh);
	if (measurement->fresh.done && !measurement->fresh.contiguous)
		puts("  The memory was not contiguous enough: this says nothing of unfragmented memory.");
	return printed();
}
