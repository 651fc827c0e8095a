# reserve, rollback and the doctor's fix, as somebody who may not change the kernel: nothing is changed here.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use AdvisorTest;
use JSON::PP;
use POSIX ();
use Test::More;

my $bin = bindir();
plan skip_all => "no initdb in $bin" unless -x "$bin/initdb";
my @as = server_user();
my $dir = scratch();
my $data = "$dir/data";
my $usual = '/run/kernel_advisord/socket';
my ($rc, $out, $err);

sub slurp { my ($path) = @_; open my $file, '<', $path or return ''; local $/; return <$file>; }
sub pool { return slurp('/proc/sys/vm/nr_hugepages'); }
my $pool = pool();

# usage: name, arguments, pattern of stderr
my @usage = (
	[ 'reserve without a directory', ['reserve'], qr/reserve needs -D PGDATA/ ],
	[ 'a time limit of nothing', [qw(reserve -D x --time-limit 0)], qr/--time-limit takes seconds up to 600, not 0/ ],
	[ 'a time limit beyond the limit', [qw(reserve -D x --time-limit 601)], qr/--time-limit takes seconds up to 600, not 601/ ],
	[ 'a time limit that is no number', [qw(reserve -D x --time-limit 5s)], qr/--time-limit takes seconds up to 600, not 5s/ ],
	[ 'a time limit below zero', [qw(reserve -D x --time-limit -1)], qr/--time-limit takes seconds up to 600, not -1/ ],
	[ 'a time limit of nan', [qw(reserve -D x --time-limit nan)], qr/--time-limit takes seconds up to 600, not nan/ ],
	[ 'a node that is no number', [qw(reserve -D x --node one)], qr/--node takes the number of a memory node, not one/ ],
	[ 'a node below zero', [qw(reserve -D x --node -1)], qr/--node takes the number of a memory node, not -1/ ],
	[ 'more nodes than there can be', [ qw(reserve -D x), map { ('--node', $_) } 0 .. 64 ], qr/--node takes .* not 64/ ],
	[ 'reserve has no root', [qw(reserve -D x --root /)], qr/--root is not an option of this command/ ],
	[ 'reserve takes no change', [qw(reserve -D x 7)], qr/7 is one argument too many/ ],
	[ 'estimate of another command', [qw(advise --estimate)], qr/--estimate is not an option of this command/ ],
	[ 'no such directory', [ 'reserve', '-D', "$dir/none" ], qr/none: No such file or directory/ ],
	[ 'rollback of nothing', ['rollback'], qr/rollback takes a CHANGE_ID, or --list/ ],
	[ 'rollback and list', [qw(rollback 1 --list)], qr/rollback takes a CHANGE_ID, or --list/ ],
	[ 'rollback of a word', [qw(rollback last)], qr/last is not the number of a change/ ],
	[ 'rollback of change 0', [qw(rollback 0)], qr/0 is not the number of a change/ ],
	[ 'rollback of two', [qw(rollback 1 2)], qr/2 is one argument too many/ ],
	[ 'rollback -D', [qw(rollback -D x 1)], qr/-D is not an option of this command/ ],
);
for my $case (@usage)
{
	my ($name, $arguments, $stderr) = @$case;
	($rc, $out, $err) = advisor(@$arguments);
	is("$rc $out", '2 ', "$name: exit code, and nothing on stdout");
	like($err, $stderr, "$name: stderr");
}
like((advisor('--help'))[1], qr/kernel_advisor reserve -D PGDATA.*kernel_advisor rollback/s, '--help names both');

#
# a server that is down
#
chmod 0755, $dir;
ok(quietly(@as, "$bin/initdb", '-D', $data, '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'), 'initdb');
my $conf = slurp("$data/postgresql.conf") . "listen_addresses = ''\nunix_socket_directories = '$dir'\nshared_buffers = 64MB\n";

sub configure { return write_file("$data/postgresql.conf", $conf . join('', map { "$_\n" } @_)); }

sub needed
{
	my $text = '';
	IPC::Run::run([ @as, "$bin/postgres", '-D', $data, '-C', 'shared_memory_size_in_huge_pages' ], '>', \$text, '2>', '/dev/null');
	return $text + 0;
}

