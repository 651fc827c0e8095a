# Checkpoints that leave no message: rows from the statistics, without made-up numbers.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# A row of the newest checkpoint, once it is there.
sub newest
{
	my ($node, $after, $columns) = @_;

	wait_for($node, "SELECT max(checkpoint_id) > $after FROM kernel_advisor.checkpoints");
	return $node->safe_psql('postgres',
		"SELECT $columns FROM kernel_advisor.checkpoints ORDER BY checkpoint_id DESC LIMIT 1");
}

sub last_id
{
	my ($node) = @_;

	return $node->safe_psql('postgres', 'SELECT coalesce(max(checkpoint_id), 0) FROM kernel_advisor.checkpoints');
}

sub hook_status
{
	my ($node) = @_;

	return $node->safe_psql('postgres',
		q{SELECT state || ': ' || coalesce(hint, '') FROM kernel_advisor.status WHERE component = 'checkpoint hook'});
}

# Without the reporter: it stores the row of the last checkpoint here, and that is WAL for one more.
my $node = new_node('statistics', <<'END');
kernel_advisor.report_interval = 0
log_checkpoints = off
checkpoint_timeout = '30s'
END
my $settled = q{SELECT bool_and(compact_stall IS NOT NULL) FROM kernel_advisor.checkpoints};
my $reset_statistics = $node->pg_version >= 17
  ? q{SELECT pg_stat_reset_shared('checkpointer')}
  : q{SELECT pg_stat_reset_shared('bgwriter')};

like(hook_status($node), qr/^statistics only: Set log_checkpoints to on/, 'status names log_checkpoints');

# The sampler needs a look at the sleeping checkpointer first, for a baseline.
my $samples = q{SELECT count(*) >= %d FROM kernel_advisor.samples};
wait_for($node, sprintf($samples, 3));

my $redo = $node->safe_psql('postgres', 'SELECT redo_lsn FROM pg_control_checkpoint()');
$node->safe_psql('postgres', 'CREATE TABLE t AS SELECT generate_series(1, 10000) a; CHECKPOINT');
is(newest($node, 0, q{kind, source, restartpoint, write_ms IS NOT NULL, sync_ms IS NOT NULL, buffers_written > 0,
	total_ms, files_synced, longest_sync_ms, wal_added}),
	'requested|statistics|f|t|t|t||||', 'a checkpoint without a message: what is known and what is not');
is(newest($node, 0, 'distance_bytes'),
	$node->safe_psql('postgres', "SELECT redo_lsn - '$redo' FROM pg_control_checkpoint()"),
	'the distance is that of the redo pointers');
wait_for($node, $settled);
cmp_ok(newest($node, 0, 'wal_bytes'), '>', 0, 'it is joined with its samples');

# The times are those of the statistics system.
is($node->safe_psql('postgres', $node->pg_version >= 17
	? q{SELECT write_time, sync_time FROM pg_stat_checkpointer}
	: q{SELECT checkpoint_write_time, checkpoint_sync_time FROM pg_stat_bgwriter}),
	$node->safe_psql('postgres', q{SELECT sum(write_ms), sum(sync_ms) FROM kernel_advisor.checkpoints}),
	'the times add up to what the server reports') or diag(newest($node, 0, '*'));

# A reset of the statistics while a checkpoint runs.
my $before = last_id($node);
spread_checkpoint($node, sub { $node->safe_psql('postgres', $reset_statistics); });
wait_for($node, "SELECT count(*) = 2 FROM kernel_advisor.checkpoints WHERE checkpoint_id > $before");
is($node->safe_psql('postgres', qq{
	SELECT source, write_ms, sync_ms, buffers_written, distance_bytes > 0
	FROM kernel_advisor.checkpoints WHERE checkpoint_id > $before ORDER BY checkpoint_id LIMIT 1}),
	'statistics||||t', 'a reset in between leaves its figures unknown');
is($node->safe_psql('postgres', q{
	SELECT count(*) FROM kernel_advisor.checkpoints WHERE write_ms < 0 OR sync_ms < 0 OR buffers_written < 0}),
	'0', 'nothing is negative');

# log_checkpoints comes on while one runs: the hook sees its end only.
$before = last_id($node);
spread_checkpoint($node, sub {
	$node->append_conf('postgresql.conf', 'log_checkpoints = on');
	$node->reload;
	wait_for($node, q{SELECT current_setting('log_checkpoints') = 'on'});
	# The checkpointer reads its configuration between two buffers.
	$node->safe_psql('postgres', 'SELECT pg_sleep(0.5)');
});
wait_for($node, "SELECT count(*) = 2 FROM kernel_advisor.checkpoints WHERE checkpoint_id > $before");
is($node->safe_psql('postgres', qq{
	SELECT string_agg(source || ' ' || (total_ms IS NOT NULL) || ' ' || (distance_bytes > 0), ', ' ORDER BY checkpoint_id)
	FROM kernel_advisor.checkpoints WHERE checkpoint_id > $before}),
	'hook true true, hook true true', 'the end alone is enough for the hook');

# It goes off while one runs: the statistics complete what the hook began.
$before = last_id($node);
spread_checkpoint($node, sub {
	$node->append_conf('postgresql.conf', 'log_checkpoints = off');
	$node->reload;
	wait_for($node, q{SELECT current_setting('log_checkpoints') = 'off'});
	$node->safe_psql('postgres', 'SELECT pg_sleep(0.5)');
});
wait_for($node, "SELECT count(*) = 2 FROM kernel_advisor.checkpoints WHERE checkpoint_id > $before");
is($node->safe_psql('postgres', qq{
	SELECT string_agg(source, ' ' ORDER BY checkpoint_id) FROM kernel_advisor.checkpoints WHERE checkpoint_id > $before}),
	'statistics statistics', 'each checkpoint has one row');

# A level above LOG keeps the messages of log_checkpoints from every hook.
$node->append_conf('postgresql.conf', "log_checkpoints = on\nlog_min_messages = fatal");
$node->restart;
wait_for($node, q{SELECT count(*) >= 3 FROM kernel_advisor.samples WHERE at > pg_postmaster_start_time()});
is($node->safe_psql('postgres', q{SELECT count(*) FROM kernel_advisor.checkpoints WHERE started_at > pg_postmaster_start_time()}),
	'0', 'no row is made up for the shutdown that nobody saw');
like(hook_status($node), qr/^statistics only: Set log_min_messages/, 'status names log_min_messages');
$before = last_id($node);
$node->safe_psql('postgres', 'INSERT INTO t VALUES (1); CHECKPOINT');
is(newest($node, $before, 'kind, source, write_ms IS NOT NULL'), 'requested|statistics|t',
	'a swallowed message is made up for');

# A checkpoint that the server skips, because nothing was written, is none.
$before = last_id($node);
my $timed = $node->pg_version >= 17
  ? 'num_timed FROM pg_stat_checkpointer' : 'checkpoints_timed FROM pg_stat_bgwriter';
my $count = $node->safe_psql('postgres', "SELECT $timed");
wait_for($node, "SELECT $timed > $count" =~ s/(\w+) FROM (\w+) > (\d+)/$1 > $3 FROM $2/r);
is(last_id($node), $before, 'a skipped checkpoint gives no row');

done_testing();
