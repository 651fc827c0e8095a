# A real server, the real probe, this kernel, fragmented memory: a row of kernel_advisor.checkpoints shows drained pages
# and microseconds in direct compaction that a trace and perf, each watching for itself, confirm.
#
# The probe publishes ten times a second, and what it counted last belongs to the next sample.  So nothing may happen where
# the checkpoint begins and ends: there the kernel's policy keeps everybody from compacting, and the load runs between.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Probe;
use ProbeServer;
use File::Temp qw(tempdir);
use Test::More;
use Time::HiRes qw(sleep clock_gettime CLOCK_MONOTONIC CLOCK_REALTIME);

my $why_not = need_root() // need_server();
plan skip_all => $why_not if $why_not;
plan skip_all => 'needs tracefs' if !-d '/sys/kernel/tracing';
hold_kernel();
$why_not = why_no_fragments();
plan skip_all => $why_not if $why_not;
my $xfs = mount_xfs('4G');
my $disk = $xfs // tempdir('probe.XXXXXX', DIR => '/var/tmp', CLEANUP => 1);

my $published = tempdir('probe.XXXXXX', DIR => '/var/tmp', CLEANUP => 1);
chmod 0755, $published;
my $file = "$published/run/counters";
# Each new WAL segment is written in large pieces, and none is used again.
my $s = start_server($disk, "kernel_advisor.probe_file = '$file'", 'checkpoint_timeout = 1h', 'checkpoint_completion_target = 0.9',
	'max_wal_size = 2GB', 'wal_recycle = off', 'shared_buffers = 64MB', 'autovacuum = off', 'max_parallel_workers = 0');
sub status { return query($s, q{SELECT state, detail FROM kernel_advisor.status WHERE component = 'probe'}); }
sub newest { my ($columns) = @_; return query($s, "SELECT $columns FROM kernel_advisor.samples ORDER BY at DESC LIMIT 1"); }

my $columns = 'pcp_drains, pcp_drained_pages, direct_compact_us, direct_reclaim_us, server_compact_us, server_reclaim_us';
like(status(), qr/^absent/, 'without the probe');
sampled($s);
is(newest("num_nonnulls($columns)"), '0', 'its columns are null');

my $p = start_probe(user => 'postgres', scratch => $published);
restore_with(sub { stop_probe($p) });
ok(wait_until(sub { status() =~ /^running/ }), 'the probe runs');

# Sessions that are there before memory is short.
my $load = session($s);
my $backup = session($s);
query($s, 'CREATE TABLE load AS SELECT i, repeat(i::text, 40) AS t FROM generate_series(1, 1000) AS i');
tell($backup->{tool}, "SELECT 1;");
readline($backup->{tool}{out});
my %pid = map { split /\|/ } split /\n/, query($s, q{SELECT backend_type, pid FROM pg_stat_activity WHERE backend_type IN ('checkpointer', 'walwriter', 'background writer')});
# Something to write, so that the checkpoint has time to take.
query($s, 'INSERT INTO load SELECT i, repeat(i::text, 20) FROM generate_series(1, 50000) AS i');
fragment_memory();
# With 1000 no direct compaction begins, whoever asks; fragment_memory() restores it.
sub quiet { my ($is) = @_; spew('/proc/sys/vm/extfrag_threshold', $is ? '1000' : '500'); return; }
quiet(1);
my $trace = start_trace() // die 'tracefs cannot be mounted here';
my $perf = start_perf();
note('without perf') if !$perf;
note('huge pages granted: ' . slurp('/proc/sys/vm/nr_hugepages'));
my ($clock_ns) = (clock_gettime(CLOCK_REALTIME) - clock_gettime(CLOCK_MONOTONIC)) * 1e9;

