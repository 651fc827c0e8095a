# Every operation, with the real daemon on a machine of ordinary files.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Advisord;
use Test::More;

plan skip_all => 'needs root' if $> != 0;

my $root = make_root();
my $vm = "$root/proc/sys/vm";
my $d = start_daemon(root => $root);
END { stop_daemon($d) if $d }

sub line_of { my ($file) = @_; my ($line) = split /\n/, slurp($file); return $line; }

# get, for every knob of the table that this machine has
for my $knob (sort { $KNOB{$a} <=> $KNOB{$b} } keys %KNOB)
{
	my $reply = call($d, 'GET', $knob);
	my $number = $KNOB{$knob};
	my $expected = $number >= 60 && $number < 100 ? 'NO_KNOB' : $knob eq 'vm.compact_memory' ? 'NOT_POSSIBLE' :
		$knob eq 'vm.defrag_mode' ? 'ABSENT' : $number >= 100 && $knob !~ /-(2048|1048576)kB/ ? 'ABSENT' : 'OK';
	is($reply->{status}, $expected, "get $knob");
}
is(call($d, 'GET', 'vm.defrag_mode')->{error}, 2, 'a knob that the kernel has not: ENOENT');
is(call($d, 'GET', 'thp.enabled')->{granted}, 1, 'an enumeration as a number: madvise');
is(call($d, 'GET', 'hugepages-2048kB.nr_hugepages', 0, node => 1)->{granted}, 0, 'a pool of one node');
is(call($d, 'GET', 'hugepages-2048kB.nr_hugepages', 0, node => 7)->{status}, 'NO_NODE', 'a node that is not there');
is(call($d, 'GET', 'vm.swappiness', 0, node => 0)->{status}, 'NO_NODE', 'a knob without nodes');
is(call($d, 'GET', 9999)->{status}, 'NO_KNOB', 'unknown knob');
is(call($d, 77, 'vm.swappiness')->{status}, 'BAD_OPERATION', 'unknown operation');
is(call($d, 'GET', 'vm.swappiness', 0, flags => DRY)->{status}, 'BAD_FLAGS', 'a flag that get does not have');
is(call($d, 'SET', 'vm.swappiness', 1, flags => 1 << 20)->{status}, 'BAD_FLAGS', 'unknown flag');
is(call($d, 'SET', 'vm.swappiness', 1, node => -2)->{status}, 'BAD_FLAGS', 'a node below all');
is(call($d, 'SET', 'vm.swappiness', 1, limit_ms => 600001)->{status}, 'BAD_FLAGS', 'a time limit beyond the limit');

# set
my $reply = call($d, 'SET', 'vm.extfrag_threshold', 1000, flags => DRY);
is("$reply->{status} $reply->{old} $reply->{asked} $reply->{granted} $reply->{change}", 'OK 500 1000 500 0', 'dry run of a set');
is(line_of("$vm/extfrag_threshold"), 500, 'which changes nothing');
$reply = call($d, 'SET', 'vm.extfrag_threshold', 1000);
is("$reply->{status} $reply->{old} $reply->{asked} $reply->{granted} $reply->{change}", 'OK 500 1000 1000 1', 'set');
is(line_of("$vm/extfrag_threshold"), 1000, 'which changes the file');
$reply = call($d, 'SET', 'vm.extfrag_threshold', 1000);
is("$reply->{status} $reply->{change}", 'UNCHANGED 0', 'the same again is no change');
is(call($d, 'SET', 'vm.extfrag_threshold', $_)->{status}, 'RANGE', "out of range: $_") for -1, 1001, 2**62, -2**62;
is(call($d, 'SET', 'vm.min_free_kbytes', 900_000)->{status}, 'RANGE', 'min_free_kbytes beyond 5 % of RAM');
is(call($d, 'SET', 'vm.dirty_bytes', 4096)->{status}, 'RANGE', 'a dirty limit of one page');
is(call($d, 'SET', 'thp.shmem_enabled', 5)->{status}, 'RANGE', 'shmem_enabled=force');
is(call($d, 'SET', 'thp.enabled', 2)->{status}, 'OK', 'thp.enabled');
is(line_of("$root/sys/kernel/mm/transparent_hugepage/enabled"), 'always', 'is written as a word');
is(call($d, 'SET', 'vm.compact_memory', 1)->{status}, 'OK', 'compact_memory');
is(call($d, 'SET', 'vm.compact_memory', 2)->{status}, 'RANGE', 'compact_memory takes 1 only');

