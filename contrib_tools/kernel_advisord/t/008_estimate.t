# Whether the estimate of a reservation holds on this machine's kernel, in memory
# that is fragmented.  doc/helper.md states the error that is allowed here.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Advisord;
use File::Temp qw(tempdir);
use Fragment qw(@DEGREES available_mb take_ballast make_degree release measure);
use Test::More;

# Fragmented is all of SIZE_MB but SPARE_MB, which nothing else may need meanwhile.
use constant { ALLOWED_PERCENT => 20, SIZE_MB => 7168, SPARE_MB => 768 };

my $pool = '/proc/sys/vm/nr_hugepages';
plan skip_all => 'needs root' if $> != 0;
plan skip_all => 'no pool of huge pages of 2 MB that can be written' if slurp('/proc/meminfo') !~ /^Hugepagesize: +2048 kB/m || !open(my $probe, '>>', $pool);
plan skip_all => 'a pool is in use' if slurp($pool) != 0;
plan skip_all => 'needs 8 GB of memory' if available_mb(0) < SIZE_MB;
plan skip_all => 'no /proc/pagetypeinfo' if !-r '/proc/pagetypeinfo';

my $root = make_root();
my $scratch = tempdir('estimate.XXXXXX', DIR => '/var/tmp', CLEANUP => 1);
spew("$root/etc/kernel_advisor/bounds.conf", "pool_max_percent = 95\nmin_available = 512MB\n");
my $d;
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
END { local $?; release(); stop_daemon($d) if $d }
$d = start_daemon(root => $root, wrapper => in_namespace($root, 'mount --bind /proc $1/proc; mount --bind /sys $1/sys'));

# One degree: pages that were free blocks, estimated, granted, and the error in percent.
sub attempt
{
	my ($degree) = @_;
	take_ballast(SIZE_MB);
	make_degree($degree, available_mb(SPARE_MB), $scratch);
	my $measured = measure($d, available_mb(SPARE_MB), DROP);
	release();
	my $granted = $measured->{granted} - $measured->{old};
	my $estimated = $measured->{estimated} - $measured->{old};
	return { free => $measured->{pages_free}, estimated => $estimated, granted => $granted,
		error => 100 * ($estimated - $granted) / ($granted || 1) };
}

# A degree in which little had to be made proves little, and other programs take and
# free memory meanwhile: then there is a second attempt.
my $fragmented = 0;
for my $name ('heavy', 'heavy and cache', 'pinned')
{
	my ($degree) = grep { $_->{name} eq $name } @DEGREES;
	my $m;
	for my $try (1, 2)
	{
		$m = attempt($degree);
		note(sprintf('%s, attempt %d: %d free blocks, %d estimated, %d granted, error %+.1f %%',
			$name, $try, @$m{qw(free estimated granted error)}));
		last if $m->{free} < $m->{granted} * 0.9 && abs($m->{error}) <= ALLOWED_PERCENT;
	}
	$fragmented++ if $m->{free} < $m->{granted} * 0.9;
	cmp_ok(abs($m->{error}), '<=', ALLOWED_PERCENT,
		sprintf('%s: %d estimated, %d granted, error %+.1f %%', $name, @$m{qw(estimated granted error)}));
}
cmp_ok($fragmented, '>=', 1, "in $fragmented of 3 kinds of memory a tenth and more of what was granted had to be made");
is(slurp($pool) + 0, 0, 'the pool is as it was');
done_testing();
