# Every kind of checkpoint gives a row that equals the server's own log line.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_node('primary', <<'END');
checkpoint_timeout = '30s'
max_wal_size = '32MB'
wal_keep_size = '1GB'
END

# requested
$primary->safe_psql('postgres', 'CREATE TABLE t (a int, b text); CHECKPOINT');

# One that fails is none.  Its file can be opened again for the next one.
my $relation = $primary->data_dir . '/' . $primary->safe_psql('postgres', q{SELECT pg_relation_filepath('t')});
$primary->safe_psql('postgres', 'INSERT INTO t VALUES (1)');
chmod 0000, $relation or die "$relation: $!";
isnt($primary->psql('postgres', 'CHECKPOINT'), 0, 'a checkpoint that cannot write fails');
chmod 0600, $relation or die "$relation: $!";
like($primary->safe_psql('postgres', q{SELECT detail FROM kernel_advisor.status WHERE component = 'checkpoint hook'}),
	qr/1 checkpoints from the hook, 0 from statistics, 1 not completed/, 'a checkpoint that failed is counted, and has no row');

# shutdown, and the history comes back after the restart
$primary->restart;
is($primary->safe_psql('postgres', q{SELECT string_agg(kind, ' ' ORDER BY checkpoint_id) FROM kernel_advisor.checkpoints}),
	'requested shutdown', 'the shutdown checkpoint has a row after the restart');

# A standby made from this server did not run its checkpoints.
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
wait_for($standby, q{SELECT count(*) > 0 FROM kernel_advisor.samples});
is($standby->safe_psql('postgres', q{SELECT count(*) FROM kernel_advisor.checkpoints WHERE NOT restartpoint}),
	'0', 'a base backup does not carry the history along');

# wal: two segments and more between checkpoints
$primary->safe_psql('postgres', q{INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 350000) i});
wait_for($primary, q{SELECT count(*) > 0 FROM kernel_advisor.checkpoints WHERE kind = 'wal'});

# restartpoint, at a checkpoint that was replayed
$primary->safe_psql('postgres', 'CHECKPOINT');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
$standby->safe_psql('postgres', 'CHECKPOINT');
compare_with_log($standby, 'restartpoints');
is($standby->safe_psql('postgres', q{SELECT bool_and(restartpoint) FROM kernel_advisor.checkpoints}),
	't', 'rows of a standby are restartpoints');
cmp_ok($standby->safe_psql('postgres', q{SELECT sum(wal_bytes) FROM kernel_advisor.samples}),
	'>', 0, 'WAL that is replayed counts on a standby');
$standby->stop;

# timed: half a minute after the last one, if there was anything to write
$primary->safe_psql('postgres', 'INSERT INTO t VALUES (0)');
wait_for($primary, q{SELECT count(*) > 0 FROM kernel_advisor.checkpoints WHERE kind = 'timed'});

my %kinds = map { $_ => 1 } compare_with_log($primary, 'checkpoints');
is(join(' ', sort keys %kinds), 'requested shutdown timed wal', 'all kinds were seen');

is($primary->safe_psql('postgres', q{
	SELECT count(*) FROM kernel_advisor.checkpoints
	WHERE started_at + total_ms * interval '1 ms' > now() OR write_ms + sync_ms > total_ms + 2}),
	'0', 'the phases fit into the whole');

# The kernel's part comes from the samples, as soon as they are joined.
wait_for($primary, q{SELECT bool_and(compact_stall IS NOT NULL) FROM kernel_advisor.checkpoints WHERE kind <> 'shutdown'});
is($primary->safe_psql('postgres', q{
	SELECT bool_and(compact_stall IS NULL AND tps_during IS NULL)
	FROM kernel_advisor.checkpoints WHERE kind = 'shutdown'}),
	't', 'nobody samples a shutdown checkpoint');

done_testing();
