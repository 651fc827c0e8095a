/*
 * stretch_history.c: a history file of 24 hours, made from a short one.
 *
 *	stretch_history FROM TO
 *
 * A report of a day cannot wait for a day.  The samples of FROM come again and
 * again, one a second up to the moment that FROM was written, with a checkpoint
 * every five minutes that runs for four of them.
 */
#include "postgres.h"

#include "history.h"

#define DAY 86400
#define CYCLE 300
#define RUNS 240

static void
die(const char *what)
{
	fputs("stretch_history: ", stderr); /* fprintf is the server's own, in a library of its own */
	fputs(what, stderr);
	fputs("\n", stderr);
	exit(1);
}

/* CRC-32C, a bit at a time: what the server computes with a table or an instruction. */
static uint32
crc32c(uint32 crc, const void *data, size_t size)
{
	const unsigned char *p = data;

	while (size-- > 0)
	{
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78U : 0);
	}
	return crc;
}

static void
put(FILE *to, const void *data, size_t size, uint32 *crc)
{
	*crc = crc32c(*crc, data, size);
	if (fwrite(data, size, 1, to) != 1)
		die("cannot write");
}

int
main(int argc, char **argv)
{
	HistoryHeader header;
	HistoryTrailer trailer;
	KaSample   *samples;
	KaCheckpointRow row;
	FILE	   *from = argc == 3 ? fopen(argv[1], "rb") : NULL;
	FILE	   *to = argc == 3 ? fopen(argv[2], "wb") : NULL;
	TimestampTz begin;
	uint32		crc = 0xFFFFFFFFU;

	if (from == NULL || to == NULL)
		die("stretch_history FROM TO");
	if (fread(&header, sizeof(header), 1, from) != 1 || header.sample_size != sizeof(KaSample) ||
		fseek(from, -(long) sizeof(trailer), SEEK_END) != 0 || fread(&trailer, sizeof(trailer), 1, from) != 1 ||
		trailer.nsamples == 0 || trailer.ncheckpoints == 0)
		die("FROM is no history file of this build, or has no samples and checkpoints");
	samples = malloc(trailer.nsamples * sizeof(KaSample));
	if (samples == NULL || fseek(from, sizeof(header), SEEK_SET) != 0 ||
		fread(samples, sizeof(KaSample), trailer.nsamples, from) != trailer.nsamples || fread(&row, sizeof(row), 1, from) != 1)
		die("cannot read");

	begin = header.written_at - (int64) DAY * 1000000;
	header.last_id = DAY / CYCLE;
	put(to, &header, sizeof(header), &crc);
	for (int64 i = 1; i <= DAY; i++)
	{
		KaSample	sample = samples[i % trailer.nsamples];
		bool		idle = (i - 1) % CYCLE >= RUNS;

		sample.at = begin + i * 1000000;
		sample.interval_us = 1000000;
		sample.checkpoint_id = idle ? KA_UNKNOWN : (i - 1) / CYCLE + 1;
		sample.phase = idle ? KA_PHASE_IDLE : KA_PHASE_WRITE;
		put(to, &sample, sizeof(sample), &crc);
	}
	for (int64 i = 0; i < DAY / CYCLE; i++)
	{
		row.checkpoint_id = i + 1;
		row.started_at = begin + i * CYCLE * 1000000;
		row.write_ms = RUNS * 1000 - 2000;
		row.sync_ms = 2000;
		row.total_ms = RUNS * 1000;
		row.ended_at = row.started_at + row.total_ms * 1000;
		row.settled = 1;
		put(to, &row, sizeof(row), &crc);
	}
	trailer.nsamples = DAY;
	trailer.ncheckpoints = DAY / CYCLE;
	crc = crc32c(crc, &trailer, offsetof(HistoryTrailer, crc));
	trailer.crc = crc ^ 0xFFFFFFFFU;
	if (fwrite(&trailer, sizeof(trailer), 1, to) != 1 || fclose(to) != 0)
		die("cannot write");
	return 0;
}
