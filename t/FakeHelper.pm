# A helper in Perl for tests that must not touch the kernel: it speaks the
# protocol of kernel_advisord on a socket of its own, from a table in memory,
# and misbehaves on demand.  Runs as any user.
#
#	my $helper = FakeHelper->new(socket => "$dir/helper",
#		values => { 'vm.extfrag_threshold' => 500 });
#	$helper->mode('hung');                     # until further notice
#	$helper->mode('lost', op => 'set', times => 1);
#	$helper->value('vm.extfrag_threshold');    # 1000 by now?
#	$helper->requests(op => 'set');            # what was asked of it
#
# Numbers and names come from the headers of the real one, so that the fake
# follows the protocol, and its answers follow set.c, reserve.c and boot.c.
#
# A knob is named as the subject of an advice row: "vm.swappiness",
# "node1.hugepages-2048kB.nr_hugepages".  Knobs that are not among "values" are
# absent.  With root => DIRECTORY the values are those of the files of a
# machine's copy below it (numbers only), so that others can read them as well.
#
# Modes:
#	normal	does what is asked
#	hung	takes the request and does not answer
#	slow	answers after "delay" seconds
#	lying	says that all was granted, and did nothing
#	partial	grants half of the way and says so
#	lost	does it, and closes the connection instead of answering
#	close	closes the connection and does nothing
#	garbage	answers with bytes of the right length
#	short	answers with half of a reply
#	version	answers in another version of the protocol
#	any other	the symbol of a status, as DENIED: answers with it, does nothing

package FakeHelper;

use strict;
use warnings;

use Cwd qw(abs_path);
use Errno qw(EINTR);
use File::Basename qw(dirname);
use IO::Handle;
use IO::Select;
use JSON::PP ();
use POSIX ();
use Socket;
use Time::HiRes qw(time);

my $source = dirname(dirname(abs_path(__FILE__))) . '/contrib_tools/kernel_advisord';

