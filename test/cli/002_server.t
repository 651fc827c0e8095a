# A private cluster: down, running, and unable to start.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use AdvisorTest;
use JSON::PP;
use Test::More;

my $bin = bindir();
my @as = server_user();
plan skip_all => "no initdb in $bin" unless -x "$bin/initdb";

my $dir = scratch();
my $data = "$dir/data";
my ($rc, $out, $err, $facts, $pg);

chmod 0755, $dir;
ok(quietly(@as, "$bin/initdb", '-D', $data, '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'), 'initdb');
write_file("$data/postgresql.conf",
	"listen_addresses = ''\nunix_socket_directories = '$dir'\nshared_buffers = 64MB\nmax_connections = 37\n"
	. "huge_pages = off\ncheckpoint_timeout = 7min\nmax_wal_size = 2GB\nwal_init_zero = off\n"
	. "logging_collector = on\nlog_directory = 'mylogs'\nlc_messages = 'C'\nlog_line_prefix = '%m [%p] '\n", '>>');

sub setting
{
	my ($name) = @_;
	my $text = '';
	IPC::Run::run([ @as, "$bin/postgres", '-D', $data, '-C', $name ], '>', \$text, '2>', '/dev/null');
	chomp $text;
	return $text;
}

sub start { return quietly(@as, "$bin/pg_ctl", '-D', $data, '-w', '-l', "$dir/start.log", @_, 'start'); }
sub stop { return quietly(@as, "$bin/pg_ctl", '-D', $data, '-w', '-m', 'fast', 'stop'); }
END { stop() if defined $data && -e "$data/postmaster.pid"; }

# the same file that the server would print, whatever runs the tool
my @tool = @as;

#
# down: the sizes that a start would compute
#
my $megabytes = setting('shared_memory_size');
my $pages = setting('shared_memory_size_in_huge_pages');
cmp_ok($megabytes, '>', 64, 'the server computes its size');

($rc, $out, $err) = advisor_as(\@tool, 'facts', '-D', $data);
is($rc, 0, 'down: exit code');
is($err, '', 'down: nothing is missing');
$facts = decode_json($out);
$pg = $facts->{postgres};
is($pg->{shared_memory_bytes}, $megabytes * 1048576, 'shared memory, as computed');
is($pg->{shared_memory_huge_pages}, $pages, 'huge pages, as computed');
is($pg->{shared_buffers_bytes}, 64 * 1048576, 'shared_buffers');
is($pg->{max_connections}, 37, 'max_connections');
is($pg->{huge_pages}, 'off', 'huge_pages');
is($pg->{checkpoint_timeout_s}, 420, 'checkpoint_timeout');
is($pg->{max_wal_size_bytes}, 2 * 1024**3, 'max_wal_size');
is($pg->{wal_init_zero}, JSON::PP::false, 'wal_init_zero');
is($pg->{wal_recycle}, JSON::PP::true, 'wal_recycle');
is($pg->{wal_segment_size_bytes}, 16 * 1048576, 'wal_segment_size');
is($pg->{checkpoint_completion_target}, 0.9, 'checkpoint_completion_target');
is($pg->{version_num}, setting('server_version_num'), 'version');
ok(!exists $pg->{huge_pages_status}, 'no mapping, no status');
ok(exists $facts->{storage}{data}{filesystem}, 'file system of the data directory');
ok(!-e "$data/postmaster.pid", 'no lock file is left behind');

($rc, $out, $err) = advisor_as(\@tool, 'advise', '-D', $data);
cmp_ok($rc, '<=', 1, 'advice: exit code');
like($out, qr/^(?:critical|warning|info|ok) +huge_pages\./m, 'advice on huge pages');

# where the program is
($rc, $out, $err) = advisor_as(\@tool, 'facts', '-D', $data, '--bindir', $dir);
is($rc, 0, '--bindir without a server: exit code');
like($err, qr/no program postgres of version \d+ was found in \Q$dir\E; --bindir names its directory/, 'says what is missing');
is_deeply([ grep { !/^(version_num|memlock_limit_bytes)$/ } keys %{ decode_json($out)->{postgres} } ], [], 'and guesses nothing');

# a configuration file in another place
write_file("$dir/other.conf", "shared_buffers = 32MB\ndata_directory = '$data'\nhba_file = '$data/pg_hba.conf'\n");
($rc, $out, $err) = advisor_as(\@tool, 'facts', '-D', $data, '--config-file', "$dir/other.conf");
is(decode_json($out)->{postgres}{shared_buffers_bytes}, 32 * 1048576, '--config-file');

