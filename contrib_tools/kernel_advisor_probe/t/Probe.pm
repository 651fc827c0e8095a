# Probe.pm: a kernel_advisor_probe of its own for each test, what it publishes, and an independent observer.
#
# The probe is the real one on this kernel.  It runs as the user nobody, and publishes below a scratch directory; the
# observer is a trace of the same tracepoints in an instance of its own of tracefs.
package Probe;

use strict;
use warnings;
use Cwd qw(abs_path);
use Errno qw(EINTR);
use Exporter qw(import);
use Fcntl qw(:flock);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use IPC::Open2;
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(sleep time);

our @EXPORT = qw(slurp spew source_dir tool need_root start_probe stop_probe show fields wait_until vmstat
	hold_kernel restore_with restore_mark restore_to command start_trace stop_trace start_tool tell nobody why_no_fragments fragment_memory large_blocks mount_xfs
	start_perf stop_perf trace_events sections);

my $here = dirname(abs_path(__FILE__));
my $source = dirname($here);
my $user = 'nobody';

sub source_dir { return $source; }
sub tool { my ($name) = @_; return "$source/build/plain/bin/$name"; }
sub nobody { return scalar getpwnam($user); }

sub slurp
{
	my ($file) = @_;
	open(my $in, '<', $file) or die "$file: $!";
	local $/;
	return scalar <$in>;
}

sub spew
{
	my ($file, $text) = @_;
	open(my $out, '>', $file) or die "$file: $!";
	print $out $text;
	close($out) or die "$file: $!";
	return;
}

# Why these tests cannot run here, or nothing.
sub need_root
{
	return 'needs root' if $> != 0;
	return 'needs a kernel with BTF' if !-r '/sys/kernel/btf/vmlinux';
	return "needs a user $user" if !defined nobody();
	return;
}

sub command { my (@command) = @_; return system(@command) == 0; }

