# Fragment.pm: memory fragmented to different degrees, and what a reservation
# gets there beside what was estimated.  For the tests and contrib_tools/bench/estimate.
#
# Works on this machine's kernel.  The caller holds the lock of those who change
# its settings, and gives memory back with release().
package Fragment;

use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use IPC::Open2;

use Advisord;

our @EXPORT_OK = qw(@DEGREES available_mb take_ballast make_degree release measure);

use constant { POOL => '/proc/sys/vm/nr_hugepages', LIMIT_MS => 60000 };

my $program = abs_path(dirname(__FILE__)) . '/../build/fragment';

# What a host looks like: kind of memory, share of what may be used in percent, and
# the argument EVERY of test/root/fragment.c.  In that order.
our @DEGREES = (
	{ name => 'none', what => 'what the last load left', parts => [] },
	{ name => 'cache', what => 'half of memory is page cache', parts => [ [ 'cache', 50, 1 ] ] },
	{ name => 'some', what => 'two fifths in single free pages', parts => [ [ 'movable', 35, 2 ], [ 'cache', 20, 1 ] ] },
	{ name => 'heavy', what => 'nearly all in single free pages', parts => [ [ 'movable', 85, 2 ] ] },
	{ name => 'heavy and cache', what => 'single pages, alternately used, free and cache',
	  parts => [ [ 'movable', 60, 3 ], [ 'cache', 25, 2 ] ] },
	{ name => 'backends', what => '200 processes with page tables', parts => [ [ 'movable', 40, 2 ], [ 'tables', 40, 200 ] ] },
	{ name => 'pinned', what => 'an unmovable page in every second block', parts => [ [ 'pinned', 60, 1024 ], [ 'movable', 20, 2 ] ] },
);

my @held;
my $pool_before;

sub meminfo
{
	my ($field) = @_;
	my ($kb) = slurp('/proc/meminfo') =~ /^\Q$field\E:\s+(\d+) kB/m or die "no $field in /proc/meminfo";
	return $kb;
}

# Memory that may be used, when so much is left to others.
sub available_mb
{
	my ($spare_mb) = @_;
	return int(meminfo('MemAvailable') / 1024) - $spare_mb;
}

# Takes memory out of the way, all but so much: as huge pages, which leaves what
# is left neither more nor less fragmented, and costs no time.
sub take_ballast
{
	my ($left_mb) = @_;
	my $pages = int(available_mb($left_mb) / (meminfo('Hugepagesize') / 1024));
	$pool_before = slurp(POOL) + 0;
	spew(POOL, $pool_before + $pages) if $pages > 0;
	return;
}

sub make_degree
{
	my ($degree, $mb, $directory) = @_;
	for my $part (@{ $degree->{parts} })
	{
		my ($kind, $percent, $every) = @$part;
		my $pid = open2(my $out, my $in, 'sh', '-c', 'cd "$1" && shift && exec "$@"', 'sh', $directory,
			$program, $kind, int($mb * $percent / 100), $every);
		push @held, { pid => $pid, in => $in, out => $out };
		my $line = <$out>;
		die "fragment $kind: failed" if !defined $line || $line ne "ready\n";
	}
	return;
}

sub release
{
	for my $held (splice @held)
	{
		close($held->{in});
		waitpid($held->{pid}, 0);
	}
	spew(POOL, $pool_before) if defined $pool_before;
	undef $pool_before;
	return;
}

# Asks for an estimate, then for all that the bounds allow, and gives it back.
sub measure
{
	my ($d, $mb, $flags) = @_;
	my $page_mb = meminfo('Hugepagesize') / 1024;
	my $old = slurp(POOL) + 0;
	my $asked = $old + int($mb / $page_mb);
	my $estimate = call($d, 'ESTIMATE', 'vm.nr_hugepages', $asked, flags => $flags & DROP);
	my $reserve = call($d, 'RESERVE', 'vm.nr_hugepages', $asked, flags => $flags, limit_ms => LIMIT_MS);
	my $back = call($d, 'SET', 'vm.nr_hugepages', $old);
	die "estimate: $estimate->{status}" if $estimate->{status} !~ /^(OK|AVAILABLE|RAM_SHARE)$/;
	die "reserve: $reserve->{status}" if $reserve->{status} !~ /^(OK|PARTIAL|INTERRUPTED)$/;
	die "the pool did not come back: $back->{status}" if slurp(POOL) != $old;
	return { asked => $asked, old => $old, estimated => $estimate->{granted}, granted => $reserve->{reached},
		ms => $reserve->{elapsed_ms}, rounds => $reserve->{rounds},
		map { ($_ => $estimate->{$_}) } qw(pages_free pages_compaction pages_reclaim state) };
}

1;
