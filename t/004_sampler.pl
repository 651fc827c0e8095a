# The sampler: restarts, crashes, stops, settings, and sums that agree.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = new_node('sampler', 'restart_after_crash = on');

# Samples follow each other: each begins where the one before ended.
sub samples_are_sound
{
	my ($what) = @_;

	is($node->safe_psql('postgres', q{
		SELECT count(*) FROM (
			SELECT at, interval_ms, lag(at) OVER (ORDER BY row) AS previous
			FROM (SELECT *, row_number() OVER () AS row FROM kernel_advisor.samples) s) t
		WHERE interval_ms <= 0 OR at - interval_ms * interval '1 ms' < previous - interval '1 us'}),
		'0', "samples do not overlap $what");
	is($node->safe_psql('postgres', q{
		SELECT count(*) FROM kernel_advisor.samples
		WHERE least(transactions, wal_bytes, compact_stall, allocstall, thp_fault_alloc,
			compact_migrate_scanned, pressure_some_us, write_ios, write_bytes, pcp_pages, free_bytes) < 0}),
		'0', "nothing is negative $what");
	return;
}

# The counters are the sums of the samples since the server started.  A sample may come in between: then once more.
sub counters_agree
{
	my ($what) = @_;
	my $agree = qq{
		SELECT count(*) = 2 AND bool_and((c.samples, round(c.sampled_ms::numeric, 2), c.wal_bytes, c.compact_stall, c.thp_fault_alloc)
			IS NOT DISTINCT FROM (s.samples, round(s.sampled_ms::numeric, 2), s.wal_bytes, s.compact_stall, s.thp_fault_alloc))
		FROM kernel_advisor.counters c
		JOIN (SELECT CASE WHEN checkpoint_id IS NULL THEN 'idle' ELSE 'checkpoint' END AS during, count(*) AS samples,
				sum(interval_ms) AS sampled_ms, sum(wal_bytes) AS wal_bytes, sum(compact_stall) AS compact_stall,
				sum(thp_fault_alloc) AS thp_fault_alloc
			FROM kernel_advisor.samples WHERE at > (SELECT max(since) FROM kernel_advisor.counters) GROUP BY 1) s USING (during)};

	wait_for($node, $agree);
	is($node->safe_psql('postgres', 'SELECT count(*) FROM kernel_advisor.counters WHERE samples > 0 AND sampled_ms > 0'), '2',
		"counters are the sums of the samples $what");
}

