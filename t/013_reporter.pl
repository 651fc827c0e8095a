# The reporter: what it stores and tells, and what it does without a database, an extension, rights or space in time.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

# The interval is long: what happens below follows from checkpoints and settings.
my $node = new_node('reporter', "kernel_advisor.report_interval = '1h'\nrestart_after_crash = on");
my $report_is = sub {
	my ($state, $server) = @_;
	return wait_for($server // $node, "SELECT state = '$state' FROM kernel_advisor.status WHERE component = 'reporter'");
};
my $set = sub {
	my ($server, %settings) = @_;
	$server->safe_psql('postgres', "ALTER SYSTEM SET $_ = '$settings{$_}'") for sort keys %settings;
	$server->reload;
	return;
};
my $all_stored = q{
	SELECT count(*) > 0 AND bool_and(h.checkpoint_id IS NOT NULL)
	FROM (SELECT * FROM kernel_advisor.checkpoints WHERE kind <> 'shutdown') AS c
	LEFT JOIN kernel_advisor.checkpoint_history AS h USING (started_at, checkpoint_id)};
# While nobody else writes, nothing is stored (016): a transaction number is a write.
my $written = 'SELECT pg_current_xact_id() IS NOT NULL';
my $checkpoint = "$written; CHECKPOINT";
my $doubled = q{SELECT count(*) FROM (SELECT FROM kernel_advisor.checkpoint_history GROUP BY started_at, checkpoint_id HAVING count(*) > 1) t};

# ---------------------------------------------------------------- checkpoints

my $listener = $node->background_psql('postgres');
$listener->query_safe('LISTEN kernel_advisor');
$node->safe_psql('postgres', $checkpoint);
wait_for($node, $all_stored);
$report_is->('working');
is($node->safe_psql('postgres', q{
	SELECT count(*) FROM kernel_advisor.checkpoints AS c JOIN kernel_advisor.checkpoint_history AS h USING (started_at, checkpoint_id)
	WHERE to_jsonb(h) - 'recorded_at' <> to_jsonb(c) OR recorded_at < h.started_at}), '0', 'a checkpoint is stored as the view has it');
my $told = $listener->query_safe('SELECT 1');
like($told, qr/notification "kernel_advisor" with payload "\{"kind" : "checkpoint", "checkpoint_id" : 1, "checkpoint_kind" : "requested"/,
	'and NOTIFY tells of it');
like($told, qr/notification "kernel_advisor" with payload "\{"kind": "advice", "event": "appeared", "rule": "checkpoint\.spacing"/,
	'and of advice');
$listener->quit;
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'kernel advisor reporter'}), '0',
	'nothing is connected between two reports');

# ---------------------------------------------------------------- advice

