# AdvisorTest.pm: what the tests of the command line tool share.
#
# They run from the top of a built source tree, as root or as anybody: servers
# of their own run as the user postgres, or as the caller.
package AdvisorTest;

use strict;
use warnings;
use Exporter 'import';
use File::Temp qw(tempdir);
use IPC::Run qw(run timeout);
use Test::More;

our @EXPORT = qw(advisor advisor_as scratch server_user bindir quietly write_file);

our $program = $ENV{KERNEL_ADVISOR} || 'contrib_tools/kernel_advisor/kernel_advisor';
BAIL_OUT("$program is missing: run make first") unless -x $program;

# Runs the tool: exit code, stdout, stderr.  A crash is an exit code no test expects.
sub advisor { return advisor_as([], @_); }

sub advisor_as
{
	my ($prefix, @arguments) = @_;
	my ($out, $err) = ('', '');
	run([ @$prefix, $program, @arguments ], '<', \'', '>', \$out, '2>', \$err, timeout(120));
	return ($? & 127 ? 1000 + ($? & 127) : $? >> 8, $out, $err);
}

# A directory that the server's user can work in.
sub scratch
{
	my $dir = tempdir('/var/tmp/kernel_advisor_test_XXXXXX', CLEANUP => 1);
	if ($> == 0)
	{
		my (undef, undef, $uid, $gid) = getpwnam('postgres');
		chown $uid, $gid, $dir or die "chown $dir: $!";
	}
	return $dir;
}

# What a command line begins with to run as the server's user.
sub server_user { return $> == 0 ? qw(runuser -u postgres --) : (); }

# Where the programs of the server are that the tree was built for.
sub bindir
{
	my $config = $ENV{PG_CONFIG} || 'pg_config';
	my $bindir = `$config --bindir`;
	chomp $bindir;
	return $bindir;
}

# Runs a command; its output is shown when it fails.
sub quietly
{
	my @command = @_;
	my $output = '';
	my $good = run(\@command, '<', \'', '>&', \$output, timeout(120));
	diag("@command: $output") unless $good;
	return $good;
}

sub write_file
{
	my ($path, $text, $mode) = @_;
	open my $file, $mode || '>', $path or die "$path: $!";
	print $file $text;
	close $file or die "$path: $!";
	return $path;
}

1;
