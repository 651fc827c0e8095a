# The probe's file as the server reads it: what becomes of its counters, and of
# files that are not there, old, foreign or hostile.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use FakeProbe;
use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use POSIX ();
use Test::More;
use Time::HiRes ();

my $directory = PostgreSQL::Test::Utils::tempdir_short();
my $file = "$directory/counters";
my $node = new_node('probe', <<"END");
kernel_advisor.probe_file = '$file'
log_statement = none
END
my @columns = qw(pcp_drains pcp_drained_pages direct_compact_us direct_reclaim_us server_compact_us server_reclaim_us);
my $columns = join ', ', @columns;

my $sql = $node->background_psql('postgres');

sub value { my ($query) = @_; return $sql->query_safe($query); }

# As wait_for, in the session that is there.
sub wait_until
{
	my ($query) = @_;
	my $end = time + $PostgreSQL::Test::Utils::timeout_default;

	while (value($query) ne 't')
	{
		die "timed out waiting for: $query" if time > $end;
		Time::HiRes::sleep(0.05);
	}
	return;
}

sub status { return value(q{SELECT state, detail FROM kernel_advisor.status WHERE component = 'probe'}); }

# The sampler has looked again, twice.
sub sampled
{
	my $now = value('SELECT clock_timestamp()');

	wait_until("SELECT count(*) >= 2 FROM kernel_advisor.samples WHERE at - interval_ms * interval '1ms' > '$now'");
	return;
}

sub sums { return value('SELECT ' . join(', ', map { "coalesce(sum($_), 0)" } @columns) . ' FROM kernel_advisor.samples'); }

# ---------------------------------------------------------------- no probe

sampled();
like(status(), qr/^absent\|there is no such file; these columns stay null/, 'no probe: absent');
is(value("SELECT count(*) FROM kernel_advisor.samples WHERE num_nonnulls($columns) > 0"), '0', 'its columns are null');
is(value('SELECT count(*) FROM kernel_advisor.samples WHERE pcp_drained_pages_estimate IS NULL OR pcp_drains_estimate IS NULL'), '0',
	'the estimates need none');
is(value('SELECT count(*) FROM kernel_advisor.stalls'), '0', 'no stalls');
is(value('SELECT count(*) FROM kernel_advisor.backend_stalls'), '0', 'nor of backends');
value('CHECKPOINT');
is(value("SELECT count(*) FROM kernel_advisor.checkpoints WHERE num_nonnulls($columns) > 0"), '0', 'null in checkpoints, too');
unlike(log_since($node), qr/LOG: .*kernel_advisor_probe/, 'the log has no word of it: that is normal');

# ---------------------------------------------------------------- a probe, and whose counters they are

