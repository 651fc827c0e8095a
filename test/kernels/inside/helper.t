# The root helper on this kernel: each knob of its table set, read back from the kernel's own file, rolled back; the
# journal and /etc are not the real ones.  What it gave up is seen from outside, and holds.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../../../contrib_tools/kernel_advisord/t";
use Advisord;
use Test::More;

my $root = make_root('/run');
my $d = start_daemon(root => $root, wrapper => in_namespace($root, 'mount --bind /proc $1/proc; mount --bind /sys $1/sys'));
END { stop_daemon($d) if $d }

# What it gave up
my $status = status_of($d);
is($status->{$_}, '0000000000000000', "$_ is empty") for qw(CapEff CapPrm CapInh CapBnd CapAmb);
is($status->{NoNewPrivs}, 1, 'no new privileges');
is($status->{Seccomp}, 2, 'a seccomp filter');
my $lsm = -e '/sys/kernel/security/lsm' ? slurp('/sys/kernel/security/lsm') : '';
my ($state) = slurp($d->{log}) =~ /ready: .*?(\S*[Ll]andlock.*)/;
if ($lsm =~ /\blandlock\b/) { like($state, qr/^Landlock ABI \d+/, "Landlock is there: $state"); }
else { unlike($state, qr/ABI \d+/, "this kernel runs without Landlock, and the helper says so: $state"); }

# The knobs: path and words from the helper's table
my (%path, %words);
my $source = "$FindBin::Bin/../../../contrib_tools/kernel_advisord";
my $table = slurp("$source/knobs.def");
$path{$1} = $2 while $table =~ /^KNOB\(\d+, \w+, "([^"]+)", "([^"]+)"/mg;
sub now
{
	my ($file) = @_;
	my $text = slurp($file);
	return $text =~ /\[(.*?)\]/ ? $1 : $text =~ s/\s+$//r;
}

# What to ask for: something else than what is set.
my %ask = (
	'vm.nr_hugepages' => [ 4, 5 ], 'vm.nr_overcommit_hugepages' => [ 3, 4 ], 'vm.extfrag_threshold' => [ 1000, 500 ],
	'vm.compaction_proactiveness' => [ 0, 20 ], 'vm.defrag_mode' => [ 1, 0 ], 'vm.min_free_kbytes' => [ 12345, 23456 ],
	'vm.watermark_scale_factor' => [ 20, 10 ], 'vm.watermark_boost_factor' => [ 0, 15000 ], 'vm.percpu_pagelist_high_fraction' => [ 8, 16 ],
	'vm.zone_reclaim_mode' => [ 1, 0 ], 'vm.dirty_background_bytes' => [ 67108864, 33554432 ], 'vm.dirty_bytes' => [ 268435456, 134217728 ],
	'vm.overcommit_memory' => [ 1, 0 ], 'vm.overcommit_ratio' => [ 60, 50 ], 'vm.swappiness' => [ 10, 60 ],
	'thp.enabled' => [ 0, 1 ], 'thp.defrag' => [ 0, 1 ], 'thp.shmem_enabled' => [ 0, 1 ], 'thp.khugepaged_defrag' => [ 0, 1 ]);
my @internal = sort grep { $KNOB{$_} >= 60 && $KNOB{$_} < 100 } keys %KNOB;
my %twin = ('vm.dirty_background_bytes' => 'vm.dirty_background_ratio', 'vm.dirty_bytes' => 'vm.dirty_ratio', 'vm.overcommit_ratio' => 'vm.overcommit_kbytes');

my %before;
for my $knob (sort { $KNOB{$a} <=> $KNOB{$b} } grep { $KNOB{$_} < 60 && $_ ne 'vm.compact_memory' } keys %KNOB)
{
	my $file = $path{$knob};
	if (!$ask{$knob}) { fail("$knob: this test has no value for it"); next; }
	if (!-e $file)
	{
		is(call($d, 'SET', $knob, $ask{$knob}[0])->{status}, 'ABSENT', "$knob: this kernel has none");
		next;
	}
	my $text = $before{$file} = now($file);
	my $twin = $twin{$knob} ? now($path{ $twin{$knob} }) : '';
	my $got = call($d, 'GET', $knob);
	my ($value) = grep { $_ != $got->{granted} } @{ $ask{$knob} };
	my $reply = call($d, 'SET', $knob, $value);
	is("$reply->{status} $reply->{old} $reply->{granted}", "OK $got->{granted} $value", "$knob: set to $value");
	isnt(now($file), $text, "$knob: the kernel's file has changed") if $value ne $text;
	is(now($file), $value, "$knob: and has the value") if now($file) =~ /^\d+$/;
	my $back = call($d, 'ROLLBACK', undef, $reply->{change});
	is("$back->{status} $back->{granted}", "OK $got->{granted}", "$knob: rolled back");
	is(now($file), $text, "$knob: the kernel's file is as it was");
	is(now($path{ $twin{$knob} }), $twin, "$knob: and so is $twin{$knob}") if $twin{$knob};
}
is(call($d, 'SET', 'vm.compact_memory', 1)->{status}, 'OK', 'vm.compact_memory: compacts');
isnt(call($d, 'SET', $_, 1)->{status}, 'OK', "$_: not for clients") for @internal;

my ($memory_kb) = slurp('/proc/meminfo') =~ /^MemTotal: +(\d+)/;
# The pools of each page size that the kernel has, and none that it has not
for my $name (sort grep { /^hugepages-/ } keys %KNOB)
{
	my ($kb, $what) = $name =~ /^hugepages-(\d+)kB\.(\w+)/;
	my $file = "/sys/kernel/mm/hugepages/hugepages-${kb}kB/$what";
	my $value = 2;
	my $reply = call($d, 'SET', $name, $value);
	if (!-e $file) { is($reply->{status}, 'ABSENT', "$name: this kernel has no such size"); next; }
	if ($value * $kb * 4 > $memory_kb)
	{
		like($reply->{status}, qr/^(RANGE|RAM_SHARE|AVAILABLE)$/, "$name: too large for this machine, and refused");
		is(now($file), 0, "$name: as it was");
		next;
	}
	is("$reply->{status} $reply->{granted}", "OK $value", "$name: set to $value");
	is(now($file), $value, "$name: the kernel has it");
	is(call($d, 'ROLLBACK', undef, $reply->{change})->{status}, 'OK', "$name: rolled back") if $reply->{old} != $value;
	is(now($file), $reply->{old}, "$name: as it was");
}
is(now($_), $before{$_}, "$_ at the end as at the start") for sort keys %before;
is(status_of($d)->{Seccomp}, 2, 'the helper has survived all of it under its filter');
print qq(# json {"landlock":"$state"}\n);
done_testing();
