--
-- apply(), rollback() and changes: what needs no helper, and what its absence
-- looks like.  Runs with the library preloaded and not: nothing here is in the
-- log of changes, which only a preloaded library can write.
--
\set VERBOSITY default
\set SHOW_CONTEXT never
SET client_min_messages = warning;
LOAD 'pg_kernel_advisor';
-- where nobody listens
ALTER SYSTEM SET kernel_advisor.helper_socket = '/nonexistent/kernel_advisord';
SELECT pg_reload_conf();
\c -
LOAD 'pg_kernel_advisor';
SHOW kernel_advisor.helper_socket;
SHOW kernel_advisor.helper_timeout;

-- without a helper: an error that says how to get one, and nothing in the log
\set VERBOSITY sqlstate
SELECT state FROM kernel_advisor.apply('vm.swappiness', '1', dry_run => true);
SELECT state FROM kernel_advisor.apply('thp.enabled', 'madvise', dry_run => true);
\set VERBOSITY default
SELECT state FROM kernel_advisor.apply('vm.swappiness', '1', dry_run => true);
SELECT component, state, hint IS NOT NULL AS hint FROM kernel_advisor.status WHERE component = 'helper';
ALTER SYSTEM SET kernel_advisor.helper_socket = '';
SELECT pg_reload_conf();
\c -
\set VERBOSITY default
\set SHOW_CONTEXT never
SELECT state FROM kernel_advisor.apply('vm.swappiness', '1', dry_run => true);
SELECT component, state, detail, hint FROM kernel_advisor.status WHERE component = 'helper';
SELECT change_id FROM kernel_advisor.changes;

-- arguments
SELECT * FROM kernel_advisor.apply('work_mem', '1MB', dry_run => true);
SELECT * FROM kernel_advisor.apply('vm.drop_caches', '3', dry_run => true);
SELECT * FROM kernel_advisor.apply('node0.vm.swappiness', '1', dry_run => true);
SELECT * FROM kernel_advisor.apply(value => '1', dry_run => true);
SELECT * FROM kernel_advisor.apply('vm.swappiness', '-1', dry_run => true);
SELECT * FROM kernel_advisor.apply('vm.swappiness', E'1\n', dry_run => true);
SELECT * FROM kernel_advisor.apply('vm.swappiness', '99999999999999999999', dry_run => true);
SELECT * FROM kernel_advisor.apply('thp.enabled', '[madvise]', dry_run => true);
SELECT * FROM kernel_advisor.apply('thp.enabled', 'sometimes', dry_run => true);
SELECT * FROM kernel_advisor.apply('max_wal_size', 'a lot', dry_run => true);
SELECT * FROM kernel_advisor.apply('huge_pages', 'perhaps', dry_run => true);
SELECT * FROM kernel_advisor.apply('max_wal_size', repeat('1', 64), dry_run => true);
SELECT * FROM kernel_advisor.apply(NULL::text[], dry_run => true);
SELECT * FROM kernel_advisor.apply(ARRAY[NULL]::text[], dry_run => true);
SELECT * FROM kernel_advisor.apply(ARRAY['work_mem'], dry_run => true);
SELECT * FROM kernel_advisor.apply('{}'::text[], dry_run => true);
-- nothing recommends these two, on whatever machine
SELECT * FROM kernel_advisor.apply('vm.compact_memory', dry_run => true);
SELECT * FROM kernel_advisor.apply(ARRAY['vm.compact_memory'], dry_run => true);
SELECT * FROM kernel_advisor.rollback(NULL);

-- settings of the server: what would be written; the same value is no change
SELECT change_id, who = current_user AS who, subject, action, old, asked, granted, verified, state, persisted_in, boot, effect, detail, hint
FROM kernel_advisor.apply('checkpoint_completion_target', '0.8', dry_run => true);
SELECT subject, old, asked, state, detail FROM kernel_advisor.apply('log_checkpoints', 'off', dry_run => true);
SELECT subject, old, asked, state FROM kernel_advisor.apply('checkpoint_completion_target', '0.90', dry_run => true);
-- the same in another unit
SELECT subject, asked LIKE '%kB' AS kb, state
FROM kernel_advisor.apply('max_wal_size', pg_size_bytes(current_setting('max_wal_size')) / 1024 || 'kB', dry_run => true);
-- whether the pool is large enough, the server looks at
SELECT subject, asked, state, detail LIKE '%the pool is%large enough%' AS proven_or_not
FROM kernel_advisor.apply('huge_pages', 'on', dry_run => true);
SELECT pg_file_settings.setting FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf' AND name NOT LIKE 'kernel_advisor.%';

-- the right to ALTER SYSTEM is asked for beside that to apply()
CREATE ROLE regress_ka_operator;
GRANT USAGE ON SCHEMA kernel_advisor TO regress_ka_operator;
GRANT EXECUTE ON FUNCTION kernel_advisor.apply(text, text, boolean, boolean) TO regress_ka_operator;
SET ROLE regress_ka_operator;
SELECT subject, state FROM kernel_advisor.apply('max_wal_size', '2GB', dry_run => true);
RESET ROLE;
GRANT ALTER SYSTEM ON PARAMETER max_wal_size TO regress_ka_operator;
SET ROLE regress_ka_operator;
SELECT subject, state FROM kernel_advisor.apply('max_wal_size', '2GB', dry_run => true);
SELECT subject, state FROM kernel_advisor.apply('huge_pages', 'off', dry_run => true);
RESET ROLE;
REVOKE ALTER SYSTEM ON PARAMETER max_wal_size FROM regress_ka_operator;
REVOKE ALL ON FUNCTION kernel_advisor.apply(text, text, boolean, boolean) FROM regress_ka_operator;
REVOKE USAGE ON SCHEMA kernel_advisor FROM regress_ka_operator;
DROP ROLE regress_ka_operator;

ALTER SYSTEM RESET kernel_advisor.helper_socket;
SELECT pg_reload_conf();
