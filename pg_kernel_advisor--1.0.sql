/* pg_kernel_advisor--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_kernel_advisor" to load this file. \quit

CREATE SCHEMA kernel_advisor;
COMMENT ON SCHEMA kernel_advisor IS 'checkpoints joined to kernel memory, and advice (extension pg_kernel_advisor)';

----------------------------------------------------------------------
-- What was sampled
----------------------------------------------------------------------

CREATE FUNCTION kernel_advisor.samples(
	OUT at timestamptz,
	OUT interval_ms double precision,
	OUT checkpoint_id bigint,
	OUT phase text,
	OUT transactions bigint,
	OUT wal_bytes bigint,
	OUT compact_stall bigint,
	OUT compact_fail bigint,
	OUT compact_success bigint,
	OUT compact_migrate_scanned bigint,
	OUT compact_free_scanned bigint,
	OUT compact_daemon_wake bigint,
	OUT allocstall bigint,
	OUT thp_fault_alloc bigint,
	OUT thp_fault_fallback bigint,
	OUT thp_file_alloc bigint,
	OUT pressure_some_us bigint,
	OUT pressure_full_us bigint,
	OUT write_ios bigint,
	OUT write_merges bigint,
	OUT write_bytes bigint,
	OUT pcp_drains bigint,
	OUT pcp_drained_pages bigint,
	OUT direct_compact_us bigint,
	OUT direct_reclaim_us bigint,
	OUT server_compact_us bigint,
	OUT server_reclaim_us bigint,
	OUT pcp_drains_estimate bigint,
	OUT pcp_drained_pages_estimate bigint,
	OUT pcp_pages bigint,
	OUT free_bytes bigint,
	OUT free_costly_blocks bigint,
	OUT page_table_bytes bigint,
	OUT dirty_bytes bigint,
	OUT writeback_bytes bigint,
	OUT hugepages_free bigint,
	OUT backends integer)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'ka_samples'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION kernel_advisor.samples() IS 'the samples in shared memory; use the view of the same name';

CREATE VIEW kernel_advisor.samples AS
	SELECT * FROM kernel_advisor.samples();

COMMENT ON VIEW kernel_advisor.samples IS 'one row per sample, oldest first: deltas over the interval, then gauges at its end; NULL where the kernel has no such counter';
COMMENT ON COLUMN kernel_advisor.samples.at IS 'end of the interval';
COMMENT ON COLUMN kernel_advisor.samples.interval_ms IS 'length of the interval (ms)';
COMMENT ON COLUMN kernel_advisor.samples.checkpoint_id IS 'the checkpoint that ran, NULL outside of one';
COMMENT ON COLUMN kernel_advisor.samples.phase IS 'idle, write, sync or finish';
COMMENT ON COLUMN kernel_advisor.samples.pcp_pages IS 'pages now on per-CPU lists';
COMMENT ON COLUMN kernel_advisor.samples.free_bytes IS 'free memory (bytes)';
COMMENT ON COLUMN kernel_advisor.samples.free_costly_blocks IS 'free blocks of order 4 and more (64 KiB with 4 KiB pages)';
COMMENT ON COLUMN kernel_advisor.samples.page_table_bytes IS 'page tables (bytes)';
COMMENT ON COLUMN kernel_advisor.samples.dirty_bytes IS 'page cache waiting for writeback (bytes)';
COMMENT ON COLUMN kernel_advisor.samples.writeback_bytes IS 'page cache under writeback (bytes)';
COMMENT ON COLUMN kernel_advisor.samples.hugepages_free IS 'free huge pages of the size that the server would use, reserved ones included';
COMMENT ON COLUMN kernel_advisor.samples.backends IS 'client backends';

CREATE FUNCTION kernel_advisor.checkpoints(
	OUT checkpoint_id bigint,
	OUT kind text,
	OUT restartpoint boolean,
	OUT started_at timestamptz,
	OUT write_ms double precision,
	OUT sync_ms double precision,
	OUT total_ms double precision,
	OUT buffers_written bigint,
	OUT files_synced integer,
	OUT longest_sync_ms double precision,
	OUT wal_added integer,
	OUT wal_removed integer,
	OUT wal_recycled integer,
	OUT distance_bytes bigint,
	OUT transactions bigint,
	OUT wal_bytes bigint,
	OUT compact_stall bigint,
	OUT compact_fail bigint,
	OUT compact_success bigint,
	OUT compact_migrate_scanned bigint,
	OUT compact_free_scanned bigint,
	OUT compact_daemon_wake bigint,
	OUT allocstall bigint,
	OUT thp_fault_alloc bigint,
	OUT thp_fault_fallback bigint,
	OUT thp_file_alloc bigint,
	OUT pressure_some_us bigint,
	OUT pressure_full_us bigint,
	OUT write_ios bigint,
	OUT write_merges bigint,
	OUT write_bytes bigint,
	OUT pcp_drains bigint,
	OUT pcp_drained_pages bigint,
	OUT direct_compact_us bigint,
	OUT direct_reclaim_us bigint,
	OUT server_compact_us bigint,
	OUT server_reclaim_us bigint,
	OUT pcp_drains_estimate bigint,
	OUT pcp_drained_pages_estimate bigint,
	OUT tps_before double precision,
	OUT tps_during double precision,
	OUT dip_pct double precision,
	OUT source text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'ka_checkpoints'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION kernel_advisor.checkpoints() IS 'the checkpoints in shared memory; use the view of the same name';

CREATE VIEW kernel_advisor.checkpoints AS
	SELECT * FROM kernel_advisor.checkpoints();

COMMENT ON VIEW kernel_advisor.checkpoints IS 'one row per checkpoint or restartpoint, oldest first, with the sums of the kernel counters while it ran';
COMMENT ON COLUMN kernel_advisor.checkpoints.checkpoint_id IS 'number of the checkpoint, growing, kept over restarts';
COMMENT ON COLUMN kernel_advisor.checkpoints.kind IS 'timed, wal, requested, shutdown or end_of_recovery';
COMMENT ON COLUMN kernel_advisor.checkpoints.restartpoint IS 'true on a standby';
COMMENT ON COLUMN kernel_advisor.checkpoints.started_at IS 'start';
COMMENT ON COLUMN kernel_advisor.checkpoints.write_ms IS 'write phase (ms)';
COMMENT ON COLUMN kernel_advisor.checkpoints.sync_ms IS 'sync phase (ms)';
COMMENT ON COLUMN kernel_advisor.checkpoints.total_ms IS 'start to end (ms)';
COMMENT ON COLUMN kernel_advisor.checkpoints.buffers_written IS 'buffers written by the checkpoint';
COMMENT ON COLUMN kernel_advisor.checkpoints.files_synced IS 'files synced';
COMMENT ON COLUMN kernel_advisor.checkpoints.longest_sync_ms IS 'longest sync of one file (ms)';
COMMENT ON COLUMN kernel_advisor.checkpoints.wal_added IS 'WAL segments created';
COMMENT ON COLUMN kernel_advisor.checkpoints.wal_removed IS 'WAL segments removed';
COMMENT ON COLUMN kernel_advisor.checkpoints.wal_recycled IS 'WAL segments recycled';
COMMENT ON COLUMN kernel_advisor.checkpoints.distance_bytes IS 'WAL between the redo points of the previous checkpoint and this one (bytes)';
COMMENT ON COLUMN kernel_advisor.checkpoints.tps_before IS 'transactions per second in the idle samples before the start';
COMMENT ON COLUMN kernel_advisor.checkpoints.tps_during IS 'transactions per second while it ran';
COMMENT ON COLUMN kernel_advisor.checkpoints.dip_pct IS '100 * (1 - tps_during / tps_before)';
COMMENT ON COLUMN kernel_advisor.checkpoints.source IS 'hook: the server''s own checkpoint figures; statistics: cumulative counters only';

CREATE FUNCTION kernel_advisor.counters(
	OUT during text,
	OUT since timestamptz,
	OUT until timestamptz,
	OUT samples bigint,
	OUT sampled_ms double precision,
	OUT transactions bigint,
	OUT wal_bytes bigint,
	OUT compact_stall bigint,
	OUT compact_fail bigint,
	OUT compact_success bigint,
	OUT compact_migrate_scanned bigint,
	OUT compact_free_scanned bigint,
	OUT compact_daemon_wake bigint,
	OUT allocstall bigint,
	OUT thp_fault_alloc bigint,
	OUT thp_fault_fallback bigint,
	OUT thp_file_alloc bigint,
	OUT pressure_some_us bigint,
	OUT pressure_full_us bigint,
	OUT write_ios bigint,
	OUT write_merges bigint,
	OUT write_bytes bigint,
	OUT pcp_drains bigint,
	OUT pcp_drained_pages bigint,
	OUT direct_compact_us bigint,
	OUT direct_reclaim_us bigint,
	OUT server_compact_us bigint,
	OUT server_reclaim_us bigint,
	OUT pcp_drains_estimate bigint,
	OUT pcp_drained_pages_estimate bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'ka_counters'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE
ROWS 2;

COMMENT ON FUNCTION kernel_advisor.counters() IS 'the sums of all samples since the server started; use the view of the same name';

CREATE VIEW kernel_advisor.counters AS
	SELECT * FROM kernel_advisor.counters();

COMMENT ON VIEW kernel_advisor.counters IS 'the sums of all samples since the server started, in checkpoints and outside of them: they only grow, for monitoring';
COMMENT ON COLUMN kernel_advisor.counters.during IS 'checkpoint: samples while one ran; idle: the others';
COMMENT ON COLUMN kernel_advisor.counters.since IS 'when the sums were 0: the start of the server, or its restart after a crash';
COMMENT ON COLUMN kernel_advisor.counters.until IS 'end of the newest sample, NULL before the first';
COMMENT ON COLUMN kernel_advisor.counters.samples IS 'samples';
COMMENT ON COLUMN kernel_advisor.counters.sampled_ms IS 'time covered by them (ms)';

-- deltas over a sample, and their sums over a checkpoint and since the start
DO $$
DECLARE
	delta record;
BEGIN
	FOR delta IN VALUES
		('transactions', 'transactions committed or rolled back, all databases (backends report about once a second)'),
		('wal_bytes', 'WAL inserted; on a standby, replayed (bytes)'),
		('compact_stall', 'direct compactions: an allocation waited for one'),
		('compact_fail', 'direct compactions after which the allocation failed still'),
		('compact_success', 'direct compactions that made the block available'),
		('compact_migrate_scanned', 'pages scanned for migration, direct and background'),
		('compact_free_scanned', 'free pages scanned by compaction, direct and background'),
		('compact_daemon_wake', 'times that kcompactd was woken'),
		('allocstall', 'direct reclaims, all zones'),
		('thp_fault_alloc', 'huge pages allocated at a page fault'),
		('thp_fault_fallback', 'page faults that wanted a huge page and got small ones'),
		('thp_file_alloc', 'huge pages allocated for shmem and files'),
		('pressure_some_us', 'time in which at least one task waited for memory (us)'),
		('pressure_full_us', 'time in which all tasks waited for memory (us)'),
		('write_ios', 'writes completed on the devices under the data directory and pg_wal'),
		('write_merges', 'writes merged before they reached those devices'),
		('write_bytes', 'bytes written to those devices'),
		('pcp_drains', 'drains of all per-CPU page lists after a direct reclaim; NULL without the probe'),
		('pcp_drained_pages', 'pages drained from per-CPU page lists by processes in direct compaction, in direct reclaim or right after it; NULL without the probe'),
		('direct_compact_us', 'time that all processes spent in direct compaction (us); NULL without the probe'),
		('direct_reclaim_us', 'time that all processes spent in direct reclaim (us); NULL without the probe'),
		('server_compact_us', 'the part of direct_compact_us that this server''s processes spent (us); NULL without the probe'),
		('server_reclaim_us', 'the part of direct_reclaim_us that this server''s processes spent (us); NULL without the probe'),
		('pcp_drains_estimate', 'estimate without the probe: direct reclaims after which the per-CPU page lists were found half empty, at most one a sample'),
		('pcp_drained_pages_estimate', 'estimate without the probe: pages that the per-CPU page lists lost in samples with a direct compaction or reclaim; a lower bound')
	LOOP
		EXECUTE pg_catalog.format('COMMENT ON COLUMN kernel_advisor.samples.%I IS %L', delta.column1, delta.column2);
		EXECUTE pg_catalog.format('COMMENT ON COLUMN kernel_advisor.checkpoints.%I IS %L', delta.column1, delta.column2);
		EXECUTE pg_catalog.format('COMMENT ON COLUMN kernel_advisor.counters.%I IS %L', delta.column1, delta.column2);
	END LOOP;
END $$;

CREATE FUNCTION kernel_advisor.stalls(
	OUT checkpoint_id bigint,
	OUT process_type text,
	OUT stall text,
	OUT count bigint,
	OUT total_us bigint,
	OUT longest_us bigint,
	OUT histogram jsonb)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'ka_stalls_sql'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION kernel_advisor.stalls() IS 'who waited for memory, as the probe measured it; use the view of the same name';

CREATE VIEW kernel_advisor.stalls AS
	SELECT * FROM kernel_advisor.stalls();

COMMENT ON VIEW kernel_advisor.stalls IS 'who waited for memory, as the probe measured it: in each checkpoint that was kept, and since the probe started';
COMMENT ON COLUMN kernel_advisor.stalls.checkpoint_id IS 'while this checkpoint ran, by those that did wait; NULL: since the probe started, with the zeros';
COMMENT ON COLUMN kernel_advisor.stalls.process_type IS 'checkpointer, walwriter, background writer, client backend or other server process of this server; other process; kernel thread';
COMMENT ON COLUMN kernel_advisor.stalls.stall IS 'direct compaction or direct reclaim';
COMMENT ON COLUMN kernel_advisor.stalls.count IS 'how many; compaction counts each zone that was compacted';
COMMENT ON COLUMN kernel_advisor.stalls.total_us IS 'time in all of them (us)';
COMMENT ON COLUMN kernel_advisor.stalls.longest_us IS 'time in the longest, which may have been in several zones (us)';
COMMENT ON COLUMN kernel_advisor.stalls.histogram IS 'how many took at least this time and less than twice as long (us); 0: less than 1 us';

CREATE FUNCTION kernel_advisor.backend_stalls(
	OUT pid integer,
	OUT process_type text,
	OUT compact_stall bigint,
	OUT direct_compact_us bigint,
	OUT longest_compact_us bigint,
	OUT allocstall bigint,
	OUT direct_reclaim_us bigint,
	OUT longest_reclaim_us bigint,
	OUT pcp_drains bigint,
	OUT pcp_drained_pages bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'ka_backend_stalls_sql'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION kernel_advisor.backend_stalls() IS 'processes of this server that the probe has seen in the page allocator''s slow paths; use the view of the same name';

CREATE VIEW kernel_advisor.backend_stalls AS
	SELECT s.pid, coalesce(a.backend_type, s.process_type) AS backend_type,
		a.datname, a.usename, a.application_name, a.state, a.query_start,
		s.compact_stall, s.direct_compact_us, s.longest_compact_us,
		s.allocstall, s.direct_reclaim_us, s.longest_reclaim_us,
		s.pcp_drains, s.pcp_drained_pages
	FROM kernel_advisor.backend_stalls() AS s
		LEFT JOIN pg_catalog.pg_stat_activity AS a USING (pid);

COMMENT ON VIEW kernel_advisor.backend_stalls IS 'living processes of this server that the probe has seen in the page allocator''s slow paths, with what pg_stat_activity says of them; counts since the process, or the probe, started';
COMMENT ON COLUMN kernel_advisor.backend_stalls.pid IS 'process ID, as in pg_stat_activity';
COMMENT ON COLUMN kernel_advisor.backend_stalls.backend_type IS 'as in pg_stat_activity; of a process that is not there, what its title said';
COMMENT ON COLUMN kernel_advisor.backend_stalls.datname IS 'database, NULL where there is none';
COMMENT ON COLUMN kernel_advisor.backend_stalls.usename IS 'user, NULL where there is none';
COMMENT ON COLUMN kernel_advisor.backend_stalls.application_name IS 'application_name of the session';
COMMENT ON COLUMN kernel_advisor.backend_stalls.state IS 'state of the session';
COMMENT ON COLUMN kernel_advisor.backend_stalls.query_start IS 'start of its query, or of the last one';
COMMENT ON COLUMN kernel_advisor.backend_stalls.compact_stall IS 'calls of direct compaction';
COMMENT ON COLUMN kernel_advisor.backend_stalls.direct_compact_us IS 'time in direct compaction (us)';
COMMENT ON COLUMN kernel_advisor.backend_stalls.longest_compact_us IS 'longest direct compaction (us)';
COMMENT ON COLUMN kernel_advisor.backend_stalls.allocstall IS 'direct reclaims';
COMMENT ON COLUMN kernel_advisor.backend_stalls.direct_reclaim_us IS 'time in direct reclaim (us)';
COMMENT ON COLUMN kernel_advisor.backend_stalls.longest_reclaim_us IS 'longest direct reclaim (us)';
COMMENT ON COLUMN kernel_advisor.backend_stalls.pcp_drains IS 'drains of all per-CPU page lists';
COMMENT ON COLUMN kernel_advisor.backend_stalls.pcp_drained_pages IS 'pages drained from per-CPU page lists in direct compaction, in direct reclaim or right after it';

CREATE FUNCTION kernel_advisor.status(
	OUT component text,
	OUT state text,
	OUT detail text,
	OUT hint text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'ka_status'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION kernel_advisor.status() IS 'state of each component; use the view of the same name';

CREATE VIEW kernel_advisor.status AS
	SELECT * FROM kernel_advisor.status();

COMMENT ON VIEW kernel_advisor.status IS 'one row per component: what works, what is missing and what to do about it';
COMMENT ON COLUMN kernel_advisor.status.component IS 'part of the advisor';
COMMENT ON COLUMN kernel_advisor.status.state IS 'what it does now';
COMMENT ON COLUMN kernel_advisor.status.detail IS 'what is known about it';
COMMENT ON COLUMN kernel_advisor.status.hint IS 'what to do about it, NULL when nothing';

CREATE FUNCTION kernel_advisor.reset()
RETURNS void
AS 'MODULE_PATHNAME', 'ka_reset'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION kernel_advisor.reset() IS 'forget samples and checkpoints';

----------------------------------------------------------------------
-- What is known, and what follows from it
----------------------------------------------------------------------

CREATE FUNCTION kernel_advisor.facts()
RETURNS jsonb
AS 'MODULE_PATHNAME', 'ka_facts'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION kernel_advisor.facts() IS 'all that the advisor knows about this server and its kernel; an absent key is unknown';

CREATE FUNCTION kernel_advisor.advise(
	facts jsonb DEFAULT kernel_advisor.facts(),
	OUT rule text,
	OUT severity text,
	OUT subject text,
	OUT current text,
	OUT recommended text,
	OUT reason text,
	OUT evidence jsonb,
	OUT confidence text,
	OUT activation text,
	OUT command text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'ka_advise_sql'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE
ROWS 20;

COMMENT ON FUNCTION kernel_advisor.advise(jsonb) IS 'advice for the given facts, of this machine or another; same facts, same rows';

CREATE VIEW kernel_advisor.advice AS
	SELECT * FROM kernel_advisor.advise();

COMMENT ON VIEW kernel_advisor.advice IS 'advice for this server as it is now';
COMMENT ON COLUMN kernel_advisor.advice.rule IS 'rule that speaks';
COMMENT ON COLUMN kernel_advisor.advice.severity IS 'critical, warning, info or ok';
COMMENT ON COLUMN kernel_advisor.advice.subject IS 'setting, kernel knob or the noun of the rule';
COMMENT ON COLUMN kernel_advisor.advice.current IS 'value now, NULL when not known';
COMMENT ON COLUMN kernel_advisor.advice.recommended IS 'value to set, NULL to leave it';
COMMENT ON COLUMN kernel_advisor.advice.reason IS 'why, in one sentence';
COMMENT ON COLUMN kernel_advisor.advice.evidence IS 'observed facts, thresholds and the window they come from';
COMMENT ON COLUMN kernel_advisor.advice.confidence IS 'measured here, inferred or documented';
COMMENT ON COLUMN kernel_advisor.advice.activation IS 'none, reload, restart or reboot';
COMMENT ON COLUMN kernel_advisor.advice.command IS 'what to type';

----------------------------------------------------------------------
-- Setting what is advised, and taking it back
----------------------------------------------------------------------

CREATE TYPE kernel_advisor.change AS (
	change_id bigint,
	at timestamptz,
	who text,
	subject text,
	action text,
	old text,
	asked text,
	granted text,
	verified text,
	state text,
	persisted_in text,
	boot text,
	effect jsonb,
	detail text,
	hint text);

COMMENT ON TYPE kernel_advisor.change IS 'one change of a kernel or server setting: a row of the view changes';

CREATE FUNCTION kernel_advisor.changes()
RETURNS SETOF kernel_advisor.change
AS 'MODULE_PATHNAME', 'ka_changes_sql'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION kernel_advisor.changes() IS 'the log of changes; use the view of the same name';

CREATE VIEW kernel_advisor.changes AS
	SELECT * FROM kernel_advisor.changes();

COMMENT ON VIEW kernel_advisor.changes IS 'what was changed, oldest first: asked for, granted, and as it is now';
COMMENT ON COLUMN kernel_advisor.changes.change_id IS 'number of the change, for rollback(); NULL in a row of apply() that is not in the log';
COMMENT ON COLUMN kernel_advisor.changes.at IS 'when it was begun';
COMMENT ON COLUMN kernel_advisor.changes.who IS 'the session''s role, or auto_apply';
COMMENT ON COLUMN kernel_advisor.changes.subject IS 'kernel knob or server setting';
COMMENT ON COLUMN kernel_advisor.changes.action IS 'set, reserve, alter system or rollback';
COMMENT ON COLUMN kernel_advisor.changes.old IS 'value before';
COMMENT ON COLUMN kernel_advisor.changes.asked IS 'value asked for; NULL: the setting was taken out of postgresql.auto.conf';
COMMENT ON COLUMN kernel_advisor.changes.granted IS 'value as the helper or the server confirmed it';
COMMENT ON COLUMN kernel_advisor.changes.verified IS 'value now, read by the server itself';
COMMENT ON COLUMN kernel_advisor.changes.state IS 'in progress, unknown outcome, dry run, applied, partial, unchanged, refused, failed, skipped, pending restart, rolled back or superseded';
COMMENT ON COLUMN kernel_advisor.changes.persisted_in IS 'file that keeps the value for the next boot, or start of the server';
COMMENT ON COLUMN kernel_advisor.changes.boot IS 'file that wins at the next boot, and its value';
COMMENT ON COLUMN kernel_advisor.changes.effect IS 'what the samples say about the time before and after; null while there are too few';
COMMENT ON COLUMN kernel_advisor.changes.detail IS 'what happened, in words';
COMMENT ON COLUMN kernel_advisor.changes.hint IS 'what to do about it, NULL when nothing';

CREATE FUNCTION kernel_advisor.apply(
	subject text DEFAULT NULL,
	value text DEFAULT NULL,
	persist boolean DEFAULT true,
	dry_run boolean DEFAULT false)
RETURNS SETOF kernel_advisor.change
AS 'MODULE_PATHNAME', 'ka_apply_sql'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION kernel_advisor.apply(text, text, boolean, boolean) IS 'set one subject of the advice to a value, NULL: the recommended one; without a subject all that is recommended, in the safe order';

CREATE FUNCTION kernel_advisor.apply(
	subjects text[],
	persist boolean DEFAULT true,
	dry_run boolean DEFAULT false)
RETURNS SETOF kernel_advisor.change
AS 'MODULE_PATHNAME', 'ka_apply_list_sql'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION kernel_advisor.apply(text[], boolean, boolean) IS 'set these subjects of the advice to their recommended values, in the safe order; stops at the first that is not granted';

CREATE FUNCTION kernel_advisor.rollback(change_id bigint)
RETURNS SETOF kernel_advisor.change
AS 'MODULE_PATHNAME', 'ka_rollback_sql'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
ROWS 1;

COMMENT ON FUNCTION kernel_advisor.rollback(bigint) IS 'take a change back: the value before it, and what the file for the next boot said';

----------------------------------------------------------------------
-- What the reporter keeps
----------------------------------------------------------------------

-- A row of another server may have the same number, so a row is known by its number and its start, and
-- no constraint says so: a subscriber merges the rows of several servers.
CREATE TABLE kernel_advisor.checkpoint_history (
	LIKE kernel_advisor.checkpoints,
	recorded_at timestamptz NOT NULL);
ALTER TABLE kernel_advisor.checkpoint_history
	ALTER checkpoint_id SET NOT NULL,
	ALTER started_at SET NOT NULL,
	REPLICA IDENTITY FULL;
CREATE INDEX checkpoint_history_started_at ON kernel_advisor.checkpoint_history (started_at, checkpoint_id);

COMMENT ON TABLE kernel_advisor.checkpoint_history IS 'checkpoints and restartpoints, kept by the reporter for kernel_advisor.retention';
COMMENT ON INDEX kernel_advisor.checkpoint_history_started_at IS 'for reports of a time range, and for pruning';

CREATE TABLE kernel_advisor.advice_history (
	at timestamptz NOT NULL,
	event text NOT NULL CHECK (event IN ('appeared', 'changed', 'disappeared')),
	rule text NOT NULL,
	severity text NOT NULL,
	subject text NOT NULL,
	current text,
	recommended text,
	reason text,
	evidence jsonb,
	confidence text,
	activation text,
	command text);
ALTER TABLE kernel_advisor.advice_history REPLICA IDENTITY FULL;
CREATE INDEX advice_history_at ON kernel_advisor.advice_history (at);
CREATE INDEX advice_history_rule ON kernel_advisor.advice_history (rule, subject, at);

COMMENT ON TABLE kernel_advisor.advice_history IS 'when advice appeared, changed and disappeared, kept by the reporter for kernel_advisor.retention';
COMMENT ON INDEX kernel_advisor.advice_history_at IS 'for reports of a time range, and for pruning';
COMMENT ON INDEX kernel_advisor.advice_history_rule IS 'for what stands: the newest row of each rule and subject';
COMMENT ON COLUMN kernel_advisor.advice_history.at IS 'when the reporter stored it';
COMMENT ON COLUMN kernel_advisor.advice_history.event IS 'appeared, changed (severity or recommended value) or disappeared; of the last, the other columns are those of the row before where they are known';

-- the same columns, the same words
DO $$
DECLARE
	col record;
BEGIN
	FOR col IN
		SELECT h.attrelid::pg_catalog.regclass AS history, h.attname,
			CASE h.attname WHEN 'recorded_at' THEN 'when the reporter stored the row'
				ELSE pg_catalog.col_description(v.attrelid, v.attnum) END AS comment
		FROM pg_catalog.pg_attribute AS h
			LEFT JOIN pg_catalog.pg_attribute AS v ON v.attname = h.attname AND v.attrelid =
				CASE h.attrelid WHEN 'kernel_advisor.checkpoint_history'::pg_catalog.regclass
					THEN 'kernel_advisor.checkpoints'::pg_catalog.regclass
					ELSE 'kernel_advisor.advice'::pg_catalog.regclass END
		WHERE h.attrelid IN ('kernel_advisor.checkpoint_history'::pg_catalog.regclass,
				'kernel_advisor.advice_history'::pg_catalog.regclass)
			AND h.attnum > 0 AND pg_catalog.col_description(h.attrelid, h.attnum) IS NULL
	LOOP
		EXECUTE pg_catalog.format('COMMENT ON COLUMN %s.%I IS %L', col.history, col.attname, col.comment);
	END LOOP;
END $$;

-- A row that is there already is left out, so that a dump can be restored where the reporter has been.
CREATE FUNCTION kernel_advisor.history_once()
RETURNS trigger
AS 'MODULE_PATHNAME', 'ka_history_once'
LANGUAGE C VOLATILE;

COMMENT ON FUNCTION kernel_advisor.history_once() IS 'trigger of the history tables: leaves out a row that is there already';

CREATE TRIGGER once BEFORE INSERT ON kernel_advisor.checkpoint_history
	FOR EACH ROW EXECUTE FUNCTION kernel_advisor.history_once('started_at', 'checkpoint_id');
CREATE TRIGGER once BEFORE INSERT ON kernel_advisor.advice_history
	FOR EACH ROW EXECUTE FUNCTION kernel_advisor.history_once('at', 'rule', 'subject');

-- the rows are the user's: pg_dump takes them along
SELECT pg_catalog.pg_extension_config_dump('kernel_advisor.checkpoint_history', '');
SELECT pg_catalog.pg_extension_config_dump('kernel_advisor.advice_history', '');

----------------------------------------------------------------------
-- Trials: two values in turns on the live system
----------------------------------------------------------------------

CREATE TYPE kernel_advisor.trial_run AS (
	trial_id bigint,
	started_at timestamptz,
	ended_at timestamptz,
	who text,
	subject text,
	old text,
	value text,
	block interval,
	pairs integer,
	pairs_done integer,
	pairs_dropped integer,
	state text,
	until timestamptz,
	verdict text,
	ratio double precision,
	ratio_low double precision,
	ratio_high double precision,
	detail text,
	hint text);

COMMENT ON TYPE kernel_advisor.trial_run IS 'one trial of a kernel setting: a row of the view trials';

CREATE FUNCTION kernel_advisor.trials()
RETURNS SETOF kernel_advisor.trial_run
AS 'MODULE_PATHNAME', 'ka_trials_sql'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION kernel_advisor.trials() IS 'the newest trials; use the view of the same name';

CREATE VIEW kernel_advisor.trials AS
	SELECT * FROM kernel_advisor.trials();

COMMENT ON VIEW kernel_advisor.trials IS 'trials of kernel settings, oldest first: how far, and what came of the throughput';
COMMENT ON COLUMN kernel_advisor.trials.trial_id IS 'number of the trial';
COMMENT ON COLUMN kernel_advisor.trials.started_at IS 'start';
COMMENT ON COLUMN kernel_advisor.trials.ended_at IS 'when the old value was back; NULL: not yet';
COMMENT ON COLUMN kernel_advisor.trials.who IS 'the session''s role';
COMMENT ON COLUMN kernel_advisor.trials.subject IS 'kernel knob';
COMMENT ON COLUMN kernel_advisor.trials.old IS 'its value before, and afterwards';
COMMENT ON COLUMN kernel_advisor.trials.value IS 'the other value';
COMMENT ON COLUMN kernel_advisor.trials.block IS 'length of a block with one value; its first quarter (1 s to 30 s) is thrown away';
COMMENT ON COLUMN kernel_advisor.trials.pairs IS 'pairs of blocks asked for';
COMMENT ON COLUMN kernel_advisor.trials.pairs_done IS 'pairs that count';
COMMENT ON COLUMN kernel_advisor.trials.pairs_dropped IS 'pairs with a checkpoint in one of the blocks only, or without samples; made again';
COMMENT ON COLUMN kernel_advisor.trials.state IS 'running, finished, stopped, failed, interrupted; or restoring: the old value is not back yet';
COMMENT ON COLUMN kernel_advisor.trials.until IS 'when it will have ended if no more pairs are dropped';
COMMENT ON COLUMN kernel_advisor.trials.verdict IS 'of the throughput: better, worse, no difference seen or not enough data';
COMMENT ON COLUMN kernel_advisor.trials.ratio IS 'throughput with the other value / with the old one';
COMMENT ON COLUMN kernel_advisor.trials.ratio_low IS 'lower end of its 95 % confidence interval';
COMMENT ON COLUMN kernel_advisor.trials.ratio_high IS 'upper end of its 95 % confidence interval';
COMMENT ON COLUMN kernel_advisor.trials.detail IS 'why it ended, in words';
COMMENT ON COLUMN kernel_advisor.trials.hint IS 'what to do about it, NULL when nothing';

CREATE FUNCTION kernel_advisor.trial_results(
	OUT trial_id bigint,
	OUT measure text,
	OUT unit text,
	OUT better text,
	OUT pairs integer,
	OUT old_median double precision,
	OUT new_median double precision,
	OUT ratio double precision,
	OUT ratio_low double precision,
	OUT ratio_high double precision,
	OUT verdict text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'ka_trial_results_sql'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION kernel_advisor.trial_results() IS 'what the trials measured; use the view of the same name';

CREATE VIEW kernel_advisor.trial_results AS
	SELECT * FROM kernel_advisor.trial_results();

COMMENT ON VIEW kernel_advisor.trial_results IS 'what the trials measured, a row for each trial and measure';
COMMENT ON COLUMN kernel_advisor.trial_results.trial_id IS 'number of the trial';
COMMENT ON COLUMN kernel_advisor.trial_results.measure IS 'what was measured in each block';
COMMENT ON COLUMN kernel_advisor.trial_results.unit IS 'unit of the medians';
COMMENT ON COLUMN kernel_advisor.trial_results.better IS 'higher or lower';
COMMENT ON COLUMN kernel_advisor.trial_results.pairs IS 'pairs in which both blocks have the measure';
COMMENT ON COLUMN kernel_advisor.trial_results.old_median IS 'median over the blocks with the old value';
COMMENT ON COLUMN kernel_advisor.trial_results.new_median IS 'median over the blocks with the other value';
COMMENT ON COLUMN kernel_advisor.trial_results.ratio IS 'other value / old value, over the pairs (Hodges-Lehmann)';
COMMENT ON COLUMN kernel_advisor.trial_results.ratio_low IS 'lower end of its 95 % confidence interval; NULL with fewer than 6 pairs';
COMMENT ON COLUMN kernel_advisor.trial_results.ratio_high IS 'upper end of its 95 % confidence interval; NULL with fewer than 6 pairs';
COMMENT ON COLUMN kernel_advisor.trial_results.verdict IS 'better, worse, no difference seen or not enough data';

CREATE FUNCTION kernel_advisor.trial(
	subject text,
	value text,
	block interval DEFAULT '30 s',
	pairs integer DEFAULT 20)
RETURNS SETOF kernel_advisor.trial_run
AS 'MODULE_PATHNAME', 'ka_trial_sql'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
ROWS 1;

COMMENT ON FUNCTION kernel_advisor.trial(text, text, interval, integer) IS 'start a trial of a kernel setting: its value now and another one in turns, measured, and the old value back; returns at once';

CREATE FUNCTION kernel_advisor.trial_stop()
RETURNS SETOF kernel_advisor.trial_run
AS 'MODULE_PATHNAME', 'ka_trial_stop_sql'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE
ROWS 1;

COMMENT ON FUNCTION kernel_advisor.trial_stop() IS 'end the trial that is running; returns when the old value is back';

----------------------------------------------------------------------
-- What people read
----------------------------------------------------------------------

CREATE FUNCTION kernel_advisor.report(
	format text DEFAULT 'text',
	"from" timestamptz DEFAULT NULL,
	"to" timestamptz DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'ka_report'
LANGUAGE C VOLATILE PARALLEL RESTRICTED
SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION kernel_advisor.report(text, timestamptz, timestamptz) IS 'what happened in the time range (NULL: all that is known), what to change and what it brought: as text, json or html';

-- to be watched: the last ten seconds, or two samples where those are longer apart
CREATE VIEW kernel_advisor.now AS
	WITH recent AS MATERIALIZED (
		SELECT * FROM kernel_advisor.samples
		WHERE at > clock_timestamp() - greatest(interval '10 s', 2 * current_setting('kernel_advisor.sample_interval')::interval)
	), rate AS (
		SELECT sum(transactions) / s AS tps, sum(compact_stall) / s AS stalls, sum(allocstall) / s AS reclaims,
			sum(direct_compact_us) / s / 1000 AS compact_ms, sum(direct_reclaim_us) / s / 1000 AS reclaim_ms,
			sum(pcp_drained_pages) / s AS drained, sum(pcp_drained_pages_estimate) / s AS drained_estimate,
			sum(pressure_some_us) / s / 10000 AS pressure_pct, sum(write_bytes) / s AS written
		FROM recent, (SELECT sum(interval_ms) / 1000 AS s FROM recent) AS span
		GROUP BY s
	), newest AS (
		SELECT * FROM recent ORDER BY at DESC LIMIT 1
	), ended AS (
		SELECT * FROM kernel_advisor.checkpoints ORDER BY checkpoint_id DESC LIMIT 1
	), fact AS MATERIALIZED (
		SELECT kernel_advisor.facts() AS f
	), advised AS (
		SELECT count(*) AS loud,
			(array_agg(subject || ': ' || reason))[1] AS first
		FROM fact, kernel_advisor.advise(f)
		WHERE severity IN ('critical', 'warning')
	)
	SELECT item, value, detail
	FROM (SELECT) AS always LEFT JOIN rate ON true LEFT JOIN newest ON true LEFT JOIN ended ON true,
		fact, advised, LATERAL (VALUES
		('throughput', round(tps::numeric) || ' tps',
			format('%s connections', newest.backends)),
		('checkpoint', coalesce('in ' || nullif(newest.phase, 'idle') || ', number ' || newest.checkpoint_id, 'none runs'),
			format('last: %s%s', coalesce(ended.kind, 'none'), ' in ' || round(ended.total_ms::numeric / 1000, 1) || ' s'
				|| coalesce(', throughput ' || round(-ended.dip_pct::numeric) || ' %', ''))),
		('direct compactions', round(stalls::numeric, 1) || '/s',
			coalesce(round(compact_ms::numeric, 1) || ' ms/s waited', 'time: needs the probe')),
		('direct reclaims', round(reclaims::numeric, 1) || '/s',
			coalesce(round(reclaim_ms::numeric, 1) || ' ms/s waited', 'time: needs the probe')),
		('drained per-CPU pages', round(coalesce(drained, drained_estimate)::numeric) || '/s',
			CASE WHEN drained IS NULL THEN 'an estimate, without the probe' ELSE 'measured' END),
		('pages on per-CPU lists', newest.pcp_pages::text, NULL),
		('free costly blocks', newest.free_costly_blocks::text,
			pg_size_pretty(newest.free_bytes) || ' free'),
		('page tables', pg_size_pretty(newest.page_table_bytes),
			round(100.0 * newest.page_table_bytes / (f #>> '{memory,total_bytes}')::numeric, 1) || ' % of RAM'),
		('huge pages', coalesce(f #>> '{postgres,huge_pages_status}', 'not known'),
			newest.hugepages_free || ' free in the pool'),
		('memory pressure', round(pressure_pct::numeric, 1) || ' %', 'of the time some task waited'),
		('writes', pg_size_pretty(written::numeric) || '/s', pg_size_pretty(newest.dirty_bytes) || ' dirty'),
		('advice', loud || CASE loud WHEN 1 THEN ' thing to change' ELSE ' things to change' END, first)
	) AS items(item, value, detail);

COMMENT ON VIEW kernel_advisor.now IS 'the last ten seconds in a dozen lines, for \watch';
COMMENT ON COLUMN kernel_advisor.now.item IS 'what';
COMMENT ON COLUMN kernel_advisor.now.value IS 'now, with its unit; NULL when not known';
COMMENT ON COLUMN kernel_advisor.now.detail IS 'more about it';

----------------------------------------------------------------------
-- Who may do what: reading for pg_monitor; reset, apply, rollback and trial for whoever is granted it
----------------------------------------------------------------------

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA kernel_advisor FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA kernel_advisor FROM PUBLIC;
REVOKE ALL ON TYPE kernel_advisor.change, kernel_advisor.trial_run FROM PUBLIC;

GRANT USAGE ON SCHEMA kernel_advisor TO pg_monitor;
GRANT SELECT ON kernel_advisor.samples, kernel_advisor.checkpoints, kernel_advisor.counters, kernel_advisor.now,
	kernel_advisor.stalls, kernel_advisor.backend_stalls,
	kernel_advisor.status, kernel_advisor.advice, kernel_advisor.changes,
	kernel_advisor.checkpoint_history, kernel_advisor.advice_history,
	kernel_advisor.trials, kernel_advisor.trial_results TO pg_monitor;
GRANT EXECUTE ON FUNCTION kernel_advisor.samples(), kernel_advisor.checkpoints(), kernel_advisor.counters(),
	kernel_advisor.stalls(), kernel_advisor.backend_stalls(),
	kernel_advisor.status(), kernel_advisor.facts(), kernel_advisor.advise(jsonb),
	kernel_advisor.changes(), kernel_advisor.trials(), kernel_advisor.trial_results(),
	kernel_advisor.report(text, timestamptz, timestamptz) TO pg_monitor;
