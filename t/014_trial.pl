# trial(): two values in turns, measured, and the old value back, whatever happens meanwhile.
#
# The kernel is a copy on files (FakeMachine): it stalls as long as vm.extfrag_threshold is below 1000.  The helper is a
# fake that writes those files (FakeHelper).  The throughput is real: a transaction of pgbench takes longer while the
# file says less than 1000.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FakeHelper;
use FakeMachine;
use IPC::Run;
use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $knob = 'vm.extfrag_threshold';
my $directory = PostgreSQL::Test::Utils::tempdir;
my $socket = PostgreSQL::Test::Utils::tempdir_short . '/helper';
my $root = "$directory/machine";

my $machine = FakeMachine->new(root => $root);
my $node = new_node('trial', <<"END");
kernel_advisor.machine_root = '$root'
kernel_advisor.helper_socket = '$socket'
kernel_advisor.helper_timeout = '2s'
restart_after_crash = on
checkpoint_timeout = '1h'
END
my $helper = FakeHelper->new(socket => $socket, root => $root);
my $file = $machine->sysctl_file('extfrag_threshold');
my $log_offset = 0;

$node->safe_psql('postgres', 'CREATE TABLE work (a int)');
append_to_file("$directory/transaction.sql", <<"END");
WITH w AS (INSERT INTO work VALUES (1))
SELECT pg_sleep(CASE WHEN pg_read_file('$file')::int >= 1000 THEN 0.01 ELSE 0.02 END), pg_stat_force_next_flush();
END
$machine->add_directory($node->data_dir . '/pg_wal');
$machine->stalls(60);

sub query { my ($query) = @_; return $node->safe_psql('postgres', $query); }
sub trial { my ($arguments) = @_; return query("SELECT trial_id FROM kernel_advisor.trial($arguments)"); }
sub newest { my ($columns) = @_; return query("SELECT $columns FROM kernel_advisor.trials ORDER BY trial_id DESC LIMIT 1"); }
sub wait_newest { my ($condition) = @_; wait_for($node, "SELECT $condition FROM kernel_advisor.trials ORDER BY trial_id DESC LIMIT 1"); return; }