# pools: share of memory, available memory, CommitLimit
my $pool = 'hugepages-2048kB.nr_hugepages';
is(call($d, 'SET', $pool, 6144)->{status}, 'RANGE', 'a pool beyond 75 % of RAM');
is(call($d, 'SET', 'hugepages-1048576kB.nr_hugepages', 9)->{status}, 'OK', '9 GiB in pages of 1 GiB');
is(call($d, 'SET', $pool, 2000)->{status}, 'RAM_SHARE', 'both pools together beyond 75 % of RAM');
is(call($d, 'SET', 'hugepages-1048576kB.nr_hugepages', 0)->{status}, 'OK', 'and back');
spew("$root/proc/meminfo", slurp("$root/proc/meminfo") =~ s/(MemAvailable: +)\d+/${1}2000000/r);
stop_daemon($d);
$d = start_daemon(root => $root);
is(call($d, 'SET', $pool, 1000)->{status}, 'AVAILABLE', 'a pool that leaves less than min_available');
is(call($d, 'SET', $pool, 600)->{status}, 'OK', 'one that leaves enough');
is(call($d, 'SET', 'vm.overcommit_ratio', 5)->{status}, 'OK', 'the ratio does not matter in mode 0');
$reply = call($d, 'SET', 'vm.overcommit_memory', 2);
is($reply->{status}, 'COMMIT_LIMIT', 'mode 2 with a CommitLimit below what is committed');
is($reply->{commit_limit_bytes}, int(16777216 * 1024 / 100) * 5, 'which the reply states');
is(call($d, 'SET', 'vm.overcommit_ratio', 80)->{status}, 'OK', 'a larger ratio');
is(call($d, 'SET', 'vm.overcommit_memory', 2)->{status}, 'OK', 'makes mode 2 possible');
is(call($d, 'SET', 'vm.overcommit_ratio', 5)->{status}, 'COMMIT_LIMIT', 'and in mode 2 it cannot shrink again');

# rollback
spew("$vm/swappiness", "60\n");
stop_daemon($d);
$d = start_daemon(root => $root);
my $change = call($d, 'SET', 'vm.swappiness', 10)->{change};
$reply = call($d, 'ROLLBACK', undef, $change, flags => DRY);
is("$reply->{status} $reply->{asked}", 'OK 60', 'dry run of a rollback');
$reply = call($d, 'ROLLBACK', undef, $change);
is("$reply->{status} $reply->{old} $reply->{granted} $reply->{refers}", "OK 10 60 $change", 'rollback');
is(line_of("$vm/swappiness"), 60, 'puts the old value back');
is(call($d, 'ROLLBACK', undef, $change)->{status}, 'NOT_IN_EFFECT', 'only once');
is(call($d, 'ROLLBACK', undef, $reply->{change})->{status}, 'NOT_POSSIBLE', 'not of a rollback');
is(call($d, 'ROLLBACK', undef, $_)->{status}, 'NO_CHANGE', "no change $_") for 0, -1, 999999;
$change = call($d, 'SET', 'vm.swappiness', 10)->{change};
call($d, 'SET', 'vm.swappiness', 20);
is(call($d, 'ROLLBACK', undef, $change)->{status}, 'SUPERSEDED', 'not when the value changed since');
is(call($d, 'ROLLBACK', undef, $change, flags => FORCE)->{granted}, 60, 'except by force');
my $compact = call($d, 'SET', 'vm.compact_memory', 1)->{change};
is(call($d, 'ROLLBACK', undef, $compact)->{status}, 'NOT_POSSIBLE', 'an action has no way back');

