# Processes that come and go, and more at once than there are records: bounded, and nothing is lost silently.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Probe;
use Test::More;
use Time::HiRes qw(sleep);

my $why_not = need_root();
plan skip_all => $why_not if $why_not;
hold_kernel();

# With short lists nearly every page that a process frees is drained, so that every process has a record.
my $fraction = '/proc/sys/vm/percpu_pagelist_high_fraction';
my $before = slurp($fraction);
plan skip_all => "needs $fraction" if !eval { spew($fraction, '1000000'); 1 };
restore_with(sub { spew($fraction, $before) });

my $p = start_probe();
restore_with(sub { stop_probe($p) });

# processes that come and go: 10 000, and more than there are records for at once
{
	my $before = show($p);
	my $tool = start_tool(tool('probe_titled'), 'postgres: ann sales [local] SELECT', 'children', 10000);
	tell($tool, 'go');
	is(readline($tool->{out}), "done\n", '10000 processes came and went');
	# The kernel frees a process some time after its end, later still when it is busy.
	my $after;
	wait_until(sub { $after = show($p); return (grep { $_->{comm} eq 'probe_titled' } values %{ $after->{process} }) <= 1; }, 60);
	is($after->{state}, 'ok', 'it still publishes');
	cmp_ok(scalar(keys %{ $after->{process} }), '<', 1000, 'rows of those that are gone are used again: ' . keys(%{ $after->{process} }) . ' are in use');
	my $known = grep { $_->{comm} eq 'probe_titled' } values %{ $after->{process} };
	cmp_ok($known, '<=', 1, 'none of theirs is left');
	my $pages = 0;
	$pages += $_->{drained_free} for grep { $_->{kind} eq 'client_backend' } @{ $after->{group} };
	cmp_ok($pages, '>', 100 * 10000, "but what they drained is in their group: $pages pages");
	is($after->{dropped_processes} - $before->{dropped_processes}, 0, 'nothing had to be dropped');
	close($tool->{in});
}

# more at the same time than there are records: counted all the same, and the drop is said
{
	my $before = show($p);
	my @children;
	pipe(my $in, my $out) or die;
	for (1 .. 2300)
	{
		my $pid = fork() // last;
		if ($pid == 0)
		{
			close($out);
			my $memory = 'x' x 2_000_000;
			undef $memory;
			sysread($in, my $nothing, 1);
			POSIX::_exit(0);
		}
		push @children, $pid;
	}
	close($in);
	sleep(0.5);
	cmp_ok(scalar(keys %{ show($p)->{process} }), '>', 2000, 'rows: as many as there are');
	close($out);
	waitpid($_, 0) for @children;
	sleep(1);
	my $after = show($p);
	my $dropped = $after->{dropped_processes} - $before->{dropped_processes};
	cmp_ok($dropped, '>', 0, scalar(@children) . " processes at once: $dropped times one found no record");
	cmp_ok(scalar(keys %{ $after->{process} }), '<', 1000, 'and the records are free again');
	my ($blocks, $pages) = (0, 0);
	for my $order (0 .. 15) { $blocks += ($after->{order}[$order]{drained_blocks} - $before->{order}[$order]{drained_blocks}) << $order; }
	for my $row (@{ $after->{group} }) { $pages += $row->{$_} for map { "drained_$_" } qw(free compaction reclaim all); }
	for my $row (@{ $before->{group} }) { $pages -= $row->{$_} for map { "drained_$_" } qw(free compaction reclaim all); }
	cmp_ok(abs($blocks - $pages), '<=', 0.01 * $blocks + 1000, "groups have all drained pages of the machine: $pages of $blocks");
}

stop_probe($p);
done_testing();
