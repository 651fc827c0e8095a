# In fragmented memory: what the probe counts is what a trace of the same events, and /proc/vmstat, saw at the same time.
# Processes with the titles of a server's are told apart.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Probe;
use Test::More;
use Time::HiRes qw(sleep);

my $why_not = need_root();
plan skip_all => $why_not if $why_not;
plan skip_all => 'needs tracefs' if !-d '/sys/kernel/tracing';
hold_kernel();
$why_not = why_no_fragments();
plan skip_all => $why_not if $why_not;

# A file system whose writes ask for large folios.
my $disk = mount_xfs('4G');

my $trace = start_trace();
plan skip_all => 'tracefs cannot be mounted here' if !$trace;
my $p = start_probe();
restore_with(sub { stop_probe($p) });
is($_, 'on', 'all tracepoints are there') for join(' ', sort { $a cmp $b } keys %{ { map { ($_ => 1) } values %{ show($p)->{source} } } });

# The load: started now, so that fragmentation does not hit the start of processes; waits for a line.
my @loads = (
	{ title => 'postgres: checkpointer ', kind => 'checkpointer', mb => 250 },
	{ title => 'postgres: walwriter ', kind => 'walwriter', mb => 250 },
	{ title => 'postgres: main: ann sales [local] INSERT', kind => 'client_backend', mb => 120, what => 'fault' },
	{ title => 'some other program', kind => 'other_process', mb => 120, what => 'fault' });
for my $load (@loads)
{
	my $what = $load->{what} // ($disk ? 'write' : 'fault');
	$load->{tool} = start_tool(tool('probe_titled'), $load->{title}, $what, $what eq 'write' ? "$disk/$load->{kind}" : (), $load->{mb});
	$load->{pid} = $load->{tool}{first};
}

fragment_memory();
note('huge pages granted: ' . slurp('/proc/sys/vm/nr_hugepages'));

sleep(0.5);
# The kernel's own counters are read on both sides of the probe's, so that what others do meanwhile is no difference.
my @names = ('compact_stall', 'allocstall_\w+');
my %outer = map { ($_ => -vmstat($_)) } @names;
my $first = show($p);
sleep(0.2);
my %inner = map { ($_ => -vmstat($_)) } @names;
for my $load (@loads)
{
	tell($load->{tool}, 'go');
	readline($load->{tool}{out});
}
$inner{$_} += vmstat($_) for @names;
sleep(0.5);
my $last = show($p);
sleep(0.2);
$outer{$_} += vmstat($_) for @names;
my $seen = stop_trace($trace, $first->{heartbeat_ns}, $last->{heartbeat_ns});
is($seen->{lost}, 0, 'the trace has all events');
is($last->{$_} - $first->{$_}, 0, "nothing is $_") for qw(dropped_processes dropped_groups dropped_sections dropped_events);

