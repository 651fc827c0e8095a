# Clients: who may, who is turned away, who is slow, silent, many or gone.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Advisord;
use Errno qw(EACCES EPIPE);
use Socket;
use Test::More;
use Time::HiRes qw(sleep time);

plan skip_all => 'needs root' if $> != 0;
my ($postgres, $group) = (getpwnam('postgres'))[ 2, 3 ];
plan skip_all => 'needs a user postgres' if !defined $postgres;
my ($nobody, $nogroup) = (getpwnam('nobody'))[ 2, 3 ];

$SIG{PIPE} = 'IGNORE';
my $root = make_root();
my $d = start_daemon(root => $root);
END { stop_daemon($d) if $d }

my $mode = sprintf('%04o %d %d', (stat $d->{socket})[2] & 07777, (stat _)[ 4, 5 ]);
is($mode, "0660 0 $group", 'the socket is 0660 root:postgres');

# users
for my $op (sort { $OP{$a} <=> $OP{$b} } keys %OP)
{
	my @request = ($op, $op =~ /RESERVE|ESTIMATE/ ? 'hugepages-2048kB.nr_hugepages' : 'vm.swappiness', $op eq 'ROLLBACK' ? 1 : 50);
	like(as_user($postgres, $group, sub { call($d, @request)->{status} }), qr/^(OK|UNCHANGED|SUPERSEDED|END)$/, "$op as the allowed user");
	is(as_user($nobody, $group, sub { call($d, @request)->{status} }), 'DENIED', "$op as another user of the group");
	like(as_user($nobody, $nogroup, sub { call($d, @request)->{status} }), qr/^CONNECT: Permission denied/, "$op as a user outside the group");
}
is(as_user($postgres, $group, sub { call($d, 'ROLLBACK', undef, 1, flags => FORCE)->{status} }), 'BAD_FLAGS', 'force is for root');
my $reply = call($d, 'LIST', undef, 1);
is($reply->{uid}, $postgres, 'the journal has the user of a change');
is(as_user($nobody, $group, sub {
	my $socket = connect_to($d);
	sleep(0.2);		# denied and closed before the request
	send($socket, request('GET', 'vm.swappiness'), MSG_NOSIGNAL);
	return receive($socket)->{status};
}), 'DENIED', 'the refusal can be read after the connection ended');

# messages
sub answer_to
{
	my ($bytes) = @_;
	my $socket = connect_to($d);
	send($socket, $bytes, 0);
	my $answer = receive($socket, 10);
	return $answer ? $answer->{status} : 'closed';
}
my $good = request('GET', 'vm.swappiness');
is(answer_to($good), 'OK', 'a good request');
my @lengths = grep { $_ != 32 } 1 .. 80, 1000, 60000;
is_deeply([ grep { answer_to(substr($good x 2000, 0, $_)) ne 'closed' } @lengths ], [], 'every other length closes the connection');
is(answer_to(request('GET', 'vm.swappiness', 0, version => $_)), 'closed', "version $_ closes the connection") for 0, 2, 2**32 - 1;
is(answer_to(''), 'closed', 'so does a message without bytes');

# descriptors that come with a request are not taken
SKIP:
{
	my $passfd = build_dir() . '/plain/bin/advisord_passfd';
	skip "needs $passfd: make rootcheck-advisord", 2 if !-x $passfd;
	my $before = () = glob("/proc/$d->{pid}/fd/*");
	pipe(my $in, my $out) or die;
	my $pid = open(my $said, '-|') // die;
	if ($pid == 0)
	{
		close($out);
		open(STDIN, '<&', $in) or POSIX::_exit(99);
		exec($passfd, $d->{socket}) or POSIX::_exit(99);
	}
	close($in);
	is(scalar(<$said>), "0\n", 'a request with a descriptor is answered');
	is(scalar(() = glob("/proc/$d->{pid}/fd/*")), $before + 1, 'and nothing but its connection is open');
	close($out);
	close($said);
}