# a value out of range comes back, too: it was there
spew("$vm/min_free_kbytes", "1000\n");
stop_daemon($d);
$d = start_daemon(root => $root);
$change = call($d, 'SET', 'vm.min_free_kbytes', 70000)->{change};
is(call($d, 'ROLLBACK', undef, $change)->{granted}, 1000, 'rollback to a value that a client could not ask for');

# list
my (@ids, $next);
for ($next = 1; ($reply = call($d, 'LIST', undef, $next))->{status} ne 'END'; $next = $reply->{change} + 1)
{
	push @ids, $reply->{change};
}
is_deeply(\@ids, [ 1 .. $ids[-1] ], 'list gives every change once');
$reply = call($d, 'LIST', undef, 1);
is("$reply->{old} $reply->{asked} $reply->{granted} $reply->{state} $reply->{knob}",
	"500 1000 1000 1 $KNOB{'vm.extfrag_threshold'}", 'with its values');
is(call($d, 'LIST', undef, -5)->{change}, 1, 'from the first one');

# persist
my $conf = "$root/etc/sysctl.d/60-kernel-advisor.conf";
my $tmpfiles = "$root/etc/tmpfiles.d/kernel-advisor.conf";
$reply = call($d, 'PERSIST', 'vm.extfrag_threshold', 1000, flags => DRY);
is($reply->{status}, 'OK', 'dry run of persist');
ok(!-e $conf, 'writes no file');
$reply = call($d, 'PERSIST', 'vm.extfrag_threshold', 1000);
is("$reply->{status} $reply->{old} $reply->{granted} $reply->{boot_winner} $reply->{boot_file}",
	'OK -1 1000 2 /etc/sysctl.d/60-kernel-advisor.conf', 'persist, and our file wins');