sleep(0.3);	# more than the margin at its ends
tell($backup->{tool}, "SELECT pg_backup_start('spread', false);");
ok(wait_until(sub { query($s, q{SELECT count(*) >= 3 FROM kernel_advisor.samples WHERE phase = 'write'}) eq 't' }), 'a checkpoint runs');
note('free large blocks: ' . large_blocks());
my $stalls_before = vmstat('compact_stall');
my $fills = 1;
quiet(0);
for my $n (1 .. 24)
{
	tell($load->{tool}, "INSERT INTO load SELECT i, repeat(i::text, 60) FROM generate_series(1, 100000) AS i;\nSELECT 'done';");
	$fills &&= readline($load->{tool}{out}) eq "done\n";
	last if vmstat('compact_stall') - $stalls_before >= 100;
	# Large blocks that others gave back are taken once there is room.
	spew('/proc/sys/vm/drop_caches', '1') if large_blocks() > 200;
}
quiet(1);
ok($fills, 'a backend fills WAL and table');
my $stalls = vmstat('compact_stall') - $stalls_before;
sampled($s);
# The checkpointer's own writes, at once: a second request ends its pauses.
my $hurry = fork() // die "fork: $!";
if ($hurry == 0) { query($s, 'CHECKPOINT'); POSIX::_exit(0); }
readline($backup->{tool}{out});
waitpid($hurry, 0);
my $id = query($s, q{SELECT checkpoint_id FROM kernel_advisor.samples WHERE phase = 'write' ORDER BY at LIMIT 1});
ok(wait_until(sub { query($s, "SELECT direct_compact_us IS NOT NULL FROM kernel_advisor.checkpoints WHERE checkpoint_id = $id") eq 't' }), 'it has ended');
my %row;
@row{ split /, /, "$columns, compact_stall, pcp_drained_pages_estimate, pcp_drains_estimate" } = split /\|/,
  query($s, "SELECT $columns, compact_stall, pcp_drained_pages_estimate, pcp_drains_estimate FROM kernel_advisor.checkpoints WHERE checkpoint_id = $id");
my ($from_ns, $to_ns) = map { $_ * 1e9 - $clock_ns } split /\|/,
  query($s, "SELECT extract(epoch FROM min(at - interval_ms * interval '1ms')), extract(epoch FROM max(at)) FROM kernel_advisor.samples WHERE checkpoint_id = $id");
sleep(0.3);

# Each observer's numbers of the checkpoint's time, and of a fifth of a second less and more at its ends.
my %seen = (trace => trace_events($trace));
$seen{perf} = stop_perf($perf) if $perf;
for my $who (sort keys %seen)
{
	my @events;
	while (my $event = $seen{$who}->()) { push @events, $event; }
	$seen{$who} = {};
	my %margin = (whole => 0, inner => -2e8, outer => 2e8);
	for my $span (keys %margin)
	{
		my @left = @events;
		$seen{$who}{$span} = sections(sub { return shift @left }, $from_ns - $margin{$span}, $to_ns + $margin{$span});
	}
	note("$who: $seen{$who}{whole}{events} events; pages $seen{$who}{whole}{drained_pages}, compaction "
		  . "$seen{$who}{whole}{direct_compact_ns} ns, reclaim $seen{$who}{whole}{direct_reclaim_ns} ns");
}
note(join(' ', map { "$_=$row{$_}" } sort keys %row));

