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
	hold_kernel restore_with command start_trace stop_trace start_tool tell nobody);

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
		$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
		exec(@{ $opt{wrapper} // [] }, $binary, '--user', $user, '--file', $p->{file}, @{ $opt{args} // [] }) or POSIX::_exit(99);
	}
	$p->{pid} = $pid;
	my $up = wait_until(sub {
		if (waitpid($pid, WNOHANG) == $pid)
		{
			$p->{status} = $? >> 8;
			return 1;
		}
		return slurp($p->{log}) =~ /ready/ && -e $p->{file};
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

$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
END
{
	local $?;
	while (my $how = pop @restore) { eval { $how->(); 1 } or warn $@; }
}

# ---------------------------------------------------------------- tools

# A tool that says its PID or "ready" first; { pid, in, out, first }
sub start_tool
{
	my (@command) = @_;
	my ($out, $in);
	my $pid = open2($out, $in, @command);
	chomp(my $first = <$out> // die "@command says nothing");
	restore_with(sub { kill('KILL', $pid); waitpid($pid, 0) });
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
