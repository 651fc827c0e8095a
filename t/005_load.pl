# Load while a checkpoint runs: throughput before, during, and the difference.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('load', 'synchronous_commit = off');

$node->run_log([ 'pgbench', '-i', '-q', '-s', '1', '-h', $node->host, '-p', $node->port, 'postgres' ]);
wait_for($node, q{SELECT coalesce(bool_and(compact_stall IS NOT NULL), true) FROM kernel_advisor.checkpoints});

# Nothing before: no rate, and no guess.
$node->safe_psql('postgres', 'SELECT kernel_advisor.reset()');
$node->safe_psql('postgres', 'CHECKPOINT');
wait_for($node, q{SELECT count(*) = 1 FROM kernel_advisor.checkpoints});
is($node->safe_psql('postgres', q{SELECT tps_before, dip_pct FROM kernel_advisor.checkpoints}), '|',
	'below two seconds of samples there is no rate');

my ($stdout, $stderr) = ('', '');
my $pgbench = IPC::Run::start(
	[ 'pgbench', '-n', '-c', '2', '-R', '200', '-T', '300', '-h', $node->host, '-p', $node->port, 'postgres' ],
	'>', \$stdout, '2>', \$stderr);

# Three seconds of load that the statistics system knows about, then a checkpoint that takes its time.
wait_for($node, q{
	SELECT sum(interval_ms) > 3000 AND sum(transactions) > 300 FROM kernel_advisor.samples
	WHERE phase = 'idle' AND at > (SELECT min(at) FROM kernel_advisor.samples WHERE transactions > 20)});
spread_checkpoint($node, sub {
	wait_for($node, q{
		SELECT sum(interval_ms) > 2500 FROM kernel_advisor.samples s
		WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM kernel_advisor.samples)});
});
wait_for($node, q{SELECT count(*) = 3 AND bool_and(wal_bytes IS NOT NULL) FROM kernel_advisor.checkpoints});
$pgbench->signal('INT');
$pgbench->finish;

my $row = q{(SELECT * FROM kernel_advisor.checkpoints ORDER BY checkpoint_id OFFSET 1 LIMIT 1) c};
my ($before, $during, $dip) = split /\|/,
  $node->safe_psql('postgres', "SELECT tps_before, tps_during, dip_pct FROM $row");

# pgbench was asked for 200 a second; a noisy machine gives less, and the rest of the test adds some.
cmp_ok($before, '>', 20, 'transactions per second before');
cmp_ok($before, '<', 400, 'and not more than there were');
cmp_ok($during, '>', 20, 'transactions per second during');
cmp_ok($during, '<', 400, 'and not more than there were');
cmp_ok(abs($dip - 100 * (1 - $during / $before)), '<', 1e-6, 'the dip is what lies between');
is($node->safe_psql('postgres', "
	SELECT abs(tps_during - (
		SELECT sum(transactions) / sum(interval_ms) * 1000 FROM kernel_advisor.samples s WHERE s.checkpoint_id = c.checkpoint_id)) < 1e-6
	FROM $row"), 't', 'the rate during is that of its samples');

# All the transactions of pgbench arrive in samples, once.
my $known = $node->safe_psql('postgres', q{SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'});
cmp_ok($node->safe_psql('postgres', q{SELECT sum(transactions) FROM kernel_advisor.samples}), '<=', $known,
	'no transaction is counted twice');

done_testing();