# The kernel counts with the host's numbers; in a PID namespace of its own the server has others.
my ($namespace) = readlink('/proc/self/ns/pid') =~ /(\d+)/;
my ($postmaster) = PostgreSQL::Test::Utils::slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
my $checkpointer = value(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'});
my $is_host = $namespace == 0xEFFFFFFC;
my $server_pid = $is_host ? $postmaster : 4_100_000;
my $host_pid = sub { my ($pid) = @_; return $is_host ? $pid : 4_100_000 + $pid; };
my $probe = FakeProbe->new(file => $file, server_pid => $server_pid);

$probe->add(who => 'client backend', compactions => 1000, compact_ns => 7e9, drained_compaction => 1e6);
if (!$is_host)
{
	$probe->publish;
	wait_until(q{SELECT detail LIKE '%none of its processes is one of this server yet' FROM kernel_advisor.status WHERE component = 'probe'});
	sampled();
	is(value('SELECT direct_compact_us, server_compact_us IS NULL FROM kernel_advisor.samples ORDER BY at DESC LIMIT 1'), '0|t',
		'in a container: the machine is known, ours not yet');
}
$probe->add_process(pid => $host_pid->($checkpointer), parent => $server_pid, namespace_pid => $checkpointer, namespace => $namespace,
	who => 'checkpointer');
if ($is_host) { $probe->publish } else { $probe->write_in_place }
wait_until(q{SELECT server_compact_us IS NOT NULL FROM kernel_advisor.samples ORDER BY at DESC LIMIT 1});
like(status(), qr/^running\|PID $$, publishes every 60000 ms, 1 processes$/, 'a probe: running');
like(log_since($node), qr/LOG:  kernel_advisor_probe is running: its counters are read from "\Q$file\E"/, 'the log says so');
is(sums(), '0|0|0|0|0|0', 'what it had counted before is in no sample');
is(value(q{SELECT count(*) FROM kernel_advisor.stalls WHERE checkpoint_id IS NULL}), '14', 'a row for each kind of process and stall');
is(value(q{SELECT count, total_us, longest_us, histogram FROM kernel_advisor.stalls
	WHERE checkpoint_id IS NULL AND process_type = 'client backend' AND stall = 'direct compaction'}),
	'1000|7000000|7000|{"4096": 1000}', 'since the probe started');

my $during = sub {
	$probe->add(who => 'checkpointer', compactions => 3, compact_ns => 6_000_000, reclaims => 1, reclaim_ns => 500_000,
		drained_compaction => 100, drained_reclaim => 20, drained_all => 3, drain_alls => 1, drained_free => 5000);
	$probe->add(who => 'walwriter', compactions => 1, compact_ns => 900);
	$probe->add(who => 'client backend', reclaims => 2, reclaim_ns => 64_000, drained_all => 7, drain_alls => 2);
	$probe->add(who => 'autovacuum worker', compactions => 1, compact_ns => 9_000_000_000);
	$probe->add(who => 'checkpointer', server => $server_pid + 1, compactions => 10, compact_ns => 10_000_000, drained_compaction => 1000);
	$probe->add(who => 'other process', compactions => 4, compact_ns => 4_000_000);
	$probe->add(who => 'kernel thread', compactions => 1, compact_ns => 1_000_000, drained_compaction => 77_777);
	$probe->write_in_place;
	sampled();
	# more than twice as long as before
	$probe->add(who => 'checkpointer', compactions => 1, compact_ns => 8_000_000);
	$probe->write_in_place;
	sampled();
};
spread_checkpoint($node, $during);
wait_until('SELECT count(*) > 0 FROM kernel_advisor.stalls WHERE checkpoint_id IS NOT NULL');
my $id = value('SELECT max(checkpoint_id) FROM kernel_advisor.stalls');
is(value("SELECT $columns FROM kernel_advisor.checkpoints WHERE checkpoint_id = $id"), '3|1130|9029000|564|9014000|564',
	'the checkpoint: what the machine and what this server did; kernel threads drain for nobody, a full list is no stall');
is(sums(), '3|1130|9029000|564|9014000|564', 'samples have the same, nothing twice');
my $stalls = "SELECT process_type, stall, count, total_us, longest_us, histogram FROM kernel_advisor.stalls WHERE checkpoint_id = $id";
my $expected = <<'END';
checkpointer|direct compaction|4|14000|8000|{"1024": 3, "4096": 1}
checkpointer|direct reclaim|1|500|500|{"256": 1}
walwriter|direct compaction|1|0|0|{"0": 1}
client backend|direct reclaim|2|64|32|{"32": 2}
other server process|direct compaction|1|9000000|9000000|{"4194304": 1}
other process|direct compaction|14|14000|1000|{"512": 14}
kernel thread|direct compaction|1|1000|1000|{"512": 1}
END
is(value($stalls) . "\n", $expected, 'and who waited how long');
is(value("SELECT count(*) FROM kernel_advisor.stalls WHERE checkpoint_id IS NOT NULL AND checkpoint_id <> $id"), '0', 'no other checkpoint has any');

# ---------------------------------------------------------------- facts

value('SELECT kernel_advisor.reset()');
sampled();
spread_checkpoint($node, sub {
	$probe->add(who => 'checkpointer', compactions => 1, compact_ns => 412_000_000, drained_all => 11, drain_alls => 1);
	$probe->add(who => 'walwriter', reclaims => 1, reclaim_ns => 3_000_000);
	$probe->write_in_place;
	sampled();
});
wait_until(q{SELECT kernel_advisor.facts() #> '{window,checkpointer_compact_us}' IS NOT NULL});
is(value(q{SELECT string_agg(key || '=' || value, ' ' ORDER BY key) FROM jsonb_each(kernel_advisor.facts() -> 'window')
	WHERE key ~ '^(pcp_drain|server_|direct_|checkpointer|walwriter_|backends_)' OR key = 'none'}),
	'backends_compact_us=0 backends_reclaim_us=0 checkpointer_compact_us=412000 checkpointer_reclaim_us=0 '
	  . 'direct_compact_us=412000 direct_reclaim_us=3000 pcp_drain_all_pages=11 pcp_drained_pages=11 pcp_drains=1 '
	  . 'server_compact_us=412000 server_reclaim_us=3000 walwriter_compact_us=0 walwriter_reclaim_us=3000', 'facts of the window');
is(value(q{SELECT (SELECT count(*) FROM kernel_advisor.checkpoints WHERE direct_compact_us IS NOT NULL)
	= (kernel_advisor.facts() #>> '{window,stall_checkpoints}')::int}), 't', 'over the checkpoints that know them');

# ---------------------------------------------------------------- living processes

my $session = $node->background_psql('postgres');
my $session_pid = $session->query('SELECT pg_backend_pid()');
$session_pid =~ s/\D//g;
$probe->add_process(pid => $host_pid->($session_pid), parent => $server_pid, namespace_pid => $session_pid, namespace => $namespace,
	compact_stalls => 2, compactions => 3, compact_ns => 5_000_000, compact_longest_ns => 3_000_000, reclaims => 4, reclaim_ns => 1_000_000,
	reclaim_longest_ns => 600_000, drained_compaction => 5, drained_reclaim => 6, drained_all => 7, drained_free => 1000, drain_alls => 1);
$probe->add_process(pid => $host_pid->(99_999_99), parent => $server_pid, namespace_pid => 99_999_99, namespace => $namespace,
	who => 'walwriter', compact_stalls => 1);
$probe->add_process(pid => 12345, parent => 4321, namespace_pid => $session_pid, namespace => 4_026_532_999, compact_stalls => 99);
$probe->write_in_place;
wait_until("SELECT count(*) = 3 FROM kernel_advisor.backend_stalls");
is(value("SELECT backend_type, datname, state, compact_stall, direct_compact_us, longest_compact_us, allocstall, direct_reclaim_us,
	longest_reclaim_us, pcp_drains, pcp_drained_pages FROM kernel_advisor.backend_stalls WHERE pid = $session_pid"),
	'client backend|postgres|idle|2|5000|3000|4|1000|600|1|18', 'a backend, joined to pg_stat_activity');
is(value("SELECT backend_type, datname IS NULL, state IS NULL, compact_stall FROM kernel_advisor.backend_stalls WHERE pid = 9999999"),
	'walwriter|t|t|1', 'one that has gone: what the probe knows');
is(value("SELECT backend_type, datname IS NULL FROM kernel_advisor.backend_stalls WHERE pid = $checkpointer"), 'checkpointer|t', 'the checkpointer');
$session->quit;

# ---------------------------------------------------------------- started again, ended, gone

my $before = sums();
my $offset = -s $node->logfile;
$probe->restart->add(who => 'checkpointer', compactions => 1, compact_ns => 77_000_000)->write_in_place;
sampled();
is(sums(), $before, 'another start of the probe: nothing is made up for the time between');
is(value('SELECT count(*) > 0 FROM kernel_advisor.samples WHERE direct_compact_us IS NULL'), 't', 'that sample has null');
$probe->add(who => 'checkpointer', compactions => 1, compact_ns => 1_000_000)->write_in_place;
sampled();
my ($compact_before) = (split /\|/, $before)[2];
is((split /\|/, sums())[2], $compact_before + 1000, 'and it goes on from there');

# Interrupted in the middle of its writing: nothing new for a while, and nothing is lost.
{
	my $compact = (split /\|/, sums())[2];

	$probe->begin_write;
	sampled();
	is(value("SELECT $columns FROM kernel_advisor.samples ORDER BY at DESC LIMIT 1"), '0|0|0|0|0|0', 'a file that is being written: nothing new');
	$probe->add(who => 'checkpointer', compactions => 1, compact_ns => 2_000_000)->write_in_place;
	sampled();
	is((split /\|/, sums())[2], $compact + 2000, 'when it has been written, all of it');
	$compact_before += 2000;
}

# A group was given up: its counters are among the others now.
{
	my $ours = "checkpointer/$server_pid";
	my $group = delete $probe->{groups}{$ours};
	$probe->add(who => 'other process', compactions => 3, compact_ns => 80_000_000);
	$probe->write_in_place;
	sampled();
	is((split /\|/, sums())[2], $compact_before + 1000, 'a group that was given up is counted once');
	is(value('SELECT min(least(direct_compact_us, server_compact_us)) >= 0 FROM kernel_advisor.samples'), 't', 'and nothing is negative');
}

# Without a tracepoint its counters mean nothing.
$probe->{sources} = FakeProbe::ALL_SOURCES & ~1;	# mm_page_pcpu_drain
$probe->write_in_place;
sampled();
is(value('SELECT pcp_drains IS NULL, pcp_drained_pages IS NULL, direct_compact_us, direct_reclaim_us FROM kernel_advisor.samples ORDER BY at DESC LIMIT 1'),
	't|t|0|0', 'a tracepoint is missing: null where it is needed, and only there');
like(status(), qr/this kernel has no tracepoint kmem:mm_page_pcpu_drain/, 'status names it');
$probe->{sources} = FakeProbe::ALL_SOURCES;
$probe->{dropped} = 7;
$probe->write_in_place;
like(status(), qr/not told apart or not counted: 0 processes, 0 groups, 7 stalls, 0 events/, 'and what was dropped');

$probe->{heartbeat_ns} = 1_000_000_000;
$probe->write_in_place;
delete $probe->{heartbeat_ns};
sampled();
like(status(), qr/^stale\|its heartbeat is old/, 'a probe that was killed: stale');
is(value("SELECT num_nonnulls($columns) FROM kernel_advisor.samples ORDER BY at DESC LIMIT 1"), '0', 'null again');
is(value('SELECT count(*) FROM kernel_advisor.stalls WHERE checkpoint_id IS NULL'), '0', 'no live stalls');
like(log_since($node, $offset), qr/LOG:  kernel_advisor_probe does not run any more/, 'the log says so');
unlink($file);
sampled();
like(status(), qr/^absent/, 'and took its file away: absent');

# ---------------------------------------------------------------- files that are not the probe's

sub look_anew
{
	my ($make) = @_;

	unlink($file);
	sampled();
	$make->(FakeProbe->new(file => $file, server_pid => $server_pid));
	sampled();
	return;
}
my %hostile = (
	'another version' => [ sub { $_[0]->{version} = 2; $_[0]->publish }, 'another version of the format' ],
	'another program' => [ sub { $_[0]->{magic} = 42; $_[0]->publish }, 'not a file of kernel_advisor_probe' ],
	'too long' => [ sub { $_[0]->{more} = 'x'; $_[0]->publish }, 'its size is not that' ],
	'empty' => [ sub { open(my $out, '>', $file) or die; close($out) }, 'its size is not that' ],
	'a sequence that never ends' => [ sub { $_[0]->{sequence} = 3; $_[0]->publish }, 'written all the time' ],
	'more groups than there can be' => [ sub { $_[0]->{ngroups} = 4_000_000_000; $_[0]->publish }, 'claims more rows than it has' ],
	'writable for others' => [ sub { $_[0]->{mode} = 0666; $_[0]->publish }, 'others than its owner can write' ],
	'a symbolic link' => [ sub { symlink('/etc/passwd', $file) or die }, 'symbolic link' ],
	'a directory' => [ sub { mkdir($file) or die }, 'not a regular file' ],
	'a pipe' => [ sub { POSIX::mkfifo($file, 0644) or die }, 'not a regular file' ],
	'not readable' => [ sub { $_[0]->{mode} = 0000; $_[0]->publish }, 'cannot be opened' ],
);
foreach my $name (sort keys %hostile)
{
	my ($make, $reason) = @{ $hostile{$name} };

	if ($name eq 'not readable' && $> == 0) { next; }
	$offset = -s $node->logfile;
	look_anew($make);
	like(status(), qr/^refused\|.*$reason/, "$name: refused, with the reason");
	like(log_since($node, $offset), qr/LOG:  ignoring kernel_advisor_probe's file "\Q$file\E": .*$reason/, "$name: in the log");
	is(value("SELECT num_nonnulls($columns) FROM kernel_advisor.samples ORDER BY at DESC LIMIT 1"), '0', "$name: null");
	my @lines = log_since($node, $offset) =~ /ignoring kernel_advisor_probe's file/g;
	is(scalar @lines, 1, "$name: once");
	rmdir($file) if -d $file;
}

# Replaced under the reader's eyes, in the middle of a checkpoint: null, not a mixture.
look_anew(sub { $probe = $_[0]; $probe->add_process(pid => $host_pid->($checkpointer), parent => $server_pid, namespace_pid => $checkpointer,
	namespace => $namespace, who => 'checkpointer'); $probe->publish });
wait_until(q{SELECT direct_compact_us IS NOT NULL FROM kernel_advisor.samples ORDER BY at DESC LIMIT 1});
spread_checkpoint($node, sub {
	$probe->add(who => 'checkpointer', compactions => 1, compact_ns => 1_000_000)->write_in_place;
	sampled();
	$probe->{heartbeat_ns} = 1_000_000_000;
	$probe->write_in_place;
	delete $probe->{heartbeat_ns};
	$probe->restart->add(who => 'checkpointer', compactions => 5, compact_ns => 5_000_000)->publish;
	sampled();
});
wait_until('SELECT bool_and(wal_bytes IS NOT NULL) FROM kernel_advisor.checkpoints');
is(value("SELECT num_nonnulls($columns) FROM kernel_advisor.checkpoints
	WHERE checkpoint_id = (SELECT checkpoint_id FROM kernel_advisor.samples WHERE direct_compact_us = 1000 ORDER BY at DESC LIMIT 1)"), '0',
	'a checkpoint that saw two probes: null');

# ---------------------------------------------------------------- the setting

value(q{ALTER SYSTEM SET kernel_advisor.probe_file = ''});
$node->reload;
wait_until(q{SELECT state = 'absent' AND detail LIKE 'kernel_advisor.probe_file is empty%' FROM kernel_advisor.status WHERE component = 'probe'});
sampled();
is(value("SELECT num_nonnulls($columns) FROM kernel_advisor.samples ORDER BY at DESC LIMIT 1"), '0', 'switched off');
value(q{ALTER SYSTEM RESET kernel_advisor.probe_file});
$node->reload;
wait_until(q{SELECT direct_compact_us IS NOT NULL FROM kernel_advisor.samples ORDER BY at DESC LIMIT 1});
pass('and on again');

# ---------------------------------------------------------------- kept over a restart

my $kept = 'SELECT checkpoint_id, process_type, stall, count, total_us, longest_us, histogram FROM kernel_advisor.stalls WHERE checkpoint_id IS NOT NULL ORDER BY 1, 2, 3';
my $stalls_before = value($kept);
isnt($stalls_before, '', 'there are stalls of checkpoints');
$sql->quit;
$node->restart;
$sql = $node->background_psql('postgres');
is(value($kept), $stalls_before, 'which a restart keeps');

$sql->quit;
$node->stop;
done_testing();
