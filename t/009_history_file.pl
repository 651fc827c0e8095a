# The history file: whatever is wrong with it, the server starts, with one line in the log.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
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

# More than fits now: the newest are kept.
write_file($good);
$node->append_conf('postgresql.conf', "kernel_advisor.history_size = '256kB'\nkernel_advisor.sample_interval = '10ms'");
$node->start;
wait_for($node, q{SELECT detail LIKE '%' || (SELECT count(*) FROM kernel_advisor.samples) || ' samples%' AND count(*) > 0
	FROM kernel_advisor.status, kernel_advisor.samples WHERE component = 'sampler' GROUP BY detail
	HAVING count(*) = substring(detail FROM 'room for (\d+)')::bigint});
pass('a small ring fills up, and goes on');
is($node->safe_psql('postgres', q{SELECT count(*) = (SELECT substring(detail FROM 'room for (\d+)')::bigint FROM kernel_advisor.status WHERE component = 'sampler') FROM kernel_advisor.samples}),
	't', 'it holds as many as fit');
$node->append_conf('postgresql.conf', "kernel_advisor.history_size = '1MB'\nkernel_advisor.sample_interval = '1h'");
$node->restart;
my $kept = $node->safe_psql('postgres', $state);
like($kept, qr/^\d{3,}\|\d/, 'a larger one takes them over');

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
