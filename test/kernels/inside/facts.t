# Every fact that the core reads from the kernel, against an independent reading of the same files: nothing that the
# kernel has is missing, nothing that it has not is there.  DATA, the first argument, is a server's data directory.
#
# Lines "# json" tell the tables which fields of this kernel the advisor does not know.
use strict;
use warnings;
use FindBin;
use JSON::PP;
use Test::More;

my ($cli, $data) = @ARGV;
my $tree = "$FindBin::Bin/../../..";

# The first line of a file, or all lines; undef where there is none.
sub lines { my ($file) = @_; open(my $in, '<', $file) or return; my @lines = <$in>; chomp(@lines); return @lines; }
sub line { my ($file) = @_; my ($line) = lines($file); return $line; }
sub word { my ($file) = @_; my $line = line($file) // return; return $line =~ /\[(.*?)\]/ ? $1 : undef; }
sub names { my ($glob) = @_; return map { m{([^/]+)$} } glob($glob); }

# Free memory and the like move while they are read: between both readings, give or take 32 MiB.
sub moving { return (meminfo => { map { /^(\w+):\s+(\d+)/ ? ($1 => $2 * 1024) : () } lines('/proc/meminfo') }, costly => costly()); }
sub costly
{
	my $sum = 0;
	for (lines('/proc/buddyinfo'))
	{
		my @free = split ' ', s/.*zone\s+\w+//r;
		$sum += $free[$_] for 4 .. $#free;
	}
	return $sum;
}

my %before = moving();
my $facts = decode_json(qx{'$cli' facts -D '$data'} || '{}');
my %after = moving();
is($?, 0, 'facts are printed');

sub fact
{
	my ($path) = @_;
	my ($top, $rest) = split(/\./, $path, 2);
	return $facts->{$top}{$rest};
}
my %seen;	# paths that were compared
sub same
{
	my ($path, $expected) = @_;
	$seen{$path} = 1;
	return is(fact($path), $expected, $path);
}
sub between
{
	my ($path, $got, $low, $high, $slack) = @_;
	$seen{$path} = 1;
	($low, $high) = ($high, $low) if $low > $high;
	return ok(defined $got && $got >= $low - $slack && $got <= $high + $slack, "$path: " . ($got // 'absent') . " (kernel: $low to $high)");
}

# the kernel
chomp(my ($release, $machine, $page) = (qx{uname -r}, qx{uname -m}, qx{getconf PAGESIZE}));
same('kernel.release', $release);
same('kernel.os', 'linux');
same('kernel.machine', $machine);
is(fact('kernel.page_size_bytes'), $page, 'kernel.page_size_bytes');
same('kernel.cmdline', line('/proc/cmdline') =~ s/\s+$//r);
my $config = join("\n", lines("/boot/config-$release"));
my $preempt = word('/sys/kernel/debug/sched/preempt') // line('/sys/kernel/debug/sched/preempt');
($preempt) = $preempt =~ /\((\w+)\)/ if defined $preempt && $preempt =~ /\(\w+\)/;
$preempt //= $config =~ /^CONFIG_PREEMPT_LAZY=y/m ? 'lazy' : $config =~ /^CONFIG_PREEMPT_VOLUNTARY=y/m ? 'voluntary'
	: $config =~ /^CONFIG_PREEMPT=y/m ? 'full' : $config =~ /^CONFIG_PREEMPT_NONE=y/m ? 'none' : undef;
same('kernel.preempt', $preempt);
ok(fact('kernel.sysctl_writable'), 'kernel.sysctl_writable') if $> == 0 && -w '/proc/sys/vm/swappiness';

# the knobs: those that the advisor knows, and those that it does not
my %known;
for (lines("$tree/src/core/sysctls.def"))
{
	my ($name) = /^SYSCTL\(\w+, "([^"]+)"/ or next;
	my $file = '/proc/sys/' . $name =~ tr{.}{/}r;
	$known{$name} = 1;
	is($facts->{sysctl}{$name}, line($file), -e $file ? $name : "$name: this kernel has none");
}
ok($known{$_}, "no knob is invented: $_") for grep { !$known{$_} } keys %{ $facts->{sysctl} };
my %settable = map { /^KNOB\(\d+, \w+, "([^"]+)"/ ? ($1 => 1) : () } lines("$tree/contrib_tools/kernel_advisord/knobs.def");
my @unknown = grep { !$known{"vm.$_"} && !$settable{"vm.$_"} } names('/proc/sys/vm/*');

# memory
my %memory = (available => 'MemAvailable', free => 'MemFree', page_tables => 'PageTables', dirty => 'Dirty', committed => 'Committed_AS');
same('memory.total_bytes', $before{meminfo}{MemTotal});
same('memory.swap_total_bytes', $before{meminfo}{SwapTotal});
same('memory.commit_limit_bytes', $before{meminfo}{CommitLimit});
for my $name (sort keys %memory)
{
	between("memory.${name}_bytes", fact("memory.${name}_bytes"), $before{meminfo}{ $memory{$name} }, $after{meminfo}{ $memory{$name} }, 32 << 20);
}
between('fragmentation.free_costly_blocks', fact('fragmentation.free_costly_blocks'), $before{costly}, $after{costly}, 512);
ok(defined fact('fragmentation.unusable_index_order4'), 'fragmentation.unusable_index_order4');

# huge pages: each size, and each node's share
my %pool = map { ($_->{size_bytes} => $_) } @{ $facts->{hugepages}{pools} // [] };
my @sizes = map { /(\d+)kB/ ? $1 : () } names('/sys/kernel/mm/hugepages/*');
my ($default) = map { $_ * 1024 } map { /^Hugepagesize:\s+(\d+)/ ? $1 : () } lines('/proc/meminfo');
is(fact('hugepages.default_size_bytes'), $default, 'hugepages.default_size_bytes');
is(join(' ', sort { $a <=> $b } keys %pool), join(' ', sort { $a <=> $b } map { $_ * 1024 } @sizes), 'a pool for each size');
for my $kb (@sizes)
{
	my $dir = "/sys/kernel/mm/hugepages/hugepages-${kb}kB";
	my $pool = $pool{ $kb * 1024 } // {};
	my %file = (total => 'nr_hugepages', free => 'free_hugepages', reserved => 'resv_hugepages', surplus => 'surplus_hugepages', overcommit => 'nr_overcommit_hugepages');
	is($pool->{$_}, line("$dir/$file{$_}"), "pool of ${kb} kB: $_") for sort keys %file;
	my %node = map { ($_->{node} => $_) } @{ $pool->{nodes} // [] };
	for my $node (map { /^node(\d+)$/ ? $1 : () } names('/sys/devices/system/node/node*'))
	{
		my $of_node = "/sys/devices/system/node/node$node/hugepages/hugepages-${kb}kB";
		is($node{$node}{total}, line("$of_node/nr_hugepages"), "node $node: total");
		is($node{$node}{free}, line("$of_node/free_hugepages"), "node $node: free");
	}
}

# transparent huge pages
my $thp = '/sys/kernel/mm/transparent_hugepage';
same("thp.$_", word("$thp/$_")) for qw(enabled defrag shmem_enabled);
is(fact('thp.pmd_size_bytes'), line("$thp/hpage_pmd_size"), 'thp.pmd_size_bytes');

# nodes
my %node = map { ($_->{node} => $_) } @{ $facts->{numa} // [] };
my @nodes = map { /^node(\d+)$/ ? $1 : () } names('/sys/devices/system/node/node*');
is(scalar keys %node, scalar @nodes, 'each memory node') if @nodes > 1 || %node;
for my $n (sort keys %node)
{
	my ($total) = map { /MemTotal:\s+(\d+)/ ? $1 * 1024 : () } lines("/sys/devices/system/node/node$n/meminfo");
	is($node{$n}{total_bytes}, $total, "node $n: total_bytes");
}

# cgroup: the smallest limit of this group and those above it
my ($v2) = map { m{^0::(.*)} ? $1 : () } lines('/proc/self/cgroup');
my @mounts = map { [split] } lines('/proc/self/mounts');
my ($v1) = map { $_->[1] } grep { $_->[2] eq 'cgroup' && $_->[3] =~ /\bmemory\b/ } @mounts;
my ($unified) = map { $_->[1] } grep { $_->[2] eq 'cgroup2' } @mounts;
same('cgroup.version', defined $v1 ? 1 : defined $unified ? 2 : undef);
if (defined $unified && !defined $v1)
{
	my $limit;
	for (my $group = $v2; ; $group =~ s{/[^/]*$}{})
	{
		my $max = line("$unified$group/memory.max");
		$limit = $max if defined $max && $max =~ /^\d+$/ && (!defined $limit || $max < $limit);
		last if $group !~ m{[^/]};
	}
	is(fact('cgroup.memory_limit_bytes'), $limit, 'cgroup.memory_limit_bytes');
}

# storage: the mount point that is nearest above the data directory, and its device
my ($mount) = sort { length($b->[1]) <=> length($a->[1]) } grep { index("$data/", $_->[1] eq '/' ? '/' : "$_->[1]/") == 0 } @mounts;
my $storage = $facts->{storage}{data} // {};
is($storage->{filesystem}, $mount->[2], 'storage.data.filesystem');
is($storage->{device}, ($mount->[0] =~ m{^/dev/(.*)})[0], 'storage.data.device') if $mount->[0] =~ m{^/dev/(vd|sd|nvme)};

# boot arguments
my %asked;
my $size = $default;
my ($default_argument) = line('/proc/cmdline') =~ /\bdefault_hugepagesz=(\d+[KMG])/;
for (split ' ', line('/proc/cmdline'))
{
	$size = bytes($1) if /^hugepagesz=(\d+[KMG])$/;
	$asked{$size} = $1 if /^hugepages=(\d+)$/;
}
sub bytes { my ($n, $unit) = $_[0] =~ /(\d+)(\w)/; return $n * { K => 1 << 10, M => 1 << 20, G => 1 << 30 }->{$unit}; }
my %boot = map { ($_->{size_bytes} => $_->{pages}) } @{ $facts->{boot}{cmdline_hugepages} // [] };
is_deeply(\%boot, \%asked, 'boot.cmdline_hugepages');

print '# json ', JSON::PP->new->canonical->encode({ unknown_vm => [ sort @unknown ], preempt => fact('kernel.preempt'),
	page_size_bytes => fact('kernel.page_size_bytes') + 0, nodes => scalar @nodes, pools => [ map { $_ + 0 } sort { $a <=> $b } @sizes ] }), "\n";
done_testing();
