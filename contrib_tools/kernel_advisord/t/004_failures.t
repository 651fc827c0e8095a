# What does not work must say so, and change nothing.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Advisord;
use Test::More;

plan skip_all => 'needs root' if $> != 0;

my $root = make_root();
my $vm = "$root/proc/sys/vm";
my $thp = "$root/sys/kernel/mm/transparent_hugepage/enabled";
my $conf = "$root/etc/sysctl.d/60-kernel-advisor.conf";
my $bounds = "$root/etc/kernel_advisor/bounds.conf";
my $daemon = "$FindBin::Bin/../kernel_advisord";
my $d;
my ($rounds, $rounds_before) = ('/sys/block/loop0/queue/read_ahead_kb');
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
END
{
	local $?;
	stop_daemon($d) if $d;
	spew($rounds, $rounds_before) if defined $rounds_before;
}

sub line_of { my ($file) = @_; my ($line) = split /\n/, slurp($file); return $line; }

# The log of a daemon that must not start.
sub refuses
{
	my (%opt) = @_;
	my $one = start_daemon(root => $root, may_fail => 1, %opt);
	my $started = !defined $one->{exit};
	stop_daemon($one);
	return $started ? 'started' : ($one->{exit} >> 8) . ': ' . slurp($one->{log});
}

# bounds
spew($bounds, "\nvm.swapiness = 0..100\n");
like(refuses(), qr/^78: .*bounds\.conf:2: vm\.swapiness: unknown key$/m, 'an unknown key in the bounds file: file and line');
like(qx{$daemon --check --root $root 2>&1}, qr/bounds\.conf:2: /, '--check says so, too');
spew($bounds, "vm.swappiness = off\nvm.dirty_bytes = 100000000..200000000\npersist = off\ndrop_caches = off\n");
is(qx{$daemon --check --root $root}, "/etc/kernel_advisor/bounds.conf: good\n", '--check of a good file');
chmod(0666, $bounds);
like(refuses(), qr/^78: .*writable by group or others \(mode 0666\)/, 'a bounds file that anybody can write');
chmod(0644, $bounds);
chown(1, 0, $bounds);
like(refuses(), qr/^78: .*owned by uid 1, must be owned by root/, 'a bounds file of another user');
chown(0, 0, $bounds);
$d = start_daemon(root => $root);
is(call($d, 'SET', 'vm.swappiness', 10)->{status}, 'OFF', 'a knob that is switched off');
is(call($d, 'GET', 'vm.swappiness')->{status}, 'OK', 'can be read');
my $reply = call($d, 'SET', 'vm.dirty_bytes', 99999999);
is("$reply->{status} $reply->{min} $reply->{max}", 'RANGE 100000000 200000000', 'a narrower range');
is(call($d, 'PERSIST', 'vm.dirty_bytes', 100000000)->{status}, 'OFF', 'persist off');
is(call($d, 'RESERVE', 'hugepages-2048kB.nr_hugepages', 5, flags => DROP)->{status}, 'OFF', 'drop_caches off');
stop_daemon($d);
unlink($bounds);

# one daemon
$d = start_daemon(root => $root);
like(refuses(), qr/^78: .*another daemon has it/, 'a second daemon on the same journal');
like(qx{timeout 10 $daemon --socket $d->{socket} --root $root 2>&1}, qr/: Address already in use/, 'a second daemon on the same socket');
is(call($d, 'GET', 'vm.swappiness')->{status}, 'OK', 'do the first no harm');
restart_daemon($d, 'KILL');
is(call($d, 'GET', 'vm.swappiness')->{status}, 'OK', 'the socket of a killed daemon is taken over');