sub wait_until
{
	my ($condition, $seconds) = @_;
	my $end = time() + ($seconds // 20);
	while (time() < $end)
	{
		my $result = $condition->();
		return $result if $result;
		sleep(0.05);
	}
	return 0;
}

# ---------------------------------------------------------------- the probe

# { pid, file, log, scratch, binary }; may_fail: returns when the process ended, with {status}.
sub start_probe
{
	my (%opt) = @_;
	my $scratch = $opt{scratch} // tempdir('probe.XXXXXX', DIR => '/var/tmp', CLEANUP => 1);
	chmod 0755, $scratch;
	my $binary = "$scratch/kernel_advisor_probe";
	command('cp', "$source/kernel_advisor_probe", $binary) or die 'cp' if !-e $binary;
	my $p = { scratch => $scratch, binary => $binary, file => $opt{file} // "$scratch/run/counters", log => $opt{log} // "$scratch/log" };
	spew($p->{log}, '');
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		open(STDIN, '<', '/dev/null') or die;
		open(STDOUT, '>', $p->{log}) or die;
		open(STDERR, '>&', \*STDOUT) or die;
		$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP PIPE);
		exec(@{ $opt{wrapper} // [] }, $binary, '--user', $opt{user} // $user, '--file', $p->{file}, @{ $opt{args} // [] }) or POSIX::_exit(99);
	}
	$p->{pid} = $pid;
	my $up = wait_until(sub {
		if (waitpid($pid, WNOHANG) == $pid)
		{
			$p->{status} = $? >> 8;
			return 1;
		}
		return slurp($p->{log}) =~ /: ready: / && -e $p->{file};
	}, 60);
	if (!$up || defined $p->{status})
	{
		return $p if $opt{may_fail};
		die "the probe does not start:\n" . slurp($p->{log});
	}
	return $p;
}

sub stop_probe
{
	my ($p, $signal) = @_;
	return if !$p || !$p->{pid} || defined $p->{status};
	kill($signal // 'TERM', $p->{pid});
	my $gone = wait_until(sub { waitpid($p->{pid}, WNOHANG) == $p->{pid} ? defined($p->{status} = $?) : 0 }, 20);
	if (!$gone)
	{
		kill('KILL', $p->{pid});
		waitpid($p->{pid}, 0);
		$p->{status} = -1;
	}
	return $p->{status};
}

# "a=1 b=2" as a hash
sub fields { my ($line) = @_; return { map { /^([^=]+)=(.*)$/s ? ($1, $2) : () } split(/ /, $line) }; }

# What is published, read as the probe's user: {name}, {source}{name}, {order}[n], {group}[], {process}{pid}; undef and
# {problem} when it cannot be read.
sub show
{
	my ($p, $file) = @_;
	my $pid = open(my $out, '-|') // die "fork: $!";
	if ($pid == 0)
	{
		my $uid = nobody();
		open(STDERR, '>&', \*STDOUT) or die;
		POSIX::setuid($uid);
		exec($p->{binary}, '--show', '--file', $file // $p->{file}) or POSIX::_exit(99);
	}
	my %shown = (group => [], process => {}, order => []);
	my $text = '';
	while (my $line = <$out>)
	{
		$text .= $line;
		chomp($line);
		if ($line =~ /^(group|process) (.*)/)
		{
			my $row = fields($2);
			if ($1 eq 'group') { push @{ $shown{group} }, $row; }
			else { $shown{process}{ $row->{pid} } = $row; }
		}
		elsif ($line =~ /^order (\d+) (.*)/) { $shown{order}[$1] = fields($2); }
		elsif ($line =~ /^(kcompactd|manual) (.*)/) { $shown{$1} = fields($2); }
		elsif ($line =~ /^source (\S+) (\w+)/) { $shown{source}{$1} = $2; }
		elsif ($line =~ /^(\w+) (.*)/) { $shown{$1} = $2; }
	}
	close($out);
	$shown{exit} = $? >> 8;
	$shown{text} = $text;
	return \%shown;
}

sub vmstat
{
	my ($name) = @_;
	my $sum = 0;
	my $text = slurp('/proc/vmstat');
	$sum += $1 while $text =~ /^$name (\d+)$/mg;
	return $sum;
}

# ---------------------------------------------------------------- the kernel's settings

my $lock;
my @restore;

# Nobody else changes the kernel's memory meanwhile.  Held already when the caller is the whole test run.
sub hold_kernel
{
	return if $ENV{KA_KERNEL_HELD} || $lock;
	open($lock, '>>', '/run/lock/pg_kernel_advisor-kernel.lock') or die "kernel lock: $!";
	flock($lock, LOCK_EX) or die "kernel lock: $!";
	return;
}

# Done however the test ends, the last one first.
sub restore_with { my ($how) = @_; push @restore, $how; return; }

# What was to be restored since the mark is restored now.
sub restore_mark { return scalar @restore; }
sub restore_to
{
	my ($mark) = @_;
	while (@restore > $mark)
	{
		my $how = pop @restore;
		eval { $how->(); 1 } or warn $@;
	}
	return;
}

# PIPE: prove was killed.  What follows must not print.  timeout(1) sends its signal twice: the second one must not end
# what the first one began.
my @ends = qw(INT TERM HUP PIPE);
sub ignore_ends { @SIG{@ends} = ('IGNORE') x @ends; return; }
$SIG{$_} = sub { ignore_ends(); exit 1 } for @ends;
END
{
	local $?;
	ignore_ends();
	restore_to(0);
}

sub free_mb { return int((slurp('/proc/meminfo') =~ /^MemFree: +(\d+)/m)[0] / 1024); }

# Why that cannot be done here, or nothing.
sub why_no_fragments
{
	return 'needs a kernel with huge pages that nobody uses' if !-e '/proc/sys/vm/nr_hugepages' || slurp('/proc/sys/vm/nr_hugepages') != 0;
	return 'needs huge pages of 2 MB' if slurp('/proc/meminfo') !~ /^Hugepagesize: +2048 kB/m;
	return 'needs 4 GB of memory' if slurp('/proc/meminfo') !~ /^MemTotal: +(\d+)/m || $1 < 4_000_000;
	return;
}

# Free blocks of order 4 and more, which a large write asks for.
sub large_blocks
{
	my $sum = 0;
	for my $line (split /\n/, slurp('/proc/buddyinfo'))
	{
		my (undef, $zone, @free) = $line =~ /^(Node +\d+), zone +(\w+) +(.*)/ ? ($1, $2, split / +/, $3) : next;
		$sum += $free[$_] // 0 for 4 .. $#free;
	}
	return $sum;
}

# Free memory in single pages, until the test ends.  Most of the memory goes to the pool of huge pages first: it takes
# seconds, single pages minutes.  Page cache would not do: it can be reclaimed.
sub fragment_memory
{
	my ($half_free_mb) = @_;
	my $thp = '/sys/kernel/mm/transparent_hugepage';
	my $pool = '/proc/sys/vm/nr_hugepages';
	my %before = map { ($_ => slurp($_)) } map { "/proc/sys/vm/$_" } qw(nr_hugepages extfrag_threshold compaction_proactiveness);
	my @sizes = grep { /-(\d+)kB/ && $1 >= 64 && -e "$_/enabled" } glob("$thp/hugepages-*kB");
	my %words = map { (slurp($_) =~ /\[(.*?)\]/) ? ($_ => $1) : () } "$thp/enabled", "$thp/defrag", map { "$_/enabled" } @sizes;

	restore_with(sub {
		for my $file (sort keys %before) { spew($file, $before{$file}) if slurp($file) ne $before{$file}; }
		for my $file (sort keys %words) { spew($file, $words{$file}) if slurp($file) !~ /\[\Q$words{$file}\E\]/; }
	});
	spew('/proc/sys/vm/compaction_proactiveness', '0');
	spew('/proc/sys/vm/extfrag_threshold', '500');
	spew('/proc/sys/vm/drop_caches', '3');
	my $put_aside = int((free_mb() - ($half_free_mb // 3200)) / 2);
	spew($pool, $put_aside) if $put_aside > 0;
	my $mb = free_mb() - 700;
	die "too little free memory: $mb MB" if $mb < 1000;
	my $fragment = start_tool(tool('probe_fragment'), $mb);
	die "memory cannot be fragmented: $fragment->{first}" if $fragment->{first} ne 'ready';
	spew('/proc/sys/vm/drop_caches', '3');
	# What is still large: pages of each size that the kernel has (6.8 and later), without any compaction.
	spew("$thp/defrag", 'never');
	spew("$_/enabled", 'madvise') for @sizes;
	start_tool(tool('probe_fragment'), int((slurp('/proc/meminfo') =~ /^MemTotal: +(\d+)/m)[0] / 1024), 'large');
	return;
}

# A file system whose writes ask for large folios: where it is mounted, or nothing where there is no XFS.
sub mount_xfs
{
	my ($size) = @_;
	my $disk = tempdir('probe.XXXXXX', DIR => '/var/tmp', CLEANUP => 1);
	chmod 0755, $disk;
	mkdir("$disk/mnt");
	return if !command("truncate -s $size $disk/image && mkfs.xfs -q $disk/image >/dev/null 2>&1");
	chomp(my $loop = qx{losetup --find --show --direct-io=on $disk/image 2>/dev/null || losetup --find --show $disk/image 2>/dev/null});
	return if $loop eq '';
	restore_with(sub { command('losetup', '--detach', $loop) });
	return if !command("mount $loop $disk/mnt 2>/dev/null");
	restore_with(sub { command('umount', "$disk/mnt") });
	return "$disk/mnt";
}

# ---------------------------------------------------------------- tools

# A tool that says its PID or "ready" first; { pid, in, out, first }
sub start_tool
{
	my (@command) = @_;
	my ($out, $in);
	my $pid = open2($out, $in, @command);
	chomp(my $first = <$out> // die "@command says nothing");
	# The closure keeps its pipes open: it ends when its input does.
	restore_with(sub { kill('KILL', $pid); waitpid($pid, 0); undef $in; undef $out });
	return { pid => $pid, in => $in, out => $out, first => $first };
}

# A line to it; what it answers
sub tell
{
	my ($tool, $line) = @_;
	syswrite($tool->{in}, "$line\n");
	return;
}

# ---------------------------------------------------------------- the observer

my @events = qw(kmem/mm_page_pcpu_drain kmem/mm_page_alloc_extfrag compaction/mm_compaction_try_to_compact_pages
	compaction/mm_compaction_deferred compaction/mm_compaction_begin compaction/mm_compaction_end
	vmscan/mm_vmscan_direct_reclaim_begin vmscan/mm_vmscan_direct_reclaim_end);

# undef where there is no tracefs
sub start_trace
{
	my $tracing = tempdir('tracing.XXXXXX', DIR => '/var/tmp', CLEANUP => 1);
	return if !command("mount -t tracefs tracefs $tracing 2>/dev/null");
	restore_with(sub { command('umount', $tracing) });
	my $instance = "$tracing/instances/kernel_advisor_probe.$$";
	mkdir($instance) or return;
	restore_with(sub { eval { spew("$instance/tracing_on", '0'); spew("$instance/events/enable", '0') }; rmdir($instance) });
	spew("$instance/tracing_on", '0');
	spew("$instance/trace_clock", 'mono');
	spew("$instance/buffer_size_kb", '65536');
	spew("$instance/events/$_/enable", '1') for @events;
	spew("$instance/tracing_on", '1');
	return { instance => $instance };
}

# The events of a trace that was stopped: a function that gives [thread, ns, event, text] with each call, then nothing.
sub trace_events
{
	my ($trace) = @_;
	spew("$trace->{instance}/tracing_on", '0');
	open(my $in, '<', "$trace->{instance}/trace") or die "trace: $!";
	return sub {
		while (my $line = <$in>)
		{
			my ($pid, $s, $us, $event, $rest) = $line =~ /-(\d+) +\[\d+\] +\S+ +(\d+)\.(\d{6}): (\w+): (.*)/ or next;
			return [ $pid, ($s * 1_000_000 + $us) * 1000, $event, $rest ];
		}
		return;
	};
}

# Another observer, with buffers and a clock reading of its own: perf, where it is installed.
sub start_perf
{
	my $scratch = tempdir('probe.XXXXXX', DIR => '/var/tmp', CLEANUP => 1);
	return if !command('perf version >/dev/null 2>&1');
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		open(STDIN, '<', '/dev/null') or die;
		open(STDOUT, '>', "$scratch/log") or die;
		open(STDERR, '>&', \*STDOUT) or die;
		$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP PIPE);
		exec(qw(perf record -q -a -k CLOCK_MONOTONIC -m 4096 -o), "$scratch/data", map { ('-e', tr{/}{:}r) } grep { !/extfrag|deferred|try_to/ } @events)
			or POSIX::_exit(99);
	}
	restore_with(sub { kill('KILL', $pid); waitpid($pid, 0) });
	my $up = wait_until(sub { waitpid($pid, WNOHANG) == $pid ? -1 : -s "$scratch/data" ? 1 : 0 }, 20);
	return if $up != 1;
	return { pid => $pid, scratch => $scratch };
}

# The same of perf; lost: events that it could not keep.
sub stop_perf
{
	my ($perf) = @_;
	kill('INT', $perf->{pid});
	waitpid($perf->{pid}, 0);
	open(my $in, '-|', "perf script -i $perf->{scratch}/data --show-lost-events --ns -F tid,time,event,trace 2>/dev/null") or die "perf script: $!";
	return sub {
		while (my $line = <$in>)
		{
			$perf->{lost} += $1 if $line =~ /PERF_RECORD_LOST(?:_SAMPLES)?\s.*?lost (\d+)/;
			my ($pid, $s, $ns, $event, $rest) = $line =~ /^\s*(\d+)\s+(\d+)\.(\d{9}):\s+\w+:(\w+):\s*(.*)/ or next;
			return [ $pid, $s * 1_000_000_000 + $ns, $event, $rest ];
		}
		return;
	};
}

sub is_kernel_thread
{
	my ($pid) = @_;
	open(my $in, '<', "/proc/$pid/stat") or return 0;
	my ($flags) = (<$in> // '') =~ /\) \S (?:-?\d+ ){5}(\d+) /;
	return ($flags // 0) & 0x00200000;	# PF_KTHREAD
}

# Other kernel threads compact for themselves, as processes do: a worker that writes into a page cache.
sub is_kcompactd { my ($pid) = @_; return (eval { slurp("/proc/$pid/comm") } // '') =~ /^kcompactd/ ? 1 : 0; }

# What the events say, between two times, of the time in direct compaction and reclaim (ns) and of pages that were drained
# inside of them or right after a reclaim: { direct_compact_ns, direct_reclaim_ns, drained_pages, by => { thread => the same } }.
# It follows doc/probe.md, and shares nothing with the probe.
sub sections
{
	my ($next, $from_ns, $to_ns) = @_;
	my (%task, %kernel, %kcompactd);
	my %r = (direct_compact_ns => 0, direct_reclaim_ns => 0, drained_pages => 0, by => {}, events => 0);
	my $gap_ns = 1_000_000;
	while (my $found = $next->())
	{
		my ($pid, $ns, $event, $rest) = @$found;
		next if $ns <= $from_ns || $ns > $to_ns;
		my $task = $task{$pid} //= {};
		my $by = $r{by}{$pid} //= {};
		my $add = sub { my ($name, $n) = @_; $by->{$name} += $n; $r{$name} += $n; };
		my $is_kernel = $kernel{$pid} //= is_kernel_thread($pid) ? 1 : 0;
		$r{events}++;
		if ($event =~ /^mm_(compaction|vmscan_direct_reclaim)_begin/)
		{
			$task->{section} = $1;
			$task->{begin_ns} = $ns;
			delete $task->{until_ns};
		}
		elsif ($event =~ /^mm_(compaction|vmscan_direct_reclaim)_end/)
		{
			my $what = $1 eq 'compaction' ? 'direct_compact_ns' : 'direct_reclaim_ns';
			$add->($what, $ns - $task->{begin_ns}) if $task->{section} && !($1 eq 'compaction' && ($kcompactd{$pid} //= is_kcompactd($pid)));
			delete $task->{section};
			$task->{until_ns} = $ns + $gap_ns if $1 ne 'compaction' && $rest =~ /nr_reclaimed=([1-9])/;
		}
		elsif ($event eq 'mm_compaction_try_to_compact_pages') { delete $task->{until_ns}; }
		elsif ($event eq 'mm_page_pcpu_drain' && !$is_kernel)
		{
			my ($order) = $rest =~ /order=(\d+)/;
			my $is_drain_all = !$task->{section} && $task->{until_ns} && $ns <= $task->{until_ns};
			$task->{until_ns} = $ns + $gap_ns if $is_drain_all;
			$add->('drained_pages', 1 << $order) if $task->{section} || $is_drain_all;
		}
	}
	return \%r;
}

# Numbers of the trace between two times (ns): by event and thread, and by thread what lay between begin and end.
sub stop_trace
{
	my ($trace, $from_ns, $to_ns) = @_;
	my %r = (events => {}, by => {}, lost => 0, order => {});
	spew("$trace->{instance}/tracing_on", '0');
	for my $stats (glob("$trace->{instance}/per_cpu/cpu*/stats"))
	{
		$r{lost} += $1 if slurp($stats) =~ /^overrun: (\d+)/m;
	}
	my (%section);
	open(my $in, '<', "$trace->{instance}/trace") or die "trace: $!";
	while (my $line = <$in>)
	{
		my ($pid, $s, $us, $event, $rest) = $line =~ /-(\d+) +\[\d+\] +\S+ +(\d+)\.(\d{6}): (\w+): (.*)/ or next;
		my $ns = ($s * 1_000_000 + $us) * 1000;
		next if $ns <= $from_ns || $ns > $to_ns;
		$r{events}{$event}++;
		my $by = $r{by}{$pid} //= {};
		$by->{$event}++;
		if ($event eq 'mm_page_pcpu_drain' && $rest =~ /order=(\d+)/)
		{
			$r{order}{$1}++;
			$r{drained_pages} += 1 << $1;
			$by->{drained_pages} += 1 << $1;
		}
		elsif ($event =~ /^mm_(compaction|vmscan_direct_reclaim)_begin/) { $section{$pid} = $ns; }
		elsif ($event =~ /^mm_(compaction|vmscan_direct_reclaim)_end/ && defined $section{$pid})
		{
			my $what = $1 eq 'compaction' ? 'compactions' : 'reclaims';
			my $took = $ns - delete $section{$pid};
			$by->{$what}++;
			$by->{"${what}_ns"} += $took;
			$by->{"${what}_longest_ns"} = $took if $took > ($by->{"${what}_longest_ns"} // 0);
		}
	}
	return \%r;
}

1;