# within 1 % of what the observer says, or one
sub near
{
	my ($got, $expected, $what, $slack) = @_;
	my $allowed = 0.01 * $expected > ($slack // 1) ? 0.01 * $expected : ($slack // 1);
	return ok(abs($got - $expected) <= $allowed, "$what: $got, observer: $expected");
}
# Times are within 1 %, too, or half a millisecond: on a busy machine an interrupt now and then falls between the two clocks.
sub near_ns
{
	my ($got, $expected, $what) = @_;
	return near($got, $expected, $what, 500_000);
}
# within 1 % of what lies between both readings of /proc/vmstat, or one
sub between
{
	my ($got, $name, $what) = @_;
	my ($low, $high) = (0.99 * $inner{$name} - 1, 1.01 * $outer{$name} + 1);
	return ok($got >= $low && $got <= $high, "$what: $got, /proc/vmstat: $inner{$name}" . ($outer{$name} > $inner{$name} ? " to $outer{$name}" : ''));
}
sub orders { my ($name) = @_; my $sum = 0; $sum += $last->{order}[$_]{$name} - $first->{order}[$_]{$name} for 0 .. 15; return $sum; }
sub of_kind
{
	my ($kind, $name) = @_;
	my $sum = 0;
	$sum += $_->{$name} for grep { $_->{kind} eq $kind } @{ $last->{group} };
	$sum -= $_->{$name} for grep { $_->{kind} eq $kind } @{ $first->{group} };
	return $sum;
}
sub event { my ($name) = @_; return $seen->{events}{$name} // 0; }

# the machine
near(orders('drained_blocks'), event('mm_page_pcpu_drain'), 'drained blocks');
cmp_ok(event('mm_page_pcpu_drain'), '>', 1000, 'which are many');
for my $order (sort { $a <=> $b } keys %{ $seen->{order} })
{
	near($last->{order}[$order]{drained_blocks} - $first->{order}[$order]{drained_blocks}, $seen->{order}{$order}, "of order $order", 3);
}
near(orders('extfrag'), event('mm_page_alloc_extfrag'), 'fragmentation events');
near(orders('compact_attempts'), event('mm_compaction_try_to_compact_pages'), 'calls of direct compaction');
between(orders('compact_stalls'), 'compact_stall', 'stalls in direct compaction');
cmp_ok($inner{compact_stall}, '>', 50, 'which are many');
between(orders('reclaim_nothing') + orders('reclaim_progress'), 'allocstall_\w+', 'direct reclaims');
my %sum;
for my $name (map { ($_, "${_}_ns") } qw(compactions reclaims))
{
	$sum{$name} += $_->{$name} // 0 for values %{ $seen->{by} };
}
my $compactions = 0;
my $compactions_ns = 0;
for my $result (qw(success contended partial complete other))
{
	$compactions += orders("compaction_$result");
	$compactions_ns += orders("compaction_${result}_ns");
}
$compactions += $last->{$_}{compactions} - $first->{$_}{compactions}, $compactions_ns += $last->{$_}{compactions_ns} - $first->{$_}{compactions_ns}
	for qw(kcompactd manual);
near(orders('reclaim_nothing') + orders('reclaim_progress'), $sum{reclaims}, 'as in the trace');
near($compactions, $sum{compactions}, 'zones compacted, kcompactd included');
near_ns($compactions_ns, $sum{compactions_ns}, 'ns in that');
near_ns(orders('reclaim_nothing_ns') + orders('reclaim_progress_ns'), $sum{reclaims_ns}, 'ns in direct reclaim');

# the histogram has every one of them
my $in_histogram = 0;
for my $order (0 .. 15)
{
	$in_histogram += $_ for $last->{order}[$order]{compaction_us} =~ /:(\d+)/g;
	$in_histogram -= $_ for $first->{order}[$order]{compaction_us} =~ /:(\d+)/g;
}
is($in_histogram, $compactions - $last->{kcompactd}{compactions} + $first->{kcompactd}{compactions} - $last->{manual}{compactions} + $first->{manual}{compactions},
	'the histogram has every zone');

# who
my $server;
my ($namespace) = readlink('/proc/self/ns/pid') =~ /(\d+)/;
my $first_namespace = 0xEFFFFFFC;	# PROC_PID_INIT_INO
for my $load (@loads)
{
	# In a PID namespace of its own, the test knows its children by other numbers than the kernel does.
	my ($row) = grep { $_->{pid_namespace} == $namespace && $_->{namespace_pid} == $load->{pid} } values %{ $last->{process} };
	ok($row, "$load->{kind}: has a row") or next;
	is($row->{kind}, $load->{kind}, 'of its kind');
	$server //= $row->{parent};
	is($row->{parent}, $server, 'with its parent');
	is("$row->{pid} $row->{parent}", "$load->{pid} $$", 'which this test sees alike') if $namespace == $first_namespace;
	my $by = $seen->{by}{ $row->{pid} } // {};
	for my $name (qw(compactions reclaims))
	{
		near($row->{$name}, $by->{$name} // 0, "$load->{kind}: $name");
		near_ns($row->{"${name}_ns"}, $by->{"${name}_ns"} // 0, 'and their ns');
		near_ns($row->{"${name}_longest_ns"}, $by->{"${name}_longest_ns"}, 'and the longest') if $name eq 'reclaims' && $by->{reclaims};
	}
	my $drained = $row->{drained_free} + $row->{drained_compaction} + $row->{drained_reclaim} + $row->{drained_all};
	my $before = $first->{process}{ $row->{pid} };
	$drained -= $before->{drained_free} + $before->{drained_compaction} + $before->{drained_reclaim} + $before->{drained_all} if $before;
	near($drained, $by->{drained_pages} // 0, "$load->{kind}: drained pages", 2);
	near(of_kind($load->{kind}, 'compactions'), $row->{compactions}, 'its group has the same') if $load->{kind} ne 'other_process';
}
my ($checkpointer) = grep { $_->{kind} eq 'checkpointer' && $_->{server} == $server } @{ $last->{group} };
ok($checkpointer, 'the checkpointer\'s group is of this server') or $checkpointer = {};
cmp_ok($checkpointer->{compactions_longest_ns} // 0, '>', 0, 'with a longest stall');
is($checkpointer->{compaction_recent_ns}, $checkpointer->{compactions_longest_ns}, 'that was in the last seconds');
note(join(' ', map { "$_=$checkpointer->{$_}" } qw(compact_stalls compactions compactions_ns compactions_longest_ns reclaims reclaims_ns
		drained_free drained_compaction drained_reclaim drained_all drain_alls)));
done_testing();