# a broken configuration: said, and the rest goes on
{
	my $saved = do { local (@ARGV, $/) = "$data/postgresql.conf"; <> };
	write_file("$data/postgresql.conf", "nonsense\n", '>>');
	($rc, $out, $err) = advisor_as(\@tool, 'facts', '-D', $data);
	is($rc, 0, 'broken configuration: exit code');
	like($err, qr/settings are not known: \S*postgres -C fails: FATAL: .*configuration file .* contains errors/, 'the reason');
	ok(exists decode_json($out)->{memory}{total_bytes}, 'the kernel is known');
	write_file("$data/postgresql.conf", $saved);
}

# as somebody else
SKIP:
{
	skip 'needs root', 4 unless $> == 0;
	my @nobody = qw(runuser -u nobody --);
	my $copy = "$dir/kernel_advisor";
	system('cp', $AdvisorTest::program, $copy);
	local $AdvisorTest::program = $copy;
	($rc, $out, $err) = advisor_as(\@nobody, 'facts', '-D', $data);
	is($rc, 2, 'unreadable data directory: exit code');
	like($err, qr/Permission denied; run this as root or as the owner/, 'unreadable data directory: what to do');
	# root itself: the program runs as the owner
	($rc, $out, $err) = advisor('facts', '-D', $data);
	is($err, '', 'as root: nothing is missing');
	is(decode_json($out)->{postgres}{shared_memory_bytes}, $megabytes * 1048576, 'as root: the same size');
}

#
# running: the mapping
#
ok(start('-o', '-c max_connections=41'), 'start');
my ($pid) = do { local @ARGV = "$data/postmaster.pid"; <> };
chomp $pid;

