# The systemd units and the man page.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Advisord;
use File::Temp qw(tempdir);
use Test::More;

my $source = "$FindBin::Bin/..";
SKIP:
{
	skip 'no systemd-analyze', 3 if system('systemd-analyze --version >/dev/null 2>&1') != 0;
	my $scratch = tempdir('advisord.XXXXXX', DIR => '/var/tmp', CLEANUP => 1);
	spew("$scratch/kernel_advisord.service", slurp("$source/kernel_advisord.service") =~ s{/usr/sbin/kernel_advisord}{$source/kernel_advisord}r);
	spew("$scratch/kernel_advisord.socket", slurp("$source/kernel_advisord.socket"));
	my $said = qx{systemd-analyze verify --man=no $scratch/kernel_advisord.socket $scratch/kernel_advisord.service 2>&1};
	is($?, 0, 'systemd-analyze verify');
	unlike($said, qr/kernel_advisord/, 'without a word') or diag($said);
	skip 'systemd-analyze security --offline is newer', 1 if system("systemd-analyze security --offline=true --no-pager $scratch/kernel_advisord.service >/dev/null 2>&1") != 0;
	$said = qx{systemd-analyze security --offline=true --no-pager $scratch/kernel_advisord.service 2>&1};
	my ($exposure) = $said =~ /Overall exposure level.*: ([\d.]+)/;
	cmp_ok($exposure, '<=', 2.0, "systemd-analyze security: exposure $exposure");
}
unlike(slurp("$source/kernel_advisord.service"), qr/^ProtectKernelTunables/m, 'the tunables stay writable');
SKIP:
{
	skip 'no man', 1 if system('man --version >/dev/null 2>&1') != 0;
	my $said = qx{MANROFFSEQ= LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z $source/kernel_advisord.8 2>&1 >/dev/null};
	is($said, '', 'the man page has no mistakes');
}
done_testing();
