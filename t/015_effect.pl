# changes.effect.comparison: before and after a restart, where the load is comparable, and where it is not.
#
# The change needs a restart and does nothing to the throughput, which is pgbench's and made of sleeps.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use IPC::Run;
use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $directory = PostgreSQL::Test::Utils::tempdir;
my $node = new_node('effect', "checkpoint_timeout = '1h'\nmax_connections = 60");
my $pgbench;

$node->safe_psql('postgres', 'CREATE TABLE work (a int)');

# A load of so many connections, each transaction of which takes so long.
sub load
{
	my ($connections, $seconds) = @_;
	my ($out, $err) = ('', '');

	unlink("$directory/load.sql");
	append_to_file("$directory/load.sql", <<"END");
WITH w AS (INSERT INTO work VALUES (1)) SELECT pg_sleep($seconds), pg_stat_force_next_flush();
END
	$pgbench = IPC::Run::start([ 'pgbench', '-n', '-c', $connections, '-T', '600', '-f', "$directory/load.sql",
			'-h', $node->host, '-p', $node->port, 'postgres' ], '>', \$out, '2>', \$err);
	return;
}

sub restart
{
	$pgbench->signal('INT');
	eval { $pgbench->finish };
	$node->restart;
	return;
}

sub effect
{
	my ($path) = @_;

	return $node->safe_psql('postgres', "SELECT effect #>> '{comparison,$path}' FROM kernel_advisor.changes ORDER BY change_id DESC LIMIT 1");
}

sub seconds_of_samples
{
	my ($seconds) = @_;

	wait_for($node, "SELECT sum(interval_ms) FILTER (WHERE transactions > 0 AND at > pg_postmaster_start_time()) > $seconds * 1000 FROM kernel_advisor.samples");
	return;
}


# Twice as fast after the restart.
load(6, 0.02);
seconds_of_samples(21);
is($node->safe_psql('postgres', q{SELECT state FROM kernel_advisor.apply('shared_memory_type', 'sysv')}), 'pending restart', 'a change that needs a restart');
is(effect('pairs'), '', 'nothing to compare before the restart');
restart();
load(6, 0.01);
seconds_of_samples(28);
wait_for($node, q{SELECT (effect #>> '{comparison,pairs}')::int >= 8 FROM kernel_advisor.changes});
is(effect('comparable'), 'true', 'the same load');
is(effect('tps,verdict'), 'better', 'the throughput is better');
my $ratio = effect('tps,ratio');
ok($ratio > 1.4 && $ratio < 2.4, "by as much as the load is faster: $ratio");
ok(effect('tps,ratio_low') <= $ratio && $ratio <= effect('tps,ratio_high'), 'the ratio lies in its interval');
ok(effect('load_before,backends') >= 6 && effect('load_after,backends') >= 6, 'both loads are told');
like(effect('page_table_bytes,ratio'), qr/^\d/, 'page tables are compared');
like(effect('windows_before') . ' ' . effect('windows_after'), qr/^\d+ \d+$/, 'with the numbers of windows');

# Many more connections after the restart: not comparable, and that is said.
is($node->safe_psql('postgres', q{SELECT state FROM kernel_advisor.apply('shared_memory_type', 'mmap')}), 'pending restart', 'another change');
restart();
load(40, 0.02);
seconds_of_samples(12);
is(effect('comparable'), 'false', 'another load is not comparable');
is(effect('tps,verdict'), '', 'and there is no verdict');
is(int(effect('load_before,backends') / 10) . int(effect('load_after,backends') / 10), '04', 'what was different is told');
$pgbench->signal('INT');
eval { $pgbench->finish };
$node->stop;
done_testing();