like(slurp($conf), qr/^# change $reply->{change}, \d{4}-.* uid 0\nvm\.extfrag_threshold = 1000$/m, 'the file names the change');
is(sprintf('%o', (stat $conf)[2] & 07777), '644', 'everybody can read it');
my $persisted = $reply->{change};
is(call($d, 'PERSIST', 'vm.nr_hugepages', 100)->{status}, 'OK', 'another knob');
like(slurp($conf), qr/vm\.nr_hugepages = 100\n.*vm\.extfrag_threshold = 1000\n/s, 'the pool comes before the policy');
is(call($d, 'PERSIST', 'thp.enabled', 1)->{boot_winner}, 2, 'a knob of /sys');
is(call($d, 'PERSIST', $pool, 50, node => 1)->{status}, 'OK', 'a node\'s pool');
like(slurp($tmpfiles), qr{^w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise$}m, 'in tmpfiles.d');
like(slurp($tmpfiles), qr{^w /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages - - - - 50$}m, 'with its node');
is(call($d, 'PERSIST', 'hugepages-1048576kB.nr_hugepages', 1)->{status}, 'BOOT_PARAMETER', '1 GiB pages belong on the command line');
is(call($d, 'PERSIST', 'vm.compact_memory', 1)->{status}, 'NOT_POSSIBLE', 'an action cannot be persisted');
is(call($d, 'PERSIST', 'vm.swappiness', 201)->{status}, 'RANGE', 'nor a value out of range');
is(call($d, 'PERSIST', $pool, 5000, node => 0)->{status}, 'OK', 'available memory does not count for the next boot');
spew("$root/etc/sysctl.d/99-admin.conf", "vm.extfrag_threshold = 700\n");
$reply = call($d, 'PERSIST', 'vm.extfrag_threshold', 900);
is("$reply->{status} $reply->{boot_winner} $reply->{boot_value} $reply->{boot_file}",
	'OK 3 700 /etc/sysctl.d/99-admin.conf', 'a later file wins, and the reply names it');
is(call($d, 'ROLLBACK', undef, $persisted)->{status}, 'SUPERSEDED', 'rollback of a persisted value that was replaced');
is(call($d, 'ROLLBACK', undef, $reply->{change})->{granted}, 1000, 'rollback of the last one: the value before');
is(call($d, 'UNPERSIST', 'vm.extfrag_threshold')->{status}, 'OK', 'unpersist');
unlike(slurp($conf), qr/extfrag/, 'takes the line away');
is(call($d, 'UNPERSIST', 'vm.extfrag_threshold')->{status}, 'NOT_PERSISTED', 'once');
is(call($d, 'UNPERSIST', 'vm.nr_hugepages')->{status}, 'OK', 'unpersist of the last one');
ok(!-e $conf, 'takes the file away');
spew($conf, "vm.swappiness = 1\nkernel.core_pattern = |/tmp/x\n");
$reply = call($d, 'PERSIST', 'vm.swappiness', 5);
is("$reply->{status} $reply->{line}", 'FOREIGN_FILE 2', 'a file with a line of another hand is left alone, and the line named');
like(slurp($conf), qr/core_pattern/, 'indeed');
unlink($conf);
symlink('/etc/passwd', $conf);
is(call($d, 'PERSIST', 'vm.swappiness', 5)->{status}, 'PERSIST', 'nor is a symbolic link followed');
unlink($conf);
spew("$conf.new", 'left behind by a kill');
is(call($d, 'PERSIST', 'vm.swappiness', 5)->{status}, 'OK', 'a file that a killed daemon left is no obstacle');
ok(!-e "$conf.new", 'and is gone');

# estimate and reserve
$reply = call($d, 'ESTIMATE', $pool, 2000);
is("$reply->{pages_free} $reply->{pages_compaction}", '1800 27', 'estimate: free blocks, and what compaction could make');
$reply = call($d, 'ESTIMATE', $pool, 600, node => 1);
is("$reply->{pages_free} $reply->{pages_compaction} $reply->{granted}", '600 19 600', 'of one node');
$reply = call($d, 'ESTIMATE', 'hugepages-1048576kB.nr_hugepages', 1);
is("$reply->{pages_free} $reply->{granted}", '-1 -1', 'nothing is claimed of 1 GiB pages');
ok($reply->{state} & 16, 'but that the boot is safer');
is(call($d, 'ESTIMATE', 'vm.swappiness', 1)->{status}, 'NOT_POSSIBLE', 'only pools have an estimate');
spew("$vm/extfrag_threshold", "1000\n");
spew("$root/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "10\n");
stop_daemon($d);
$d = start_daemon(root => $root);
$reply = call($d, 'RESERVE', $pool, 500, flags => DRY);
is("$reply->{status} $reply->{change} $reply->{pages_free}", 'OK 0 1800', 'dry run of a reservation is an estimate');
$reply = call($d, 'RESERVE', $pool, 500, flags => DROP);
is("$reply->{status} $reply->{old} $reply->{granted} $reply->{reached} $reply->{rounds}", 'OK 10 500 500 1', 'reserve');
is(line_of("$vm/extfrag_threshold"), 1000, 'the policy is back afterwards');
is(slurp("$vm/drop_caches"), '', 'with enough free blocks no cache is dropped');
is(call($d, 'RESERVE', $pool, 400)->{status}, 'UNCHANGED', 'a reservation never shrinks a pool');
is(call($d, 'ROLLBACK', undef, $reply->{change})->{granted}, 10, 'rollback of a reservation');
is(call($d, 'RESERVE', 'vm.swappiness', 10)->{status}, 'NOT_POSSIBLE', 'only pools can be reserved');

stop_daemon($d);
undef $d;
done_testing();