our (%OP, %OP_NAME, %ST, %KNOB, %KNOB_NAME, %KNOB_INFO);
{
	my $protocol = slurp("$source/protocol.h");
	while ($protocol =~ /\bOPERATION\((\d+), \w+, "(\w+)"/g) { $OP{$2} = $1; $OP_NAME{$1} = $2; }
	$ST{$2} = $1 while $protocol =~ /\bSTATUS\((\d+), (\w+), "/g;

	my $knobs = slurp("$source/knobs.def");
	while ($knobs =~ /^KNOB\((\d+), \w+, "([^"]+)", "([^"]+)",\s*(\d+), (\w+), \d+, "[^"]*", ([^,]+),/mg)
	{
		my ($number, $name, $path, $min, $max, $flags) = ($1, $2, $3, $4, $5, $6);
		$KNOB_INFO{$number} = { name => $name, path => $path, min => $min,
			max => $max eq 'INT64_MAX' ? 9223372036854775807 : $max, pool => $flags =~ /KA_KF_POOL/ ? 1 : 0 };
	}
	while ($knobs =~ /^POOL\((\d+), (\d+)\)/mg)
	{
		my $name = "hugepages-$2kB";
		my $path = "/sys/kernel/mm/hugepages/$name";

		$KNOB_INFO{ 100 + $1 } = { name => "$name.nr_hugepages", path => "$path/nr_hugepages",
			min => 0, max => 9223372036854775807, pool => 1 };
		$KNOB_INFO{ 200 + $1 } = { name => "$name.nr_overcommit_hugepages", path => "$path/nr_overcommit_hugepages",
			min => 0, max => 9223372036854775807, pool => 0 };
	}
	$KNOB{ $KNOB_INFO{$_}{name} } = $_ foreach keys %KNOB_INFO;
	$KNOB_NAME{$_} = $KNOB_INFO{$_}{name} foreach keys %KNOB_INFO;
}

use constant {
	VERSION => 1, NO_VALUE => -1, ALL_NODES => -1,
	DRY_RUN => 1, UNDO => 4,
	THIS_BOOT => 1, ROLLED_BACK => 2, NOT_WRITTEN => 8, REPLY_DRY_RUN => 32,
	BOOT_NOTHING => 1, BOOT_OURS => 2,
};

my @REQUEST_FIELDS = qw(version operation knob node flags time_limit_ms value);
my $REQUEST = 'L L L l L L q';
my @REPLY = (
	[ version => 'L' ], [ status => 'L' ], [ error => 'l' ], [ operation => 'L' ], [ knob => 'L' ],
	[ node => 'l' ], [ state => 'L' ], [ uid => 'L' ], [ change => 'Q' ], [ refers => 'Q' ], [ at_us => 'q' ],
	[ old => 'q' ], [ asked => 'q' ], [ granted => 'q' ], [ reached => 'q' ], [ min => 'q' ], [ max => 'q' ],
	[ free_costly_blocks => 'q' ], [ pages_free => 'q' ], [ pages_compaction => 'q' ], [ pages_reclaim => 'q' ],
	[ commit_limit_bytes => 'q' ], [ boot_value => 'q' ], [ boot_winner => 'L' ], [ rounds => 'L' ],
	[ elapsed_ms => 'L' ], [ line => 'L' ], [ boot_file => 'Z128' ]);
my $REPLY = join ' ', map { $_->[1] } @REPLY;
my @UNKNOWN = qw(old asked granted reached min max free_costly_blocks pages_free pages_compaction
  pages_reclaim commit_limit_bytes boot_value);

my %serve = (get => \&op_get, set => \&op_set, reserve => \&op_reserve, persist => \&op_persist,
	unpersist => \&op_unpersist, rollback => \&op_rollback, list => \&op_list, estimate => \&op_estimate);

sub slurp
{
	my ($file) = @_;

	open(my $in, '<', $file) or die "$file: $!";
	local $/;
	return <$in>;
}

#
# The test's side: each call is a line to the child and a line back.
#

# socket, values, root; limits: the most that the kernel grants, by subject.
sub new
{
	my ($class, %options) = @_;
	my $self = bless { socket => $options{socket} }, $class;

	socketpair(my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die "socketpair: $!";
	$self->{pid} = fork() // die "fork: $!";
	if ($self->{pid} == 0)
	{
		close($ours);
		eval { run_child($theirs, %options); 1 } or print STDERR "FakeHelper: $@";
		POSIX::_exit(0);
	}
	close($theirs);
	$self->{control} = $ours;
	$self->up;
	return $self;
}

sub command
{
	my ($self, @command) = @_;
	my $control = $self->{control};
	my $line;

	local $SIG{PIPE} = 'IGNORE';
	$control->print(JSON::PP::encode_json(\@command) . "\n");
	$control->flush;
	$line = <$control> // die 'the fake helper is gone';
	return JSON::PP::decode_json($line)->[0];
}

# mode(name, op => 'set', times => 1, delay => 2); one that is not for a single
# operation ends all others.  mode(undef, op => 'set') tells the present one.
sub mode { my ($self, $mode, %options) = @_; return $self->command('mode', $mode, \%options); }

# Gone, as if stopped: no socket; and back, with what it knew.
sub down { return $_[0]->command('down'); }
sub up { return $_[0]->command('up'); }

# Reads a value, or sets it as somebody else would.
sub value { my ($self, $subject, @value) = @_; return $self->command('value', $subject, @value); }

# What the file for the next boot says; undef: nothing.
sub persisted { my ($self, $subject) = @_; return $self->command('persisted', $subject); }

# The most that the kernel grants from now on.
sub limit { my ($self, $subject, $limit) = @_; return $self->command('limit', $subject, $limit); }

# As if it were new: journal, file for the next boot, requests and modes are empty.
sub forget { return $_[0]->command('forget'); }

# All requests so far, oldest first, as hashes: op, subject, value, flags, mode; of one operation only.
sub requests
{
	my ($self, %filter) = @_;

	return grep { !$filter{op} || $_->{op} eq $filter{op} } @{ $self->command('requests') };
}

# The journal, as hashes.
sub changes { return @{ $_[0]->command('changes') }; }

sub stop
{
	my ($self) = @_;

	return if !$self->{pid};
	# a child that was forked later may hold the socket open, so that closing it says nothing
	kill 'TERM', $self->{pid};
	close($self->{control});
	waitpid($self->{pid}, 0);
	unlink($self->{socket});
	$self->{pid} = 0;
	return;
}

sub DESTROY
{
	my ($self) = @_;

	local ($?, $!, $@);
	$self->stop if $self->{pid};
	return;
}

#
# The child.
#

# What it is and knows; one process, one machine.
my %state;

sub run_child
{
	my ($control, %options) = @_;
	my $select = IO::Select->new($control);
	my $buffer = '';

	$SIG{$_} = 'DEFAULT' foreach qw(INT TERM);
	$SIG{PIPE} = 'IGNORE';
	%state = (path => $options{socket}, root => $options{root}, values => $options{values} // {},
		limits => $options{limits} // {}, persisted => {}, changes => [], requests => [],
		modes => {}, delayed => [], select => $select, listen => undef, clients => {});
	$control->autoflush(1);

	for (;;)
	{
		my @delayed = sort { $a->[0] <=> $b->[0] } @{ $state{delayed} };
		my $wait = @delayed ? $delayed[0][0] - time : undef;

		foreach my $socket ($select->can_read(defined $wait && $wait < 0 ? 0 : $wait))
		{
			if ($socket == $control)
			{
				my $n = sysread($control, $buffer, 65536, length $buffer);

				if (!$n)
				{
					take_down();
					return;		# the test is over
				}
				while ($buffer =~ s/^([^\n]*)\n//)
				{
					my ($name, @arguments) = @{ JSON::PP::decode_json($1) };

					$control->print(JSON::PP::encode_json([ control($name, @arguments) ]) . "\n");
				}
			}
			elsif (defined $state{listen} && $socket == $state{listen})
			{
				accept(my $client, $socket) or next;
				$select->add($client);
				$state{clients}{ fileno $client } = $client;
			}
			elsif (defined fileno $socket)
			{
				serve_client($socket);
			}
		}
		send_delayed();
	}
}

sub control
{
	my ($name, @arguments) = @_;
	my ($first, $second) = @arguments;

	if ($name eq 'mode')
	{
		my $op = $second->{op} // '';

		$state{modes} = {} if defined $first && $op eq '';
		$state{modes}{$op} = { mode => $first, %$second } if defined $first;
		return ($state{modes}{$op} // {})->{mode} // 'normal';
	}
	if ($name eq 'up') { bring_up(); return 1; }
	if ($name eq 'down') { take_down(); return 1; }
	if ($name eq 'value')
	{
		write_value($first, $second) if @arguments > 1;
		return read_value($first);
	}
	return $state{persisted}{$first} if $name eq 'persisted';
	if ($name eq 'limit') { $state{limits}{$first} = $second; return 1; }
	if ($name eq 'forget')
	{
		@state{qw(persisted changes requests modes)} = ({}, [], [], {});
		return 1;
	}
	return $state{$name};		# requests, changes
}

sub bring_up
{
	return if $state{listen};
	unlink($state{path});
	socket(my $listen, AF_UNIX, SOCK_SEQPACKET, 0) or die "socket: $!";
	bind($listen, pack_sockaddr_un($state{path})) or die "bind $state{path}: $!";
	listen($listen, 128) or die "listen: $!";
	$state{listen} = $listen;
	$state{select}->add($listen);
	return;
}

sub take_down
{
	return if !$state{listen};
	drop_client($_) foreach values %{ $state{clients} };
	$state{select}->remove($state{listen});
	close($state{listen});
	$state{listen} = undef;
	$state{delayed} = [];
	unlink($state{path});
	return;
}

sub drop_client
{
	my ($client) = @_;

	$state{select}->remove($client);
	delete $state{clients}{ fileno $client };
	close($client);
	return;
}

# A copy's file, or the table; undef: this kernel has no such knob.
sub read_value
{
	my ($subject) = @_;
	my $file = file_of($subject);

	return $state{values}{$subject} if !defined $file;
	return if !-e $file;
	return slurp($file) =~ /^(\d+)/ ? $1 + 0 : undef;
}

sub write_value
{
	my ($subject, $value) = @_;
	my $file = file_of($subject);

	if (!defined $file)
	{
		$state{values}{$subject} = $value + 0;
		return;
	}
	open(my $out, '>', "$file.new") or die "$file: $!";
	print $out "$value\n";
	close($out) or die "$file: $!";
	rename("$file.new", $file) or die "$file: $!";	# no reader sees it empty
	return;
}

sub file_of
{
	my ($subject) = @_;
	my $number = $KNOB{$subject};

	return if !defined $state{root} || !defined $number;
	return $state{root} . $KNOB_INFO{$number}{path};
}

sub send_delayed
{
	my @due = grep { $_->[0] <= time } @{ $state{delayed} };

	$state{delayed} = [ grep { $_->[0] > time } @{ $state{delayed} } ];
	foreach my $answer (@due)
	{
		send($answer->[1], $answer->[2], 0) if defined fileno $answer->[1];
	}
	return;
}

# The mode of this request; one that is for some requests only wears off.
sub mode_of
{
	my ($op) = @_;

	foreach my $key ($op, '')
	{
		my $mode = $state{modes}{$key} or next;

		if (defined $mode->{times} && --$mode->{times} <= 0)
		{
			delete $state{modes}{$key};
		}
		return $mode;
	}
	return { mode => 'normal' };
}

sub serve_client
{
	my ($client) = @_;
	my (%request, %reply, $message, $op, $mode, $name);

	if (!defined recv($client, $message, 4096, 0))
	{
		drop_client($client) if !$!{EINTR};
		return;
	}
	return drop_client($client) if length $message != length pack($REQUEST, (0) x 7);
	@request{@REQUEST_FIELDS} = unpack $REQUEST, $message;
	return drop_client($client) if $request{version} != VERSION;

	$op = $OP_NAME{ $request{operation} } // '';
	$mode = mode_of($op);
	$name = $mode->{mode};
	$request{subject} = subject_of(\%request);
	push @{ $state{requests} }, { %request, op => $op, mode => $name, at => time };

	return if $name eq 'hung';
	return drop_client($client) if $name eq 'close';

	%reply = (version => VERSION, status => $ST{OK}, error => 0, operation => $request{operation}, knob => 0,
		node => ALL_NODES, state => 0, uid => $>, change => 0, refers => 0, at_us => 0, boot_winner => 0,
		rounds => 0, elapsed_ms => 0, line => 0, boot_file => '', map { $_ => NO_VALUE } @UNKNOWN);
	$reply{state} |= REPLY_DRY_RUN if $request{flags} & DRY_RUN;

	if (exists $ST{$name})
	{
		$reply{status} = $ST{$name};
	}
	elsif (!$serve{$op})
	{
		$reply{status} = $ST{BAD_OPERATION};
	}
	else
	{
		$reply{status} = $ST{ answer($op, \%request, \%reply, $name) };
	}

	return drop_client($client) if $name eq 'lost';
	$reply{version}++ if $name eq 'version';
	$message = pack $REPLY, @reply{ map { $_->[0] } @REPLY };
	$message = substr($message, 0, length($message) / 2) if $name eq 'short';
	$message = 'x' x length $message if $name eq 'garbage';
	if ($name eq 'slow')
	{
		push @{ $state{delayed} }, [ time + ($mode->{delay} // 1), $client, $message ];
		return;
	}
	send($client, $message, 0);
	return;
}

sub subject_of
{
	my ($request) = @_;
	my $name = $KNOB_NAME{ $request->{knob} } // '';

	return $request->{node} >= 0 ? "node$request->{node}.$name" : $name;
}

sub answer
{
	my ($op, $request, $reply, $mode) = @_;

	if ($op ne 'rollback' && $op ne 'list')
	{
		my $info = $KNOB_INFO{ $request->{knob} } or return 'NO_KNOB';

		return 'ABSENT' if !defined read_value($request->{subject});
		@{$reply}{qw(knob node min max)} = ($request->{knob}, $request->{node}, $info->{min}, $info->{max});
	}
	return $serve{$op}->($request, $reply, $mode);
}

sub record
{
	my ($request, $reply, %more) = @_;
	my $change = { change => @{ $state{changes} } + 1, refers => 0, operation => $request->{operation},
		knob => $request->{knob}, node => $request->{node}, subject => $request->{subject}, uid => $>,
		at_us => int(time * 1e6), old => $reply->{old}, asked => $reply->{asked}, granted => $reply->{granted},
		status => $ST{OK}, state => 0, %more };

	push @{ $state{changes} }, $change;
	@{$reply}{qw(change at_us)} = @{$change}{qw(change at_us)};
	return $change;
}

# What the kernel makes of a wish.
sub grant
{
	my ($subject, $old, $asked, $mode) = @_;
	my $limit = $state{limits}{$subject};
	my $granted = $mode eq 'partial' ? int(($old + $asked) / 2) : $asked;

	return $old if $mode eq 'lying';
	$granted = $limit if defined $limit && $granted > $limit && $limit >= $old;
	write_value($subject, $granted);
	return read_value($subject);
}

sub op_get
{
	my ($request, $reply) = @_;

	$reply->{old} = $reply->{granted} = read_value($request->{subject});
	return 'OK';
}

sub op_set
{
	my ($request, $reply, $mode) = @_;
	my $subject = $request->{subject};
	my $status;

	$reply->{asked} = $request->{value};
	return 'RANGE' if $reply->{asked} < $reply->{min} || $reply->{asked} > $reply->{max};
	$reply->{old} = $reply->{granted} = read_value($subject);
	return 'UNCHANGED' if $reply->{old} == $reply->{asked};
	return 'OK' if $request->{flags} & DRY_RUN;
	$reply->{granted} = grant($subject, $reply->{old}, $reply->{asked}, $mode);
	$reply->{granted} = $reply->{asked} if $mode eq 'lying';
	$status = $reply->{granted} == $reply->{asked} ? 'OK' : 'PARTIAL';
	record($request, $reply, status => $ST{$status});
	return $status;
}

sub op_reserve
{
	my ($request, $reply, $mode) = @_;
	my $subject = $request->{subject};
	my $status = 'OK';

	return 'NOT_POSSIBLE' if !$KNOB_INFO{ $request->{knob} }{pool};
	$reply->{asked} = $request->{value};
	return 'RANGE' if $reply->{asked} < $reply->{min} || $reply->{asked} > $reply->{max};
	$reply->{old} = $reply->{granted} = $reply->{reached} = read_value($subject);
	$reply->{free_costly_blocks} = 1000;
	return 'UNCHANGED' if $reply->{asked} <= $reply->{old};
	return op_estimate($request, $reply) if $request->{flags} & DRY_RUN;
	$reply->{granted} = $reply->{reached} = grant($subject, $reply->{old}, $reply->{asked}, $mode);
	$reply->{granted} = $reply->{reached} = $reply->{asked} if $mode eq 'lying';
	$reply->{rounds} = 2;
	if ($reply->{granted} < $reply->{asked})
	{
		$status = 'PARTIAL';
		if ($request->{flags} & UNDO)
		{
			write_value($subject, $reply->{old});
			$reply->{granted} = $reply->{old};
			$status = 'UNDONE';
		}
	}
	record($request, $reply, status => $ST{$status});
	return $status;
}

sub op_estimate
{
	my ($request, $reply) = @_;
	# without a limit all is granted, and the free blocks do not depend on the question
	my $limit = $state{limits}{ $request->{subject} } // 1_000_000;

	return 'NOT_POSSIBLE' if !$KNOB_INFO{ $request->{knob} }{pool};
	$reply->{asked} = $request->{value};
	$reply->{old} = read_value($request->{subject});
	$reply->{free_costly_blocks} = 1000;
	$reply->{pages_free} = $limit > $reply->{old} ? $limit - $reply->{old} : 0;
	$reply->{pages_compaction} = $reply->{pages_reclaim} = 0;
	$reply->{granted} = $reply->{asked} < $limit ? $reply->{asked} : $limit;
	return 'OK';
}

sub boot_state
{
	my ($request, $reply) = @_;
	my $value = $state{persisted}{ $request->{subject} };

	$reply->{boot_winner} = defined $value ? BOOT_OURS : BOOT_NOTHING;
	$reply->{boot_value} = $value // NO_VALUE;
	$reply->{boot_file} = defined $value ? '/etc/sysctl.d/60-kernel-advisor.conf' : '';
	return;
}

# persist, unpersist and the rollback of either.
sub change_file
{
	my ($request, $reply, $value, $mode, %more) = @_;
	my $subject = $request->{subject};

	$reply->{old} = $state{persisted}{$subject} // NO_VALUE;
	$reply->{asked} = $value;
	$reply->{granted} = $reply->{old};
	if ($reply->{old} == $value)
	{
		boot_state($request, $reply);
		return 'UNCHANGED';
	}
	if (!($request->{flags} & DRY_RUN))
	{
		$state{persisted}{$subject} = $value == NO_VALUE ? undef : $value if $mode ne 'lying';
		$reply->{granted} = $value;
		record($request, $reply, %more);
	}
	boot_state($request, $reply);
	return 'OK';
}

sub op_persist
{
	my ($request, $reply, $mode) = @_;

	return 'RANGE' if $request->{value} < $reply->{min} || $request->{value} > $reply->{max};
	return change_file($request, $reply, $request->{value}, $mode);
}

sub op_unpersist
{
	my ($request, $reply, $mode) = @_;

	if (!defined $state{persisted}{ $request->{subject} })
	{
		boot_state($request, $reply);
		return 'NOT_PERSISTED';
	}
	return change_file($request, $reply, NO_VALUE, $mode);
}

sub op_rollback
{
	my ($request, $reply, $mode) = @_;
	my ($undone) = grep { $_->{change} == $request->{value} } @{ $state{changes} };
	my $op = $undone ? $OP_NAME{ $undone->{operation} } : '';
	my $status;

	return 'NO_CHANGE' if !$undone;
	$reply->{refers} = $undone->{change};
	return 'NOT_POSSIBLE' if $op eq 'rollback';
	@{$reply}{qw(knob node)} = @{$request}{qw(knob node)} = @{$undone}{qw(knob node)};
	$request->{subject} = $undone->{subject};
	return 'NOT_IN_EFFECT' if ($undone->{state} & ROLLED_BACK) || $undone->{granted} == $undone->{old};
	if ($op eq 'persist' || $op eq 'unpersist')
	{
		$status = change_file($request, $reply, $undone->{old}, $mode, refers => $undone->{change});
		$undone->{state} |= ROLLED_BACK if !($request->{flags} & DRY_RUN);
		return $status;
	}

	$reply->{asked} = $undone->{old};
	$reply->{old} = $reply->{granted} = read_value($request->{subject});
	return 'SUPERSEDED' if $reply->{old} != $undone->{old} && $reply->{old} != $undone->{granted};
	$status = $reply->{old} == $undone->{old} ? 'UNCHANGED' : 'OK';
	return $status if $request->{flags} & DRY_RUN;
	$reply->{granted} = grant($request->{subject}, $reply->{old}, $reply->{asked}, $mode);
	$reply->{granted} = $reply->{asked} if $mode eq 'lying';
	$status = 'PARTIAL' if $reply->{granted} != $reply->{asked};
	record($request, $reply, refers => $undone->{change}, status => $ST{$status});
	$undone->{state} |= ROLLED_BACK if $reply->{granted} == $reply->{asked};
	return $status;
}

sub op_list
{
	my ($request, $reply) = @_;
	my ($change) = grep { $_->{change} >= $request->{value} } @{ $state{changes} };

	return 'END' if !$change;
	@{$reply}{qw(change refers operation knob node uid at_us old asked granted)} =
	  @{$change}{qw(change refers operation knob node uid at_us old asked granted)};
	$reply->{state} = $change->{state} | THIS_BOOT;
	return (grep { $ST{$_} == $change->{status} } keys %ST)[0];
}

1;