# Appears: one row, one line in the log, however many reports.
my $events = q{SELECT string_agg(event, ' ' ORDER BY at) FROM kernel_advisor.advice_history WHERE rule = 'checkpoint.spacing'};
my $lines = sub { my @all = log_since($node) =~ /kernel advisor advice: \{.*?"event": "(\w+)", "rule": "checkpoint\.spacing"/g; return "@all"; };
is($node->safe_psql('postgres', $events), 'appeared', 'advice that appeared has a row');
is($node->safe_psql('postgres', q{
	SELECT count(*) FROM kernel_advisor.advice_history AS h JOIN kernel_advisor.advice AS a USING (rule, subject)
	WHERE rule = 'checkpoint.spacing' AND (h.severity, h.recommended, h.reason, h.command) = (a.severity, a.recommended, a.reason, a.command)
		AND jsonb_typeof(h.evidence) = 'object'}), '1', 'with all that the advice says');
$set->($node, 'kernel_advisor.report_interval' => '1s');
my $reports = q{SELECT detail ~ 'last report at' FROM kernel_advisor.status WHERE component = 'reporter'};
my $last = sub { return $node->safe_psql('postgres', q{SELECT substring(detail from 'last report at ([-0-9 :.]+)') FROM kernel_advisor.status WHERE component = 'reporter'}); };
my $some_reports = sub {
	wait_for($node, $reports); # the first after a start
	for (1 .. $_[0])
	{
		my $before = $last->();
		wait_for($node, "SELECT detail NOT LIKE '%last report at $before%' FROM kernel_advisor.status WHERE component = 'reporter'");
	}
};
$some_reports->(3);
is($node->safe_psql('postgres', $events), 'appeared', 'and no more of them while it stands');
is($lines->(), 'appeared', 'nor lines in the log');

# It goes and comes back within the hold, five intervals: nothing happened.
$set->($node, checkpoint_completion_target => '0.9');
$some_reports->(2);
$set->($node, checkpoint_completion_target => '0.0');
$some_reports->(6);
is($node->safe_psql('postgres', $events), 'appeared', 'advice that flaps makes no events');
$set->($node, checkpoint_completion_target => '0.9');
wait_for($node, "$written AND ($events) = 'appeared disappeared'");
is($lines->(), 'appeared disappeared', 'advice that stays away has disappeared');
$set->($node, checkpoint_completion_target => '0.0');
wait_for($node, "$written AND ($events) = 'appeared disappeared appeared'");
pass('advice that comes back appears at once');

# After a restart it is known to stand.
my $offset = -s $node->logfile;
$node->restart;
$some_reports->(3);
is($node->safe_psql('postgres', $events), 'appeared disappeared appeared', 'a restart is no news');
unlike(log_since($node, $offset), qr/"event": "appeared", "rule": "checkpoint\.spacing"/, 'in the log neither');

# ---------------------------------------------------------------- a role of its own

$node->safe_psql('postgres', 'CREATE ROLE keeper');
$offset = -s $node->logfile;
$set->($node, 'kernel_advisor.role' => 'keeper');
$node->safe_psql('postgres', $checkpoint);
$report_is->('failing');
like($node->safe_psql('postgres', q{SELECT detail || '|' || hint FROM kernel_advisor.status WHERE component = 'reporter'}),
	qr/^permission denied for .*\|Grant the role/, 'a role without rights: said, with a hint');
my $denied = sub { my @all = log_since($node, $offset) =~ /reporter ERROR:  permission denied/g; return scalar(@all); };
my $once = $denied->(); # a line for each step of the first report
$some_reports->(3);
ok($once > 0 && $denied->() == $once, 'in the log once, not at each report');
$node->safe_psql('postgres', q{
	GRANT USAGE ON SCHEMA kernel_advisor TO keeper;
	GRANT EXECUTE ON FUNCTION kernel_advisor.checkpoints() TO keeper;
	GRANT SELECT ON kernel_advisor.checkpoints TO keeper;
	GRANT SELECT, INSERT, DELETE ON kernel_advisor.checkpoint_history, kernel_advisor.advice_history TO keeper});
$report_is->('working');
wait_for($node, $all_stored);
pass('with the rights that the documentation lists it works');

# What hangs on a table runs as that role, and can do no more than it.
$node->safe_psql('postgres', q{
	CREATE TABLE secret (who text);
	CREATE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.secret VALUES (current_user); RETURN NULL; END $$;
	CREATE TRIGGER spy AFTER INSERT ON kernel_advisor.checkpoint_history FOR EACH ROW EXECUTE FUNCTION spy();
	CHECKPOINT});
$report_is->('failing');
is($node->safe_psql('postgres', 'SELECT count(*) FROM secret'), '0', 'a trigger has the rights of the role, not of a superuser');
$node->safe_psql('postgres', 'DROP TRIGGER spy ON kernel_advisor.checkpoint_history');
wait_for($node, $all_stored);
$set->($node, 'kernel_advisor.role' => 'nobody_of_this_name');
$report_is->('waiting');
like($node->safe_psql('postgres', q{SELECT detail FROM kernel_advisor.status WHERE component = 'reporter'}), qr/^role "nobody_of_this_name" does not exist/,
	'a role that is not there: said');
$set->($node, 'kernel_advisor.role' => '');
$report_is->('working');

# ---------------------------------------------------------------- killed in the middle

$node->safe_psql('postgres', q{
	CREATE UNLOGGED TABLE slow_down AS SELECT 600 AS seconds; -- empty after a crash
	CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(seconds) FROM public.slow_down; RETURN NULL; END $$;
	CREATE TRIGGER slow AFTER INSERT ON kernel_advisor.checkpoint_history FOR EACH ROW EXECUTE FUNCTION slow();
	CHECKPOINT});
wait_for($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'kernel advisor reporter' AND wait_event = 'PgSleep'});
is($node->safe_psql('postgres', $doubled), '0', 'no row twice before the crash');
my $stored = $node->safe_psql('postgres', 'SELECT count(*) FROM kernel_advisor.checkpoint_history');
kill 'KILL', $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'kernel advisor reporter'});
$node->poll_query_until('postgres', 'SELECT true') or die 'no recovery';
$node->safe_psql('postgres', 'DROP TRIGGER slow ON kernel_advisor.checkpoint_history');
wait_for($node, $all_stored);
is($node->safe_psql('postgres', $doubled), '0', 'killed in the middle of a move: no row twice');
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM kernel_advisor.checkpoint_history'), '>=', $stored, 'and none lost');

