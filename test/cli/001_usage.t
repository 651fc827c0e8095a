# Usage, fact files, text and JSON: no server, and nothing of this machine but its kernel's files.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use AdvisorTest;
use JSON::PP;
use Test::More;

my $dir = scratch();
my ($rc, $out, $err);

# name, arguments, exit code, pattern of stdout, pattern of stderr
my @usage = (
	[ 'help', ['--help'], 0, qr/^Usage:.*Exit status/ms, qr/^$/ ],
	[ 'help of a command', [qw(facts --help)], 0, qr/^Usage:/m, qr/^$/ ],
	[ 'version', ['--version'], 0, qr/^kernel_advisor \d+\.\d+$/, qr/^$/ ],
	[ 'no command', [], 2, qr/^$/, qr/a command is missing/ ],
	[ 'unknown command', ['tune'], 2, qr/^$/, qr/tune is not a command/ ],
	[ 'unknown option', [qw(facts --wrong)], 2, qr/^$/, qr/--wrong is not an option/ ],
	[ 'unknown letter', [qw(facts -x)], 2, qr/^$/, qr/is not an option/ ],
	[ 'option without its argument', [qw(facts -D)], 2, qr/^$/, qr/-D needs an argument/ ],
	[ 'an argument too many', [qw(facts here)], 2, qr/^$/, qr/here is one argument too many/ ],
	[ 'option of another command', [qw(facts --error x)], 2, qr/^$/, qr/--error is not an option of this command/ ],
	[ 'facts has no --json', [qw(facts --json)], 2, qr/^$/, qr/--json is not an option of this command/ ],
	[ 'a file and a directory', [qw(advise --facts x -D y)], 2, qr/^$/, qr/--facts excludes/ ],
	[ 'doctor without a directory', ['doctor'], 2, qr/^$/, qr/doctor needs -D/ ],
	[ 'error and log', [qw(doctor -D x --error y --log z)], 2, qr/^$/, qr/--error excludes --log/ ],
	[ 'no such directory', [ 'facts', '-D', "$dir/none" ], 2, qr/^$/, qr/none: No such file or directory/ ],
	[ 'not a data directory', [ 'facts', '-D', $dir ], 2, qr/^$/, qr/has no PG_VERSION/ ],
	[ 'no such root', [ 'facts', '--root', "$dir/none" ], 2, qr/^$/, qr/--root .*none: No such file/ ],
	[ 'relative path below a root', [ 'facts', '--root', $dir, '-D', 'x' ], 2, qr/^$/, qr/begins with a slash/ ],
	[ 'no such facts', [ 'advise', '--facts', "$dir/none" ], 2, qr/^$/, qr/none: No such file or directory/ ],
	[ 'a directory as facts', [ 'advise', '--facts', $dir ], 2, qr/^$/, qr/Is a directory/ ],
);
for my $case (@usage)
{
	my ($name, $arguments, $code, $stdout, $stderr) = @$case;
	($rc, $out, $err) = advisor(@$arguments);
	is($rc, $code, "$name: exit code");
	like($out, $stdout, "$name: stdout");
	like($err, $stderr, "$name: stderr");
}

# a directory of configuration, as on Debian
mkdir "$dir/etc";
write_file("$dir/etc/postgresql.conf", "data_directory = '/x'\n");
($rc, $out, $err) = advisor('facts', '-D', "$dir/etc");
is($rc, 2, 'configuration directory: exit code');
like($err, qr/holds the configuration only; -D takes the data directory/, 'configuration directory: what to do');