sub sqlstate
{
	my ($query) = @_;
	my ($status, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$query", on_error_stop => 0);

	return $err =~ /ERROR:  (\w{5}): (.*)/ ? "$1 $2" : "no error: $out";
}

sub new_log
{
	my $log = log_since($node, $log_offset);

	$log_offset += length $log;
	return $log;
}

# Until the kernel has the value; whether it did.
sub kernel_has
{
	my ($value) = @_;
	my $end = time + 20;

	while (time < $end)
	{
		return 1 if $helper->value($knob) == $value;
		sleep(0.05);
	}
	return 0;
}

# A trial whose other value is in effect right now.
sub trial_in_its_middle
{
	my $id = trial("'$knob', '1000', '2 s', 200");

	die "trial $id: " . newest('state, detail') if !kernel_has(1000);
	return $id;
}

#
# An effect, and who may do what meanwhile.
#

my ($out, $err) = ('', '');
my $pgbench = IPC::Run::start([ 'pgbench', '-n', '-c', '6', '-T', '600', '-f', "$directory/transaction.sql",
		'-h', $node->host, '-p', $node->port, 'postgres' ], '>', \$out, '2>', \$err);
is(query("SELECT trial_id, subject, old, value, block, pairs, pairs_done, state, verdict, who = current_user, ended_at IS NULL, until > now()
	FROM kernel_advisor.trial('$knob', '1000', '2 s', 6)"),
	"1|$knob|500|1000|00:00:02|6|0|running|not enough data|t|t|t", 'trial() starts it and returns');
like(sqlstate("SELECT * FROM kernel_advisor.trial('vm.swappiness', '1')"), qr/^55006 trial 1 of "\Q$knob\E" is running/, 'never two at once');
like(sqlstate("SELECT * FROM kernel_advisor.apply('$knob', '900')"), qr/^55006 could not set "\Q$knob\E" to "900"/, 'its subject cannot be changed meanwhile');
is(query(q{SELECT state FROM kernel_advisor.status WHERE component = 'trial'}), 'running', 'status tells of it');
wait_newest('pairs_done >= 2');
is(newest('state, verdict, ratio > 1.2, ratio_low IS NULL'), 'running|not enough data|t|t', 'the view shows the progress');
wait_newest(q{state <> 'running'});
is(newest('state, pairs_done, verdict, old, detail IS NULL, hint IS NULL, ended_at > started_at, until IS NULL'),
	'finished|6|better|500|t|t|t|t', 'it finishes, with a verdict');
is(newest('ratio BETWEEN 1.3 AND 2.5, ratio_low <= ratio, ratio <= ratio_high, ratio_low > 1.1'), 't|t|t|t', 'the ratio is that of the two loads');
is($helper->value($knob), 500, 'the old value is back');
is($helper->persisted($knob), undef, 'and nothing is kept for the next boot');
my @sides = map { $_->{value} } $helper->requests(op => 'set');
is(scalar(grep { $_ == 1000 } @sides) >= 6 && scalar(grep { $_ == 500 } @sides) >= 6, 1, 'both values were set again and again');
is(query('SELECT count(*), count(DISTINCT measure) FROM kernel_advisor.trial_results WHERE trial_id = 1'), '10|10', 'all measures');
is(query(q{SELECT verdict, old_median BETWEEN 30 AND 90, new_median, pairs FROM kernel_advisor.trial_results WHERE measure = 'compact_stall_per_s'}),
	'better|t|0|6', 'stalls are gone with the new value');
is(query(q{SELECT verdict, pairs, ratio IS NULL FROM kernel_advisor.trial_results WHERE measure = 'direct_compact_us_per_s'}),
	'not enough data|0|t', 'what only the probe can see is not known without it');
my $log = new_log();
like($log, qr/LOG:  kernel advisor trial 1 of "\Q$knob\E": 500 and 1000 in turns, 6 pairs/, 'the log tells of the start');
like($log, qr/LOG:  kernel advisor trial 1 of "\Q$knob\E" has ended \(finished\), and its value is 500 again/, 'and of the end');
is(query('SELECT count(*) FROM kernel_advisor.changes'), 0, 'the change log is for changes that last');

# Stopped by hand; the same value twice is a trial, too.
is(query("SELECT trial_id, old, value FROM kernel_advisor.trial('$knob', '500', '2 s', 100)"), '2|500|500', 'a null trial');
wait_newest('pairs_done >= 1');
is(query('SELECT trial_id, state, ended_at IS NOT NULL, detail FROM kernel_advisor.trial_stop()'), '2|stopped|t|trial_stop() was called', 'trial_stop()');
like(sqlstate('SELECT * FROM kernel_advisor.trial_stop()'), qr/^55000 no trial is running/, 'nothing is left to be stopped');
$pgbench->signal('INT');
eval { $pgbench->finish };

#
# The ground changes under it.
#

trial_in_its_middle();
$helper->value($knob, 700);
wait_newest(q{state <> 'running'});
like(newest('state, detail'), qr/^failed\|somebody else set it to 700 meanwhile; .*left as it is/, 'somebody else sets the value: hands off');
is($helper->value($knob), 700, 'it is left alone');
$helper->value($knob, 500);

trial_in_its_middle();
query(q{SELECT * FROM kernel_advisor.apply('vm.swappiness', '11', persist => false)});
wait_newest(q{state <> 'running'});
like(newest('state, detail'), qr/^stopped\|"vm.swappiness" was changed meanwhile/, 'another change ends it');
is($helper->value($knob), 500, 'the old value is back');
like(sqlstate(q{SELECT * FROM kernel_advisor.rollback(1)}), qr/^no error/, 'changes can be taken back again');

#
# The helper fails.
#

trial_in_its_middle();
$helper->mode('hung', op => 'set');
wait_newest(q{state = 'restoring'});
like(newest('detail, hint'), qr/did not answer.*The value 500 is not back yet/, 'the helper hangs: the old value is not back, and the view says so');
is(query(q{SELECT state FROM kernel_advisor.status WHERE component = 'trial'}), 'restoring', 'status as well');
like(sqlstate("SELECT * FROM kernel_advisor.apply('$knob', '900')"), qr/^55006/, 'the subject is still taken');
like(sqlstate("SELECT * FROM kernel_advisor.trial('$knob', '900')"), qr/^55006 .* not back yet/, 'and there is no other trial');
$helper->mode('normal');
is(query('SELECT state, ended_at IS NOT NULL, hint IS NULL FROM kernel_advisor.trial_stop()'), 'failed|t|t', 'trial_stop() tries at once');
is($helper->value($knob), 500, 'the old value is back');
like(new_log(), qr/WARNING:  kernel advisor trial \d+ could not set "\Q$knob\E" back to 500/, 'the log told of it');

# Twice: where the next block has the same value as this one, nobody can tell.
trial_in_its_middle();
$helper->mode('lying', op => 'set', times => 2);
wait_newest('ended_at IS NOT NULL');
like(newest('state, detail'), qr/^failed\|kernel_advisord was asked for \d+, and the kernel shows \d+/, 'the helper lies');
is($helper->value($knob), 500, 'the old value is back');

$helper->down;
like(sqlstate("SELECT * FROM kernel_advisor.trial('$knob', '500')"), qr/^55000/, 'no helper, no trial');
like(sqlstate("SELECT * FROM kernel_advisor.trial('$knob', '1000')"), qr/^55000/, 'of another value neither');
$helper->up;

#
# The worker, or the server, is killed or stopped.
#

# A worker without a database is not in pg_stat_activity.
sub worker_pid { return (log_since($node) =~ /\[(\d+)\] kernel advisor trial LOG:  kernel advisor trial \d+ of .* in turns/g)[-1]; }

trial_in_its_middle();
kill 'TERM', worker_pid();
wait_newest('ended_at IS NOT NULL');
like(newest('state, detail'), qr/^interrupted\|the worker had to end/, 'the worker is told to end');
is($helper->value($knob), 500, 'it sets the old value back first');

my $id = trial_in_its_middle();
kill 'KILL', worker_pid();
$node->poll_query_until('postgres', "SELECT ended_at IS NOT NULL FROM kernel_advisor.trials WHERE trial_id = $id") or die 'no recovery';
is($helper->value($knob), 500, 'the worker is killed: after the crash the old value comes back');
like(newest('state, detail'), qr/^interrupted\|the server or the worker was killed/, 'and the view says so');
like(new_log(), qr/kernel advisor trial $id of "\Q$knob\E" has ended \(interrupted\), and its value is 500 again/, 'the log as well');

trial_in_its_middle();
my $start = time;
$node->stop('fast');
cmp_ok(time - $start, '<', 5, 'a fast stop is fast');
is($helper->value($knob), 500, 'and the old value is back before the server has ended');
$node->start;
is(newest('state, ended_at IS NOT NULL'), 'interrupted|t', 'the view after the start');

trial_in_its_middle();
$helper->mode('hung', op => 'set');
$start = time;
$node->stop('fast');
cmp_ok(time - $start, '<', 6, 'a fast stop is fast with a helper that hangs, too');
is($helper->value($knob), 1000, 'then the old value is not back');
$helper->mode('normal');
$node->start;
wait_newest('ended_at IS NOT NULL');
is($helper->value($knob), 500, 'but after the next start');

trial_in_its_middle();
my $worker = worker_pid();
my ($postmaster) = PostgreSQL::Test::Utils::slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
my $end = time + 20;
$node->kill9;
is(kernel_has(500), 1, 'the postmaster is killed: the worker notices');
sleep(0.1) while (kill(0, $postmaster) || kill(0, $worker)) && time < $end;
$node->start;
wait_newest('ended_at IS NOT NULL');
is(newest('state'), 'interrupted', 'and says so');

# A file that is damaged is none: said, and nothing fails.
$node->stop('fast');
my $trials = $node->data_dir . '/pg_stat_tmp/pg_kernel_advisor.trials';
open(my $damage, '+<', $trials) or die "$trials: $!";
seek($damage, 500, 0);
print $damage 'x';
close($damage);
$node->append_conf('postgresql.conf', 'max_worker_processes = 2');
$node->start;
is(query('SELECT count(*) FROM kernel_advisor.trials'), 0, 'a damaged file is ignored');
like(new_log(), qr/ignoring kernel advisor trials in .*: its checksum does not match/, 'with a line in the log');
like(sqlstate("SELECT * FROM kernel_advisor.trial('$knob', '1000')"), qr/^53400 there is no free background worker/, 'no room for a worker');
is(newest('state, ended_at IS NOT NULL, detail'), 'failed|t|there was no free background worker', 'which ends the trial');
is($helper->value($knob), 500, 'before anything was changed');

#
# A standby, and its promotion.
#

$node->append_conf('postgresql.conf', 'max_worker_processes = 8');
$node->restart;
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
is($standby->safe_psql('postgres', 'SELECT count(*) FROM kernel_advisor.trials'), 0, 'a standby does not believe that it made the trials');
$standby->safe_psql('postgres', "SELECT * FROM kernel_advisor.trial('$knob', '1000', '2 s', 100)");
is(kernel_has(1000), 1, 'a trial on a standby');
$standby->promote;
wait_for($standby, 'SELECT ended_at IS NOT NULL FROM kernel_advisor.trials');
is($standby->safe_psql('postgres', 'SELECT state, detail FROM kernel_advisor.trials'), 'stopped|the server was promoted', 'is stopped by its promotion');
is($helper->value($knob), 500, 'and the old value is back');
$standby->stop('immediate');

unlike(log_since($node), qr/PANIC|TRAP/, 'nothing broke');
$helper->stop;
$machine->stop;
done_testing();