($rc, $out, $err) = advisor_as(\@tool, 'facts', '-D', $data);
is($rc, 0, 'running: exit code');
is($err, '', 'running: nothing is missing');
$pg = decode_json($out)->{postgres};
is($pg->{huge_pages_status}, 'off', 'on small pages');
is($pg->{huge_pages_status_source}, 'mapping', 'as the mapping says');
is($pg->{max_connections}, 41, 'options of the command line count');
my $mapped = 0;
open my $maps, '<', "/proc/$pid/maps" or die $!;
while (<$maps>)
{
	no warnings 'portable';
	$mapped = hex($2) - hex($1) if m{^([0-9a-f]+)-([0-9a-f]+) .*/dev/zero};
}
SKIP:
{
	skip 'no mapping of /dev/zero', 1 unless $mapped;
	is($pg->{shared_memory_bytes}, $mapped, 'exactly what is mapped');
}
my ($locked) = do { local (@ARGV, $/) = "/proc/$pid/limits"; <> } =~ /^Max locked memory +(\S+)/m;
is($pg->{memlock_limit_bytes} // 'unlimited', $locked, 'its own limit of locked memory');

($rc, $out, $err) = advisor_as(\@tool, 'doctor', '-D', $data);
is($rc, 0, 'doctor of a healthy server: exit code') or diag $out;
like($out, qr/The server is running \(PID $pid\), and its log tells of no memory failure/, 'doctor: it runs');

# a backend dies as on a bus error: the log tells, the server restarts
my $victim = '';
IPC::Run::run([ "$bin/psql", '-h', $dir, '-U', $> == 0 ? 'postgres' : scalar getpwuid($>), '-d', 'postgres', '-AtXc',
	'SELECT pg_backend_pid()' ], '>', \$victim);
ok($victim =~ /^\d+$/m, 'the server answers');
{
	my $in = "SELECT pg_backend_pid();\n";
	my ($session_out, $session_err) = ('', '');
	my $session = IPC::Run::start([ "$bin/psql", '-h', $dir, '-U', $> == 0 ? 'postgres' : scalar getpwuid($>), '-d', 'postgres', '-AtX' ],
		'<', \$in, '>', \$session_out, '2>', \$session_err, IPC::Run::timeout(60));
	$session->pump until $session_out =~ /^\d+\n/;
	my ($backend) = $session_out =~ /^(\d+)/;
	kill 'BUS', $backend;
	$in .= "SELECT 1;\n";
	eval { $session->finish };
	for (1 .. 100)
	{
		last if system("$bin/pg_isready -q -h $dir") == 0;
		select undef, undef, undef, 0.1;
	}
	($rc, $out, $err) = advisor_as(\@tool, 'doctor', '-D', $data);
	cmp_ok($rc, '<=', 1, 'doctor after SIGBUS: exit code');
	like($out, qr/A server process was killed by SIGBUS, \d+ s after it was ready/, 'doctor: SIGBUS, and when');
	like($out, qr/From $data\/mylogs\/\S+:\n +\S.*PID $backend/, "doctor: the server's own words");
}
ok(stop(), 'stop');

# postmaster.opts keeps the options of that start, which the next one need not have
($rc, $out, $err) = advisor_as(\@tool, 'facts', '-D', $data);
is(decode_json($out)->{postgres}{max_connections}, setting('max_connections'), 'stopped again: the settings of the files');

#
# not able to start
#
SKIP:
{
	my ($pool) = do { local @ARGV = '/proc/sys/vm/nr_hugepages'; <> };
	my ($surplus) = do { local @ARGV = '/proc/sys/vm/nr_overcommit_hugepages'; <> };
	skip "this machine has a pool of huge pages: nr_hugepages is $pool", 11 if $pool + $surplus > 0;

	unlink "$dir/start.log";
	write_file("$data/postgresql.conf", "huge_pages = on\n", '>>');
	system(@as, "$bin/pg_ctl", '-D', $data, '-w', '-l', "$dir/start.log", '-s', 'start');
	ok(!-e "$data/postmaster.pid", 'huge_pages = on without a pool does not start');

	($rc, $out, $err) = advisor_as(\@tool, 'doctor', '-D', $data, '--log', "$dir/start.log");
	is($rc, 1, 'doctor: exit code');
	my ($asked) = do { local (@ARGV, $/) = "$dir/start.log"; <> } =~ /currently (\d+) bytes/;
	like($out, qr/The server does not start: the kernel refused its main shared memory segment of .*\($asked bytes\) with ENOMEM/,
		'doctor: the diagnosis');
	like($out, qr/^critical +huge_pages\.pool_short +vm\.nr_hugepages +0 -> \d+/m, 'doctor: the advice');

	# the message instead of the log
	my $message = do { local (@ARGV, $/) = "$dir/start.log"; <> };
	($rc, $out, $err) = advisor_as(\@tool, 'doctor', '-D', $data, '--error', $message);
	is($rc, 1, 'doctor with the message: exit code');
	like($out, qr/\($asked bytes\) with ENOMEM/, 'doctor with the message: the same diagnosis');

	# neither: it says where to look; the facts still tell
	($rc, $out, $err) = advisor_as(\@tool, 'doctor', '-D', $data);
	is($rc, 1, 'doctor without the message: exit code');
	like($out, qr/The server is not running, and its log does not tell why/, 'doctor without the message: admits it');
	like($out, qr/Before that, a process was killed, and the server went on/, 'doctor without the message: the crash before');
	like($out, qr/^critical +huge_pages\.pool_short/m, 'doctor without the message: the same advice');

	($rc, $out, $err) = advisor_as(\@tool, 'advise', '-D', $data);
	is($rc, 1, 'advise says so, too');
}

# a message of another kind
($rc, $out, $err) = advisor_as(\@tool, 'doctor', '-D', $data, '--error',
	'FATAL:  could not setup io_uring queue: Cannot allocate memory');
like($out, qr/could not set up its io_uring queues with ENOMEM/, 'doctor: io_uring');
like($out, qr/huge_pages\.not_cause/, 'doctor: not the cause');
($rc, $out, $err) = advisor_as(\@tool, 'doctor', '-D', $data, '--error', 'FATAL: no such thing');
like($out, qr/does not tell of a memory request that failed/, 'doctor: another message');
($rc, $out, $err) = advisor_as(\@tool, 'doctor', '-D', $data, '--log', "$dir/none");
is($rc, 2, 'doctor: no such log');
like($err, qr/none: No such file/, 'doctor: and says so');

# a stale lock file names a process that is not the server
write_file("$data/postmaster.pid", "$$\n$data\n");
($rc, $out, $err) = advisor_as(\@tool, 'facts', '-D', $data);
is($rc, 0, 'stale lock file: exit code');
ok(!exists decode_json($out)->{postgres}{huge_pages_status}, 'stale lock file: not taken for the server');
unlink "$data/postmaster.pid";

done_testing();