# Two checkpoints, one of them long enough for many samples.
wait_for($node, q{SELECT count(*) >= 5 FROM kernel_advisor.samples});
$node->safe_psql('postgres', 'CREATE TABLE t AS SELECT generate_series(1, 100000) a; CHECKPOINT');
spread_checkpoint($node, sub { $node->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(1, 100000)'); });
wait_for($node, q{SELECT count(*) = 3 AND bool_and(wal_bytes IS NOT NULL) FROM kernel_advisor.checkpoints});
is($node->safe_psql('postgres', q{
	SELECT count(*) FROM kernel_advisor.checkpoints c
	JOIN (SELECT checkpoint_id, sum(transactions) AS transactions, sum(wal_bytes) AS wal_bytes,
			sum(compact_stall) AS compact_stall, sum(allocstall) AS allocstall,
			sum(thp_fault_alloc) AS thp_fault_alloc, sum(pressure_some_us) AS pressure_some_us,
			sum(write_ios) AS write_ios, sum(write_bytes) AS write_bytes
		FROM kernel_advisor.samples GROUP BY checkpoint_id) s USING (checkpoint_id)
	WHERE (c.transactions, c.wal_bytes, c.compact_stall, c.allocstall, c.thp_fault_alloc)
			= (s.transactions, s.wal_bytes, s.compact_stall, s.allocstall, s.thp_fault_alloc)
		AND c.pressure_some_us IS NOT DISTINCT FROM s.pressure_some_us
		AND c.write_ios IS NOT DISTINCT FROM s.write_ios
		AND c.write_bytes IS NOT DISTINCT FROM s.write_bytes}),
	'3', 'a checkpoint has the sums of its samples');
cmp_ok($node->safe_psql('postgres', q{SELECT max(wal_bytes) FROM kernel_advisor.checkpoints}), '>', 5e6,
	'WAL that was written while it ran is counted in it');
is($node->safe_psql('postgres', q{
	SELECT count(*) FROM kernel_advisor.samples s JOIN kernel_advisor.checkpoints c USING (checkpoint_id)
	WHERE at - interval_ms / 2 * interval '1 ms' NOT BETWEEN started_at AND started_at + (total_ms + 1) * interval '1 ms'
		AND (SELECT count(*) FROM kernel_advisor.samples WHERE checkpoint_id = c.checkpoint_id) > 1}),
	'0', 'samples of a checkpoint lie in it');
is($node->safe_psql('postgres', q{
	SELECT string_agg(DISTINCT phase, ' ') FROM kernel_advisor.samples WHERE checkpoint_id IS NULL}),
	'idle', 'outside of checkpoints the phase is idle');
is($node->safe_psql('postgres', q{
	SELECT count(*) FROM (
		SELECT checkpoint_id, array_position('{write,sync,finish}'::text[], phase)
			- lag(array_position('{write,sync,finish}'::text[], phase)) OVER (PARTITION BY checkpoint_id ORDER BY at) AS step
		FROM kernel_advisor.samples WHERE checkpoint_id IS NOT NULL) t
	WHERE step < 0}),
	'0', 'phases come in order');
cmp_ok($node->safe_psql('postgres', q{
	SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY interval_ms) FROM kernel_advisor.samples WHERE phase = 'write'}),
	'<', 95, 'samples are closer together while a checkpoint runs');
samples_are_sound('after checkpoints');
counters_agree('since the start');

# Two follow each other while the sampler sleeps, and the middle of its sample is in the first, which has others.
my $asleep = sampler_pid($node);
spread_checkpoint($node, sub { kill('STOP', $asleep); sleep(2) });
kill('CONT', $asleep);
wait_for($node, q{SELECT count(*) = 5 FROM kernel_advisor.checkpoints});
wait_for($node, q{SELECT wal_bytes IS NOT NULL FROM kernel_advisor.checkpoints ORDER BY checkpoint_id DESC OFFSET 1 LIMIT 1});
is($node->safe_psql('postgres', q{SELECT wal_bytes IS NOT NULL FROM kernel_advisor.checkpoints ORDER BY checkpoint_id DESC LIMIT 1}), 't',
	'a short checkpoint has a sample even when the one before it takes the middle');

# The view to be watched: a dozen lines, of which a server with samples knows all that this kernel has.
wait_for($node, q{SELECT count(*) >= 12 FROM kernel_advisor.samples WHERE at > clock_timestamp() - interval '10 s'});
is($node->safe_psql('postgres', q{SELECT string_agg(item, ', ') FROM kernel_advisor.now}),
	'throughput, checkpoint, direct compactions, direct reclaims, drained per-CPU pages, pages on per-CPU lists, '
	. 'free costly blocks, page tables, huge pages, memory pressure, writes, advice', 'the lines of the view now');
is($node->safe_psql('postgres', q{
	SELECT string_agg(item, ', ') FROM kernel_advisor.now
	WHERE value IS NULL AND item NOT IN ('memory pressure', 'writes', 'huge pages')}), '', 'and their values');
like($node->safe_psql('postgres', q{SELECT value || ', ' || detail FROM kernel_advisor.now WHERE item = 'checkpoint'}),
	qr/^none runs, last: requested in [\d.]+ s/, 'the last checkpoint in it');

# Intervals act on reload.
$node->append_conf('postgresql.conf', "kernel_advisor.sample_interval = '1h'");
$node->reload;
my $count = q{SELECT count(*) FROM kernel_advisor.samples};
$node->poll_query_until('postgres', q{SELECT max(at) < clock_timestamp() - interval '1 s' FROM kernel_advisor.samples})
  or die 'the sampler does not slow down';
$node->append_conf('postgresql.conf', "kernel_advisor.sample_interval = '20ms'");
$node->reload;
wait_for($node, q{SELECT count(*) >= 5 FROM kernel_advisor.samples WHERE interval_ms BETWEEN 15 AND 40 AND phase = 'idle'});
pass('a shorter interval acts on reload, even when the next sample is an hour away');
$node->append_conf('postgresql.conf', "kernel_advisor.sample_interval = '100ms'");
$node->reload;

# Terminated, it comes back, with the history.
my $pid = sampler_pid($node);
my $oldest = $node->safe_psql('postgres', 'SELECT min(at) FROM kernel_advisor.samples');
is($node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)"), 't', 'sampler terminated');
wait_for($node, qq{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'kernel advisor sampler' AND pid <> $pid});
wait_for($node, q{SELECT detail LIKE '%started 2 times%' FROM kernel_advisor.status WHERE component = 'sampler' AND state = 'running'});
is($node->safe_psql('postgres', 'SELECT min(at) FROM kernel_advisor.samples'), $oldest, 'history is kept');
ok(-s history_file($node), 'its end wrote the history file');
my $max_gap = q{SELECT max(interval_ms) < 4000 FROM kernel_advisor.samples WHERE at > (SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'kernel advisor sampler')};
wait_for($node, $max_gap);
is($node->safe_psql('postgres', $max_gap), 't', 'the time without a sampler is in no sample');
samples_are_sound('after a restart of the sampler');

# A checkpoint that lost its sampler has its own figures, and no sums.
spread_checkpoint($node, sub {
	my $victim = sampler_pid($node);

	$node->safe_psql('postgres', "SELECT pg_terminate_backend($victim)");
	wait_for($node, qq{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'kernel advisor sampler' AND pid <> $victim});
});
wait_for($node, q{SELECT count(*) = 7 FROM kernel_advisor.checkpoints});
wait_for($node, q{SELECT wal_bytes IS NOT NULL FROM kernel_advisor.checkpoints ORDER BY checkpoint_id DESC LIMIT 1});
is($node->safe_psql('postgres', q{
	SELECT total_ms > 0, compact_stall, wal_bytes, tps_during FROM kernel_advisor.checkpoints ORDER BY checkpoint_id OFFSET 5 LIMIT 1}),
	't|||', 'a checkpoint that was not sampled to its end has no sums');

# A crash: history comes back from the file, and nobody notices more than a restart.
my $saved = $node->safe_psql('postgres', q{SELECT max(at) FROM kernel_advisor.samples});
$node->safe_psql('postgres', sprintf('SELECT pg_terminate_backend(%d)', sampler_pid($node)));
wait_for($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'kernel advisor sampler'});
my $victim = $node->background_psql('postgres');
my $backend = $victim->query_safe('SELECT pg_backend_pid()');
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
kill 'KILL', $backend;
$node->poll_query_until('postgres', q{SELECT true}) or die 'no recovery';
eval { $victim->quit };
wait_for($node, q{SELECT state = 'running' FROM kernel_advisor.status WHERE component = 'sampler'});
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'it was a crash, not a restart');
like(log_since($node), qr/all server processes terminated; reinitializing/, 'and the server says so');
is($node->safe_psql('postgres', "SELECT min(at), max(at) FILTER (WHERE at <= '$saved') FROM kernel_advisor.samples"),
	"$oldest|$saved", 'samples from before the crash are there');
