--
-- Malformed facts: SQLSTATE 22023 for an illegal value, 22P02 for a number
-- that is none; the message names the path of the key.
--
CREATE FUNCTION pg_temp.refusal(facts jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  message text;
  hint text;
BEGIN
  PERFORM kernel_advisor.advise(facts);
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
  RETURN SQLSTATE || ' ' || message || CASE WHEN hint = '' THEN ' (no hint)' ELSE '' END;
END $$;

SELECT facts, pg_temp.refusal(facts::jsonb) FROM (VALUES
  ('[]'),
  ('7'),
  ('"facts"'),
  ('null'),
  ('{"schema": 2}'),
  ('{"schema": "1"}'),
  ('{"postgres": []}'),
  ('{"postgres": "on"}'),
  ('{"postgres": {"huge_pages": "maybe"}}'),
  ('{"postgres": {"huge_pages": true}}'),
  ('{"postgres": {"shared_buffers_bytes": -1}}'),
  ('{"postgres": {"shared_buffers_bytes": "128MB"}}'),
  ('{"postgres": {"shared_buffers_bytes": 9223372036854775808}}'),
  ('{"postgres": {"shared_buffers_bytes": 1.5}}'),
  ('{"postgres": {"log_checkpoints": "on"}}'),
  ('{"postgres": {"last_error": {"phase": "later"}}}'),
  ('{"postgres": {"checkpoint_completion_target": 1.5}}'),
  ('{"kernel": {"page_size_bytes": 0}}'),
  ('{"kernel": {"preempt": "sometimes"}}'),
  ('{"memory": {"total_bytes": {}}}'),
  ('{"hugepages": {"pools": {"size_bytes": 2097152}}}'),
  ('{"hugepages": {"pools": [2097152]}}'),
  ('{"hugepages": {"pools": [{"size_bytes": 2097152, "total": 1}, {"size_bytes": 2097152, "free": -3}]}}'),
  ('{"hugepages": {"pools": [{"total": 1}]}}'),
  ('{"hugepages": {"pools": [{"size_bytes": 2097152, "nodes": [{"node": 0, "total": "x"}]}]}}'),
  ('{"hugepages": {"consumers": [{"what": 5, "pages": 1}]}}'),
  ('{"thp": {"enabled": "sometimes"}}'),
  ('{"sysctl": {"vm.extfrag_threshold": "500"}}'),
  ('{"sysctl": {"vm.extfrag_threshold": -5}}'),
  ('{"boot": {"sysctl": {"vm.nr_hugepages": 5}}}'),
  ('{"boot": {"sysctl": {"vm.nr_hugepages": {"value": -5}}}}'),
  ('{"cgroup": {"version": 3}}'),
  ('{"cgroup": {"hugetlb": [{"size_bytes": 2097152, "limit_bytes": -1}]}}'),
  ('{"numa": [{"node": 0, "total_bytes": true}]}'),
  ('{"window": {"compact_stall": -1}}'),
  ('{"window": {"compact_stall": 1e300}}'),
  ('{"window": {"dip_pct": 101}}')
) AS _(facts);

-- what JSON itself cannot hold never reaches the advisor
SELECT kernel_advisor.advise('{"postgres": ');

--
-- A message repeats the first 40 bytes of a text and cuts no character, in
-- other encodings neither: there a half one would be no text.
--
SELECT current_database() AS regress_database \gset
CREATE DATABASE regress_ka_eucjp ENCODING 'EUC_JP' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;
\c regress_ka_eucjp
SET client_encoding = 'UTF8';
CREATE EXTENSION pg_kernel_advisor;
SELECT kernel_advisor.advise(jsonb_build_object('thp', jsonb_build_object('enabled', 'a' || repeat('大', 25))));
\c :regress_database
DROP DATABASE regress_ka_eucjp;

--
-- Facts as large as they may be can be cancelled.  The clock is generous: it
-- tells a moment from never.
--
CREATE TEMP TABLE regress_ka_huge AS
  SELECT jsonb_build_object('numa', numa, 'hugepages', jsonb_build_object('pools', pools)) AS facts
  FROM (SELECT jsonb_agg(jsonb_build_object('node', n, 'total_bytes', 1)) AS numa FROM generate_series(0, 4095) AS n) AS _,
       (SELECT jsonb_agg(jsonb_build_object('node', n, 'total', n % 2 * 1000)) AS nodes FROM generate_series(0, 99) AS n) AS __,
       LATERAL (SELECT jsonb_agg(jsonb_build_object('size_bytes', s * 4096, 'total', 50000, 'nodes', nodes)) AS pools
                FROM generate_series(1, 4096) AS s) AS ___;
SELECT clock_timestamp() AS begun \gset
SET statement_timeout = '100ms';
SELECT count(*) FROM regress_ka_huge, kernel_advisor.advise(facts);
RESET statement_timeout;
SELECT clock_timestamp() - :'begun'::timestamptz < '5 s' AS ended_in_time;