# malformed facts: the path of the bad key
my @malformed = (
	[ '{"hugepages": {"pools": [{"size_bytes": 4096}, {"size_bytes": 8192, "free": -1}]}}',
		qr/hugepages\.pools\[1\]\.free: -1 is out of range/ ],
	[ '{"postgres": {"huge_pages": "maybe"}}', qr/postgres\.huge_pages: "maybe" is not one of try, on, off/ ],
	[ '{"schema": 2}', qr/schema: 2 is not known here/ ],
	[ '{"sysctl": {"vm.swappiness": "60"}}', qr/sysctl\.vm\.swappiness: expected an integer, found a string/ ],
	[ '[]', qr/facts: expected an object/ ],
	[ '{"a": ', qr/not JSON: line 1, column/ ],
	[ '', qr/not JSON/ ],
	[ '{"sysctl": {"vm.nr_hugepages": 1e400}}', qr/not JSON: line 1, column 36: real number overflow/ ],
	[ "\xff\xfe{}", qr/not JSON/ ],
);
for my $case (@malformed)
{
	my $file = write_file("$dir/bad.json", $case->[0]);
	($rc, $out, $err) = advisor('advise', '--facts', $file);
	is($rc, 2, "malformed $case->[0]: exit code");
	like($err, $case->[1], "malformed $case->[0]: message");
	is($out, '', "malformed $case->[0]: nothing on stdout");
}

# a server with huge_pages = on, and a pool that lacks pages
my %short = (
	schema => 1,
	postgres => { version_num => 170002, huge_pages => 'on', shared_memory_bytes => 6442450944,
		shared_memory_type => 'mmap', max_connections => 400 },
	kernel => { release => '6.12.0', os => 'linux', machine => 'x86_64', page_size_bytes => 4096 },
	memory => { total_bytes => 25769803776, available_bytes => 20000000000 },
	hugepages => { default_size_bytes => 2097152,
		pools => [ { size_bytes => 2097152, total => 100, free => 100, reserved => 0, surplus => 0, overcommit => 0 } ] },
	sysctl => { 'vm.nr_hugepages' => 100 },
);
my $short = write_file("$dir/short.json", encode_json(\%short));

($rc, $out, $err) = advisor('advise', '--facts', $short);
is($rc, 1, 'a pool that is short: exit code');
is($err, '', 'nothing to say on stderr');
like($out, qr/^(critical|warning) +huge_pages\.pool_short +vm\.nr_hugepages +100 -> (\d+)\n +\S/m, 'a pool that is short: row');
my ($pages) = $out =~ /vm\.nr_hugepages +100 -> (\d+)/;
cmp_ok($pages, '>=', 3072, 'enough pages');
cmp_ok($pages, '<=', 3072 * 1.011 + 1, 'and no more than needed');
like($out, qr/^    \$ .*\b$pages\b/m, 'and the command');
like($out, qr/^\d+ (critical|warning).*\Z/m, 'the numbers by severity');
unlike($out, qr/\e/, 'no colour in a pipe');

($rc, $out, $err) = advisor(qw(advise --json --facts), $short);
is($rc, 1, 'as JSON: exit code');
my $rows = decode_json($out);
is(ref $rows, 'ARRAY', 'as JSON: an array');
my ($row) = grep { $_->{rule} eq 'huge_pages.pool_short' } @$rows;
is(join(' ', sort keys %$row),
	'activation command confidence current evidence reason recommended rule severity subject', 'as JSON: every column');
is($row->{recommended}, $pages, 'as JSON: the same number');
is(ref $row->{evidence}, 'HASH', 'as JSON: evidence');

# the columns are aligned
{
	($rc, $out) = advisor('advise', '--facts', $short);
	my %columns = map { /^(?:critical|warning|info|ok) +(\S+)/ ? ($-[1] => 1) : () } split /\n/, $out;
	is(scalar keys %columns, 1, 'rules begin in one column');
}

