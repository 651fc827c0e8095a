# The history file: whatever is wrong with it, the server starts, with one line in the log.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use IPC::Run ();
use Test::More;

# Many samples, then none any more: what is in the ring is what the file had.
my $node = new_node('history', "kernel_advisor.sample_interval = '10ms'\nfsync = off");
my $file = history_file($node);
my $state = q{
	SELECT (SELECT count(*) FROM kernel_advisor.samples WHERE at < pg_postmaster_start_time()),
		(SELECT count(*) FROM kernel_advisor.checkpoints WHERE started_at < pg_postmaster_start_time())};

sub write_file
{
	my ($content) = @_;

	open my $handle, '>', $file or die "$file: $!";
	binmode $handle;
	print $handle $content;
	close $handle or die "$file: $!";
	return;
}

wait_for($node, q{SELECT count(*) > 200 FROM kernel_advisor.samples});
$node->safe_psql('postgres', 'CHECKPOINT');
$node->safe_psql('postgres', 'CHECKPOINT');
wait_for($node, q{SELECT bool_and(wal_bytes IS NOT NULL) FROM kernel_advisor.checkpoints});
$node->append_conf('postgresql.conf', "kernel_advisor.sample_interval = '1h'");
$node->stop;

my $good = PostgreSQL::Test::Utils::slurp_file($file);
my $length = length $good;
ok(!-e "$file.tmp", 'no temporary file is left');

# As it is, it is read back: also the numbering goes on.
my $offset = -s $node->logfile;
$node->start;
my ($samples, $checkpoints) = split /\|/, $node->safe_psql('postgres', $state);
cmp_ok($samples, '>', 200, 'samples are read back');
is($checkpoints, 3, 'checkpoints are read back, that of the shutdown as well');
unlike(log_since($node, $offset), qr/history file/, 'without a word in the log');
$node->safe_psql('postgres', 'CHECKPOINT');
is($node->safe_psql('postgres', 'SELECT string_agg(checkpoint_id::text, $$ $$ ORDER BY checkpoint_id) FROM kernel_advisor.checkpoints'),
	'1 2 3 4', 'the numbering goes on');
$node->stop;

# An immediate stop kills processes wherever they are: what is in memory then is not trusted.
$node->start;
my $before = PostgreSQL::Test::Utils::slurp_file($file);
$node->safe_psql('postgres', 'CHECKPOINT');
$node->stop('immediate');
ok(PostgreSQL::Test::Utils::slurp_file($file) eq $before, 'an immediate stop leaves the history file as it was');

# Single-user mode has the history, nobody who adds to it, and hands it on.
my ($out, $single) = ('', '');
my $query = 'SELECT state FROM kernel_advisor.status WHERE component = $$sampler$$; ';
IPC::Run::run([ 'postgres', '--single', '-D', $node->data_dir, 'postgres' ], '<', \$query, '>', \$out, '2>', \$single)
  or die "postgres --single: $single";
like($out, qr/state = "absent"/, 'status in single-user mode says that there is no sampler');
$node->start;
my ($kept, $rows) = split /\|/, $node->safe_psql('postgres', $state);
cmp_ok($kept, '>=', $samples, 'and the samples are still there');
is($rows, 5, 'and the checkpoints, without a row that nobody saw');
$node->stop('immediate');

# header: magic (8 bytes), version, two sizes, number of deltas (4 each), system identifier (8), last id (8)
my %broken = (
	'an empty file' => [ '', 'truncated' ],
	'half a header' => [ substr($good, 0, 20), 'truncated' ],
	'a header only' => [ substr($good, 0, 48), 'truncated' ],
	'a file cut in the samples' => [ substr($good, 0, int($length / 2)), 'truncated' ],
	'a file without its last byte' => [ substr($good, 0, $length - 1), 'truncated' ],
	'a file with something behind it' => [ "$good\0", 'truncated' ],
	'a foreign file' => [ 'PGDMP' . substr($good, 5), 'not a history file' ],
	'an older version' => [ substr($good, 0, 8) . pack('L', 0) . substr($good, 12), 'another version' ],
	'another size of a slot' => [ substr($good, 0, 12) . pack('L', 8) . substr($good, 16), 'another version' ],
	'another cluster' => [ substr($good, 0, 24) . pack('Q', 42) . substr($good, 32), 'another database cluster' ],
	'a negative number in the header' => [ substr($good, 0, 32) . pack('q', -5) . substr($good, 40), 'header is damaged' ],
	'an absurd number of samples' => [ substr($good, 0, $length - 24) . pack('Q', 2**62) . substr($good, $length - 16), 'truncated' ],
	'noise' => [ join('', map { chr(($_ * 2654435761 >> 7) & 255) } 1 .. 5000), 'not a history file' ],
);

# One bit turned over in each part that only the checksum covers.
foreach my $position (40, 50, 56 + 100, int($length / 3), $length - 30, $length - 6)
{
	my $damaged = $good;

	substr($damaged, $position, 1) = chr(ord(substr($damaged, $position, 1)) ^ 4);
	$broken{"a bit turned over at $position"} = [ $damaged, '(?:checksum does not match|damaged)' ];
}

