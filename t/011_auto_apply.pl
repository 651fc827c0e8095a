# auto_apply: a change that helps is kept, one that hurts is taken back, and nothing in between is left lying about.
#
# The kernel is a copy on files (FakeMachine): it stalls as long as vm.extfrag_threshold is below 1000, so the advice is
# the rules' own, measured by the sampler.  The helper is a fake that writes those files (FakeHelper).  The throughput
# is real: each transaction of pgbench takes as long as the table "effect" says for the value that the file has now.

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
my $node = new_node('auto', <<"END");
kernel_advisor.machine_root = '$root'
kernel_advisor.helper_socket = '$socket'
kernel_advisor.helper_timeout = '2s'
synchronous_commit = off
restart_after_crash = on
END
my $helper = FakeHelper->new(socket => $socket, root => $root);
my $file = $machine->sysctl_file('extfrag_threshold');
my $pgbench;
my $log_offset = 0;

$node->safe_psql('postgres', q{
	CREATE TABLE effect (before_s float8, after_s float8);
	INSERT INTO effect VALUES (0.02, 0.02);
	CREATE TABLE work (a int)});
append_to_file("$directory/transaction.sql", <<"END");
WITH w AS (INSERT INTO work VALUES (1))
SELECT pg_sleep(CASE WHEN pg_read_file('$file')::int >= 1000 THEN after_s ELSE before_s END), pg_stat_force_next_flush()
FROM effect;
END
$machine->add_directory($node->data_dir . '/pg_wal');    # storage is looked up on the machine as well
$machine->stalls(60);

sub start_load
{
	my ($server, $script) = @_;
	my ($out, $err) = ('', '');

	$server //= $node;
	$script //= 'transaction.sql';
	$pgbench = IPC::Run::start([ 'pgbench', '-n', '-c', '6', '-T', '600', '-f', "$directory/$script",
			'-h', $server->host, '-p', $server->port, 'postgres' ], '>', \$out, '2>', \$err);
	return;
}

sub stop_load
{
	return if !$pgbench;
	$pgbench->signal('INT');
	eval { $pgbench->finish };
	$pgbench = undef;
	return;
}

# How long a transaction takes at the old and at the new value.
sub effect
{
	my ($before, $after) = @_;

	$node->safe_psql('postgres', "UPDATE effect SET before_s = $before, after_s = $after");
	return;
}

# Time enough for a rate, and a checkpoint.
sub cycle
{
	sleep(2.2);
	$node->safe_psql('postgres', 'CHECKPOINT');
	wait_for($node, q{SELECT wal_bytes IS NOT NULL FROM kernel_advisor.checkpoints ORDER BY checkpoint_id DESC LIMIT 1});
	return;
}

sub truth { my ($query) = @_; return $node->safe_psql('postgres', $query) eq 't'; }

# Checkpoints until a query says true; their number, or undef after too many.
sub cycles_until
{
	my ($query, $most) = @_;

	foreach my $n (0 .. $most)
	{
		my $end = time + 0.6;    # a step takes a few ms, and is launched by the next sample

		while (time < $end)
		{
			return $n if truth($query);
			sleep(0.1);
		}
		cycle() if $n < $most;
	}
	note($node->safe_psql('postgres', q{
		SELECT * FROM kernel_advisor.status;
		SELECT * FROM kernel_advisor.changes;
		SELECT subject, severity, recommended, confidence, activation, reason FROM kernel_advisor.advice}));
	return;
}

sub status
{
	return $node->safe_psql('postgres', q{SELECT state, detail FROM kernel_advisor.status WHERE component = 'auto_apply'});
}