# many: all at once, each is answered
{
	my $start = time();
	my @sockets = map { connect_to($d) // die "connect $_: $!" } 1 .. 1000;
	send($_, $good, 0) for @sockets;
	my $answered = grep { my $answer = receive($_); $answer && $answer->{status} eq 'OK' } @sockets;
	is($answered, 1000, '1000 connections at once are all answered');
	cmp_ok(time() - $start, '<', 20, 'soon');
	# and now they are silent, and others come
	is(call($d, 'GET', 'vm.swappiness')->{status}, 'OK', 'one more');
	my @more = map { connect_to($d) // die "connect $_: $!" } 1 .. 500;
	send($_, $good, 0) for @more;
	$answered = grep { my $answer = receive($_); $answer && $answer->{status} eq 'OK' } @more;
	is($answered, 500, '500 more are served in the places of the silent');
}
ok(wait_until(sub { (() = glob("/proc/$d->{pid}/fd/*")) < 100 }), 'places are given back when clients leave');

# many, by a user that never stops: root still gets in
{
	my $pid = fork() // die;
	if ($pid == 0)
	{
		$) = "$group $group";
		POSIX::setgid($group);
		POSIX::setuid($postgres);
		my @sockets = grep { $_ } map { connect_to($d) } 1 .. 1200;
		for (;;)
		{
			for my $socket (@sockets)
			{
				send($socket, $good, MSG_DONTWAIT | MSG_NOSIGNAL);
				recv($socket, my $message, 4096, MSG_DONTWAIT);
			}
		}
	}
	sleep(1.5);
	my $start = time();
	is(call($d, 'GET', 'vm.swappiness')->{status}, 'OK', 'root is served while another user takes every place');
	cmp_ok(time() - $start, '<', 5, 'within seconds');
	kill('KILL', $pid);
	waitpid($pid, 0);
}

# slow: one that sends and never reads does not hold up the others
{
	my $slow = connect_to($d);
	my $sent = 0;
	for (1 .. 100000)
	{
		defined send($slow, $good, MSG_DONTWAIT | MSG_NOSIGNAL) or $!{EAGAIN} or last;
		$sent++;
	}
	is(call($d, 'GET', 'vm.swappiness')->{status}, 'OK', 'others are served');
	cmp_ok($sent, '<', 100000, 'the connection of a client that never reads is closed');
}
# silent: one that connects and says nothing
{
	my $silent = connect_to($d);
	is(call($d, 'GET', 'vm.swappiness')->{status}, 'OK', 'a silent client holds up nobody');
	send($silent, $good, 0);
	is(receive($silent)->{status}, 'OK', 'and is served when it speaks');
}

# gone: the change is made and journalled whether or not the client reads
{
	my $before = 0;
	for (my $next = 1; (my $r = call($d, 'LIST', undef, $next))->{status} ne 'END'; $next = $before + 1) { $before = $r->{change}; }
	for my $value (41 .. 60)
	{
		my $socket = connect_to($d);
		send($socket, request('SET', 'vm.swappiness', $value == 60 ? 77 : $value), 0);
		close($socket);
	}
	ok(wait_until(sub { call($d, 'GET', 'vm.swappiness')->{granted} == 77 }), 'a set by a client that left at once');
	my $last = call($d, 'LIST', undef, $before + 20);
	is("$last->{status} $last->{granted}", 'OK 77', 'is in the journal like any other');
}

# rate: everybody's but root's
{
	spew("$root/etc/kernel_advisor/bounds.conf", "changes_per_hour = 5\n");
	restart_daemon($d);
	my $text = as_user($postgres, $group, sub { join(' ', map { call($d, 'SET', 'vm.swappiness', $_)->{status} } 1 .. 8) });
	is($text, 'OK OK OK OK OK RATE RATE RATE', 'the rate limit of a user');
	is(call($d, 'SET', 'vm.swappiness', 60)->{status}, 'OK', 'does not bind root');
	is(as_user($postgres, $group, sub { call($d, 'SET', 'vm.swappiness', 60)->{status} }), 'UNCHANGED', 'what changes nothing costs nothing');
}

# a flood of bad messages does not flood the log
{
	truncate($d->{log}, 0);
	answer_to('x') for 1 .. 300;
	cmp_ok(() = slurp($d->{log}) =~ /\n/g, '<', 20, 'bad messages are counted, not printed one by one');
}

is(stop_daemon($d), 0, 'ends with exit code 0');
undef $d;
done_testing();
