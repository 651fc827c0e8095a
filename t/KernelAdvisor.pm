# What the tests of the server library share.

package KernelAdvisor;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(new_node wait_for log_since logged_checkpoints compare_with_log
  spread_checkpoint sampler_pid history_file);

# A cluster with the library loaded and the extension created.
sub new_node
{
	my ($name, $conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(allows_streaming => 1);
	$node->append_conf('postgresql.conf', <<"END");
shared_preload_libraries = 'pg_kernel_advisor'
log_checkpoints = on
shared_buffers = '32MB'
log_line_prefix = '%m [%p] %b '
checkpoint_completion_target = 0
autovacuum = off
kernel_advisor.sample_interval = '100ms'
kernel_advisor.checkpoint_sample_interval = '50ms'
@{[ $conf // '' ]}
END
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_kernel_advisor');
	return $node;
}

# Waits until a query says true, and tells on which one it gave up.
sub wait_for
{
	my ($node, $query) = @_;

	$node->poll_query_until('postgres', $query)
	  or die "timed out waiting for: $query";
	return;
}

sub log_since
{
	my ($node, $offset) = @_;

	return substr(PostgreSQL::Test::Utils::slurp_file($node->logfile), $offset // 0);
}

# The message at the end of a checkpoint, in the words of all versions.
my $seconds = qr/([\d.]+) s/;
my $complete = qr/LOG:\ \ (?:checkpoint|restartpoint)\ complete:\ wrote\ (\d+)\ buffers\ .*?
	(\d+)\ WAL\ file\(s\)\ added,\ (\d+)\ removed,\ (\d+)\ recycled;\ 
	write=$seconds,\ sync=$seconds,\ total=$seconds;\ 
	sync\ files=(\d+),\ longest=$seconds,\ .*distance=(\d+)\ kB/x;

# What the server's own (English) messages say about each completed checkpoint.
sub logged_checkpoints
{
	my ($node) = @_;
	my (@checkpoints, $flags, $restartpoint);

	foreach my $line (split /\n/, log_since($node))
	{
		if ($line =~ /LOG:  (checkpoint|restartpoint) starting:(.*)/)
		{
			($restartpoint, $flags) = ($1 eq 'restartpoint' ? 't' : 'f', $2);
		}
		elsif (my @figures = $line =~ $complete)
		{
			my %checkpoint = (restartpoint => $restartpoint);

			@checkpoint{
				qw(buffers_written wal_added wal_removed wal_recycled write_ms sync_ms total_ms
				  files_synced longest_sync_ms distance_kb)
			} = @figures;
			$checkpoint{$_} *= 1000 foreach qw(write_ms sync_ms total_ms longest_sync_ms);
			$checkpoint{kind} =
				$flags =~ /shutdown/ ? 'shutdown'
			  : $flags =~ /end-of-recovery/ ? 'end_of_recovery'
			  : $flags =~ /wal/ ? 'wal'
			  : $flags =~ /time/ ? 'timed'
			  : 'requested';
			push @checkpoints, \%checkpoint;
		}
	}
	return @checkpoints;
}

# Every row says what the server's log line says, and there is one for each.
# Returns the kinds that were seen.
sub compare_with_log
{
	my ($node, $what) = @_;
	my @columns = qw(kind restartpoint buffers_written files_synced wal_added wal_removed
	  wal_recycled write_ms sync_ms total_ms longest_sync_ms distance_kb);
	my @logged = logged_checkpoints($node);
	my $rows = $node->safe_psql('postgres', q{
		SELECT kind, restartpoint, buffers_written, files_synced, wal_added, wal_removed,
			wal_recycled, write_ms, sync_ms, total_ms, longest_sync_ms, distance_bytes / 1024
		FROM kernel_advisor.checkpoints WHERE source = 'hook' ORDER BY checkpoint_id});
	my $expected = join "\n", map {
		my $checkpoint = $_;
		join '|', map { $checkpoint->{$_} } @columns
	} @logged;

	cmp_ok(scalar @logged, '>', 0, "$what: the server logged checkpoints");
	is($rows, $expected, "$what: rows equal the server's log");
	return map { $_->{kind} } @logged;
}

# Runs "$during" while a checkpoint that takes its time is in its write phase.
# It is hurried on, and followed, by a fast one.
sub spread_checkpoint
{
	my ($node, $during) = @_;
	my $backup = $node->background_psql('postgres');
	my $before = $node->safe_psql('postgres',
		'SELECT coalesce(max(checkpoint_id), 0) FROM kernel_advisor.samples');

	$node->append_conf('postgresql.conf', 'checkpoint_completion_target = 0.9');
	$node->reload;
	$node->safe_psql('postgres',
		'CREATE TABLE IF NOT EXISTS dirt (a int, b text);
		 INSERT INTO dirt SELECT i, repeat(i::text, 20) FROM generate_series(1, 50000) i');
	$backup->query_until(qr/asked/, "\\echo asked\nSELECT pg_backup_start('spread', false);\n");
	wait_for($node, "SELECT count(*) >= 3 FROM kernel_advisor.samples WHERE checkpoint_id > $before AND phase = 'write'");

	$during->();

	$node->safe_psql('postgres', 'CHECKPOINT');
	$node->append_conf('postgresql.conf', 'checkpoint_completion_target = 0');
	$node->reload;
	$backup->quit;
	return;
}

sub sampler_pid
{
	my ($node) = @_;

	return $node->safe_psql('postgres',
		q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'kernel advisor sampler'});
}

sub history_file
{
	my ($node) = @_;

	return $node->data_dir . '/pg_stat_tmp/pg_kernel_advisor.history';
}

1;