# A lock that somebody holds is waited for two seconds, and what it kept away is stored later.
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; LOCK TABLE kernel_advisor.checkpoint_history IN SHARE MODE');
$node->safe_psql('postgres', $checkpoint);
$report_is->('failing');
$locker->query_safe('COMMIT');
$locker->quit;
$report_is->('working');
wait_for($node, $all_stored);
pass('a table that is locked delays, and loses nothing');

# ---------------------------------------------------------------- retention

$node->safe_psql('postgres', q{
	ALTER TABLE kernel_advisor.checkpoint_history DISABLE TRIGGER USER;
	INSERT INTO kernel_advisor.checkpoint_history (checkpoint_id, started_at, recorded_at)
		SELECT i, '2001-01-01'::timestamptz + i * interval '1 s', now() FROM generate_series(1, 1000000) AS i;
	ALTER TABLE kernel_advisor.checkpoint_history ENABLE TRIGGER USER;
	INSERT INTO kernel_advisor.advice_history (at, event, rule, severity, subject)
		VALUES ('2001-01-01', 'appeared', 'gone', 'info', 's'), ('2001-01-02', 'disappeared', 'gone', 'info', 's');
	UPDATE kernel_advisor.advice_history SET at = at - interval '20 years' WHERE rule = 'checkpoint.spacing'});
my $recent = $node->safe_psql('postgres', q{SELECT count(*) FROM kernel_advisor.checkpoint_history WHERE started_at > '2002-01-01'});
$set->($node, 'kernel_advisor.retention' => '1d');
my ($reads, $longest) = (0, 0);
while ($node->safe_psql('postgres', q{SELECT count(*) > 0 FROM kernel_advisor.checkpoint_history WHERE started_at < '2002-01-01'}) eq 't')
{
	my $begin = time();
	$node->safe_psql('postgres', q{SET lock_timeout = '50ms'; LOCK TABLE kernel_advisor.checkpoint_history IN ACCESS SHARE MODE}
		  =~ s/; LOCK/; BEGIN; LOCK/r . '; SELECT 1; COMMIT');
	$reads++;
	$longest = time() - $begin if time() - $begin > $longest;
	die 'rows are not pruned' if $reads > 20000;
}
cmp_ok($reads, '>', 1, "a million rows were pruned, and $reads readers waited for no lock");
is($node->safe_psql('postgres', q{SELECT count(*) FROM kernel_advisor.checkpoint_history WHERE started_at > '2002-01-01'}) >= $recent, 1,
	'what is younger is kept');
wait_for($node, q{SELECT count(*) = 0 FROM kernel_advisor.advice_history WHERE rule = 'gone'});
wait_for($node, q{
	SELECT count(*) = count(DISTINCT subject) AND bool_and(event = 'appeared') FROM kernel_advisor.advice_history
	WHERE rule = 'checkpoint.spacing'});
pass('of advice, all but what stands');

# ---------------------------------------------------------------- databases come and go

$set->($node, 'kernel_advisor.database' => 'history');
$report_is->('waiting');
like($node->safe_psql('postgres', q{SELECT detail FROM kernel_advisor.status WHERE component = 'reporter'}),
	qr/^database "history": the database does not exist/, 'a database that is not there: said');