configure('huge_pages = off');
($rc, $out, $err) = advisor_as(\@as, 'reserve', '-D', $data);
is($rc, 0, 'huge_pages = off: exit code');
is($out, "Nothing to reserve: huge_pages is off: the server asks for no huge page.\n", 'huge_pages = off: and why');
configure('huge_pages = on', 'shared_memory_type = sysv');
($rc, $out, $err) = advisor_as(\@as, 'reserve', '-D', $data, '--json');
is($rc, 0, 'System V: exit code');
my $result = decode_json($out);
like($result->{nothing_to_do}, qr/System V/, 'System V: and why');
is_deeply($result->{pools}, [], 'System V: no pool');
configure('huge_pages = try');

SKIP:
{
	my ($kilobytes) = slurp('/proc/meminfo') =~ /^Hugepagesize: +(\d+) kB/m;
	skip 'this kernel has no huge pages', 1 unless defined $kilobytes && -d '/sys/kernel/mm/hugepages';
	my $needed = needed();
	my $size = "hugepages-${kilobytes}kB";
	my $free = slurp("/sys/kernel/mm/hugepages/$size/free_hugepages");
	my $taken = $pool - $free + slurp("/sys/kernel/mm/hugepages/$size/resv_hugepages");

	# the estimate, for somebody who may read the data directory
	($rc, $out, $err) = advisor_as(\@as, 'reserve', '-D', $data, '--estimate', '--json');
	cmp_ok($rc, '<=', 3, 'estimate: exit code');
	isnt($rc, 2, 'estimate: no trouble') or diag $err;
	$result = decode_json($out);
	is($result->{action}, 'estimate', 'estimate: it is one');
	is($result->{page_bytes}, $kilobytes * 1024, 'estimate: page size');
	is($result->{pages_needed}, $needed, "estimate: the server's own number");
	is($result->{outcome}, { 0 => 'full', 1 => 'partial', 3 => 'none' }->{$rc}, 'estimate: the exit code says it, too');
	my ($part) = @{ $result->{pools} };
	is($part->{subject}, 'vm.nr_hugepages', 'estimate: the pool');
	is($part->{pages_before}, $pool + 0, 'estimate: as it is');
	is($part->{pages_asked}, $needed + $taken, 'estimate: what the server needs beside what others have');
	is($part->{change}, undef, 'estimate: no change');
	SKIP:
	{
		skip 'the largest free block is smaller than a huge page', 1 if $kilobytes > 4096;
		# free blocks of that order and above, in every zone but the one for devices
		my $order = log($kilobytes * 1024 / POSIX::sysconf(POSIX::_SC_PAGESIZE())) / log(2);
		my $blocks = 0;
		for my $line (grep { !/zone +DMA / } split /\n/, slurp('/proc/buddyinfo'))
		{
			my @counts = $line =~ /zone +\S+ +(.*)/ ? split(' ', $1) : ();
			$blocks += $counts[$_] << ($_ - $order) for $order .. $#counts;
		}
		# others allocate meanwhile
		cmp_ok(abs($part->{pages_free} - $blocks), '<=', 64 + $blocks / 10, "estimate: $part->{pages_free} free, buddyinfo says $blocks");
		cmp_ok($part->{pages_free}, '<=', slurp('/proc/meminfo') =~ /^MemTotal: +(\d+)/m ? $1 / $kilobytes : 0, 'estimate: not more than there is');
	}
	is($part->{boot_safer} ? 1 : 0, $part->{pages_asked} - $part->{pages_before} > ($part->{pages_free} // 0) ? 1 : 0,
		'estimate: boot is safer where free blocks do not suffice');

	SKIP:
	{
		skip 'a helper listens here, or /proc/pagetypeinfo is readable', 2 if -S $usual || ($> != 0 && -r '/proc/pagetypeinfo');
		is($part->{pages_compaction}, undef, 'estimate: what compaction could make is not guessed');
		($rc, $out, $err) = advisor_as(\@as, 'reserve', '-D', $data, '--estimate');
		like($out, qr{compaction could make +not known: /proc/pagetypeinfo is for root}, 'estimate: and says why');
	}
	SKIP:
	{
		skip 'needs root', 1 unless $> == 0;
		($rc, $out, $err) = advisor('reserve', '-D', $data, '--estimate', '--json');
		$part = decode_json($out)->{pools}[0];
		cmp_ok($part->{pages_compaction} // -1, '>=', 0, 'estimate as root: compaction, too');
	}

	# more than the machine has: the bounds say no, and how much they allow
	configure('huge_pages = on', 'shared_buffers = ' . int(slurp('/proc/meminfo') =~ /^MemTotal: +(\d+)/m ? $1 / 1024 : 0) . 'MB');
	($rc, $out, $err) = advisor_as(\@as, 'reserve', '-D', $data, '--estimate', '--json');
	is($rc, 3, 'as much as there is RAM: exit code');
	$result = decode_json($out);
	is($result->{outcome}, 'none', 'as much as there is RAM: nothing');
	like($result->{pools}[0]{status_text}, qr/outside the bounds|larger share of memory/, 'as much as there is RAM: why');
	cmp_ok($result->{pools}[0]{max}, '<', $result->{pools}[0]{pages_asked}, 'as much as there is RAM: the most that is allowed');
	configure('huge_pages = try');

	# a page size that this kernel does not have
	configure('huge_pages = on', 'huge_page_size = 8MB');
	($rc, $out, $err) = advisor_as(\@as, 'reserve', '-D', $data, '--estimate');
	is($rc, 2, 'no such page size: exit code');
	like($err, qr/the server asks for pages of 8 MB, and this kernel has none of that size/, 'no such page size: why');
	configure('huge_pages = try');

	# pages that no free list tells of
	SKIP:
	{
		skip 'no pages of 1 GB here', 5 unless -d '/sys/kernel/mm/hugepages/hugepages-1048576kB';
		configure('huge_pages = on', 'huge_page_size = 1GB');
		($rc, $out, $err) = advisor_as(\@as, 'reserve', '-D', $data, '--estimate');
		is($rc, 2, 'pages of 1 GB: not known');
		like($out, qr/^How many huge pages can be reserved is not known.*1 page of 1 GB.*only a try tells/s, 'pages of 1 GB: and why');
		like($out, qr/Boot is the safer moment/, 'pages of 1 GB: when to do it');

		# the doctor's command for a setting, while the server is down: followed, it works
		($rc, $out, $err) = advisor_as(\@as, 'doctor', '-D', $data);
		my ($command, $owner) = $out =~ /^  (echo 'huge_page_size = .*) \| sudo -u (\S+) tee -a /m;
		is($owner, scalar getpwuid((stat $data)[4]), "doctor: a setting, as the owner of the data directory");
		my ($file) = $out =~ /tee -a ('.*postgresql\.auto\.conf')$/m;
		IPC::Run::run([ @as, 'sh', '-c', ($command // 'false') . " | tee -a $file" ], '>', '/dev/null');
		my $size = '';
		IPC::Run::run([ @as, "$bin/postgres", '-D', $data, '-C', 'huge_page_size' ], '>', \$size);
		is($size, "2048\n", 'doctor: followed, the server has the value');
		write_file("$data/postgresql.auto.conf", '');
		configure('huge_pages = try');
	}

	# per node
	($rc, $out, $err) = advisor_as(\@as, qw(reserve --estimate --node 999 -D), $data);
	is($rc, 2, 'no such node: exit code');
	like($err, qr/--node 999: this machine has no such memory node/, 'no such node: why');
	SKIP:
	{
		skip 'no memory nodes here', 2 unless -d "/sys/devices/system/node/node0/hugepages/$size";
		($rc, $out, $err) = advisor_as(\@as, qw(reserve --estimate --json --node 0 -D), $data);
		$part = decode_json($out)->{pools}[0];
		is($part->{subject}, "node0.$size.nr_hugepages", 'node 0: its own pool');
		is($part->{node}, 0, 'node 0: its number');
	}

	# no right to change anything
	SKIP:
	{
		skip 'the user may use a helper here', 6 if -S $usual;
		($rc, $out, $err) = advisor_as(\@as, 'reserve', '-D', $data);
		is($rc, 2, 'reserve without a helper, not as root: exit code');
		is($out, '', 'reserve without a helper, not as root: no result');
		like($err, qr/\Q$usual\E: No such file or directory; no kernel_advisord listens there, and only root can do without/,
			'reserve without a helper, not as root: why, and what to do');
		($rc, $out, $err) = advisor_as(\@as, 'rollback', '--list');
		is($rc, 2, 'list without a helper, not as root: exit code');
		($rc, $out, $err) = advisor_as(\@as, 'rollback', 1);
		is($rc, 2, 'rollback without a helper, not as root: exit code');
		like($err, qr/only root can do without/, 'rollback without a helper, not as root: why');
	}
	($rc, $out, $err) = advisor_as(\@as, 'reserve', '-D', $data, '--socket', "$dir/none");
	is($rc, 2, 'a socket that was named and is not there: exit code');
	like($err, qr{none: No such file or directory; no kernel_advisord listens there}, 'a socket that was named and is not there: why');
	($rc, $out, $err) = advisor_as(\@as, 'reserve', '-D', $data, '--socket', "$data/postgresql.conf");
	is($rc, 2, 'a socket that is none: exit code');
	like($err, qr/postgresql\.conf: Connection refused; no kernel_advisord listens there/, 'a socket that is none: why');
	($rc, $out, $err) = advisor_as(\@as, 'rollback', '--list', '--socket', '/' . 'x' x 200);
	is($rc, 2, 'a name that is too long: exit code');
	like($err, qr/File name too long/, 'a name that is too long: why');

	# the doctor's fix
	SKIP:
	{
		skip 'this machine has a pool of huge pages', 3 if $pool > 0;
		configure('huge_pages = on');
		($rc, $out, $err) = advisor_as(\@as, 'doctor', '-D', $data);
		$needed = needed();
		like($out, qr/^Fix\n  sudo \S+\/kernel_advisor reserve -D '\Q$data\E'\n +vm\.nr_hugepages from 0 to $needed pages of /m,
			'doctor: reserve, with the number');
		like($out, qr/^  SELECT \* FROM kernel_advisor\.apply\('vm\.nr_hugepages', '$needed'\);$/m, 'doctor: for the next boot');
		like($out, qr/\d+ pages are free blocks now/, 'doctor: whether it will work');
	}
}

# an unreadable data directory
SKIP:
{
	skip 'needs root', 2 unless $> == 0;
	my $copy = "$dir/kernel_advisor";
	system('cp', $AdvisorTest::program, $copy);
	local $AdvisorTest::program = $copy;
	($rc, $out, $err) = advisor_as([qw(runuser -u nobody --)], 'reserve', '-D', $data, '--estimate');
	is($rc, 2, 'unreadable data directory: exit code');
	like($err, qr/Permission denied; run this as root or as the owner/, 'unreadable data directory: what to do');
}

# the drop-in for systemd
my $dropin = slurp("$FindBin::RealBin/../../contrib_tools/kernel_advisor/postgresql-reserve.conf");
like($dropin, qr{^ExecStartPre=-\+/\S+/kernel_advisor reserve -D /var/lib/postgresql/%I }m, 'drop-in: as root, and not in the way of a start');
SKIP:
{
	skip 'no systemd-analyze', 2 if system('systemd-analyze --version >/dev/null 2>&1') != 0;
	chomp(my $program = `realpath $AdvisorTest::program`);
	$dropin =~ s{^(ExecStartPre=-\+)\S+/kernel_advisor}{$1$program}m;
	my $units = "$dir/units";
	mkdir $_ for $units, "$units/postgresql\@.service.d";
	# Debian's unit, as far as it matters here
	write_file("$units/postgresql\@.service", "[Unit]\nDescription=PostgreSQL Cluster %i\n[Service]\nType=forking\nUser=postgres\nExecStart=/bin/true %i\n");
	write_file("$units/postgresql\@.service.d/reserve.conf", $dropin);
	local $ENV{SYSTEMD_UNIT_PATH} = "$units:";
	my $said = qx{systemd-analyze verify --man=no 'postgresql\@15-main.service' 2>&1};
	is($?, 0, 'drop-in: systemd-analyze verify') or diag $said;
	unlike($said, qr/reserve\.conf|postgresql/, 'drop-in: without a word') or diag $said;
}

SKIP:
{
	skip 'no man', 1 if system('man --version >/dev/null 2>&1') != 0;
	my $said = qx{MANROFFSEQ= LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z $FindBin::RealBin/../../contrib_tools/kernel_advisor/kernel_advisor.1 2>&1 >/dev/null};
	is($said, '', 'the man page has no mistakes');
}

is(pool(), $pool, 'the pool is as it was');
done_testing();
