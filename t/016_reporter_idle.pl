# A server that nobody writes to comes to rest, although the reporter writes; and what waited meanwhile is stored.
# Takes about 45 s, nearly all of it waiting for checkpoint_timeout.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FakeMachine;
use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# A copy of a machine: on the real one others may change the kernel's settings, which is news.
my $machine = FakeMachine->new(root => PostgreSQL::Test::Utils::tempdir('machine') . '/machine');
my $node = new_node('idle', <<"END");
kernel_advisor.machine_root = '@{[ $machine->root ]}'
checkpoint_timeout = '30s'
log_min_messages = debug1
kernel_advisor.report_interval = '1s'
kernel_advisor.history_size = '256kB'
END
my $waiting = sub { return qq{SELECT detail LIKE '%dropped, $_[0] waiting: nobody else writes%' FROM kernel_advisor.status WHERE component = 'reporter'}; };
my $not_stored = q{
	FROM kernel_advisor.checkpoints AS c LEFT JOIN kernel_advisor.checkpoint_history AS h USING (started_at, checkpoint_id)
	WHERE h.checkpoint_id IS NULL};
my $stored = 'SELECT count(*) FROM kernel_advisor.checkpoint_history';
my $write = 'SELECT pg_current_xact_id()'; # a transaction number, and a record of its commit

# ---------------------------------------------------------------- rest

# Reading what is new sets hint bits, which are WAL here: a server comes to rest after that.
$node->safe_psql('postgres', 'VACUUM');
$node->safe_psql('postgres', "$write; CHECKPOINT");
wait_for($node, "SELECT count(*) = 0 $not_stored");
my $rows = $node->safe_psql('postgres', $stored);

# The row was written after the checkpoint, so that the next timed one is not skipped; here it is.
$node->safe_psql('postgres', "SELECT count(*) FROM kernel_advisor.advice_history; $stored");
my $offset = -s $node->logfile;
$node->safe_psql('postgres', 'CHECKPOINT');
wait_for($node, $waiting->(1));

# No report meanwhile, and there are thirty, keeps the server from skipping the one after that, or the next but one.
my $skipped = 'checkpoint skipped because system is idle';
my $timed = sub { return scalar(() = log_since($node, $offset) =~ /checkpoint starting: time/g); };
my $end = time() + 2 * $PostgreSQL::Test::Utils::timeout_default;
until (log_since($node, $offset) =~ $skipped or $timed->() >= 3 or time() > $end)
{
	select undef, undef, undef, 0.2;
}
like(log_since($node, $offset), qr/$skipped/, 'the server comes to rest');
note($timed->() . ' timed checkpoints before that');
is($node->safe_psql('postgres', $stored), $rows, 'and nothing was stored meanwhile');

# ---------------------------------------------------------------- and later

my $waited = $node->safe_psql('postgres', "SELECT count(*) $not_stored");
cmp_ok($waited, '>', 0, 'a checkpoint waits');
$node->safe_psql('postgres', $write);
wait_for($node, "SELECT count(*) = 0 $not_stored");
is($node->safe_psql('postgres', $stored), $rows + $waited, 'it is stored with the report after a write');

# A load whose transaction number is older than the last report.
my $load = $node->background_psql('postgres');
$load->query_safe('BEGIN; CREATE TABLE load (a int)');
$node->safe_psql('postgres', 'CHECKPOINT');
wait_for($node, "SELECT count(*) = 0 $not_stored");
$node->safe_psql('postgres', 'CHECKPOINT');
wait_for($node, $waiting->(1));
pass('a transaction that does nothing does not count');
$load->query_safe('INSERT INTO load SELECT generate_series(1, 1000)');
wait_for($node, "SELECT count(*) = 0 $not_stored");
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND backend_xid IS NOT NULL}), '1',
	'one that goes on writing does');
$load->query_safe('COMMIT');
$load->quit;

# Nothing waits until it is overwritten: 14 checkpoints fit into shared memory.
$node->safe_psql('postgres', "$write; CHECKPOINT");
wait_for($node, "SELECT count(*) = 0 $not_stored");
$rows = $node->safe_psql('postgres', $stored);
for my $i (1 .. 20)
{
	my $newest = $node->safe_psql('postgres', 'SELECT max(checkpoint_id) FROM kernel_advisor.checkpoints');
	$node->safe_psql('postgres', 'CHECKPOINT');
	wait_for($node, "SELECT bool_or(checkpoint_id > $newest AND wal_bytes IS NOT NULL) FROM kernel_advisor.checkpoints");
}
wait_for($node, "SELECT ($stored) >= $rows + 10");
is($node->safe_psql('postgres', q{SELECT detail LIKE '%, 0 checkpoints dropped%' FROM kernel_advisor.status WHERE component = 'reporter'}), 't',
	'before shared memory is full, they are stored all the same');
$node->safe_psql('postgres', $write);
wait_for($node, "SELECT count(*) = 0 $not_stored");
is($node->safe_psql('postgres', $stored), $rows + 20, 'each of them');
is($node->safe_psql('postgres', 'SELECT max(checkpoint_id) - min(checkpoint_id) + 1 - count(*) FROM kernel_advisor.checkpoint_history'), '0',
	'and there is no gap');

# Retention needs no deletion on an idle server, and a new one is looked at at once.
$node->safe_psql('postgres', q{
	INSERT INTO kernel_advisor.checkpoint_history (checkpoint_id, started_at, recorded_at) VALUES (1, now() - interval '2 days', now())});
$node->safe_psql('postgres', 'CHECKPOINT');
wait_for($node, "SELECT count(*) = 0 $not_stored");
$node->safe_psql('postgres', 'CHECKPOINT');
wait_for($node, $waiting->(1));
$node->safe_psql('postgres', q{ALTER SYSTEM SET kernel_advisor.retention = '1d'});
$node->reload;
wait_for($node, q{SELECT min(started_at) > now() - interval '1 day' FROM kernel_advisor.checkpoint_history});
pass('a setting that was changed is heeded on an idle server');

$node->stop('fast');
done_testing();
