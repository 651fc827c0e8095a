--
-- Real problem reports and constructed ones, each with the advice that is
-- right: an "expect" entry must match a row on all its keys, a "forbid" entry
-- none.  The files are test/fixtures/cases*/*.json.  "names" must occur in the
-- reason, "command" in the command.
--
-- test/fixtures/borders has a file for each rule: facts, and cases below, at
-- and above what the rule compares with; see test/unit/test_cases.c.
--
\getenv srcdir PG_ABS_SRCDIR
\set cases `cd :'srcdir' && python3 -c 'import glob, json; print(json.dumps([dict(json.load(open(f)), file=f.rsplit("/", 1)[-1]) for d in ("cases", "cases_own") for f in sorted(glob.glob("test/fixtures/%s/*.json" % d))]))'`
\set borders `cd :'srcdir' && python3 -c 'import glob, json; print(json.dumps([json.load(open(f)) for f in sorted(glob.glob("test/fixtures/borders/*.json"))]))'`

CREATE FUNCTION pg_temp.number_of(value text) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
  SELECT m[1]::numeric * CASE m[2] WHEN 'kB' THEN 1024 WHEN 'MB' THEN 1024 ^ 2 WHEN 'GB' THEN 1024 ^ 3 WHEN 'TB' THEN 1024 ^ 4 ELSE 1 END
  FROM regexp_match(value, '^\s*([0-9.]+)\s*(|B|kB|MB|GB|TB)\s*$') AS m
$$;

CREATE FUNCTION pg_temp.matches(advice jsonb, want jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(bool_and(CASE
    WHEN key = 'severity' THEN wanted ? (advice->>'severity')
    WHEN key = 'names' THEN strpos(advice->>'reason', wanted #>> '{}') > 0
    WHEN key = 'command' THEN coalesce(strpos(advice->>'command', wanted #>> '{}') > 0, false)
    WHEN key = 'recommends' THEN (advice->>'recommended' IS NOT NULL) = wanted::boolean
    WHEN key = 'recommended' AND wanted ? 'null' THEN advice->>'recommended' IS NULL
    WHEN key = 'recommended' AND wanted ? 'equals' THEN coalesce(trim('''' FROM advice->>'recommended') = wanted->>'equals', false)
    WHEN key = 'recommended' THEN coalesce(pg_temp.number_of(advice->>'recommended')
      BETWEEN coalesce((wanted->>'min')::numeric, '-Infinity') AND coalesce((wanted->>'max')::numeric, 'Infinity'), false)
    ELSE coalesce(advice->key = wanted, false) END), true)
  FROM jsonb_each(want) AS _(key, wanted)
$$;

CREATE TEMP TABLE regress_ka_cases AS
  SELECT ordinality AS n, c FROM jsonb_array_elements(:'cases'::jsonb) WITH ORDINALITY AS _(c, ordinality);
INSERT INTO regress_ka_cases
  SELECT 1000 + row_number() OVER (),
         jsonb_build_object('rule', rule, 'file', rule || ': ' || (border->>'case'), 'facts', facts || changes,
                            CASE WHEN silent THEN 'forbid' ELSE 'expect' END,
                            jsonb_build_array(names || CASE WHEN silent THEN '{}' ELSE says END))
  FROM jsonb_to_recordset(:'borders'::jsonb) AS b(rule text, borders jsonb),
       jsonb_to_recordset(borders) AS g(facts jsonb, cases jsonb),
       jsonb_array_elements(cases) AS border,
       LATERAL (SELECT coalesce(jsonb_object_agg(key, CASE jsonb_typeof(value) WHEN 'object' THEN coalesce(facts->key, '{}') || value ELSE value END), '{}')
                FROM jsonb_each(border->'with')) AS c(changes),
       LATERAL (SELECT border->>'severity' = 'silent', jsonb_strip_nulls(jsonb_build_object('rule', rule, 'subject', border->'subject')),
                       jsonb_build_object('severity', jsonb_build_array(border->'severity')) ||
                       CASE WHEN border->>'recommended' IS NULL THEN '{"recommended": {"null": true}}'
                            WHEN border->>'recommended' = '*' THEN '{"recommends": true}'
                            ELSE jsonb_build_object('recommended', jsonb_build_object('equals', border->'recommended')) END) AS w(silent, names, says);
CREATE TEMP TABLE regress_ka_rows AS
  SELECT n, to_jsonb(a) AS a FROM regress_ka_cases, kernel_advisor.advise(c->'facts') AS a;

-- the judge itself: a row that is right and three that are not
SELECT pg_temp.matches('{"rule": "r", "severity": "info", "recommended": "16GB"}', want) FROM (VALUES
  ('{"rule": "r", "severity": ["info", "ok"], "recommended": {"min": 17179869184, "max": 17179869184}}'::jsonb),
  ('{"rule": "q"}'), ('{"severity": ["warning"]}'), ('{"recommended": {"null": true}}')) AS _(want);

SELECT count(*) >= 57 AS all_cases_there FROM regress_ka_cases;

SELECT c->>'file' AS "case",
       CASE WHEN NOT EXISTS (SELECT FROM jsonb_array_elements(c->'expect') AS want
                             WHERE NOT EXISTS (SELECT FROM regress_ka_rows r WHERE r.n = k.n AND pg_temp.matches(a, want)))
             AND NOT EXISTS (SELECT FROM jsonb_array_elements(c->'forbid') AS want, regress_ka_rows r
                             WHERE r.n = k.n AND pg_temp.matches(a, want))
            THEN 'right' ELSE 'WRONG' END AS advice
FROM regress_ka_cases k WHERE NOT c ? 'rule' ORDER BY n;

SELECT c->>'rule' AS rule, count(c->'forbid') AS silent, count(c->'expect') AS speaks
FROM regress_ka_cases WHERE c ? 'rule' GROUP BY 1 ORDER BY 1;

-- what is wrong with those that are, if any
SELECT c->>'file' AS "case", 'missing' AS what, want
FROM regress_ka_cases k, jsonb_array_elements(c->'expect') AS want
WHERE NOT EXISTS (SELECT FROM regress_ka_rows r WHERE r.n = k.n AND pg_temp.matches(a, want))
UNION ALL
SELECT c->>'file', 'forbidden', a
FROM regress_ka_cases k, jsonb_array_elements(c->'forbid') AS want, regress_ka_rows r
WHERE r.n = k.n AND pg_temp.matches(a, want)
ORDER BY 1;

-- rows that hold for every advice
SELECT a->>'rule' AS rule, c->>'file' AS "case" FROM regress_ka_rows JOIN regress_ka_cases USING (n)
WHERE a->>'severity' NOT IN ('critical', 'warning', 'info', 'ok')
   OR a->>'confidence' NOT IN ('measured here', 'inferred', 'documented')
   OR a->>'activation' NOT IN ('none', 'reload', 'restart', 'reboot')
   OR coalesce(a->>'subject', '') = '' OR coalesce(a->>'reason', '') = ''
   OR a->>'reason' LIKE '%(null)%' OR a->>'command' LIKE '%(null)%'
   OR jsonb_typeof(a->'evidence') <> 'object'
   OR a->>'command' LIKE '%sysctl --system%'
   OR (c->'facts'->'postgres' ? 'managed' AND a->>'command' LIKE '%sysctl%');
