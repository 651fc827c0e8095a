# The daemon is killed before and after every system call of a request, and the
# next one must find a journal that tells the truth, and finish what was begun.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Advisord;
use Test::More;

plan skip_all => 'needs root' if $> != 0;
my $killer = build_dir() . '/plain/bin/advisord_kill';
plan skip_all => "needs $killer: make rootcheck-advisord" if !-x $killer;

# in memory: a SIGKILL loses no page of a file, so the disk would add nothing but time
my $root = make_root(-w '/dev/shm' ? '/dev/shm' : undef);
my $vm = "$root/proc/sys/vm";
my $pool_file = "$root/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
my $conf = "$root/etc/sysctl.d/60-kernel-advisor.conf";
my $d;
END { stop_daemon($d, 'KILL') if $d }

sub first_line { my ($file) = @_; return undef if !-e $file; return (split /\n/, slurp($file))[0]; }

sub persisted { return -e $conf && slurp($conf) =~ /^vm\.swappiness = (\d+)$/m ? $1 : -1; }

my $pool = 'hugepages-2048kB.nr_hugepages';
my @cases = (
	{
		name => 'set', request => [ 'SET', 'vm.swappiness', 10 ], old => 60, asked => 10,
		value => sub { first_line("$vm/swappiness") }
	},
	{
		name => 'set of a knob with a twin', request => [ 'SET', 'vm.dirty_bytes', 268435456 ], old => 0, asked => 268435456,
		value => sub { first_line("$vm/dirty_bytes") }, no_rollback => 1	# ordinary files do not clear each other
	},
	{
		name => 'reserve', request => [ 'RESERVE', $pool, 700, flags => DROP ], old => 3, asked => 700,
		value => sub { first_line($pool_file) }
	},
	{
		name => 'persist', request => [ 'PERSIST', 'vm.swappiness', 10 ], old => -1, asked => 10, value => \&persisted
	},
	{
		name => 'rollback', request => [ 'ROLLBACK', undef, 1 ], prepare => [ 'SET', 'vm.swappiness', 30 ], old => 30, asked => 60,
		value => sub { first_line("$vm/swappiness") }, no_rollback => 1
	},
	{
		name => 'unpersist', request => [ 'UNPERSIST', 'vm.swappiness' ], prepare => [ 'PERSIST', 'vm.swappiness', 33 ],
		old => 33, asked => -1, value => \&persisted
	});

# The machine before each attempt.
sub reset_machine
{
	my ($case) = @_;
	unlink($conf, "$conf.new", glob("$root/var/lib/kernel_advisord/*"));
	spew("$vm/swappiness", "60\n");
	spew("$vm/dirty_bytes", "0\n");
	spew("$vm/extfrag_threshold", "1000\n");
	spew($pool_file, "3\n");
	# few free blocks, so that a reservation goes the long way
	spew("$root/proc/buddyinfo", "Node 0, zone   Normal   1000    500    250    125     60     30     15      8      4      0      1\n");
	spew("$_", '') for "$vm/compact_memory", "$vm/drop_caches";
	if ($case->{prepare})
	{
		my $one = start_daemon(root => $root);
		my $reply = call($one, @{ $case->{prepare} });
		stop_daemon($one);
		die "prepare: $reply->{status}" if $reply->{status} ne 'OK';
	}
	return;
}

# All changes, by id; dies on a reply that makes no sense.
sub changes
{
	my @changes;
	for (my $next = 1;;)
	{
		my $reply = call($d, 'LIST', undef, $next);
		return @changes if $reply->{status} eq 'END';
		die "list: $reply->{status}" if $reply->{change} < $next;
		push @changes, $reply;
		$next = $reply->{change} + 1;
	}
}

for my $case (@cases)
{
	my @problems;
	my %where;
	my $n = 1;
	my $complete = 0;		# stops at which the result was journalled already
	for (; $complete < 16; $n++)
	{
		reset_machine($case);
		my $traced = start_daemon(root => $root, wrapper => [ $killer, $n ]);
		my $answer = call($traced, @{ $case->{request} });
		my $gone = wait_until(sub { waitpid($traced->{pid}, POSIX::WNOHANG()) == $traced->{pid} }, $answer->{status} eq 'OK' ? 0.5 : 20);
		my $what = "stop $n";
		if (!$gone)
		{
			# answered before the stop was reached
			kill('TERM', $traced->{pid});
			waitpid($traced->{pid}, 0);
			last;
		}
		if (slurp($traced->{log}) =~ /^killed (.*)/m)
		{
			$what = "stop $n, $1";
			$where{$1} = 1;
		}
		else
		{
			push @problems, "$what: " . slurp($traced->{log});
			last;
		}
		my $after_kill = $case->{value}->();
		push @problems, "$what: value $after_kill is neither old nor new" if $after_kill != $case->{old} && $after_kill != $case->{asked};

		$d = start_daemon(root => $root);
		my @changes = changes();
		shift @changes if $case->{prepare};
		my $value = $case->{value}->();
		push @problems, "$what: recovery made $value of $after_kill" if $value != $after_kill;
		push @problems, "$what: " . @changes . ' changes' if @changes > 1;
		push @problems, "$what: the kernel was changed and the journal does not know" if !@changes && $value != $case->{old};
		if (@changes)
		{
			my $change = $changes[0];
			push @problems, "$what: journal has old $change->{old} asked $change->{asked} granted $change->{granted}, value is $value"
				if $change->{old} != $case->{old} || $change->{asked} != $case->{asked} || $change->{granted} != $value;
			if ($value == $case->{asked} && !$case->{no_rollback})
			{
				my $reply = call($d, 'ROLLBACK', undef, $change->{change});
				push @problems, "$what: rollback: $reply->{status} " . $case->{value}->() if $reply->{status} ne 'OK' || $case->{value}->() != $case->{old};
			}
		}
		push @problems, "$what: policy is " . first_line("$vm/extfrag_threshold") if first_line("$vm/extfrag_threshold") != 1000;
		push @problems, "$what: the daemon does not work" if call($d, 'SET', 'vm.zone_reclaim_mode', 1)->{status} !~ /OK|UNCHANGED/;
		push @problems, "$what: " . slurp($d->{log}) if slurp($d->{log}) =~ /damaged/;
		# what is left to do then reads files and sends the reply
		$complete++ if @changes && !($changes[0]{state} & 4);
		spew("$vm/zone_reclaim_mode", "0\n");
		stop_daemon($d);
	}
	is_deeply(\@problems, [], "$case->{name}: killed at $n stops");
	my @needed = $case->{name} eq 'persist' ? ('before renameat', 'after renameat') :
		$case->{name} eq 'unpersist' ? ('before unlinkat', 'after unlinkat') : ('before pwrite64', 'after pwrite64');
	ok((grep { $where{$_} } @needed, 'before fdatasync', 'after fdatasync') == 4, "$case->{name}: the calls that matter were among them")
		or diag(join(', ', sort keys %where));
}
undef $d;
done_testing();
