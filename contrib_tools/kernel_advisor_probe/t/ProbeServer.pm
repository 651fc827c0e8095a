# ProbeServer.pm: a PostgreSQL server with the extension, for tests of the probe as root; the server of pg_config (PG_CONFIG).
package ProbeServer;

use strict;
use warnings;
use Exporter qw(import);
use File::Temp qw(tempdir);
use Probe;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(need_server as_user start_server stop_server query sampled session);

my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
my $user = 'postgres';

# Why there is no server to test with, or nothing.
sub need_server
{
	chomp(my $library = qx{$pg_config --pkglibdir 2>/dev/null});
	return "needs $pg_config" if $library eq '';
	return 'needs the extension installed' if !-e "$library/pg_kernel_advisor.so";
	return "needs a user $user" if !defined getpwnam($user);
	return;
}

sub as_user { my (@command) = @_; return command('runuser', '-u', $user, '--', @command); }

# { data, sockets, bin }: below a directory of a file system of the test's choice; the cluster that is there, or a new one.
sub start_server
{
	my ($directory, @settings) = @_;
	chomp(my $bin = qx{$pg_config --bindir});
	my $sockets = tempdir('probe.XXXXXX', DIR => '/var/tmp', CLEANUP => 1);
	my $s = { bin => $bin, data => "$directory/data", sockets => $sockets, port => 54873, log => "$sockets/log" };

	command('chown', $user, $sockets, $directory);
	as_user('sh', '-c', 'exec "$@" >/dev/null', 'sh', "$bin/initdb", '-D', $s->{data}, '-U', $user, '-A', 'trust', '--no-sync', '--no-instructions', '--locale=C.UTF-8', '--encoding=UTF8')
	  or die 'initdb' if !-e "$s->{data}/PG_VERSION";
	spew("$s->{data}/postgresql.auto.conf", join('', map { "$_\n" } "listen_addresses = ''", "unix_socket_directories = '$sockets'",
		"port = $s->{port}", "shared_preload_libraries = 'pg_kernel_advisor'", 'log_checkpoints = on', @settings));
	as_user("$bin/pg_ctl", '-D', $s->{data}, '-l', $s->{log}, '-w', '-s', 'start') or die "pg_ctl:\n" . (-e $s->{log} ? slurp($s->{log}) : '');
	restore_with(sub { stop_server($s) });
	query($s, 'SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS pg_kernel_advisor');
	return $s;
}

sub stop_server
{
	my ($s, $mode) = @_;
	as_user("$s->{bin}/pg_ctl", '-D', $s->{data}, '-m', $mode // 'immediate', '-w', '-s', 'stop') if -e "$s->{data}/postmaster.pid";
	return;
}

sub psql { my ($s) = @_; return ("$s->{bin}/psql", '-XAtq', '-h', $s->{sockets}, '-p', $s->{port}, '-U', $user, '-v', 'ON_ERROR_STOP=1', '-d', 'postgres'); }

sub query
{
	my ($s, $sql) = @_;
	open(my $out, '-|', psql($s), '-c', $sql) or die "psql: $!";
	local $/;
	my $text = <$out> // '';
	close($out) or die "failed: $sql";
	$text =~ s/\n\z//;
	return $text;
}

# A session that runs while the test goes on: { pid (the backend's), tool }
sub session
{
	my ($s) = @_;
	my $tool = start_tool('sh', '-c', 'exec "$@" 2>&1', 'sh', psql($s), '-c', 'SELECT pg_backend_pid()', '-f', '-');
	return { pid => $tool->{first}, tool => $tool };
}

# The sampler has looked again, and the probe has published before that.
sub sampled
{
	my ($s) = @_;
	sleep(0.25);
	my $now = query($s, 'SELECT clock_timestamp()');
	return wait_until(sub { query($s, "SELECT count(*) >= 2 FROM kernel_advisor.samples WHERE at - interval_ms * interval '1ms' > '$now'") eq 't' });
}

1;
