--
-- Samples, checkpoints and reset(); without shared_preload_libraries each says
-- what is missing (the alternative expected file).
--
SELECT count(*) IS NOT NULL AS samples FROM kernel_advisor.samples;
SELECT count(*) IS NOT NULL AS checkpoints FROM kernel_advisor.checkpoints;
SELECT kernel_advisor.reset();
-- a sample may have come since, a checkpoint of this second hardly
SELECT count(*) FROM kernel_advisor.samples WHERE at < now() - interval '1 s';
SELECT count(*) FROM kernel_advisor.checkpoints WHERE started_at < now() - interval '1 s';
SELECT component FROM kernel_advisor.status WHERE component IN ('sampler', 'checkpoint hook') ORDER BY 1;
-- the settings and their bounds
SELECT name, setting, unit, min_val, max_val, context FROM pg_settings
WHERE name LIKE 'kernel\_advisor.%' ORDER BY name COLLATE "C";
\set VERBOSITY sqlstate
ALTER SYSTEM SET kernel_advisor.sample_interval = '5ms';
ALTER SYSTEM SET kernel_advisor.sample_interval = '2h';
