--
-- facts(): its form, and agreement with what the server says of itself.
--
SELECT f->'schema' AS schema,
       f->'postgres'->'version_num' = to_jsonb(current_setting('server_version_num')::int) AS version,
       (f->'postgres'->>'shared_buffers_bytes')::bigint = pg_size_bytes(current_setting('shared_buffers')) AS shared_buffers,
       (f->'postgres'->>'max_wal_size_bytes')::bigint = pg_size_bytes(current_setting('max_wal_size')) AS max_wal_size,
       (f->'postgres'->>'max_connections')::int = current_setting('max_connections')::int AS max_connections,
       f->'postgres'->>'huge_pages' = current_setting('huge_pages') AS huge_pages,
       (f->'postgres'->>'log_checkpoints')::bool = current_setting('log_checkpoints')::bool AS log_checkpoints,
       (f->'postgres'->>'in_recovery')::bool = pg_is_in_recovery() AS in_recovery,
       f->'postgres'->>'huge_pages_status' IN ('on', 'off') AS status_known
FROM (SELECT kernel_advisor.facts()) AS _(f);

-- the exact size: at most what the rounded-up setting says, and less than a
-- megabyte (of small pages) or a huge page below it
SELECT exact <= said + 2 * 1024 * 1024 AND exact > said - 1024 * 1024 AS exact_size
FROM (SELECT (kernel_advisor.facts()->'postgres'->>'shared_memory_bytes')::bigint,
             pg_size_bytes(current_setting('shared_memory_size'))) AS _(exact, said);

-- the kernel's part against an independent reading of the same files
CREATE TEMP TABLE regress_ka_meminfo (line text);
COPY regress_ka_meminfo FROM PROGRAM 'cat /proc/meminfo';
SELECT kernel_advisor.facts()->'memory'->>'total_bytes' =
       (substring(line FROM '(\d+) kB')::bigint * 1024)::text AS total
FROM regress_ka_meminfo WHERE line LIKE 'MemTotal:%';
SELECT kernel_advisor.facts()->'hugepages'->>'default_size_bytes' =
       (substring(line FROM '(\d+) kB')::bigint * 1024)::text AS default_size
FROM regress_ka_meminfo WHERE line LIKE 'Hugepagesize:%';
CREATE TEMP TABLE regress_ka_sysctl (name text, value bigint);
COPY regress_ka_sysctl FROM PROGRAM 'cd /proc/sys/vm && for f in extfrag_threshold compaction_proactiveness nr_hugepages overcommit_memory swappiness; do test -r $f && printf "vm.%s\t%s\n" $f "$(cat $f)"; done; true';
SELECT name, kernel_advisor.facts()->'sysctl'->>name = value::text AS same FROM regress_ka_sysctl ORDER BY name COLLATE "C";
CREATE TEMP TABLE regress_ka_release (release text);
COPY regress_ka_release FROM PROGRAM 'uname -r';
SELECT kernel_advisor.facts()->'kernel'->>'release' = release AS release FROM regress_ka_release;
DROP TABLE regress_ka_meminfo, regress_ka_sysctl, regress_ka_release;

-- what facts() gives, advise() takes; the same facts give the same rows
CREATE TEMP TABLE regress_ka_facts AS SELECT kernel_advisor.facts() AS f;
SELECT count(*) > 0 AS speaks FROM regress_ka_facts, kernel_advisor.advise(f);
SELECT (SELECT jsonb_agg(a) FROM regress_ka_facts, kernel_advisor.advise(f) AS a)
     = (SELECT jsonb_agg(a) FROM regress_ka_facts, kernel_advisor.advise(f) AS a) AS same;

-- no guess without a fact
SELECT rule, severity, subject, recommended FROM kernel_advisor.advise('{}');
SELECT count(*) FROM kernel_advisor.advise(NULL);

-- unknown keys are ignored at any depth, null is an absent key
SELECT (SELECT jsonb_agg(a) FROM kernel_advisor.advise('{"sysctl": {"vm.zone_reclaim_mode": 1}}') AS a)
     = (SELECT jsonb_agg(a) FROM kernel_advisor.advise('{"schema": 1, "new": {"deep": [1, {"er": [[]]}]},
         "postgres": {"huge_pages": null, "colour": "blue"}, "hugepages": {"pools": null, "shape": [1, 2]},
         "sysctl": {"vm.zone_reclaim_mode": 1, "kernel.numa_balancing": 0}}') AS a) AS same;
