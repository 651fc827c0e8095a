# apply(), rollback() and changes, with a helper that does what it should, and one that does not.
#
# The kernel is a copy on files (FakeMachine), which the server reads by itself; the helper is a fake that writes those
# files (FakeHelper) and misbehaves on demand.  Whatever it does, the server says so and goes on.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FakeHelper;
use FakeMachine;
use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $knob = 'vm.extfrag_threshold';
my $directory = PostgreSQL::Test::Utils::tempdir;
my $socket = PostgreSQL::Test::Utils::tempdir_short . '/helper';
my $root = "$directory/machine";

my $node = new_node('apply', <<"END");
kernel_advisor.machine_root = '$root'
kernel_advisor.helper_socket = '$socket'
kernel_advisor.helper_timeout = '1min'
END
my $machine = FakeMachine->new(root => $root, data => $node->data_dir);
my $helper = FakeHelper->new(socket => $socket, root => $root);
my $old = $helper->value($knob);
my $changes = $node->data_dir . '/pg_stat_tmp/pg_kernel_advisor.changes';

# The error of a query: { state, message, detail, hint }, and how long it took.
sub failure
{
	my ($query, %options) = @_;
	my $start = time;
	my ($status, $out, $err) = ($options{node} // $node)->psql('postgres', "\\set VERBOSITY verbose\n$query", on_error_stop => 0);
	my %error = (took => time - $start, all => $err);

	@error{qw(state message)} = ($1, $2) if $err =~ /ERROR:  (\w{5}): (.*)/;
	$error{lc $1} = $2 while $err =~ /^(DETAIL|HINT):  (.*)/mg;
	return \%error;
}

# The server is as well as before.
sub unharmed
{
	my ($what) = @_;

	is($node->safe_psql('postgres', 'SELECT 1'), 1, "$what: the next query works");
	unlike(log_since($node), qr/PANIC|TRAP|terminated by signal|server process .* exited/, "$what: no process died");
	return;
}

sub row { my ($query, $columns) = @_; return $node->safe_psql('postgres', "SELECT $columns FROM $query"); }
sub last_change { my ($columns) = @_; return row('kernel_advisor.changes ORDER BY change_id DESC LIMIT 1', $columns); }

#
# A helper that does what it should.
#

# A dry run asks for nothing that changes anything.
my @before = map { PostgreSQL::Test::Utils::slurp_file("$root/proc/sys/vm/$_") } qw(extfrag_threshold nr_hugepages swappiness);
is(row("kernel_advisor.apply('$knob', '1000', dry_run => true)", 'change_id IS NULL, old, asked, state'),
	"t|$old|1000|dry run", 'a dry run tells what would happen');
is(row(q{kernel_advisor.apply('vm.nr_hugepages', '20', dry_run => true)}, 'change_id IS NULL, asked, state'),
	't|20|dry run', 'of a reservation as well');
is(row(q{kernel_advisor.apply('max_wal_size', '3GB', dry_run => true)}, 'change_id IS NULL, state'), 't|dry run', 'and of a setting');
is_deeply([ map { PostgreSQL::Test::Utils::slurp_file("$root/proc/sys/vm/$_") } qw(extfrag_threshold nr_hugepages swappiness) ],
	\@before, 'the kernel is bit by bit as it was');
is(scalar $helper->changes, 0, 'the helper made no change');
is(row('kernel_advisor.changes', 'count(*)'), 0, 'the log has none');
ok(!-e $changes, 'nor is there a file');
unlike(PostgreSQL::Test::Utils::slurp_file($node->data_dir . '/postgresql.auto.conf'), qr/max_wal_size/, 'nor is the setting written');

# Set, kept for the next boot, verified, in the log; and back.
is(row("kernel_advisor.apply('$knob', '1000')", 'old, asked, granted, verified, state, persisted_in, who = current_user'),
	"$old|1000|1000|1000|applied|/etc/sysctl.d/60-kernel-advisor.conf|t", 'apply sets and verifies');
is($helper->value($knob), 1000, 'the kernel has it');
is($helper->persisted($knob), 1000, 'and the file for the next boot');
my $first = last_change('change_id');
is(row("kernel_advisor.rollback($first)", 'action, old, asked, granted, verified, state'), "rollback|1000|$old|$old|$old|applied", 'rollback');
is($helper->value($knob), $old, 'the kernel has the old value');
is($helper->persisted($knob), undef, 'and the file for the next boot says nothing again');
is(row("kernel_advisor.changes WHERE change_id = $first", 'state'), 'rolled back', 'the log says so');
my $error = failure("SELECT * FROM kernel_advisor.rollback($first)");
is($error->{state}, '55000', 'a second rollback is an error');
like($error->{detail}, qr/rolled back already/, 'that says why');
is(failure('SELECT * FROM kernel_advisor.rollback(4711)')->{state}, '22023', 'as is that of a change that never was');

# The value is another one by now.
row("kernel_advisor.apply('$knob', '900', persist => false)", 1);
my $superseded = last_change('change_id');
$helper->value($knob, 700);
is(row("kernel_advisor.changes WHERE change_id = $superseded", 'verified, state'), '700|superseded', 'somebody else set it meanwhile');
$error = failure("SELECT * FROM kernel_advisor.rollback($superseded)");
is("$error->{state} " . $helper->value($knob), '55000 700', 'what others set is not rolled back');
$helper->value($knob, $old);

# A pool that is granted in part: the row says so, and what to do; dependents are skipped.
$helper->limit('vm.nr_hugepages', 7);
is(row(q{kernel_advisor.apply('vm.nr_hugepages', '20', persist => false)}, 'action, asked, granted, verified, state'),
	'reserve|20|7|7|partial', 'a shortage: asked and granted');
like(last_change('hint'), qr/\w/, 'and a remedy');
$error = failure(q{SELECT * FROM kernel_advisor.apply('huge_pages', 'on')});
is($error->{state}, '55000', 'huge_pages = on is refused while the pool is not large enough');
like($error->{detail}, qr/page/, 'with the numbers');
unlike(PostgreSQL::Test::Utils::slurp_file($node->data_dir . '/postgresql.auto.conf'), qr/huge_pages/, 'and not written');
is(row('kernel_advisor.rollback(' . last_change('change_id') . ')', 'granted'), 0, 'rollback of the part');

# Settings of the server: absent before, and present before.
is(row(q{kernel_advisor.apply('max_wal_size', '3GB')}, 'action, old, asked, state, persisted_in'),
	'alter system|128MB|3GB|applied|postgresql.auto.conf', 'a setting is written and reloaded');
wait_for($node, q{SELECT current_setting('max_wal_size') = '3GB'});
my $setting = last_change('change_id');
row(q{kernel_advisor.apply('max_wal_size', '4GB')}, 1);
my $again = last_change('change_id');
wait_for($node, q{SELECT current_setting('max_wal_size') = '4GB'});
is(failure("SELECT * FROM kernel_advisor.rollback($setting)")->{state}, '55000', 'the first is not rolled back before the second');
is(row("kernel_advisor.rollback($again)", 'asked'), '3GB', 'a value that was there comes back');
wait_for($node, q{SELECT current_setting('max_wal_size') = '3GB'});
is(row("kernel_advisor.rollback($setting)", 'asked IS NULL'), 't', 'one that was not there is taken out');
wait_for($node, q{SELECT current_setting('max_wal_size') = '128MB'});
unlike(PostgreSQL::Test::Utils::slurp_file($node->data_dir . '/postgresql.auto.conf'), qr/max_wal_size/, 'of the file');

#
# Who may.
#

$node->safe_psql('postgres', q{
	CREATE ROLE nobody LOGIN;
	CREATE ROLE operator LOGIN;
	GRANT USAGE ON SCHEMA kernel_advisor TO nobody, operator;
	GRANT pg_monitor TO nobody;
	GRANT EXECUTE ON FUNCTION kernel_advisor.apply(text, text, boolean, boolean), kernel_advisor.rollback(bigint) TO operator});
is(failure("SET ROLE nobody; SELECT * FROM kernel_advisor.apply('$knob', '1000')")->{state}, '42501', 'apply is for those who are granted it');
is(failure("SET ROLE nobody; SELECT * FROM kernel_advisor.rollback(1)")->{state}, '42501', 'and so is rollback');
is($helper->value($knob), $old, 'nothing was set');
$error = failure(q{SET ROLE operator; SELECT * FROM kernel_advisor.apply('max_wal_size', '5GB')});
is($error->{state}, '42501', 'a setting needs the right to ALTER SYSTEM as well');
like($error->{hint}, qr/GRANT ALTER SYSTEM/, 'the hint has the command');
is($node->safe_psql('postgres', "SELECT state, who FROM kernel_advisor.apply('$knob', '800', persist => false)", extra_params => [ '-U', 'operator' ]),
	'applied|operator', 'a knob needs the first only, and the log knows who');
my $others = last_change('change_id');
is($node->safe_psql('postgres', "SET ROLE operator; SELECT granted FROM kernel_advisor.rollback($others)"), $old, 'and may be taken back');

#
# A helper that does not do what it should: an error with a code and a hint, and nothing else.
#

my %trouble = (
	garbage => [ '58000', qr/does not speak the protocol/, qr/Install the kernel_advisord/ ],
	short => [ '58000', qr/does not speak the protocol/, qr/Install/ ],
	version => [ '58000', qr/does not speak the protocol/, qr/Install/ ],
	close => [ '58000', qr/closed the connection/, qr/log/ ],
	DENIED => [ '42501', qr/allowed users/, qr/allowed_users/ ],
	RATE => [ '55000', qr/Too many changes/, qr/changes_per_hour/ ],
	AVAILABLE => [ '55000', qr/min_available/, qr/Ask for less/ ],
	JOURNAL_FULL => [ '58000', qr/journal is full/, qr/Restart kernel_advisord/ ],
);

foreach my $mode (sort keys %trouble)
{
	my ($state, $detail, $hint) = @{ $trouble{$mode} };

	$helper->mode($mode);
	$error = failure("SELECT * FROM kernel_advisor.apply('$knob', '1000', persist => false)");
	is($error->{state}, $state, "$mode: SQLSTATE");
	like($error->{detail} // '', $detail, "$mode: the reason");
	like($error->{hint} // '', $hint, "$mode: what to do");
	cmp_ok($error->{took}, '<', 5, "$mode: at once");
	is($helper->value($knob), $old, "$mode: the kernel is as it was");
}
unharmed('a helper that misbehaves');

# It closes while it works: the answer is lost, the value is not; the log knows, and rollback finds it.
$helper->mode('normal');
$helper->mode('lost', op => 'set', times => 1);
$error = failure("SELECT * FROM kernel_advisor.apply('$knob', '1000', persist => false)");
is($error->{state}, '58000', 'an answer that is lost is an error');
like($error->{detail}, qr/The kernel shows 1000/, 'that tells what the kernel has');
is(last_change('state, verified'), 'unknown outcome|1000', 'the log does not pretend to know');
is(row('kernel_advisor.rollback(' . last_change('change_id') . ')', 'granted'), $old, 'it can be rolled back all the same');
is($helper->value($knob), $old, 'and is');

# It lies about the value: the server has looked itself.
$helper->mode('lying');
$error = failure("SELECT * FROM kernel_advisor.apply('$knob', '1000', persist => false)");
is($error->{state}, '58000', 'a lie is an error');
like("$error->{detail}", qr/$old/, 'with the value that the kernel has');
is(last_change('granted, verified, state'), "1000|$old|failed", 'the log has both');
$error = failure(q{SELECT * FROM kernel_advisor.apply('vm.nr_hugepages', '50', persist => false)});
is($error->{state}, '58000', 'a lie about a pool is one, too');
unharmed('a helper that lies');

# Gone, and silent.
$helper->mode('normal');
$helper->down;
$error = failure("SELECT * FROM kernel_advisor.apply('$knob', '1000')");
is($error->{state}, '55000', 'absent: SQLSTATE');
like($error->{hint}, qr/systemctl enable --now kernel_advisord.socket/, 'absent: what to do');
is($node->safe_psql('postgres', q{SELECT state FROM kernel_advisor.status WHERE component = 'helper'}), 'absent', 'status says so');
$helper->up;
is($node->safe_psql('postgres', q{SELECT state FROM kernel_advisor.status WHERE component = 'helper'}), 'available', 'and when it is back');

$helper->mode('hung', op => 'set');
my $logged = row('kernel_advisor.changes', 'count(*)');
$error = failure("SET statement_timeout = '300ms'; SELECT * FROM kernel_advisor.apply('$knob', '1000')");
is($error->{state}, '57014', 'hung: statement_timeout ends the wait');
cmp_ok($error->{took}, '<', 10, 'hung: promptly');
$node->safe_psql('postgres', $_) foreach q{ALTER SYSTEM SET kernel_advisor.helper_timeout = '300ms'}, 'SELECT pg_reload_conf()';
wait_for($node, q{SELECT current_setting('kernel_advisor.helper_timeout') = '300ms'});
$error = failure("SELECT * FROM kernel_advisor.apply('$knob', '1000')");
is($error->{state}, '58000', 'hung: and so does the helper\'s own timeout');
like($error->{detail}, qr/did not answer in time/, 'hung: the reason');
cmp_ok($error->{took}, '<', 10, 'hung: promptly');

$node->safe_psql('postgres', $_) foreach q{ALTER SYSTEM RESET kernel_advisor.helper_timeout}, 'SELECT pg_reload_conf()';
wait_for($node, q{SELECT current_setting('kernel_advisor.helper_timeout') = '1min'});
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_until(qr/waits/, "\\echo waits\nSELECT * FROM kernel_advisor.apply('$knob', '1000');\n");
wait_for($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'SELECT * FROM kernel_advisor.apply%' AND state = 'active' AND wait_event_type = 'Extension'});
my $start = time;
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT * FROM kernel_advisor.apply%' AND state = 'active'});
wait_for($node, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'SELECT * FROM kernel_advisor.apply%' AND state = 'active'});
cmp_ok(time - $start, '<', 10, 'hung: pg_cancel_backend ends it promptly');
$session->quit;
is(row("kernel_advisor.changes WHERE state = 'in progress'", 'count(*)'), 0, 'none of them is in progress for ever');
cmp_ok(row('kernel_advisor.changes', 'count(*)'), '>', $logged, 'and the log has them');
$helper->mode('normal');
unharmed('a helper that hangs');

# No descriptor is left behind by a hundred failures of each kind.  The session's first failure opens files of the
# catalogs, which stay open.
foreach my $mode (qw(close garbage DENIED lost))
{
	$helper->mode($mode);
	my $counts = $node->safe_psql('postgres', qq{
		CREATE TEMP TABLE fds (n bigint);
		DO \$\$
		BEGIN
			FOR i IN 1..101 LOOP
				IF i IN (2, 101) THEN
					INSERT INTO fds SELECT count(*) FROM pg_ls_dir('/proc/self/fd');
				END IF;
				BEGIN
					PERFORM kernel_advisor.apply('$knob', (500 + i)::text, dry_run => true);
				EXCEPTION WHEN OTHERS THEN
					NULL;
				END;
			END LOOP;
		END\$\$;
		SELECT max(n) - min(n) FROM fds});
	cmp_ok($counts, '<=', 1, "$mode: a hundred failures leave no descriptor behind");
}
$helper->mode('normal');

#
# Two sessions at once.
#

my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1, 2;
my $count = row('kernel_advisor.changes', 'count(*)');
foreach my $i (1 .. 10)
{
	my $value = 500 + 10 * $i;

	$_->query_until(qr/asked/, "SELECT state FROM kernel_advisor.apply('" . ($_ == $sessions[0] ? $knob : 'vm.swappiness') . "', '" . ($_ == $sessions[0] ? $value : $i) . "', persist => false);\n\\echo asked\n")
		foreach @sessions;
}
$_->quit foreach @sessions;
is(row('kernel_advisor.changes', 'count(*)'), $count + 20, 'two sessions at once: every change is in the log');
is(row('kernel_advisor.changes', 'count(DISTINCT change_id) = count(*)'), 't', 'each with a number of its own');
is($helper->value($knob) . ' ' . $helper->value('vm.swappiness'), '600 10', 'the last values are in effect');

#
# The log of changes outlives the server; a standby has its own.
#

my $log = row('kernel_advisor.changes', 'array_agg((change_id, at, who, subject, action, old, asked, granted) ORDER BY change_id)');
$node->restart;
is(row('kernel_advisor.changes', 'array_agg((change_id, at, who, subject, action, old, asked, granted) ORDER BY change_id)'), $log, 'the log survives a restart');
$node->stop('immediate');
$node->start;
is(row('kernel_advisor.changes', 'array_agg((change_id, at, who, subject, action, old, asked, granted) ORDER BY change_id)'), $log, 'and a crash');

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery(), count(*) FROM kernel_advisor.changes'), 't|0', 'a standby begins with a log of its own');
is($standby->safe_psql('postgres', "SELECT state, verified FROM kernel_advisor.apply('$knob', '1000', persist => false)"), 'applied|1000', 'on a standby: a knob');
is($standby->safe_psql('postgres', q{SELECT state FROM kernel_advisor.apply('max_wal_size', '6GB')}), 'applied', 'and a setting');
wait_for($standby, q{SELECT current_setting('max_wal_size') = '6GB'});
is($standby->safe_psql('postgres', 'SELECT string_agg(subject, $$ $$ ORDER BY change_id) FROM kernel_advisor.changes'), "$knob max_wal_size", 'its log is kept without tables');
$standby->restart;
is($standby->safe_psql('postgres', 'SELECT count(*) FROM kernel_advisor.changes'), 2, 'and survives its restart');
$standby->safe_psql('postgres', 'SELECT kernel_advisor.rollback(change_id) FROM kernel_advisor.changes ORDER BY change_id DESC');
is($helper->value($knob), 600, 'and is good for a rollback');
wait_for($standby, q{SELECT current_setting('max_wal_size') <> '6GB'});
$standby->stop;

# A damaged log is ignored with a line in the server's log, and a new one begun.
$node->stop;
my $good = PostgreSQL::Test::Utils::slurp_file($changes);
my %broken = ('half a file' => substr($good, 0, length($good) / 2), 'an empty file' => '', 'a foreign file' => 'PGDMP' . substr($good, 5));
substr($broken{'a bit turned over'} = $good, int(length($good) / 3), 1) ^= "\x04";
foreach my $what (sort keys %broken)
{
	open(my $out, '>:raw', $changes) or die "$changes: $!";
	print $out $broken{$what};
	close($out);
	my $offset = -s $node->logfile;
	$node->start;
	is(row('kernel_advisor.changes', 'count(*)'), 0, "$what: nothing is taken from it");
	my %lines;
	$lines{$_}++ foreach log_since($node, $offset) =~ /\[(\d+)\] [^\n]*ignoring kernel advisor change log/g;
	is_deeply([ sort { $b <=> $a } values %lines ]->[0], 1, "$what: the server's log says so, once for each process that looked");
	is(row("kernel_advisor.apply('$knob', '" . ($helper->value($knob) + 1) . "', persist => false)", 'state'), 'applied', "$what: changes go on");
	is(row('kernel_advisor.changes', 'count(*)'), 1, "$what: in a new log");
	$node->stop;
}

done_testing();