sub confirmed
{
	my ($got, $who, $name, $unit, $slack, $what) = @_;
	my ($low, $whole, $high) = map { $seen{$who}{$_}{$name} / $unit } qw(inner whole outer);
	return ok($got >= 0.99 * $low - $slack && $got <= 1.01 * $high + $slack, sprintf('%s: %s, %s: %.0f (%.0f to %.0f)', $what, $got, $who, $whole, $low, $high));
}
cmp_ok($row{pcp_drained_pages}, '>', 0, "the checkpoint's row has drained pages");
cmp_ok($row{direct_compact_us}, '>', 0, 'and microseconds in direct compaction');
for my $who (sort keys %seen)
{
	confirmed($row{pcp_drained_pages}, $who, 'drained_pages', 1, 2, 'drained pages');
	confirmed($row{direct_compact_us}, $who, 'direct_compact_ns', 1000, 500, 'microseconds in direct compaction');
	confirmed($row{direct_reclaim_us}, $who, 'direct_reclaim_ns', 1000, 500, 'microseconds in direct reclaim');
	cmp_ok($seen{$who}{outer}{direct_compact_ns}, '<=', 1.02 * $seen{$who}{inner}{direct_compact_ns} + 1e6, 'and it matters little where it begins and ends');
}
cmp_ok(abs($row{compact_stall} - $stalls), '<=', 0.05 * $stalls + 3, "direct compactions: $row{compact_stall}, /proc/vmstat around the load: $stalls");
is($perf->{lost} // 0, 0, 'perf has lost nothing') if $perf;

# Who: threads of this server, in the trace and in the view.
my %who = ('client backend' => [ $load->{pid} ], map { ($_ => [ $pid{$_} ]) } keys %pid);
my $namespace = readlink('/proc/self/ns/pid');
SKIP:
{
	skip 'the trace has the numbers of the host', 1 if $namespace !~ /4026531836/;
	for my $type (sort keys %who)
	{
		my ($by) = map { $_ // {} } $seen{trace}{outer}{by}{ $who{$type}[0] };
		my ($us, $count) = split /\|/, query($s, "SELECT coalesce(sum(total_us), 0), coalesce(sum(count), 0) FROM kernel_advisor.stalls WHERE checkpoint_id = $id AND process_type = '$type' AND stall = 'direct compaction'");
		my $expected = ($by->{direct_compact_ns} // 0) / 1000;
		cmp_ok(abs($us - $expected), '<=', 0.02 * $expected + 1000, sprintf('%s: %d us in %d stalls, trace: %.0f us', $type, $us, $count, $expected));
	}
}
cmp_ok($row{server_compact_us}, '>', 0, 'this server has its part of it');
cmp_ok($row{server_compact_us}, '<=', $row{direct_compact_us}, 'and not more than all');
is(query($s, "SELECT count(*) FROM kernel_advisor.backend_stalls WHERE pid = $load->{pid} AND backend_type = 'client backend' AND direct_compact_us > 0"),
	'1', 'the backend is in backend_stalls');
like(query($s, "SELECT reason FROM kernel_advisor.advice WHERE rule = 'compaction.policy' AND subject = 'vm.extfrag_threshold'"),
	qr/measured: in the last .*checkpoint.* the checkpointer waited \d+ ms/, 'the advice has what was measured') if $xfs && $row{compact_stall} > 300;

# Killed, started again, of another version while the server reads.
stop_probe($p, 'KILL');
ok(wait_until(sub { status() =~ /^stale/ }), 'killed: stale');
sampled($s);
is(newest("num_nonnulls($columns)"), '0', 'and null');
$p = start_probe(user => 'postgres', scratch => $published);
ok(wait_until(sub { status() =~ /^running/ && newest("num_nonnulls($columns)") eq '6' }), 'another one: its numbers are read');
is(query($s, 'SELECT min(least(direct_compact_us, server_compact_us, pcp_drained_pages)) >= 0 FROM kernel_advisor.samples'), 't', 'and no difference of two probes is in any sample');
stop_probe($p);
ok(wait_until(sub { status() =~ /^absent/ }), 'ended: absent');
{
	my $q = start_probe(user => 'postgres', scratch => $published);
	ok(wait_until(sub { status() =~ /^running/ }), 'the next one');
	command('cp', $file, "$file.old");
	stop_probe($q, 'KILL');
	my $content = slurp("$file.old");
	substr($content, 8, 4) = pack('L<', 2);
	spew("$file.old", $content);
	command('chown', 'postgres', "$file.old");
	rename("$file.old", $file);
	ok(wait_until(sub { status() =~ /^refused\|it has another version of the format/ }), 'replaced by one of another version: refused');
	sampled($s);
	is(newest("num_nonnulls($columns)"), '0', 'and null');
}
is(query($s, 'SELECT count(*) FROM kernel_advisor.stalls WHERE checkpoint_id IS NOT NULL') > 0, 1, 'what was measured of checkpoints stays');
unlike(slurp($s->{log}), qr/PANIC|terminated by signal/, 'the server had no trouble');
stop_server($s);
done_testing();