# privileges
my $status = status_of($d);
is($status->{Uid}, "0\t0\t0\t0", 'uid 0');
is($status->{$_}, '0' x 16, "$_ is empty") for qw(CapInh CapPrm CapEff CapBnd CapAmb);
is($status->{Groups}, '', 'no supplementary groups');
is("$status->{NoNewPrivs} $status->{Seccomp}", '1 2', 'no new privileges, seccomp filter');
like(slurp("/proc/$d->{pid}/limits"), qr/^Max core file size +0 +0 /m, 'no core dump');
stop_daemon($d);
SKIP:
{
	skip 'no setpriv', 5 if system('setpriv --version >/dev/null 2>&1') != 0;
	like(refuses(wrapper => [ 'setpriv', '--reuid=1', '--clear-groups' ]), qr/^78: .*needs uid 0, and this is uid 1/, 'refuses to run as another user');
	like(refuses(wrapper => [ 'setpriv', '--bounding-set=-all' ]), qr/cannot be given to group "postgres": CAP_CHOWN/,
		'says that it cannot give the socket to a group');
	my @own = (arguments => [ '--group', 'root' ]);
	like(refuses(@own, wrapper => [ 'setpriv', '--bounding-set=-all,+sys_admin', '--inh-caps=-all' ]),
		qr/^78: .*privileges: the bounding set cannot be emptied/, 'refuses to run with a capability that it cannot give up');
	$d = start_daemon(root => $root, @own, wrapper => [ 'setpriv', '--bounding-set=-all', '--inh-caps=-all' ]);
	is(call($d, 'SET', 'vm.swappiness', 59)->{status}, 'OK', 'runs where it never had any');
	is(status_of($d)->{Seccomp}, 2, 'behind the filter');
	stop_daemon($d);
}
SKIP:
{
	skip 'no systemd-socket-activate', 4 if system('systemd-socket-activate --version >/dev/null 2>&1') != 0;
	my $socket = "$root/activated";
	my $pid = fork() // die;
	if ($pid == 0)
	{
		open(STDERR, '>', "$root/log");
		exec('systemd-socket-activate', '--seqpacket', '-l', $socket, $daemon, '--root', $root, '--idle', '1');
	}
	$d = { socket => $socket, pid => $pid };
	ok(wait_until(sub { -S $socket }), 'systemd\'s socket');
	is(call($d, 'SET', 'vm.swappiness', 60)->{status}, 'OK', 'the first client starts the daemon');
	is(status_of($d)->{Seccomp}, 2, 'behind the filter');
	ok(wait_until(sub { waitpid($pid, POSIX::WNOHANG()) == $pid }) && $? == 0, 'which ends when it was idle');
	$d->{pid} = 0;
}
like(qx{$daemon --root $root 2>&1}, qr/systemd passed no socket/, 'without a socket it says so');

# read-only
{
	my $ro = 'mount --bind $1/proc/sys $1/proc/sys; mount -o remount,ro,bind $1/proc/sys';
	$d = start_daemon(root => $root, wrapper => in_namespace($root, $ro));
	my $ids = call($d, 'LIST', undef, 1)->{change};
	for my $op ([ 'SET', 'vm.swappiness', 33 ], [ 'RESERVE', 'vm.nr_hugepages', 5 ], [ 'SET', 'vm.compact_memory', 1 ])
	{
		$reply = call($d, @$op);
		is("$reply->{status} $reply->{error} $reply->{change}", 'READ_ONLY 30 0', "@$op on a read-only /proc/sys");
	}
	is(line_of("$vm/swappiness"), 60, 'nothing was changed');
	is(call($d, 'SET', 'thp.enabled', 0)->{status}, 'OK', 'what is writable goes on');
	like(slurp($d->{log}), qr{/proc/sys/vm/swappiness cannot be written: Read-only file system}, 'the log names the files');
	stop_daemon($d);
	like(refuses(wrapper => in_namespace($root, $ro . '; mount --bind $1/sys $1/sys; mount -o remount,ro,bind $1/sys')),
		qr/^78: .*no knob of the kernel can be written here: Read-only file system/s, 'with nothing to write it refuses to run');
	like(refuses(wrapper => in_namespace($root, 'mount --bind $1/var $1/var; mount -o remount,ro,bind $1/var')),
		qr/^78: .*Read-only file system/, 'without a journal, too');
	$d = start_daemon(root => $root, wrapper => in_namespace($root, 'mount --bind $1/etc $1/etc; mount -o remount,ro,bind $1/etc'));
	$reply = call($d, 'PERSIST', 'vm.swappiness', 33);
	is("$reply->{status} $reply->{error}", 'PERSIST 30', 'a read-only /etc');
	is(call($d, 'SET', 'vm.swappiness', 33)->{status}, 'OK', 'does not stop a set');
	stop_daemon($d);
}

# full disk
{
	my $full = sub { "mount -t tmpfs -o size=40k none \$1/$_[0]; $_[1]; dd if=/dev/zero of=\$1/$_[0]/filler bs=4k 2>/dev/null || true" };
	$d = start_daemon(root => $root, wrapper => in_namespace($root, $full->('var/lib/kernel_advisord', 'chmod 700 $1/var/lib/kernel_advisord')));
	$reply = call($d, 'SET', 'vm.swappiness', 44);
	is("$reply->{status} $reply->{error} $reply->{change}", 'JOURNAL 28 0', 'a full disk under the journal');
	is(line_of("$vm/swappiness"), 33, 'nothing was changed');
	is(call($d, 'LIST', undef, 1)->{status}, 'END', 'nothing was journalled');
	is(call($d, 'GET', 'vm.swappiness')->{status}, 'OK', 'reading goes on');
	stop_daemon($d);

	$d = start_daemon(root => $root, wrapper => in_namespace($root, $full->('etc/sysctl.d', 'echo "vm.swappiness = 60" >$1/etc/sysctl.d/60-kernel-advisor.conf')));
	$reply = call($d, 'PERSIST', 'vm.swappiness', 45);
	is("$reply->{status} $reply->{error} $reply->{old} $reply->{granted}", 'PERSIST 28 60 60', 'a full disk under /etc: the file is as it was');
	my $change = $reply->{change};
	is(call($d, 'LIST', undef, $change)->{state} & 8, 8, 'the journal knows that it had no effect');
	is(call($d, 'ROLLBACK', undef, $change)->{status}, 'NOT_IN_EFFECT', 'and there is nothing to roll back');
	stop_daemon($d);

	# the intent fits, the result does not (and the log is as short)
	unlink(glob("$root/var/lib/kernel_advisord/*"));
	$d = start_daemon(root => $root, wrapper => [ 'prlimit', '--fsize=200' ]);
	$reply = call($d, 'SET', 'vm.swappiness', 46);
	is("$reply->{status} $reply->{granted}", 'JOURNAL 33', 'a result that cannot be journalled: the old value is put back');
	is(line_of("$vm/swappiness"), 33, 'indeed');
	restart_daemon($d);
	$reply = call($d, 'LIST', undef, 1);
	is("$reply->{status} $reply->{granted} " . ($reply->{state} & 12), 'INTERRUPTED 33 12', 'the next start completes the journal');
	stop_daemon($d);
}

