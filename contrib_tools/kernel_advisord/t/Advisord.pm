# Advisord.pm: a kernel_advisord of its own for each test, and a client.
#
# The daemon is the real one, as root, with a socket and a root directory below
# a scratch directory; with root => '' it works on this machine's kernel.
package Advisord;

use strict;
use warnings;
use Cwd qw(abs_path);
use Errno qw(EAGAIN EINTR ECONNRESET);
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use IO::Select;
use POSIX qw(:sys_wait_h setuid setgid _exit);
use Socket;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(%OP %ST %KNOB slurp spew make_root start_daemon stop_daemon restart_daemon
	connect_to request call receive as_user status_of build_dir wait_until in_namespace DRY DROP UNDO FORCE BOOT1);

use constant { DRY => 1, DROP => 2, UNDO => 4, FORCE => 8 };
use constant BOOT1 => "11111111-2222-3333-4444-555555555555\n";

my $here = dirname(abs_path(__FILE__));
my $source = dirname($here);

# Numbers and names come from the headers, so that the test follows the protocol.
our (%OP, %ST, %KNOB);
{
	my $protocol = slurp("$source/protocol.h");
	$OP{$2} = $1 while $protocol =~ /\bOPERATION\((\d+), (\w+), "/g;
	$ST{$1} = $2 while $protocol =~ /\bSTATUS\((\d+), (\w+), "/g;
	my $knobs = slurp("$source/knobs.def");
	$KNOB{$2} = $1 while $knobs =~ /^KNOB\((\d+), \w+, "([^"]+)"/mg;
	while ($knobs =~ /^POOL\((\d+), (\d+)\)/mg)
	{
		$KNOB{"hugepages-$2kB.nr_hugepages"} = 100 + $1;
		$KNOB{"hugepages-$2kB.nr_overcommit_hugepages"} = 200 + $1;
	}
}

my $REQUEST = 'L L L l L L q';
my @REPLY = (
	[ version => 'L' ], [ status => 'L' ], [ error => 'l' ], [ operation => 'L' ], [ knob => 'L' ],
	[ node => 'l' ], [ state => 'L' ], [ uid => 'L' ], [ change => 'Q' ], [ refers => 'Q' ], [ at_us => 'q' ],
	[ old => 'q' ], [ asked => 'q' ], [ granted => 'q' ], [ reached => 'q' ], [ min => 'q' ], [ max => 'q' ],
	[ free_costly_blocks => 'q' ], [ pages_free => 'q' ], [ pages_compaction => 'q' ], [ pages_reclaim => 'q' ],
	[ commit_limit_bytes => 'q' ], [ boot_value => 'q' ], [ boot_winner => 'L' ], [ rounds => 'L' ],
	[ elapsed_ms => 'L' ], [ line => 'L' ], [ boot_file => 'Z128' ]);
my $REPLY = join(' ', map { $_->[1] } @REPLY);
use constant REPLY_LENGTH => 296;

sub slurp
{
	my ($file) = @_;
	open(my $in, '<', $file) or die "$file: $!";
	local $/;
	my $text = <$in>;
	close($in);
	return $text;
}

sub spew
{
	my ($file, $text) = @_;
	make_path(dirname($file));
	open(my $out, '>', $file) or die "$file: $!";
	print $out $text;
	close($out) or die "$file: $!";
	return;
}

sub build_dir { return "$source/build"; }

# A machine of 16 GiB with two nodes, on ordinary files.
sub make_root
{
	my ($directory) = @_;
	my $root = tempdir('advisord.XXXXXX', DIR => $directory // '/var/tmp', CLEANUP => 1);
	chmod 0755, $root;
	my %vm = (
		nr_hugepages => 0, nr_overcommit_hugepages => 0, extfrag_threshold => 500,
		compaction_proactiveness => 20, compact_memory => '', min_free_kbytes => 67584,
		watermark_scale_factor => 10, watermark_boost_factor => 15000, percpu_pagelist_high_fraction => 0,
		zone_reclaim_mode => 0, dirty_background_bytes => 0, dirty_bytes => 0, overcommit_memory => 0,
		overcommit_ratio => 50, swappiness => 60, dirty_ratio => 20, dirty_background_ratio => 10,
		overcommit_kbytes => 0, drop_caches => '');
	spew("$root/proc/sys/vm/$_", $vm{$_} eq '' ? '' : "$vm{$_}\n") for keys %vm;
	spew("$root/proc/sys/kernel/random/boot_id", BOOT1);
	spew("$root/proc/cmdline", "quiet\n");
	spew("$root/proc/meminfo", <<'END');
MemTotal:       16777216 kB
MemFree:         3600000 kB
MemAvailable:   14000000 kB
SwapTotal:             0 kB
CommitLimit:     8388608 kB
Committed_AS:    1000000 kB
Hugetlb:               0 kB
Hugepagesize:       2048 kB
END
	spew("$root/proc/buddyinfo", <<'END');
Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3
Node 0, zone   Normal   1000    500    250    125     60     30     15      8      4    200    500
Node 1, zone   Normal   2000    500    250    125     60     30     15      8      4    100    250
END
	spew("$root/proc/pagetypeinfo", <<'END');
Page block order: 9
Pages per block:  512

Free pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10
Node    0, zone      DMA, type      Movable      0      0      0      0      0      0      0      0      1      1      3
Node    0, zone   Normal, type    Unmovable    500    250    125     60     30     15      8      4      2      0      0
Node    0, zone   Normal, type      Movable    500    250    125     65     30     15      7      4      2    200    500
Node    0, zone   Normal, type   HighAtomic      0      0      0      0      0      0      0      0      0      0      0
Node    1, zone   Normal, type      Movable   2000    500    250    125     60     30     15      8      4    100    250
END
	my $thp = "$root/sys/kernel/mm/transparent_hugepage";
	spew("$thp/enabled", "always [madvise] never\n");
	spew("$thp/defrag", "always defer defer+madvise [madvise] never\n");
	spew("$thp/shmem_enabled", "always within_size advise [never] deny force\n");
	spew("$thp/khugepaged/defrag", "1\n");
	for my $directory ("$root/sys/kernel/mm/hugepages", map { "$root/sys/devices/system/node/node$_/hugepages" } 0, 1)
	{
		for my $size (2048, 1048576)
		{
			spew("$directory/hugepages-${size}kB/nr_hugepages", "0\n");
			spew("$directory/hugepages-${size}kB/surplus_hugepages", "0\n");
			spew("$directory/hugepages-${size}kB/nr_overcommit_hugepages", "0\n") if $directory !~ /node/;
		}
	}
	make_path("$root/etc/sysctl.d", "$root/etc/tmpfiles.d", "$root/var/lib", "$root/usr/lib/sysctl.d", "$root/run/systemd/system");
	return $root;
}

# A wrapper that runs the daemon in a mount namespace of its own after a shell
# script has changed it; $1 is the root directory.
sub in_namespace
{
	my ($root, $script) = @_;
	return [ 'unshare', '--mount', '--propagation', 'private', 'sh', '-ec', "$script\nshift\nexec \"\$@\"", 'sh', $root ];
}

# { root, socket, pid, log }; dies when it does not come up, unless may_fail.
sub start_daemon
{
	my (%opt) = @_;
	my $root = $opt{root};
	my $scratch = $opt{scratch} // tempdir('advisord.XXXXXX', DIR => '/var/tmp', CLEANUP => 1);
	chmod 0755, $scratch;
	my $d = { %opt, scratch => $scratch, socket => "$scratch/socket", log => "$scratch/log" };
	my @command = ("$source/kernel_advisord", '--socket', $d->{socket});
	push @command, '--root', $root if $root ne '';
	push @command, '--bounds', $opt{bounds} if $opt{bounds};
	push @command, @{ $opt{arguments} // [] };
	unshift @command, @{ $opt{wrapper} } if $opt{wrapper};
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		open(STDERR, '>>', $d->{log}) or _exit(99);
		open(STDOUT, '>>', $d->{log}) or _exit(99);
		exec(@command) or _exit(99);
	}
	$d->{pid} = $pid;
	my $ready = wait_until(sub {
		return 1 if -e $d->{log} && slurp($d->{log}) =~ /ready: [^\n]*\n(?!.*ready: )/s && $d->{runs}++ >= 0 && probe($d);
		$d->{exit} = $? if waitpid($pid, WNOHANG) == $pid;
		return defined $d->{exit};
	});
	$d->{pid} = 0 if defined $d->{exit};
	die "daemon did not start: " . slurp($d->{log}) if !$opt{may_fail} && (!$ready || defined $d->{exit});
	return $d;
}

sub probe
{
	my ($d) = @_;
	my $socket = connect_to($d) or return 0;
	close($socket);
	return 1;
}

sub stop_daemon
{
	my ($d, $signal) = @_;
	return if !$d->{pid};
	kill($signal // 'TERM', $d->{pid});
	waitpid($d->{pid}, 0);
	my $status = $?;
	$d->{pid} = 0;
	return $status;
}

sub restart_daemon
{
	my ($d, $signal) = @_;
	stop_daemon($d, $signal);
	my %opt = map { $_ => $d->{$_} } grep { exists $d->{$_} } qw(root bounds arguments scratch);
	unlink($d->{log});
	my $new = start_daemon(%opt);
	%$d = %$new;
	return;
}

sub wait_until
{
	my ($condition, $seconds) = @_;
	my $end = time() + ($seconds // 20);
	while (time() < $end)
	{
		return 1 if $condition->();
		sleep(0.01);
	}
	return 0;
}

sub connect_to
{
	my ($d) = @_;
	socket(my $socket, AF_UNIX, SOCK_SEQPACKET, 0) or die "socket: $!";
	connect($socket, pack_sockaddr_un($d->{socket})) or return;
	return $socket;
}

# A request as bytes; op and knob by name.
sub request
{
	my ($op, $knob, $value, %opt) = @_;
	return pack($REQUEST, $opt{version} // 1, $OP{$op} // $op, defined $knob ? $KNOB{$knob} // $knob : 0,
		$opt{node} // -1, $opt{flags} // 0, $opt{limit_ms} // 0, $value // 0);
}

# The answer as a hash with {status} by name; undef when the connection ended.
sub receive
{
	my ($socket, $seconds) = @_;
	my ($message, $reset);
	for (;;)
	{
		return { status => 'TIMEOUT' } if !IO::Select->new($socket)->can_read($seconds // 60);
		last if defined recv($socket, $message, 4096, 0);
		# a reset is reported before the answer that came ahead of it
		return if !$!{EINTR} && !$!{EAGAIN} && !($!{ECONNRESET} && !$reset++);
	}
	return if length($message) == 0;
	die "reply of " . length($message) . " bytes" if length($message) != REPLY_LENGTH;
	my %reply;
	@reply{ map { $_->[0] } @REPLY } = unpack($REPLY, $message);
	$reply{status} = $ST{ $reply{status} } // die "status $reply{status}";
	return \%reply;
}

sub call
{
	my ($d, @request) = @_;
	local $SIG{PIPE} = 'IGNORE';
	my $socket = connect_to($d) or return { status => "CONNECT: $!" };
	send($socket, request(@request), 0);
	my $reply = receive($socket) // { status => 'CLOSED' };
	close($socket);
	return $reply;
}

# Runs code in a child with another uid and gid; returns what it returns, as text.
sub as_user
{
	my ($uid, $gid, $code) = @_;
	pipe(my $in, my $out) or die "pipe: $!";
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		close($in);
		$) = "$gid $gid";
		setgid($gid) && setuid($uid) or _exit(98);
		my $text = eval { $code->() } // "died: $@";
		syswrite($out, $text);
		_exit(0);
	}
	close($out);
	local $/;
	my $text = <$in>;
	waitpid($pid, 0);
	return $text;
}

# Fields of /proc/PID/status.
sub status_of
{
	my ($d) = @_;
	my %field;
	for (split /\n/, slurp("/proc/$d->{pid}/status"))
	{
		$field{$1} = $2 if /^(\w+):\s*(.*?)\s*$/;
	}
	return \%field;
}

1;