$node->safe_psql('postgres', 'CREATE DATABASE history');
wait_for($node, q{SELECT detail LIKE 'extension pg_kernel_advisor does not exist in database "history"%' FROM kernel_advisor.status WHERE component = 'reporter'});
$node->safe_psql('history', 'CREATE EXTENSION pg_kernel_advisor');
$node->poll_query_until('history', $all_stored) or die 'nothing stored';
$report_is->('working');
$offset = -s $node->logfile;
my $begin = time();
$node->safe_psql('postgres', 'DROP DATABASE history');
cmp_ok(time() - $begin, '<', 5, 'the reporter keeps no database from being dropped');
$report_is->('waiting');
$some_reports->(2);
unlike(log_since($node, $offset), qr/FATAL:/, 'and makes no noise without it');
$node->safe_psql('postgres', 'CREATE DATABASE history');
$node->safe_psql('history', 'CREATE EXTENSION pg_kernel_advisor');
$node->poll_query_until('history', $all_stored) or die 'nothing stored';
pass('made again, it gets what shared memory still has');
$node->safe_psql('history', 'DROP EXTENSION pg_kernel_advisor');
$report_is->('waiting');
$node->safe_psql('history', 'CREATE EXTENSION pg_kernel_advisor');
$node->poll_query_until('history', $all_stored) or die 'nothing stored';
pass('likewise the extension');

# A dump has the history, and the server that it is restored into goes on from there.
$node->safe_psql('postgres', 'CREATE DATABASE copy');
$node->run_log([ 'pg_dump', '-h', $node->host, '-p', $node->port, '-Fc', '-f', "$PostgreSQL::Test::Utils::tmp_check/history.dump", 'history' ]);
$node->run_log([ 'pg_restore', '-h', $node->host, '-p', $node->port, '-d', 'copy', "$PostgreSQL::Test::Utils::tmp_check/history.dump" ]);
my $content = 'SELECT count(*), md5(string_agg(h::text, \',\' ORDER BY started_at, checkpoint_id)) FROM kernel_advisor.checkpoint_history AS h';
$set->($node, 'kernel_advisor.report_interval' => '0');
wait_for($node, q{SELECT state = 'off' FROM kernel_advisor.status WHERE component = 'reporter'});
like($node->safe_psql('copy', $content), qr/^[1-9]/, 'a restored dump has the history');
$set->($node, 'kernel_advisor.database' => 'copy', 'kernel_advisor.report_interval' => '1s');
$node->safe_psql('postgres', $checkpoint);
$node->poll_query_until('copy', $all_stored) or die 'nothing stored';
is($node->safe_psql('copy', $doubled), '0', 'and the reporter goes on from there, without a row twice');

# ---------------------------------------------------------------- a standby, and its promotion

$set->($node, 'kernel_advisor.database' => 'postgres');
$report_is->('working');
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$report_is->('standby', $standby);
$node->safe_psql('postgres', 'CREATE TABLE t AS SELECT generate_series(1, 1000) AS a; CHECKPOINT');
$node->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
wait_for($standby, q{SELECT count(*) >= 1 FROM kernel_advisor.checkpoints WHERE restartpoint});
like(log_since($standby), qr/kernel advisor advice: \{"kind": "advice", "event": "appeared"/, 'a standby tells of advice in its log');
my $points = $standby->safe_psql('postgres', q{SELECT string_agg(checkpoint_id::text, ' ' ORDER BY 1) FROM kernel_advisor.checkpoints WHERE restartpoint});
$standby->promote;
$report_is->('working', $standby);
wait_for($standby, $all_stored);
is($standby->safe_psql('postgres', q{SELECT string_agg(checkpoint_id::text, ' ' ORDER BY 1) FROM kernel_advisor.checkpoint_history WHERE restartpoint}), $points,
	'after promotion its restartpoints are in the table');
is($standby->safe_psql('postgres', $doubled), '0', 'no row twice');

# A fast stop does not wait for a report.
$standby->safe_psql('postgres', q{
	INSERT INTO slow_down VALUES (600);
	CREATE TRIGGER slow AFTER INSERT ON kernel_advisor.checkpoint_history FOR EACH ROW EXECUTE FUNCTION slow(); CHECKPOINT});
wait_for($standby, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'kernel advisor reporter' AND wait_event = 'PgSleep'});
$begin = time();
$standby->stop('fast');
cmp_ok(time() - $begin, '<', 10, 'a fast stop ends a report');
$node->stop('fast');

done_testing();