sub in_state
{
	my ($state, $detail) = @_;

	return "SELECT state = '$state' AND detail ~ '" . ($detail // '') . q{' FROM kernel_advisor.status WHERE component = 'auto_apply'};
}

sub new_log
{
	my $log = log_since($node, $log_offset);

	$log_offset += length $log;
	return $log;
}

sub auto_apply
{
	my ($value) = @_;

	$node->append_conf('postgresql.conf', "kernel_advisor.auto_apply = $value");
	$node->reload;
	return;
}

sub release
{
	my ($release) = @_;
	my $name = "$root/proc/sys/kernel/osrelease";

	unlink($name);
	append_to_file($name, "$release\n");
	return;
}

# As it was: nothing applied, nothing remembered but the samples, and a load that is measured anew.
sub afresh
{
	stop_load();
	auto_apply('off');
	$node->stop('fast');
	unlink($node->data_dir . '/pg_stat_tmp/pg_kernel_advisor.changes');
	$helper->forget;
	$helper->up;
	$helper->value($knob, 500);
	release('6.18.44');
	$node->start;
	auto_apply('safe');
	effect(@_);
	start_load();
	new_log();
	return;
}

my $changed = qq{SELECT count(*) > 0 FROM kernel_advisor.changes WHERE subject = '$knob' AND action = 'set'};
my $state = qq{SELECT string_agg(action || ' ' || state, ', ' ORDER BY change_id) FROM kernel_advisor.changes};

#
# Off: advice, and nobody who acts on it.
#
start_load();
ok(defined cycles_until(qq{SELECT count(*) = 1 FROM kernel_advisor.advice WHERE subject = '$knob'
	AND severity = 'warning' AND confidence = 'measured here' AND activation = 'none' AND recommended = '1000'}, 4),
	'the rules speak about the stalls that were measured');
cycle() foreach 1 .. 3;
like(status(), qr/^off\|/, 'off is the default');
is(scalar(grep { $_->{op} !~ /^(get|estimate|list)$/ } $helper->requests), 0, 'and nobody asks the helper for a change');
stop_load();

#
# Better: set, watched over a crash of the server, kept and persisted.
#
afresh(0.03, 0.01);
my $obstacle = $node->data_dir . '/pg_stat_tmp/pg_kernel_advisor.changes.tmp';
mkdir $obstacle or die "$obstacle: $!";
ok(defined cycles_until(in_state('failing', 'could not write'), 7), 'a change that cannot be logged is not made');
is($helper->value($knob), 500, 'the kernel was not asked');
rmdir $obstacle;
ok(defined cycles_until($changed, 7), 'with a baseline the advice is applied');
is($helper->value($knob), 1000, 'the kernel has the value');
is($helper->persisted($knob), undef, 'the file for the next boot does not have it yet');
is($node->safe_psql('postgres', qq{SELECT subject, who, old, asked, verified FROM kernel_advisor.changes}),
	"$knob|auto_apply|500|1000|1000", 'the change is in the log');
ok(defined cycles_until(in_state('watching', "$knob.*500 to 1000"), 1), 'status says that it is watched');
my ($status, $out, $err) = $node->psql('postgres', q{SELECT * FROM kernel_advisor.trial('vm.swappiness', '1')});
like($err, qr/auto_apply watches change \d+ of "\Q$knob\E"/, 'and there is no trial meanwhile');
like(new_log(), qr/LOG:  kernel advisor auto-apply has set "\Q$knob\E" from 500 to 1000/, 'the server log says it');
is(scalar(grep { !($_->{flags} & FakeHelper::DRY_RUN) } $helper->requests(op => 'set')), 1, 'the helper was asked once');

# The history is written by the end of the sampler; then everything is killed.
my $sampler = sampler_pid($node);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($sampler)");
wait_for($node, qq{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'kernel advisor sampler' AND pid <> $sampler});
my $victim = $node->background_psql('postgres');
kill 'KILL', $victim->query_safe('SELECT pg_backend_pid()');
eval { $victim->quit };
stop_load();
$node->poll_query_until('postgres', 'SELECT true') or die 'no recovery';
wait_for($node, q{SELECT state = 'running' FROM kernel_advisor.status WHERE component = 'sampler'});
start_load();
$helper->mode('lost', op => 'persist', times => 1);
ok(defined cycles_until(in_state('cannot keep', $knob), 6), 'after a crash another worker goes on; what cannot be persisted is tried again');
ok(defined cycles_until(in_state('waiting', 'kept change'), 2), 'and it is kept');
is($helper->persisted($knob), 1000, 'and persisted');
is($helper->value($knob), 1000, 'and still in effect');
like(new_log(), qr/auto-apply keeps "\Q$knob\E" at 1000.*\n.*better: tps_outside was \S+ 1\/s before and is \S+ 1\/s after/,
	'the log has the figures');
is($node->safe_psql('postgres', $state), 'set applied, set unknown outcome, set unchanged', 'the persisting is in the log of changes');
like($node->safe_psql('postgres', q{SELECT detail FROM kernel_advisor.changes ORDER BY change_id LIMIT 1}), qr/^better: /,
	'and the verdict');
my $sets = scalar($helper->requests(op => 'set'));
cycle() foreach 1 .. 5;
is(scalar($helper->requests(op => 'set')), $sets, 'and that was all');

#
# Worse: taken back as soon as the helper is there again, and not tried again.
#
afresh(0.01, 0.06);
ok(defined cycles_until($changed, 7), 'worse: applied');
$helper->down;
ok(defined cycles_until(in_state('cannot roll back', "$knob"), 4), 'without the helper it cannot be taken back, and status says so');
my $log = new_log();
like($log, qr/WARNING:  kernel advisor auto-apply cannot roll back "\Q$knob\E"/, 'nor does the log keep it to itself');
is($helper->value($knob), 1000, 'it is still in effect');
$helper->up;
effect(0.01, 0.01);    # by now all is well, but the verdict stands
ok(defined cycles_until(in_state('waiting', 'rolled back change'), 3), 'with the helper back it is taken back');
is($helper->value($knob), 500, 'the old value is in effect');
is($helper->persisted($knob), undef, 'nothing was persisted');
is($node->safe_psql('postgres', $state), 'set rolled back, rollback applied', 'the log of changes has both');
like(new_log(), qr/auto-apply has set "\Q$knob\E" back from 1000 to 500.*\n.*worse: tps_outside was/, 'the server log says why');
$helper->down; $helper->up;
ok(defined cycles_until(in_state('waiting', "not $knob: it made things worse"), 7), 'status remembers it');
is($node->safe_psql('postgres', $state), 'set rolled back, rollback applied', 'it is not tried again');

# Another kernel is another chance; and then a person takes it back.
release('6.18.99-test');
ok(defined cycles_until(qq{SELECT count(*) = 2 FROM kernel_advisor.changes WHERE action = 'set'}, 2), 'on another kernel it is tried again');
$node->safe_psql('postgres', q{SELECT * FROM kernel_advisor.rollback((SELECT max(change_id) FROM kernel_advisor.changes))});
is($helper->value($knob), 500, 'taken back by hand');
ok(defined cycles_until(in_state('waiting', 'somebody took it back'), 2), 'it is no longer watched');
ok(defined cycles_until(in_state('waiting', "not $knob: a person took it back"), 7), 'and left alone');
release('6.18.100-test');
cycle() foreach 1 .. 2;
is($helper->value($knob), 500, 'on any kernel');

#
# Switched off while watching.
#
afresh(0.02, 0.02);
ok(defined cycles_until($changed, 7), 'off while watching: applied');
auto_apply('off');
ok(defined cycles_until(in_state('waiting', 'rolled back.*switched off') =~ s/state = 'waiting'/state IN ('waiting', 'off')/r, 2),
	'off while watching: rolled back');
is($helper->value($knob), 500, 'what was not proven is gone');
ok(defined cycles_until(in_state('off'), 2), 'and then it is off');

#
# A person acts meanwhile.
#
afresh(0.02, 0.02);
ok(defined cycles_until($changed, 7), 'by hand meanwhile: applied');
$node->safe_psql('postgres', qq{SELECT * FROM kernel_advisor.apply('$knob', '700', persist => false)});
ok(defined cycles_until(in_state('waiting', 'somebody changed it'), 2), 'by hand meanwhile: hands off');
ok(defined cycles_until(in_state('waiting', 'another value'), 7), 'and for good');
is($helper->value($knob), 700, 'the value is the person\'s');

#
# Something else is changed meanwhile.
#
afresh(0.02, 0.02);
ok(defined cycles_until($changed, 7), 'another change meanwhile: applied');
$node->safe_psql('postgres', q{SELECT * FROM kernel_advisor.apply('vm.swappiness', '10', persist => false)});
ok(defined cycles_until(in_state('waiting', 'rolled back.*something else'), 2), 'another change meanwhile: rolled back, since the two could not be told apart');
is($helper->value($knob), 500, 'the old value is back');
is($helper->value('vm.swappiness'), 10, 'the other change is the person\'s');

#
# A restart meanwhile.
#
afresh(0.02, 0.02);
ok(defined cycles_until($changed, 7), 'restart meanwhile: applied');
stop_load();
$node->restart;
ok(defined cycles_until(in_state('waiting', 'rolled back.*restarted'), 1), 'restart meanwhile: rolled back without any checkpoint');
is($helper->value($knob), 500, 'the old value is back');

#
# The load ends: no verdict.
#
afresh(0.02, 0.02);
ok(defined cycles_until($changed, 7), 'idle: applied');
stop_load();
$node->safe_psql('postgres', 'CHECKPOINT') foreach 1 .. 11;
ok(truth(in_state('watching')), 'idle: still watching') or note(status());
is(cycles_until(in_state('waiting', 'no verdict'), 4) ? 1 : 0, 1, 'idle: after long enough it is taken back');
is($helper->value($knob), 500, 'the old value is back');
ok(defined cycles_until(in_state('waiting', 'idle'), 2), 'and on an idle server nothing is tried');

#
# A helper that hangs, and one that lies.
#
afresh(0.02, 0.02);
$helper->mode('hung');
ok(defined cycles_until(in_state('waiting', "not $knob: "), 9), 'a helper that hangs: nothing was changed');
is($node->safe_psql('postgres', q{SELECT max(interval_ms) < 2000 FROM kernel_advisor.samples
	WHERE at > clock_timestamp() - interval '10 s'}), 't', 'and sampling went on all the time');
is($node->safe_psql('postgres', q{SELECT count(*) FROM kernel_advisor.changes}), '0', 'nor is there a record of each attempt');

$node->append_conf('postgresql.conf', q{kernel_advisor.helper_timeout = '60s'});
$node->reload;
my $hung = scalar($helper->requests);
cycle();
my $end = time + 10;
sleep(0.1) until scalar($helper->requests) > $hung || time > $end;
cmp_ok(scalar($helper->requests), '>', $hung, 'a worker waits for an answer');
my $begin = time;
$node->stop('fast');
cmp_ok(time - $begin, '<', 2, 'and holds up no fast stop');
$node->append_conf('postgresql.conf', q{kernel_advisor.helper_timeout = '2s'});
$helper->mode('normal');
$node->start;
stop_load();
start_load();

$helper->mode('lying', op => 'set');
ok(defined cycles_until($changed, 7), 'a helper that lies is tried');
like(new_log(), qr/WARNING:  kernel advisor auto-apply could not set "\Q$knob\E" to 1000/, 'and not believed');
cycle() foreach 1 .. 5;
is($node->safe_psql('postgres', q{SELECT count(*) FROM kernel_advisor.changes}), '1', 'nor tried at every checkpoint');
stop_load();

#
# A standby, which is promoted while it watches.
#
auto_apply('off');
$helper->forget;
$helper->value($knob, 500);
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'kernel_advisor.auto_apply = safe');
$machine->add_directory($standby->data_dir . '/pg_wal');
$standby->start;
append_to_file("$directory/query.sql", "SELECT pg_sleep(0.02), pg_stat_force_next_flush() FROM effect;\n");
start_load($standby, 'query.sql');
foreach my $n (1 .. 7)
{
	my $before = $standby->safe_psql('postgres', 'SELECT count(*) FROM kernel_advisor.checkpoints WHERE wal_bytes IS NOT NULL');

	last if $standby->safe_psql('postgres', $changed) eq 't';
	sleep(2.2);
	$node->safe_psql('postgres', 'CHECKPOINT');
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
	$standby->safe_psql('postgres', 'CHECKPOINT');
	wait_for($standby, "SELECT count(*) > $before FROM kernel_advisor.checkpoints WHERE wal_bytes IS NOT NULL");
	sleep(0.5);
}
is($standby->safe_psql('postgres', $state), 'set applied', 'a standby applies it, and logs it without a table');
$standby->promote;
$standby->safe_psql('postgres', 'CREATE TABLE promoted (a int)');
$standby->safe_psql('postgres', 'CHECKPOINT') foreach 1 .. 2;
wait_for($standby, q{SELECT count(*) = 1 FROM kernel_advisor.changes WHERE state = 'rolled back' AND detail ~ 'promoted'});
is($helper->value($knob), 500, 'promoted before there is a verdict, it takes the change back');
stop_load();
$standby->stop;

#
# No room for a worker.
#
$node->append_conf('postgresql.conf', "max_worker_processes = 1\nmax_logical_replication_workers = 0\nkernel_advisor.auto_apply = safe");
$node->restart;
ok(defined cycles_until(in_state('no worker', 'no free background worker'), 2), 'without a worker status says so');
my @lines = new_log() =~ /(auto-apply has no free background worker)/g;
is(scalar(@lines), 1, 'and the log once');
is($node->safe_psql('postgres', q{SELECT state FROM kernel_advisor.status WHERE component = 'sampler'}), 'running', 'sampling goes on');

done_testing();
