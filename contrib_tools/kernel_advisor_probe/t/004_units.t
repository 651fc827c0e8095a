# The systemd unit, the user it needs, and the man page.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Probe;
use File::Temp qw(tempdir);
use Test::More;

my $source = source_dir();
my $scratch = tempdir('probe.XXXXXX', DIR => '/var/tmp', CLEANUP => 1);
SKIP:
{
	skip 'no systemd-analyze', 3 if system('systemd-analyze --version >/dev/null 2>&1') != 0;
	spew("$scratch/kernel_advisor_probe.service", slurp("$source/kernel_advisor_probe.service") =~ s{/usr/sbin/kernel_advisor_probe}{$source/kernel_advisor_probe}r);
	my $said = qx{systemd-analyze verify --man=no $scratch/kernel_advisor_probe.service 2>&1};
	is($?, 0, 'systemd-analyze verify');
	unlike($said, qr/kernel_advisor_probe/, 'without a word') or diag($said);
	skip 'systemd-analyze security --offline is newer', 1 if system("systemd-analyze security --offline=true --no-pager $scratch/kernel_advisor_probe.service >/dev/null 2>&1") != 0;
	$said = qx{systemd-analyze security --offline=true --no-pager $scratch/kernel_advisor_probe.service 2>&1};
	my ($exposure) = $said =~ /Overall exposure level.*: ([\d.]+)/;
	cmp_ok($exposure, '<=', 2.0, "systemd-analyze security: exposure $exposure");
}
SKIP:
{
	skip 'no systemd-sysusers', 2 if system('systemd-sysusers --version >/dev/null 2>&1') != 0;
	mkdir("$scratch/root");
	mkdir("$scratch/root/etc");
	is(system("systemd-sysusers --root=$scratch/root $source/kernel_advisor_probe.sysusers >/dev/null 2>&1"), 0, 'systemd-sysusers takes the file');
	like(slurp("$scratch/root/etc/passwd"), qr{^kernel_advisor_probe:[^:]*:\d+:\d+:[^:]*:/run/kernel_advisor_probe:\S*nologin$}m, 'and makes the user');
}
my ($user) = slurp("$source/kernel_advisor_probe.service") =~ /^User=(.*)$/m;
my ($name) = slurp("$source/probe_file.h") =~ /KA_PROBE_USER "(.*)"/;
is($user, $name, 'unit and reader mean the same user');
is((slurp("$source/kernel_advisor_probe.sysusers") =~ /^u (\S+)/m)[0], $name, 'as does the sysusers.d file');
SKIP:
{
	skip 'no man', 1 if system('man --version >/dev/null 2>&1') != 0;
	my $said = qx{MANROFFSEQ= LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z $source/kernel_advisor_probe.8 2>&1 >/dev/null};
	is($said, '', 'the man page has no mistakes');
}
done_testing();
