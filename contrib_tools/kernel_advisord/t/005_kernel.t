# On this machine's kernel: /proc and /sys are the real ones, the journal and
# /etc are not.  Everything that is changed is put back, however this ends.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Advisord;
use Test::More;

plan skip_all => 'needs root' if $> != 0;
plan skip_all => '/proc/sys is read-only' if !-w '/proc/sys/vm/extfrag_threshold' || !open(my $probe, '>>', '/proc/sys/vm/extfrag_threshold');

my %file = map { ($_ => "/proc/sys/vm/$_") } qw(extfrag_threshold compaction_proactiveness swappiness nr_hugepages);
my $thp = '/sys/kernel/mm/transparent_hugepage/defrag';
my $node_pool = '/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages';
my %before = map { ($_ => slurp($file{$_})) } keys %file;
my ($thp_before) = slurp($thp) =~ /\[(.*?)\]/ if -e $thp;
my %dirty = map { ($_ => slurp("/proc/sys/vm/$_") + 0) } qw(dirty_bytes dirty_ratio);
my $root = make_root();
my $d;

sub now { my ($knob) = @_; return slurp("/proc/sys/vm/$knob") + 0; }

sub restore
{
	stop_daemon($d) if $d;
	for my $knob (keys %file)
	{
		spew($file{$knob}, $before{$knob}) if slurp($file{$knob}) ne $before{$knob};
	}
	spew($thp, $thp_before) if defined $thp_before && slurp($thp) !~ /\[\Q$thp_before\E\]/;
	if (now('dirty_bytes') != $dirty{dirty_bytes} || now('dirty_ratio') != $dirty{dirty_ratio})
	{
		my $which = $dirty{dirty_bytes} ? 'dirty_bytes' : 'dirty_ratio';
		spew("/proc/sys/vm/$which", $dirty{$which});
	}
	return;
}
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
END { local $?; restore() }

my $real = in_namespace($root, 'mount --bind /proc $1/proc; mount --bind /sys $1/sys');
$d = start_daemon(root => $root, wrapper => $real);

# every knob that is there can be read, and says what the file says
for my $knob (sort { $KNOB{$a} <=> $KNOB{$b} } grep { $KNOB{$_} < 60 && /^vm\.(?!compact_memory)/ } keys %KNOB)
{
	my $path = '/proc/sys/' . $knob =~ tr{.}{/}r;
	my $reply = call($d, 'GET', $knob);
	is($reply->{status} eq 'OK' ? $reply->{granted} : $reply->{status}, -e $path ? slurp($path) + 0 : 'ABSENT', "get $knob");
}

# set, read back, roll back
for ([ extfrag_threshold => 1000, 500 ], [ compaction_proactiveness => 0, 20 ], [ swappiness => 10, 11 ])
{
	my ($knob, @values) = @$_;
	my ($value) = grep { $_ != now($knob) } @values;
	my $old = now($knob);
	my $reply = call($d, 'SET', "vm.$knob", $value);
	is("$reply->{status} $reply->{old} $reply->{asked} $reply->{granted}", "OK $old $value $value", "set vm.$knob = $value");
	is(now($knob), $value, 'the kernel has it');
	$reply = call($d, 'ROLLBACK', undef, $reply->{change});
	is("$reply->{status} $reply->{granted}", "OK $old", 'rollback');
	is(now($knob), $old, 'the kernel has the old value');
}
SKIP:
{
	skip 'no transparent huge pages', 3 if !defined $thp_before;
	my $value = $thp_before eq 'defer' ? 0 : 2;
	my $reply = call($d, 'SET', 'thp.defrag', $value);
	is($reply->{granted}, $value, 'set thp.defrag');
	like(slurp($thp), $value ? qr/\[defer\]/ : qr/\[never\]/, 'the kernel has it');
	call($d, 'ROLLBACK', undef, $reply->{change});
	like(slurp($thp), qr/\[\Q$thp_before\E\]/, 'rollback');
}

