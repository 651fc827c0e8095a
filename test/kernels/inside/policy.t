# The policy experiment: memory in single pages, writes of 1 MiB to XFS, under vm.extfrag_threshold 500 and 1000 and
# vm.compaction_proactiveness 0 and 20 in turn; stalls, direct reclaims, drained pages and the time of a write.
# The probe runs meanwhile: what it counts is compared with /proc/vmstat.
#
# What is measured is no test here: lines "# json" carry it to the tables, and the tables say what has changed.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../contrib_tools/kernel_advisor_probe/t";
use JSON::PP;
use Probe;
use Test::More;
use Time::HiRes qw(sleep time);

my $bin = "$FindBin::Bin/../../../bin";
my $count = 120;	# writes in a round
my $spare = 120;	# MiB that are not fragmented
my $vm = '/proc/sys/vm';

my $thp = '/sys/kernel/mm/transparent_hugepage/enabled';
my %before = map { -e $_ ? ($_ => slurp($_) =~ s/.*\[(.*?)\].*|\n/$1 \/\/ ''/ser) : () } $thp, map { "$vm/$_" } qw(compaction_proactiveness extfrag_threshold nr_hugepages);
restore_with(sub { spew($_, $before{$_}) for keys %before });
spew($thp, 'never') if -e $thp;
my $p = -r '/sys/kernel/btf/vmlinux' ? start_probe(may_fail => 1) : undef;
my $log = $p ? slurp($p->{log}) : 'this kernel has no BTF';
my $up = ok($p && !defined $p->{status}, 'probe: runs');
diag($log) if !$up;
restore_with(sub { stop_probe($p) }) if $p;

# A tracepoint that this kernel does not have, or has in another form, is one that the probe's log names.
my $source = $up ? show($p)->{source} : {};
my @off = sort grep { $source->{$_} ne 'on' } keys %$source;
cmp_ok(scalar keys %$source, '>', 5, 'probe: knows its tracepoints') if $up;
like($log, qr/tracepoint \Q$_\E: \S.*not counted: \S/, "probe: says that $_ is missing, why, and what is not counted") for @off;
unlike($log, qr/tracepoint \Q$_\E:/, "probe: $_ is not called missing") for grep { $source->{$_} eq 'on' } sort keys %$source;

# counters of the kernel and of the probe at the same moment
sub counters
{
	my %now = (compact_stall => vmstat('compact_stall'), allocstall => vmstat('allocstall_\w+'), pgscan_direct => vmstat('pgscan_direct'));
	return \%now if !$up;
	my $heartbeat = 0;
	my $shown;
	# the second publication from now on has all that happened before
	for (1 .. 3)
	{
		wait_until(sub { $shown = show($p); ($shown->{heartbeat_ns} // 0) != $heartbeat }, 10);
		$heartbeat = $shown->{heartbeat_ns};
	}
	for my $order (0 .. $#{ $shown->{order} })
	{
		my $row = $shown->{order}[$order] // next;
		$now{probe_stalls} += $row->{compact_stalls};
		$now{probe_reclaims} += $row->{reclaim_nothing} + $row->{reclaim_progress};
		next if $order < 4;
		# what the policy is about; the starts of processes, which ask for less, stall as well
		$now{costly_stalls} += $row->{compact_stalls};
		$now{costly_reclaims} += $row->{reclaim_nothing} + $row->{reclaim_progress};
	}
	# of all processes: per-CPU lists emptied by a stall, or for all CPUs at once; not what frees do anyway
	for my $group (@{ $shown->{group} })
	{
		$now{drained_pages} += $group->{$_} for qw(drained_compaction drained_reclaim drained_all);
	}
	$now{probe_lost} += $shown->{$_} for qw(dropped_processes dropped_groups dropped_sections dropped_events);
	return \%now;
}

spew("$vm/drop_caches", 3);
spew("$vm/compaction_proactiveness", 0) if -e "$vm/compaction_proactiveness";
my ($free_mb) = map { int($_ / 1024) } slurp('/proc/meminfo') =~ /^MemFree: +(\d+)/m;
my $fragment = start_tool("$bin/fragment", 'movable', $free_mb - $spare, 2);
is($fragment->{first}, 'ready', 'memory is fragmented');
# Takes the blocks that are still large, and what compaction makes of the others; in emulation that would take minutes.
command("timeout 15 sh -c 'echo 3000 >$vm/nr_hugepages'");
note('huge pages granted: ' . slurp("$vm/nr_hugepages"));

my %sum;
for my $setting ([ 500, 0 ], [ 1000, 0 ], [ 500, 0 ], [ 1000, 0 ], [ 500, 0 ], [ 1000, 0 ], [ 500, 20 ], [ 1000, 20 ], [ 500, 20 ], [ 1000, 20 ])
{
	my ($threshold, $proactiveness) = @$setting;
	spew("$vm/extfrag_threshold", $threshold);
	if ($proactiveness != slurp("$vm/compaction_proactiveness"))
	{
		spew("$vm/compaction_proactiveness", $proactiveness);
		sleep(2);	# its first run
	}
	my $before = counters();
	my $took = qx{'$bin/writes' /mnt/policy 1024 $count};
	my $after = counters();
	my $row = eval { decode_json($took) } // {};
	is($row->{writes}, $count, "all writes of threshold $threshold, proactiveness $proactiveness");
	$row->{threshold} = $threshold + 0;
	$row->{proactiveness} = $proactiveness + 0;
	$row->{$_} = $after->{$_} - $before->{$_} for keys %$before;
	$sum{$_} += $row->{$_} for keys %$before;
	print '# json ', JSON::PP->new->canonical->encode({ row => $row }), "\n";
}

if ($up)
{
	# of all rounds, to 2 % and two for what falls between two readings
	for ([ 'probe_stalls', 'compact_stall', 'mm_compaction_try_to_compact_pages' ], [ 'probe_reclaims', 'allocstall', 'mm_vmscan_direct_reclaim_end' ])
	{
		my ($ours, $kernel, $needs) = @$_;
	SKIP:
		{
			skip("probe: without $needs", 1) if ($source->{$needs} // 'on') ne 'on';
			my $slack = 2 + 0.02 * $sum{$kernel};
			ok(abs($sum{$ours} - $sum{$kernel}) <= $slack, "probe: $kernel: $sum{$ours}, /proc/vmstat: $sum{$kernel}");
		}
	}
	is($sum{probe_lost}, 0, 'probe: nothing lost');
}
print '# json ', JSON::PP->new->canonical->encode({ tracepoints_missing => \@off, probe => $up ? JSON::PP::true : JSON::PP::false }), "\n";
done_testing();
