# The probe's life: what it keeps of its rights, who may have the file, two at once; killed, stopped, started again
# while somebody reads; kernels that lack something.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Probe;
use File::Temp qw(tempdir);
use Test::More;
use Time::HiRes qw(sleep time);

my $why_not = need_root();
plan skip_all => $why_not if $why_not;

# 64 bits are no number for hex()
sub bits { my ($text) = @_; return hex(substr($text, 0, 8)) << 32 | hex(substr($text, 8)); }
sub status_of { my ($pid, $name) = @_; return slurp("/proc/$pid/status") =~ /^\Q$name\E:[ \t]*(.*?)[ \t]*$/m ? $1 : undef; }

my $p = start_probe();
restore_with(sub { stop_probe($p) });
my $uid = nobody();

# rights
is(status_of($p->{pid}, 'Uid'), join("\t", ($uid) x 4), 'it is the unprivileged user');
is(status_of($p->{pid}, 'Groups') // '', '', 'in no other group');
is(status_of($p->{pid}, 'NoNewPrivs'), 1, 'that gets no new privileges');
my ($major, $minor) = split(/\D/, slurp('/proc/sys/kernel/osrelease'));
my $left = $major > 5 || ($major == 5 && $minor >= 19) ? 0 : 1 << 39;
is(bits(status_of($p->{pid}, "Cap$_")), $left, "Cap$_ is empty after the start") for qw(Inh Prm Eff Amb);
is(bits(status_of($p->{pid}, 'CapBnd')) & ~(1 << 38 | 1 << 39), 0, 'CapBnd has two at most');
my @status = stat($p->{file});
is(sprintf('%o %d', $status[2] & 07777, $status[4]), "644 $uid", 'the file is its own, and everybody can read it');
is(sprintf('%o', (stat("$p->{scratch}/run"))[2] & 07777), '755', 'as is its directory');
like(slurp($p->{log}), qr/^kernel_advisor_probe: ready: \d+ of 10 tracepoints, every 100 ms to \S+, with (no capability|CAP_BPF) left$/m, 'what the log says');

# without root and without capabilities
{
	my $file = "$p->{scratch}/other/counters";
	mkdir("$p->{scratch}/other");
	chown($uid, -1, "$p->{scratch}/other");
	my $other = start_probe(scratch => $p->{scratch}, file => $file, log => "$p->{scratch}/log2", may_fail => 1,
		wrapper => [ 'setpriv', "--reuid=$uid", '--clear-groups', '--bounding-set=-all' ]);
	is($other->{status}, 78, 'without capabilities it ends');
	like(slurp($other->{log}), qr/CAP_BPF and CAP_PERFMON are needed/, 'and says what it needs');
	$other = start_probe(scratch => $p->{scratch}, file => $file, log => "$p->{scratch}/log2",
		wrapper => [ 'setpriv', "--reuid=$uid", '--clear-groups', '--inh-caps=-all,+bpf,+perfmon', '--ambient-caps=-all,+bpf,+perfmon',
			'--bounding-set=-all,+bpf,+perfmon' ]);
	is(show($other)->{state}, 'ok', 'with those two as ambient ones, as its unit has them, it works');
	is(bits(status_of($other->{pid}, 'CapAmb')), 0, 'and gives them up');
	stop_probe($other);
	$other = start_probe(scratch => $p->{scratch}, log => "$p->{scratch}/log2", may_fail => 1, args => [ '--user', 'no_such_user' ]);
	like($other->{status} . slurp($other->{log}), qr/^78.*no user "no_such_user"/s, 'a user that does not exist');
	$other = start_probe(scratch => $p->{scratch}, log => "$p->{scratch}/log2", may_fail => 1, args => [ '--user', 'root' ]);
	like($other->{status} . slurp($other->{log}), qr/^78.*is root/s, 'root is no such user');
}

# two at once
{
	my $second = start_probe(scratch => $p->{scratch}, log => "$p->{scratch}/log2", may_fail => 1);
	is($second->{status}, 78, 'a second one for the same file ends');
	like(slurp($second->{log}), qr/another probe publishes this file already/, 'and says why');
	is(show($p)->{state}, 'ok', 'the first goes on');
	$second = start_probe(file => "$p->{scratch}/second/counters", log => "$p->{scratch}/log2");
	is(show($second)->{state}, 'ok', 'for another file it works beside it');
	isnt(show($second)->{pid}, show($p)->{pid}, 'by itself');
	stop_probe($second);
	ok(!-e $second->{file}, 'and takes its file away at the end');
}

# memory: the process without shared libraries' pages, and the maps in the kernel
{
	sleep(0.5);
	my ($private) = slurp("/proc/$p->{pid}/smaps_rollup") =~ /^Private_Dirty: +(\d+) kB/m;
	my ($shared) = slurp("/proc/$p->{pid}/smaps_rollup") =~ /^Shared_Dirty: +(\d+) kB/m;
	my $maps = 0;
	for my $fdinfo (glob("/proc/$p->{pid}/fdinfo/*"))
	{
		$maps += $1 if (eval { slurp($fdinfo) } // '') =~ /^memlock:\s+(\d+)/m;
	}
	my $all = $private / 1024 + $shared / 1024 + $maps / 1048576;
	cmp_ok($all, '<', 8, sprintf('memory: %.1f MiB (process %.1f, kernel %.1f)', $all, ($private + $shared) / 1024, $maps / 1048576));
	cmp_ok($maps, '>', 0, 'with that of the kernel');
}

# killed while somebody reads
{
	my $generation = show($p)->{generation};
	stop_probe($p, 'KILL');
	ok(-e $p->{file}, 'a killed probe leaves its file');
	is(show($p)->{state}, 'ok', 'which is good for a moment');
	ok(wait_until(sub { show($p)->{state} eq 'stale' }, 10), 'then it is stale');
	isnt(show($p)->{exit}, 0, 'which the exit code says');
	$p = start_probe(scratch => $p->{scratch});
	my $now = show($p);
	is($now->{state}, 'ok', 'another one takes over');
	isnt($now->{generation}, $generation, 'as another generation');

	# stopped in the middle, whatever it was doing
	kill('STOP', $p->{pid});
	ok(wait_until(sub { my $s = show($p); ($s->{state} // $s->{text}) =~ /stale|all the time/ }, 10), 'a probe that hangs is stale');
	kill('CONT', $p->{pid});
	ok(wait_until(sub { (show($p)->{state} // '') eq 'ok' }, 10), 'and good again when it goes on');

	# replaced again and again under a reader's eyes
	my %states;
	my $pid = fork() // die;
	if ($pid == 0)
	{
		for (1 .. 3)
		{
			stop_probe($p, $_ == 2 ? 'KILL' : 'TERM');
			$p = start_probe(scratch => $p->{scratch});
		}
		POSIX::_exit(0);
	}
	my $end = time() + 60;
	while (waitpid($pid, POSIX::WNOHANG()) == 0 && time() < $end)
	{
		my $s = show($p);
		$states{ $s->{state} // ($s->{text} =~ /no such file/ ? 'absent' : $s->{text}) }++;
	}
	is_deeply([ grep { !/^(ok|stale|absent)$/ } keys %states ], [], 'started again three times: good, stale or absent, nothing else');
	note(join(' ', map { "$_ $states{$_}" } sort keys %states));
	$p->{pid} = show($p)->{pid};
}
kill('TERM', $p->{pid});
ok(wait_until(sub { !-e $p->{file} }, 10), 'ended by a signal it takes its file away');
$p->{status} = 0;

# a file in its place, a link, a directory of somebody else
{
	my $scratch = tempdir('probe.XXXXXX', DIR => '/var/tmp', CLEANUP => 1);
	mkdir("$scratch/run");
	spew("$scratch/precious", "precious\n");
	symlink("$scratch/precious", "$scratch/run/$_") for qw(counters counters.new);
	chown($uid, -1, "$scratch/run");
	my $q = start_probe(scratch => $scratch);
	is(slurp("$scratch/precious"), "precious\n", 'a link in the place of its file is not followed');
	is(show($q)->{state}, 'ok', 'but replaced');
	stop_probe($q);
	unlink("$scratch/run/counters.lock");
	symlink("$scratch/precious", "$scratch/run/counters.lock");
	$q = start_probe(scratch => $scratch, may_fail => 1);
	is($q->{status}, 78, 'nor is one in the place of the lock');
	chown(0, 0, "$scratch/run");
	unlink("$scratch/run/counters.lock");
	$q = start_probe(scratch => $scratch, may_fail => 1);
	like($q->{status} . slurp($q->{log}), qr/^78.*Permission denied/s, 'a directory that it cannot write to');
}

# kernels that lack something
{
	my $q = start_probe(args => [ '--skip', 'mm_page_pcpu_drain', '--skip', 'compaction:mm_compaction_end' ]);
	my $s = show($q);
	is($s->{source}{'kmem:mm_page_pcpu_drain'}, 'off', 'a tracepoint that is left out is off');
	is($s->{source}{'compaction:mm_compaction_begin'}, 'off', 'as is a begin without its end');
	is($s->{source}{'vmscan:mm_vmscan_direct_reclaim_begin'}, 'on', 'the others go on');
	like(slurp($q->{log}), qr/mm_page_pcpu_drain: left out as asked; not counted: drained pages/, 'the log says what is lost');
	stop_probe($q);
	$q = start_probe(may_fail => 1, wrapper => [ qw(unshare --mount --propagation private sh -ec),
		'mount -t tmpfs tmpfs /sys/kernel/btf; exec "$@"', 'sh' ]);
	like($q->{status} . slurp($q->{log}), qr/^78.*BTF is needed|^78.*DEBUG_INFO_BTF/s, 'a kernel without BTF: ends, and says so');
}

# options
for my $args ([ '--interval', '5' ], [ '--interval', 'x' ], [ '--skip', 'nothing' ], [ '--nonsense' ], [ 'operand' ])
{
	my $q = start_probe(may_fail => 1, args => $args);
	is($q->{status}, 78, "refused: @$args");
}
done_testing();