# the kernel clears the ratio when bytes are set, and takes no 0 for bytes
SKIP:
{
	skip 'dirty_bytes is in use', 4 if $dirty{dirty_bytes};
	my $reply = call($d, 'SET', 'vm.dirty_bytes', 1073741824);
	is("$reply->{status} $reply->{old}", 'OK 0', 'set vm.dirty_bytes');
	is(now('dirty_ratio'), 0, 'which clears the ratio');
	$reply = call($d, 'ROLLBACK', undef, $reply->{change});
	is("$reply->{status} $reply->{granted}", 'OK 0', 'rollback');
	is(now('dirty_ratio'), $dirty{dirty_ratio}, 'brings the ratio back');
}
my $reply = call($d, 'SET', 'vm.percpu_pagelist_high_fraction', 3);
is("$reply->{status} $reply->{error}", 'REFUSED 22', 'a value that the kernel refuses: EINVAL, and the journal knows');
is(call($d, 'LIST', undef, $reply->{change})->{state} & 8, 8, 'that nothing was written');

# a small pool, reserved while the policy is set
SKIP:
{
	my $old = now('nr_hugepages');
	skip 'no huge pages here, or a pool in use', 9 if !-e $node_pool || $old > 0 || slurp('/proc/meminfo') !~ /Hugepagesize: +2048 kB/;
	is(call($d, 'SET', 'vm.extfrag_threshold', 1000)->{granted}, 1000, 'the policy is set') if now('extfrag_threshold') != 1000;
	my $estimate = call($d, 'ESTIMATE', 'vm.nr_hugepages', 48);
	cmp_ok($estimate->{pages_free}, '>', 0, "estimate: $estimate->{pages_free} free, $estimate->{pages_compaction} by compaction");
	$reply = call($d, 'RESERVE', 'vm.nr_hugepages', 48, limit_ms => 20000);
	is("$reply->{status} $reply->{old} $reply->{asked} $reply->{granted}", "OK 0 48 48", 'reserve 48 pages');
	is(now('nr_hugepages'), 48, 'the kernel has them');
	is(now('extfrag_threshold'), 1000, 'the policy is back');
	cmp_ok($reply->{free_costly_blocks}, '>', 0, "free costly blocks afterwards: $reply->{free_costly_blocks}");
	my $change = $reply->{change};
	my $on_node = slurp($node_pool) + 0;
	$reply = call($d, 'RESERVE', 'hugepages-2048kB.nr_hugepages', $on_node + 8, node => 0);
	is("$reply->{status} $reply->{old} $reply->{granted}", 'OK ' . $on_node . ' ' . ($on_node + 8), 'and 8 more on node 0');
	is(call($d, 'ROLLBACK', undef, $change)->{status}, 'SUPERSEDED', 'the first cannot be rolled back before the second');
	is(call($d, 'ROLLBACK', undef, $reply->{change})->{granted}, $on_node, 'rollback of the second');
	is(call($d, 'ROLLBACK', undef, $change)->{granted}, 0, 'rollback of the first');
	is(now('nr_hugepages'), 0, 'the kernel has none');
	is(call($d, 'RESERVE', 'vm.nr_hugepages', 2**40)->{status}, 'RANGE', 'more than the machine has');
}

# killed, and the machine still up: the journal brings the old values back
{
	my ($value) = grep { $_ != now('swappiness') } 12, 13;
	my $old = now('swappiness');
	my $change = call($d, 'SET', 'vm.swappiness', $value)->{change};
	stop_daemon($d, 'KILL');
	$d = start_daemon(root => $root, wrapper => $real, scratch => $d->{scratch}, map { ($_ => $d->{$_}) } grep { /^bounds$/ } keys %$d);
	is(call($d, 'ROLLBACK', undef, $change)->{granted}, $old, 'rollback after a kill');
	is(now('swappiness'), $old, 'in the kernel, too');
}

restore();
undef $d;
is(slurp($file{$_}), $before{$_}, "$_ is as it was") for sort keys %file;
done_testing();