is($node->safe_psql('postgres', q{SELECT count(*) FROM kernel_advisor.checkpoints WHERE kind = 'requested'}), '7',
	'and checkpoints');
is($node->safe_psql('postgres', q{SELECT count(*) FROM (SELECT checkpoint_id FROM kernel_advisor.checkpoints GROUP BY 1 HAVING count(*) > 1) t}),
	'0', 'no checkpoint_id is given out twice');
wait_for($node, "SELECT count(*) >= 3 FROM kernel_advisor.samples WHERE at > '$saved'::timestamptz + interval '1 s'");
samples_are_sound('after a crash');
$node->safe_psql('postgres', 'CREATE TABLE after_crash AS SELECT generate_series(1, 100000) a; CHECKPOINT');
is($node->safe_psql('postgres', "SELECT bool_and(since > '$saved') FROM kernel_advisor.counters"), 't', 'counters begin anew after a crash');
counters_agree('since the crash');
my $counted = $node->safe_psql('postgres', 'SELECT sum(samples) FROM kernel_advisor.counters');

# reset() forgets, also what is on disk.
$node->safe_psql('postgres', 'SELECT kernel_advisor.reset()');
is($node->safe_psql('postgres', "SELECT count(*) FROM kernel_advisor.samples WHERE at <= '$saved'"), '0', 'reset forgets samples');
is($node->safe_psql('postgres', 'SELECT count(*) FROM kernel_advisor.checkpoints'), '0', 'reset forgets checkpoints');
cmp_ok($node->safe_psql('postgres', 'SELECT sum(samples) FROM kernel_advisor.counters'), '>=', $counted, 'reset leaves the counters');

wait_for($node, q{SELECT count(*) >= 3 FROM kernel_advisor.samples});

# More checkpoints than the sampler copies at once.
$node->safe_psql('postgres', "CHECKPOINT;\n" x 100);

# A fast stop waits for nobody.
my $begin = time;
$node->stop('fast');
my $seconds = time - $begin;
cmp_ok($seconds, '<', 2, 'fast stop takes less than two seconds') or note("it took $seconds s");

$node->start;
is($node->safe_psql('postgres', "SELECT count(*) FROM kernel_advisor.samples WHERE at <= '$saved'"), '0', 'nor come they back from the file');
is($node->safe_psql('postgres', q{SELECT count(*) > 0 FROM kernel_advisor.samples WHERE at < pg_postmaster_start_time()}), 't',
	'samples between reset and stop do');

is($node->safe_psql('postgres', 'SELECT count(*) FROM kernel_advisor.checkpoints'), '101', 'and all checkpoints');
$node->safe_psql('postgres', 'CREATE TABLE last (a int); CHECKPOINT');
wait_for($node, q{SELECT wal_bytes IS NOT NULL FROM kernel_advisor.checkpoints ORDER BY checkpoint_id DESC LIMIT 1});
pass('behind many old ones, a new checkpoint gets its sums');

done_testing();
