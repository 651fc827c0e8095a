# A copy of a machine's /proc and /sys for a server to look at
# (kernel_advisor.machine_root), with a kernel that stalls: as long as
# vm.extfrag_threshold is below 1000 its direct compactions are counted, as many
# a second as the test says.  Runs as any user and touches nothing else.
#
#	my $machine = FakeMachine->new(root => $dir);	# before the server starts
#	$machine->stalls(40);		# a second, from now on
#
# The files are those of test/fixtures/machines/vm-6.18: ext4, whose buffered
# writes ask for large blocks from that kernel on.

package FakeMachine;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use IO::Handle;
use POSIX ();
use Socket;
use Time::HiRes qw(sleep time);

my $fixture = dirname(dirname(abs_path(__FILE__))) . '/test/fixtures/machines/vm-6.18';

use constant TICK => 0.05;		# s

sub new
{
	my ($class, %options) = @_;
	my $self = bless { root => $options{root} }, $class;

	make_path($self->{root});
	system('cp', '-R', "$fixture/.", $self->{root}) == 0 or die 'cannot copy the machine';
	$self->write_vmstat(0);

	socketpair(my $ours, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die "socketpair: $!";
	$self->{pid} = fork() // die "fork: $!";
	if ($self->{pid} == 0)
	{
		close($ours);
		eval { $self->run_child($theirs); 1 } or print STDERR "FakeMachine: $@";
		POSIX::_exit(0);
	}
	close($theirs);
	$self->{control} = $ours;
	return $self;
}

sub root { return $_[0]->{root}; }

sub add_directory { my ($self, $name) = @_; make_path("$self->{root}$name"); return; }

# Direct compactions a second.
sub stalls
{
	my ($self, $rate) = @_;

	$self->{control}->print("$rate\n");
	$self->{control}->flush;
	return;
}

sub sysctl_file { my ($self, $name) = @_; return "$self->{root}/proc/sys/vm/$name"; }

sub stop
{
	my ($self) = @_;

	return if !$self->{pid};
	kill 'TERM', $self->{pid};	# another child may hold the socket open
	close($self->{control});
	waitpid($self->{pid}, 0);
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

# The sampler keeps the file open: it is written in place, at one go and always
# of the same length.
sub write_vmstat
{
	my ($self, $stalls) = @_;
	my $file = "$self->{root}/proc/vmstat";

	if (!defined $self->{vmstat})
	{
		open(my $in, '<', $file) or die "$file: $!";
		local $/;
		$self->{vmstat} = <$in>;
		open($self->{out}, '+<', $file) or die "$file: $!";
	}
	my $text = $self->{vmstat};
	$text =~ s/^compact_stall \d+$/sprintf('compact_stall %012d', $stalls)/me or die 'no compact_stall';
	sysseek($self->{out}, 0, 0) // die "seek: $!";
	syswrite($self->{out}, $text) // die "write: $!";
	return;
}

sub run_child
{
	my ($self, $control) = @_;
	my $stalls = 0;
	my $rate = 0;
	my $last = time;

	$SIG{$_} = 'DEFAULT' foreach qw(INT TERM);
	$control->blocking(0);
	for (;;)
	{
		my $n = sysread($control, my $buffer, 4096);
		my $now = time;

		return if defined $n && $n == 0;	# the test is over
		$rate = $1 if $n && $buffer =~ /([\d.]+)\n\z/;
		if ($rate > 0 && $self->threshold < 1000)
		{
			$stalls += $rate * ($now - $last);
			$self->write_vmstat($stalls);
		}
		$last = $now;
		sleep(TICK);
	}
}

sub threshold
{
	my ($self) = @_;

	open(my $in, '<', $self->sysctl_file('extfrag_threshold')) or return 500;
	return <$in> + 0;
}

1;
