--
-- Who may do what: every object of the schema against every kind of role.
--
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE ROLE regress_ka_nobody;
CREATE ROLE regress_ka_monitor IN ROLE pg_monitor;
CREATE ROLE regress_ka_operator IN ROLE pg_monitor;
GRANT EXECUTE ON FUNCTION kernel_advisor.reset(), kernel_advisor.apply(text, text, boolean, boolean),
  kernel_advisor.apply(text[], boolean, boolean), kernel_advisor.rollback(bigint),
  kernel_advisor.trial(text, text, interval, integer), kernel_advisor.trial_stop() TO regress_ka_operator;

-- nothing but what is listed here belongs to the extension (17 lists row types as well)
SELECT pg_describe_object(classid, objid, 0) AS object
FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND classid <> 'pg_type'::regclass
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_kernel_advisor')
ORDER BY pg_describe_object(classid, objid, 0) COLLATE "C";

-- the matrix
WITH roles(role) AS (VALUES ('regress_ka_nobody'), ('regress_ka_monitor'), ('regress_ka_operator')),
objects AS (
  SELECT 'schema' AS kind, nspname::text AS object, oid FROM pg_namespace WHERE nspname = 'kernel_advisor'
  UNION ALL
  SELECT 'function', oid::regprocedure::text, oid FROM pg_proc WHERE pronamespace = 'kernel_advisor'::regnamespace
  UNION ALL
  SELECT CASE relkind WHEN 'v' THEN 'view' ELSE 'table' END, oid::regclass::text, oid
  FROM pg_class WHERE relnamespace = 'kernel_advisor'::regnamespace AND relkind IN ('v', 'r')
), held AS (
  SELECT kind, object, role,
         CASE kind WHEN 'schema' THEN has_schema_privilege(role, oid, 'USAGE')
                   WHEN 'function' THEN has_function_privilege(role, oid, 'EXECUTE')
                   ELSE has_table_privilege(role, oid, 'SELECT') END AS may,
         kind = 'schema' AND has_schema_privilege(role, oid, 'CREATE')
           OR kind IN ('view', 'table') AND has_table_privilege(role, oid, 'INSERT, UPDATE, DELETE, TRUNCATE') AS may_write
  FROM roles CROSS JOIN objects
)
SELECT kind, object,
       bool_or(may) FILTER (WHERE role = 'regress_ka_nobody') AS nobody,
       bool_or(may) FILTER (WHERE role = 'regress_ka_monitor') AS monitor,
       bool_or(may) FILTER (WHERE role = 'regress_ka_operator') AS operator,
       bool_or(may_write) AS anyone_writes
FROM held GROUP BY kind, object ORDER BY kind, object COLLATE "C";

-- and as the roles see it
SET ROLE regress_ka_nobody;
SELECT count(*) FROM kernel_advisor.advice;
SELECT kernel_advisor.facts();
SELECT * FROM kernel_advisor.advise('{}');
SELECT count(*) FROM kernel_advisor.samples;
SELECT count(*) FROM kernel_advisor.status;
SELECT count(*) FROM kernel_advisor.stalls;
SELECT count(*) FROM kernel_advisor.backend_stalls;
SELECT kernel_advisor.reset();
SELECT count(*) FROM kernel_advisor.changes;
SELECT * FROM kernel_advisor.apply('vm.swappiness', '1');
SELECT * FROM kernel_advisor.apply(ARRAY['vm.swappiness']);
SELECT * FROM kernel_advisor.rollback(1);
SELECT count(*) FROM kernel_advisor.trials;
SELECT count(*) FROM kernel_advisor.trial_results;
SELECT * FROM kernel_advisor.trial('vm.swappiness', '1');
SELECT * FROM kernel_advisor.trial_stop();
RESET ROLE;

SET ROLE regress_ka_monitor;
SELECT count(*) > 0 AS advice FROM kernel_advisor.advice;
SELECT jsonb_typeof(kernel_advisor.facts()) AS facts;
SELECT count(*) > 0 AS status FROM kernel_advisor.status;
SELECT count(*) >= 0 AS backend_stalls FROM kernel_advisor.backend_stalls;
SELECT count(*) IS NOT NULL AS changes FROM kernel_advisor.changes;
SELECT kernel_advisor.reset();
SELECT * FROM kernel_advisor.apply('vm.swappiness', '1');
SELECT * FROM kernel_advisor.apply(ARRAY['vm.swappiness']);
SELECT * FROM kernel_advisor.rollback(1);
SELECT count(*) IS NOT NULL AS trials FROM kernel_advisor.trials;
SELECT count(*) IS NOT NULL AS trial_results FROM kernel_advisor.trial_results;
SELECT * FROM kernel_advisor.trial('vm.swappiness', '1');
SELECT * FROM kernel_advisor.trial_stop();
RESET ROLE;

-- safe under any search_path: nothing of the caller's is called instead
CREATE SCHEMA regress_ka_trap;
CREATE FUNCTION regress_ka_trap.advise(jsonb) RETURNS int LANGUAGE sql AS 'SELECT 1/0';
CREATE FUNCTION regress_ka_trap.facts() RETURNS jsonb LANGUAGE sql AS $$SELECT '{"schema": 99}'::jsonb$$;
SET search_path = regress_ka_trap, pg_catalog;
SELECT count(*) > 0 AS advice FROM kernel_advisor.advice;
RESET search_path;
DROP SCHEMA regress_ka_trap CASCADE;

-- everything public carries a comment
SELECT pg_describe_object(d.classid, d.objid, 0) AS without_comment
FROM pg_depend d
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_kernel_advisor')
  AND d.classid IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_namespace'::regclass)
  AND obj_description(d.objid, d.classid::regclass::text) IS NULL;
SELECT attrelid::regclass AS relation, attname AS without_comment
FROM pg_attribute
WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'kernel_advisor'::regnamespace AND relkind IN ('v', 'r'))
  AND attnum > 0 AND col_description(attrelid, attnum) IS NULL;

-- the contract that others rely on: names and order of the columns
SELECT attrelid::regclass AS relation, string_agg(attname, ', ' ORDER BY attnum) AS columns
FROM pg_attribute
WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'kernel_advisor'::regnamespace AND relkind IN ('v', 'r'))
  AND attnum > 0
GROUP BY attrelid ORDER BY attrelid::regclass::text COLLATE "C";

-- the row type, too
SELECT has_type_privilege('regress_ka_nobody', 'kernel_advisor.change', 'USAGE') AS nobody_uses_type;
SELECT has_type_privilege('regress_ka_nobody', 'kernel_advisor.trial_run', 'USAGE') AS nobody_uses_type;

REVOKE EXECUTE ON FUNCTION kernel_advisor.reset(), kernel_advisor.apply(text, text, boolean, boolean),
  kernel_advisor.apply(text[], boolean, boolean), kernel_advisor.rollback(bigint),
  kernel_advisor.trial(text, text, interval, integer), kernel_advisor.trial_stop() FROM regress_ka_operator;
DROP ROLE regress_ka_nobody, regress_ka_monitor, regress_ka_operator;