# on a terminal: colour, unless NO_COLOR
SKIP:
{
	skip 'script is not there', 3 unless grep { -x "$_/script" } split /:/, $ENV{PATH};
	local $ENV{TERM} = 'xterm';
	my $command = "$AdvisorTest::program advise --facts $short";
	like(`script -qec '$command' /dev/null </dev/null`, qr/\e\[[\d;]+m(critical|warning)\e\[0m/, 'colour on a terminal');
	local $ENV{NO_COLOR} = '1';
	unlike(`script -qec '$command' /dev/null </dev/null`, qr/\e\[/, 'none with NO_COLOR');
	delete $ENV{NO_COLOR};
	local $ENV{TERM} = 'dumb';
	unlike(`script -qec '$command' /dev/null </dev/null`, qr/\e\[/, 'none on a dumb one');
}

# a fact file cannot drive the terminal
{
	my %evil = %{ decode_json(encode_json(\%short)) };
	$evil{boot} = { sysctl => { 'vm.nr_hugepages' => { value => 5, file => "/etc/\e]0;x\a\x{9b}31m.conf" } } };
	my $file = write_file("$dir/evil.json", encode_json(\%evil));
	($rc, $out, $err) = advisor('advise', '--facts', $file);
	unlike($out . $err, qr/[\e\a]|\xc2\x9b/, 'control characters of a fact file do not come out');
	like($out, qr{/etc/\?\]0;x}, 'but the text does');
}

# facts from standard input, as from another machine
my ($in_out, $in_err) = ('', '');
open my $input, '<', $short or die $!;
IPC::Run::run([ $AdvisorTest::program, 'advise', '--facts', '-' ], '<', $input, '>', \$in_out, '2>', \$in_err);
is($? >> 8, 1, 'facts from standard input');
like($in_out, qr/huge_pages\.pool_short/, 'with the same advice');

# nothing is known
($rc, $out, $err) = advisor('advise', '--facts', write_file("$dir/empty.json", '{}'));
is($rc, 0, 'no facts: nothing to do');
isnt($out, '', 'but something to read');

# output that cannot be written
SKIP:
{
	skip '/dev/full is not there', 2 unless -c '/dev/full';
	is(system("$AdvisorTest::program advise --facts $short >/dev/full 2>$dir/err") >> 8, 2, 'full disk: exit code');
	is(system("$AdvisorTest::program facts >/dev/full 2>$dir/err") >> 8, 2, 'full disk: exit code of facts');
}

# this kernel
($rc, $out, $err) = advisor('facts');
is($rc, 0, 'facts of this machine: exit code');
is($err, '', 'nothing to say');
my $facts = decode_json($out);
is($facts->{schema}, 1, 'schema');
chomp(my $release = `uname -r`);
is($facts->{kernel}{release}, $release, 'the kernel');
ok(!exists $facts->{postgres}, 'no server, no facts of one');
my ($total) = `cat /proc/meminfo` =~ /^MemTotal: +(\d+) kB/m;
is($facts->{memory}{total_bytes}, $total * 1024, 'its memory');

# what facts writes, advise reads
($rc, $out, $err) = advisor('advise', '--facts', write_file("$dir/own.json", $out));
cmp_ok($rc, '<=', 1, 'own facts are accepted');
is($err, '', 'without a complaint');

# a copy of another machine
{
	my $root = "$dir/root";
	mkdir $_ for $root, "$root/proc", "$root/proc/sys", "$root/proc/sys/kernel", "$root/proc/sys/vm", "$root/pg";
	write_file("$root/proc/sys/kernel/osrelease", "4.18.0-553.el8.x86_64\n");
	write_file("$root/proc/sys/vm/nr_hugepages", "77\n");
	write_file("$root/proc/meminfo", "MemTotal:       1000 kB\n");
	write_file("$root/pg/PG_VERSION", "13\n");
	($rc, $out, $err) = advisor('facts', '--root', "$root/", '-D', '/pg');
	is($rc, 0, 'another machine: exit code');
	$facts = decode_json($out);
	is($facts->{kernel}{release}, '4.18.0-553.el8.x86_64', 'its kernel');
	is($facts->{memory}{total_bytes}, 1024000, 'its memory');
	is($facts->{sysctl}{'vm.nr_hugepages'}, 77, 'its knobs');
	is($facts->{postgres}{version_num}, 130000, 'its server');
	is(join(' ', keys %{ $facts->{postgres} }), 'version_num', 'and nothing of this machine');
	like($err, qr/with --root nothing is started/, 'and why');
}

done_testing();
