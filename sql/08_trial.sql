--
-- trial(): what is refused before anything is asked for.  Runs with the library
-- preloaded and not; nothing here gets as far as the helper.
--
\set VERBOSITY default
\set SHOW_CONTEXT never
SET client_min_messages = warning;
LOAD 'pg_kernel_advisor';

-- subjects
SELECT * FROM kernel_advisor.trial('work_mem', '1MB');
SELECT * FROM kernel_advisor.trial('huge_pages', 'on');
SELECT * FROM kernel_advisor.trial('max_wal_size', '2GB');
SELECT * FROM kernel_advisor.trial('vm.nr_hugepages', '10');
SELECT * FROM kernel_advisor.trial('vm.compact_memory', '1');
SELECT * FROM kernel_advisor.trial('vm.overcommit_memory', '2');
SELECT * FROM kernel_advisor.trial('node0.vm.swappiness', '1');

-- values
SELECT * FROM kernel_advisor.trial('vm.swappiness', '-1');
SELECT * FROM kernel_advisor.trial('vm.swappiness', '');
SELECT * FROM kernel_advisor.trial('thp.enabled', 'sometimes');
SELECT * FROM kernel_advisor.trial(NULL, '1');

-- blocks and pairs
SELECT * FROM kernel_advisor.trial('vm.swappiness', '1', '1 s');
SELECT * FROM kernel_advisor.trial('vm.swappiness', '1', '-10 s');
SELECT * FROM kernel_advisor.trial('vm.swappiness', '1', '61 min');
SELECT * FROM kernel_advisor.trial('vm.swappiness', '1', '1 month');
SELECT * FROM kernel_advisor.trial('vm.swappiness', '1', '10 s', 5);
SELECT * FROM kernel_advisor.trial('vm.swappiness', '1', '10 s', 501);
SELECT * FROM kernel_advisor.trial('vm.swappiness', '1', '10 s', -1);

-- nothing of this is remembered
SELECT count(*) FROM kernel_advisor.trials;
SELECT count(*) FROM kernel_advisor.trial_results;
