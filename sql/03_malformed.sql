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
