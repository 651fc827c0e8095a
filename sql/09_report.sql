--
-- report() and now: what they take, what they refuse, what their JSON promises.
--
\set VERBOSITY terse
SET client_min_messages = warning;
SELECT kernel_advisor.report('pdf');
SELECT kernel_advisor.report('');
SELECT kernel_advisor.report('HTML');
SELECT kernel_advisor.report('text', '2020-01-02', '2020-01-02');
SELECT kernel_advisor.report('text', '2020-01-02', '2020-01-01');

-- left out, NULL and infinite: all that is there
SELECT kernel_advisor.report() LIKE 'pg_kernel_advisor 1.0: %' AS text,
  kernel_advisor.report(NULL, NULL, NULL) LIKE 'pg_kernel_advisor 1.0: %' AS text_too,
  kernel_advisor.report('html', '-infinity', 'infinity') LIKE '<!DOCTYPE html>%</html>_' AS html;

-- the keys, their types
SELECT key, jsonb_typeof(value) FROM jsonb_each(kernel_advisor.report('json')::jsonb) ORDER BY key COLLATE "C";

-- the lines of the charts, whether there are samples or not; arrays are as long as the time
WITH model AS (SELECT kernel_advisor.report('json', '2020-01-01', '2020-01-02')::jsonb -> 'series' AS series)
SELECT series -> 'bucket_s' AS bucket_s, series -> 'samples' AS samples, jsonb_array_length(series -> 'at') AS buckets,
  to_timestamp((series #>> '{at,0}')::float8) AT TIME ZONE current_setting('TimeZone') = '2020-01-01' AS from_the_start,
  (SELECT string_agg(key, ' ' ORDER BY key COLLATE "C") FROM jsonb_each(series) WHERE value = 'null') AS without_samples
FROM model;

-- buckets are of a length that people count in
SELECT length, (kernel_advisor.report('json', now() - length, now())::jsonb #>> '{series,bucket_s}')::int AS bucket_s
FROM unnest('{10 s,25 min,1 h,1 day,7 days,1 year,30 years}'::interval[]) AS length;

-- a history of checkpoints is in it, once, and no value becomes markup
BEGIN;
INSERT INTO kernel_advisor.checkpoint_history (checkpoint_id, started_at, kind, total_ms, recorded_at)
  VALUES (7, '2001-01-01 10:00', '</script><b>timed', 1500, '2001-01-02'), (8, '2001-01-01 11:00', 'wal', 2500, '2001-01-02');
INSERT INTO kernel_advisor.advice_history (at, event, rule, severity, subject)
  VALUES ('2001-01-01 12:00', 'appeared', 'r', 'info', 's');
SELECT c ->> 'checkpoint_id' AS id, c ->> 'kind' AS kind, c ? 'recorded_at' AS recorded_at
FROM jsonb_array_elements(kernel_advisor.report('json', '2001-01-01', '2001-01-02')::jsonb -> 'checkpoints') AS c;
SELECT jsonb_array_length(kernel_advisor.report('json', '2001-01-01 10:30', '2001-01-02')::jsonb -> 'checkpoints') AS checkpoints,
  jsonb_array_length(kernel_advisor.report('json', '2001-01-01 10:30', '2001-01-02')::jsonb -> 'advice_history') AS advice;
SELECT regexp_count AS ends_of_scripts, position('\u003c/script>\u003cb>timed' IN html) > 0 AS escaped
FROM (SELECT kernel_advisor.report('html', '2001-01-01', '2001-01-02') AS html) AS _,
  LATERAL (SELECT count(*) AS regexp_count FROM regexp_matches(html, '</script>', 'g')) AS found;
SELECT line FROM regexp_split_to_table(kernel_advisor.report('text', '2001-01-01', '2001-01-02'), E'\n') AS line WHERE line LIKE '2001-01-01 1%';
ROLLBACK;

-- nothing of the caller's search_path is called instead
CREATE SCHEMA regress_ka_trap;
CREATE FUNCTION regress_ka_trap.to_jsonb(anyelement) RETURNS jsonb LANGUAGE sql AS 'SELECT (1/0)::text::jsonb';
SET search_path = regress_ka_trap, pg_catalog;
SELECT length(kernel_advisor.report('json')) > 0 AS report;
RESET search_path;
DROP SCHEMA regress_ka_trap CASCADE;
