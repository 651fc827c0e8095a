# A compromised postgres: everything that it can send, in the place of the
# server.  Afterwards nothing outside the table may have changed.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Advisord;
use Digest::SHA;
use File::Find;
use POSIX ();
use Socket;
use Test::More;

plan skip_all => 'needs root' if $> != 0;
my ($postgres, $group) = (getpwnam('postgres'))[ 2, 3 ];
plan skip_all => 'needs a user postgres' if !defined $postgres;

my $root = make_root();
my $seed = $ENV{ADVISORD_SEED} // int(rand(2**31));
note("ADVISORD_SEED=$seed");
spew("$root/proc/sys/kernel/core_pattern", "core\n");
spew("$root/etc/sysctl.d/10-admin.conf", "kernel.sysrq = 0\n");
spew("$root/etc/passwd", "root:x:0:0::/:/bin/sh\n");
my $d = start_daemon(root => $root);
END { stop_daemon($d) if $d }

# What the helper may write; everything else below the root must stay as it is.
my %ours = map { ("$root/proc/sys/vm/" . s/^vm\.//r => 1) } grep { /^vm\./ } keys %KNOB;
my $may = qr{^\Q$root\E(/sys/kernel/mm/|/sys/devices/system/node/node\d/hugepages/|/var/lib/kernel_advisord/journal$|/etc/sysctl\.d/60-kernel-advisor\.conf$|/etc/tmpfiles\.d/kernel-advisor\.conf$)};

sub snapshot
{
	my %sum;
	find({ no_chdir => 1, wanted => sub {
		my @st = lstat($_);
		return if $ours{$_} || $_ =~ $may;
		$sum{ substr($_, length $root) } = sprintf('%o %d %d %s', @st[ 2, 4, 5 ], -f _ ? Digest::SHA->new(1)->addfile($_)->hexdigest : -d _ ? 'directory' : 'other');
	} }, $root);
	return \%sum;
}
my $before = snapshot();

my $told = as_user($postgres, $group, sub {
	$SIG{PIPE} = 'IGNORE';
	srand($seed);
	my @edge = (0, 1, -1, 2, 3, 500, 1000, 4096, 65536, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, -2**62, -2**63 + 1024);
	my $edge = sub { return $edge[ rand @edge ] };
	my %seen;
	# 1. any bytes
	for (1 .. 300)
	{
		my $socket = connect_to($d) or next;
		send($socket, join('', map { chr(rand 256) } 1 .. rand(200)), 0);
		send($socket, "/etc/passwd\0../../etc/shadow", 0);
		close($socket);
	}
	# 2. well-formed requests of any content, in bursts on one connection
	for (1 .. 400)
	{
		my $socket = connect_to($d) or next;
		for (1 .. 1 + rand 20)
		{
			my $op = rand() < 0.9 ? 1 + int(rand 9) : $edge->();
			my $knob = rand() < 0.8 ? (values %KNOB)[ rand keys %KNOB ] : $edge->();
			my $value = rand() < 0.6 ? int(rand 2000) : $edge->();
			my $bytes = pack('L L L l L L q', 1, $op & 0xffffffff, $knob & 0xffffffff,
				rand() < 0.7 ? -1 : rand() < 0.5 ? int(rand 3) : unpack('l', pack('L', $edge->() & 0xffffffff)),
				rand() < 0.6 ? 0 : int(rand 32), rand() < 0.7 ? 0 : int(rand 700000), $value);
			send($socket, $bytes, 0) // last;
			my $answer = receive($socket, 60) // last;
			$seen{ $answer->{status} }++;
		}
		close($socket) if rand() < 0.9;
	}
	# 3. half-closed, never read, left at once
	for my $how (0, 1, 2)
	{
		my $socket = connect_to($d) or next;
		send($socket, request('SET', 'vm.swappiness', 20 + $how), 0);
		shutdown($socket, $how);
	}
	# 4. the socket's file, the journal, the bounds
	my @got;
	push @got, 'unlink' if unlink($d->{socket});
	push @got, 'chmod' if chmod(0777, $d->{socket});
	push @got, 'journal' if open(my $j, '<', "$root/var/lib/kernel_advisord/journal");
	push @got, 'bounds' if open(my $b, '>', "$root/etc/kernel_advisor/bounds.conf");
	push @got, 'kill' if kill(0, $d->{pid});
	push @got, 'mem' if open(my $m, '<', "/proc/$d->{pid}/mem");
	push @got, 'fd' if opendir(my $f, "/proc/$d->{pid}/fd");
	return join(' ', 'got', @got) . '; ' . join(' ', map { "$_=$seen{$_}" } sort keys %seen);
});
like($told, qr/^got;/, 'socket file, journal, bounds and process are out of reach');
note($told);
like($told, qr/\b$_=/, "$_ was among the answers") for qw(OK RANGE NO_KNOB BAD_OPERATION BAD_FLAGS);
is(POSIX::WIFEXITED($?) && waitpid($d->{pid}, POSIX::WNOHANG()), 0, 'the daemon is alive');
is(call($d, 'GET', 'vm.swappiness')->{status}, 'OK', 'and answers');
is_deeply(snapshot(), $before, 'nothing outside the table was changed');

# what is in the table is within its bounds, or what it was
for my $knob (grep { $KNOB{$_} < 60 || $KNOB{$_} > 100 } keys %KNOB)
{
	my $reply = call($d, 'GET', $knob);
	next if $reply->{status} ne 'OK';
	my %was = ('vm.dirty_bytes' => 0, 'vm.dirty_background_bytes' => 0);
	ok(($reply->{granted} >= $reply->{min} && $reply->{granted} <= $reply->{max}) || $reply->{granted} == ($was{$knob} // -1),
		"$knob = $reply->{granted} is within $reply->{min}..$reply->{max}");
}
my $status = status_of($d);
is("$status->{CapEff} $status->{NoNewPrivs} $status->{Seccomp}", '0' x 16 . ' 1 2', 'the privileges are as before');
restart_daemon($d);
unlike(slurp($d->{log}), qr/damaged|interrupted/, 'the journal is whole');

stop_daemon($d);
undef $d;
done_testing();