# a kernel that gives less than was asked: read_ahead_kb rounds down to pages
SKIP:
{
	skip 'no loop device', 8 if !-e $rounds;
	$rounds_before = slurp($rounds);
	my $pool = 'hugepages-2048kB.nr_hugepages';
	spew($rounds, "128\n");
	spew("$vm/extfrag_threshold", "1000\n");
	spew("$root/proc/buddyinfo", "Node 0, zone   Normal   1000    500    250    125     60     30     15      8      4      0      1\n");
	$d = start_daemon(root => $root,
		wrapper => in_namespace($root, "mount --bind $rounds \$1/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"));
	$reply = call($d, 'RESERVE', $pool, 703, flags => DROP);
	is("$reply->{status} $reply->{old} $reply->{asked} $reply->{granted} $reply->{rounds}", 'PARTIAL 128 703 700 3',
		'a shortage: what was granted is kept, after two rounds without growth');
	is(line_of("$vm/drop_caches"), 3, 'caches were dropped');
	is(line_of("$vm/compact_memory"), 1, 'memory was compacted');
	is(line_of("$vm/extfrag_threshold"), 1000, 'the policy is back');
	is(call($d, 'ROLLBACK', undef, $reply->{change})->{granted}, 128, 'rollback of what was granted');
	$reply = call($d, 'RESERVE', $pool, 703, flags => UNDO);
	is("$reply->{status} $reply->{granted} $reply->{reached}", 'UNDONE 128 700', 'or undone, when that was asked');
	is(call($d, 'ROLLBACK', undef, $reply->{change})->{status}, 'NOT_IN_EFFECT', 'and then there is nothing to roll back');
	$reply = call($d, 'SET', $pool, 205);
	is("$reply->{status} $reply->{asked} $reply->{granted}", 'PARTIAL 205 204', 'a set says what was granted, too');
	stop_daemon($d);
}

# crash and reboot
{
	unlink(glob("$root/var/lib/kernel_advisord/*"));
	spew("$vm/swappiness", "60\n");
	spew("$vm/min_free_kbytes", "67584\n");
	$d = start_daemon(root => $root);
	my $one = call($d, 'SET', 'vm.swappiness', 10)->{change};
	my $two = call($d, 'SET', 'vm.min_free_kbytes', 100000)->{change};
	restart_daemon($d, 'KILL');
	is(call($d, 'LIST', undef, $one)->{state}, 1, 'after a crash: the change, of this boot');
	stop_daemon($d);
	# a reboot: one value came back from sysctl.d, the other did not
	spew("$root/proc/sys/kernel/random/boot_id", BOOT1 =~ tr/1/9/r);
	spew("$vm/min_free_kbytes", "67584\n");
	$d = start_daemon(root => $root);
	is(call($d, 'LIST', undef, $one)->{state}, 0, 'after a reboot: of another one');
	is(call($d, 'ROLLBACK', undef, $one)->{granted}, 60, 'rollback of a change that outlived the reboot');
	is(call($d, 'ROLLBACK', undef, $two)->{status}, 'UNCHANGED', 'and of one that did not: nothing to do');
	is(call($d, 'LIST', undef, $two)->{state}, 2, 'it counts as rolled back');
	stop_daemon($d);

	# garbage in the middle, garbage at the end
	my $journal = "$root/var/lib/kernel_advisord/journal";
	my $bytes = slurp($journal);
	substr($bytes, 130, 4) = 'xxxx';
	spew($journal, $bytes . 'torn');
	$d = start_daemon(root => $root);
	like(slurp($d->{log}), qr/damaged records were skipped/, 'damage is told');
	is(call($d, 'LIST', undef, $two)->{status}, 'OK', 'and what is whole is there');
	is((-s $journal) % 120, 0, 'the torn tail is gone');
	stop_daemon($d);
}
undef $d;
done_testing();