foreach my $name (sort keys %broken)
{
	my ($content, $reason) = @{ $broken{$name} };

	write_file($content);
	$offset = -s $node->logfile;
	$node->start;
	my $log = log_since($node, $offset);
	my @lines = $log =~ /(LOG:  ignoring kernel advisor history file .*)/g;

	is(scalar @lines, 1, "$name: one line in the log");
	like($lines[0] // '', qr/$reason/, "$name: the reason");
	is($node->safe_psql('postgres', $state), '0|0', "$name: nothing is taken from it");
	$node->stop('immediate');
}

# A small ring, until it has been filled by this server alone.
write_file($good);
$node->append_conf('postgresql.conf', <<'END');
kernel_advisor.history_size = '256kB'
kernel_advisor.sample_interval = '10ms'
kernel_advisor.checkpoint_sample_interval = '10ms'
END
$node->start;
my $room = $node->safe_psql('postgres', q{SELECT substring(detail FROM 'room for (\d+)') FROM kernel_advisor.status WHERE component = 'sampler'});
my $full = "SELECT count(*) = $room AND min(at) > %s FROM kernel_advisor.samples";
wait_for($node, sprintf($full, q{pg_postmaster_start_time() + interval '100 ms'}));

# While it is overwritten at its full speed, every reading is whole: rows in order, none torn, none twice.
is($node->safe_psql('postgres', q{
	SELECT count(*) FROM (
		SELECT at - interval_ms * interval '1 ms' - lag(at) OVER (ORDER BY row) AS gap
		FROM (SELECT *, row_number() OVER () AS row FROM kernel_advisor.samples) s) t
	WHERE gap NOT BETWEEN '-1 us' AND '1 us';
} x 100), join("\n", (0) x 100), 'a ring that is overwritten is read consistently');

# A checkpoint longer than the ring has its sums all the same.
spread_checkpoint($node, sub {
	$node->safe_psql('postgres', 'CREATE TABLE late AS SELECT generate_series(1, 10000) a');
	my $now = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
	wait_for($node, sprintf($full, "'$now'"));
});
wait_for($node, q{SELECT wal_bytes IS NOT NULL FROM kernel_advisor.checkpoints ORDER BY checkpoint_id DESC LIMIT 1});
is($node->safe_psql('postgres', q{
	SELECT c.wal_bytes > 600000, c.wal_bytes > s.wal_bytes + 600000
	FROM (SELECT * FROM kernel_advisor.checkpoints ORDER BY checkpoint_id DESC OFFSET 1 LIMIT 1) c
	JOIN (SELECT checkpoint_id, sum(wal_bytes) AS wal_bytes FROM kernel_advisor.samples GROUP BY 1) s USING (checkpoint_id)}),
	't|t', 'samples that the ring has dropped are in the sums');

# A larger ring takes all of them over, a smaller one the newest.
$node->append_conf('postgresql.conf', "kernel_advisor.history_size = '1MB'");
$node->restart;
is($node->safe_psql('postgres', 'SELECT count(*) FROM kernel_advisor.samples WHERE at < pg_postmaster_start_time()'), $room,
	'a larger ring takes over all samples');
wait_for($node, "SELECT count(*) > $room + 50 FROM kernel_advisor.samples");
$node->append_conf('postgresql.conf', "kernel_advisor.sample_interval = '1h'\nkernel_advisor.checkpoint_sample_interval = '1h'");
$node->reload;
wait_for($node, q{SELECT max(at) < clock_timestamp() - interval '500 ms' FROM kernel_advisor.samples});
$node->append_conf('postgresql.conf', "kernel_advisor.history_size = '256kB'");
my $newest = $node->safe_psql('postgres',
	"SELECT count(*), min(at), max(at) FROM (SELECT at FROM kernel_advisor.samples ORDER BY at DESC LIMIT $room) t");
$node->restart;
is($node->safe_psql('postgres', 'SELECT count(*), min(at), max(at) FROM kernel_advisor.samples'), $newest,
	'a smaller ring takes the newest');

# A place that cannot be written to: the sampler goes on and says so, once.
unlink $file;
mkdir "$file.tmp" or die "$file.tmp: $!";
$offset = -s $node->logfile;
for my $attempt (1, 2)
{
	$node->safe_psql('postgres', 'SELECT kernel_advisor.reset()');
	wait_for($node, q{SELECT count(*) = 1 FROM kernel_advisor.status WHERE component = 'history file' AND state = 'not written'});
}
my @complaints = log_since($node, $offset) =~ /(could not write file ".*pg_kernel_advisor.history.tmp")/g;
is(scalar @complaints, 1, 'one line in the log about a file that cannot be written');
rmdir "$file.tmp" or die "$file.tmp: $!";
$node->safe_psql('postgres', 'SELECT kernel_advisor.reset()');
wait_for($node, q{SELECT count(*) = 0 FROM kernel_advisor.status WHERE component = 'history file'});
ok(-s $file, 'when it can, it is');

done_testing();
