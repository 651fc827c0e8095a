# Matrix.pm: the cells of the table that contrib_tools/bench/matrix makes, how one of them is run, and the table.
package Matrix;

use strict;
use warnings;
use Bench;
use Exporter qw(import);
use Probe;
use ProbeServer;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(presets preset cells cell_text settings make_cluster side_of run_side load_server summary matrix_markdown matrix_page @MEASURES);

# The loads: pgbench's own tables, updated by many connections; and inserts at a fixed rate, which write files anew: that
# is where fragmented memory is felt.  arguments: of pgbench; between: before each run
my %LOADS = (
	update => { arguments => sub { return qw(-N -M prepared) }, between => q{SELECT sum(pg_prewarm(oid, 'buffer')) FROM pg_class WHERE relname ~ '^pgbench_'}, settings => [] },
	insert => { arguments => sub { my ($scratch) = @_; return ('-f', insert_script($scratch), '--rate', 15) }, between => 'TRUNCATE load', settings => [ 'wal_recycle = off' ] });

my %WHOLE = (load => 'update', clients => 400, shared_buffers => '6GB', scale => 340);
my %FRAGMENTED = (load => 'insert', clients => 2, shared_buffers => '1GB', free_mb => 9000);

# What a preset is: the loads in whole and in fragmented memory, lengths in seconds, and the cells.
my %PRESETS = (
	small => {
		what => '2 CPUs and 24 GB: 45 minutes',
		rounds => 3, warm_up => 15, seconds => 40, timeout => 30,
		whole => \%WHOLE,
		fragmented => \%FRAGMENTED,
		cells => \&few_cells,
	},
	full => {
		what => 'every combination; a day, and can be taken up again',
		rounds => 5, warm_up => 60, seconds => 300, timeout => 60,
		whole => \%WHOLE,
		fragmented => \%FRAGMENTED,
		cells => \&all_cells,
	},
	tiny => {
		what => 'to see that it works, not to quote',
		rounds => 2, warm_up => 2, seconds => 6, timeout => 30,
		whole => { load => 'update', clients => 20, shared_buffers => '256MB', scale => 10 },
		fragmented => { %FRAGMENTED, shared_buffers => '256MB', free_mb => 4000 },
		cells => sub { return grep { $_->{thp} eq 'madvise' } few_cells() },
	});

sub presets { return map { "$_: $PRESETS{$_}{what}" } sort keys %PRESETS; }
sub preset { my ($name) = @_; return $PRESETS{$name} && { %{ $PRESETS{$name} }, name => $name }; }

sub cell { my ($memory, $huge_pages, $thp, $shmem, $threshold) = @_; return { memory => $memory, huge_pages => $huge_pages, thp => $thp, shmem => $shmem, threshold => $threshold }; }

# The published table, the half-way house beside it, and the policy where it matters.
sub few_cells
{
	my @cells;
	for my $huge_pages ('off', 'on') { push @cells, map { cell('whole', $huge_pages, $_, 'never', 500) } qw(never madvise always); }
	push @cells, cell('whole', 'off', 'never', 'always', 500);
	for my $huge_pages ('off', 'on') { push @cells, map { cell('fragmented', $huge_pages, 'madvise', 'never', $_) } 500, 1000; }
	return @cells;
}

sub all_cells
{
	my @cells;
	for my $memory (qw(whole fragmented))
	{
		for my $threshold (500, 1000)
		{
			for my $thp (qw(never madvise always))
			{
				push @cells, cell($memory, 'off', $thp, $_, $threshold) for qw(never always);
				push @cells, cell($memory, 'on', $thp, 'never', $threshold);
			}
		}
	}
	return @cells;
}

sub cells { my ($preset) = @_; return $preset->{cells}->(); }
sub cell_text { my ($cell) = @_; return join(' ', @{$cell}{qw(memory huge_pages thp shmem threshold)}); }

# ---------------------------------------------------------------- a run

sub settings
{
	my ($preset, $load, $published) = @_;
	return (@{ $LOADS{ $load->{load} }{settings} }, "shared_buffers = $load->{shared_buffers}", 'max_connections = ' . ($load->{clients} + 20),
		"checkpoint_timeout = $preset->{timeout}s", 'max_wal_size = 4GB', 'min_wal_size = 1GB', 'synchronous_commit = off', 'autovacuum = off',
		'kernel_advisor.sample_interval = 500ms', 'kernel_advisor.report_interval = 0', "kernel_advisor.probe_file = '$published'");
}

# The tables of one of the loads, in a directory of the file system.
sub make_cluster
{
	my ($preset, $load, $directory, $published) = @_;
	mkdir($directory);
	my $s = start_server($directory, settings($preset, $load, $published), 'huge_pages = off', 'fsync = off', 'max_wal_size = 20GB');
	if ($load->{load} eq 'insert') { query($s, INSERT_TABLE); }
	else
	{
		as_user('sh', '-c', 'exec "$@" >/dev/null 2>&1', 'sh', "$s->{bin}/pgbench", '-h', $s->{sockets}, '-p', $s->{port}, '-U', 'postgres', '-i', '-q', '-s', $load->{scale}, 'postgres')
		  or die "pgbench -i failed\n";
		query($s, 'CREATE EXTENSION pg_prewarm');
	}
	stop_server($s, 'fast');
	return;
}

# Pages of the default size that the server asks for; the cluster exists.
sub pages_needed
{
	my ($directory, @settings) = @_;
	my @options = map { ('-c', s/ = /=/r =~ s/='(.*)'$/=$1/r) } @settings, 'shared_preload_libraries=pg_kernel_advisor';
	open(my $out, '-|', 'runuser', '-u', 'postgres', '--', bin() . '/postgres', '-D', "$directory/data", @options, '-C', 'shared_memory_size_in_huge_pages')
	  or die "postgres: $!";
	chomp(my $pages = <$out> // '');
	close($out);
	die "the server does not say how many huge pages it needs\n" if $pages !~ /^\d+$/;
	return $pages;
}

# What is measured: key, heading, and of what the samples in the window tell, the SQL
our @MEASURES = (
	[ 'tps', 'tps' ],
	[ 'p50_ms', 'p50 ms' ],
	[ 'p99_ms', 'p99 ms' ],
	[ 'dip_pct', 'dip %' ],
	[ 'page_tables_mb', 'page tables MB', 'max(page_table_bytes) / 1048576' ],
	[ 'stalls', 'compactions /s', 'sum(compact_stall) / sum(interval_ms) * 1000' ],
	[ 'drained', 'pages drained /s', 'sum(pcp_drained_pages) / sum(interval_ms) * 1000' ],
	[ 'compact_ms', 'ms/s compacting', 'sum(direct_compact_us) / sum(interval_ms)' ]);

# What a cell sets: { kernel => [ [ file, value ] ... ], pool => pages (undef: it is left alone), settings => [ ... ] }
sub side_of
{
	my ($preset, $cell, %at) = @_;
	my @settings = (settings($preset, $preset->{ $cell->{memory} }, $at{published}), "huge_pages = $cell->{huge_pages}");
	return {
		kernel => [ [ thp_file('enabled'), $cell->{thp} ], [ thp_file('shmem_enabled'), $cell->{shmem} ], [ '/proc/sys/vm/extfrag_threshold', $cell->{threshold} ] ],
		# In fragmented memory the pool is what was put aside before.
		pool => $cell->{memory} eq 'fragmented' ? undef : $cell->{huge_pages} eq 'on' ? pages_needed($at{directory}, @settings) : 0,
		settings => \@settings,
	};
}

# One run under these settings; at: directory, scratch, and page, where the server's own report goes (may be missing)
sub run_side
{
	my ($preset, $load, $side, %at) = @_;

	set_kernel(@$_) for @{ $side->{kernel} };
	set_pool($side->{pool}) if defined $side->{pool};
	my $s = start_server($at{directory}, @{ $side->{settings} });
	my $run = load_server($s, $preset, $load, %at);
	stop_server($s, 'fast');
	return $run;
}

# The load on a server that runs: what was measured in the time after warming up
sub load_server
{
	my ($s, $preset, $load, %at) = @_;
	my $what = $LOADS{ $load->{load} };
	query($s, $what->{between});
	my $bench = start_pgbench($s, $at{scratch}, warm_up => $preset->{warm_up}, seconds => $preset->{seconds},
		arguments => [ $what->{arguments}->($at{scratch}), '-c', $load->{clients}, '-j', 2 ], sampling => $load->{load} eq 'insert' ? 1 : 0.1);
	sleep($preset->{warm_up});
	my $from = query($s, 'SELECT clock_timestamp()');
	my $run = $bench->{finish}->();
	my $to = query($s, 'SELECT clock_timestamp()');
	my $window = "at - interval_ms * interval '1ms' >= '$from' AND at <= '$to'";

	for my $measure (grep { $_->[2] } @MEASURES)
	{
		my $value = query($s, "SELECT $measure->[2] FROM kernel_advisor.samples WHERE $window");
		$run->{ $measure->[0] } = $value eq '' ? undef : $value + 0;
	}
	my $dip = query($s, "SELECT avg(dip_pct) FROM kernel_advisor.checkpoints WHERE started_at BETWEEN '$from' AND '$to'");
	$run->{dip_pct} = $dip eq '' ? undef : $dip + 0;
	spew($at{page}, query($s, "SELECT kernel_advisor.report('html', '$from', '$to')")) if $at{page};
	return $run;
}

# ---------------------------------------------------------------- the results

# [ { cell, runs => [...], median => { measure => value } } ] in the order of the cells
sub summary
{
	my ($preset, $runs) = @_;
	my @found;
	for my $cell (cells($preset))
	{
		my @runs = grep { $_->{cell} eq cell_text($cell) } @$runs;
		push @found, { %$cell, cell => cell_text($cell), runs => \@runs, median => { map { my $name = $_->[0]; ($name => median(map { $_->{$name} } @runs)) } @MEASURES } } if @runs;
	}
	my %base;
	for my $row (@found)
	{
		$base{ $row->{memory} } //= $row->{median}{tps};
		$row->{times} = $row->{median}{tps} / $base{ $row->{memory} };
	}
	return \@found;
}

my @LABELS = ([ 'memory', 'memory' ], [ 'huge_pages', 'huge_pages' ], [ 'thp', 'THP' ], [ 'shmem', 'shmem_enabled' ], [ 'threshold', 'extfrag_threshold' ]);

sub matrix_markdown
{
	my ($rows) = @_;
	return markdown(scalar @LABELS, [ (map { $_->[1] } @LABELS), 'runs', 'tps (least to most)', 'ratio', map { $_->[1] } @MEASURES[ 1 .. $#MEASURES ] ],
		map {
			my $row = $_;
			[ (map { $row->{ $_->[0] } } @LABELS), scalar @{ $row->{runs} }, range(map { $_->{tps} } @{ $row->{runs} }), sprintf('%.2f', $row->{times}),
				map { grouped($row->{median}{ $_->[0] }) } @MEASURES[ 1 .. $#MEASURES ] ];
		} @$rows);
}

# A page of its own: the table, bars of the throughput, and the server's report of the last run of each cell.
sub matrix_page
{
	my ($result) = @_;
	my ($most) = sort { $b <=> $a } map { $_->{median}{tps} } @{ $result->{cells} };
	my $machine = $result->{machine};
	my $text = <<'HTML';
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>pg_kernel_advisor: matrix</title>
<style>
:root { color-scheme: light dark; --line: #d0d7de; --bar: #0969da; --faint: #57606a }
@media (prefers-color-scheme: dark) { :root { --line: #3d444d; --bar: #4493f8; --faint: #9198a1 } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: right }
th { font-weight: 600 }
.text { text-align: left }
.bar { width: 12rem }
.bar span { display: block; height: .8rem; background: var(--bar) }
p { color: var(--faint) }
</style>
</head>
<body>
<h1>Huge pages, THP and the kernel's policy</h1>
HTML
	$text .= '<p>' . escaped("$machine->{date}, Linux $machine->{kernel}, PostgreSQL $machine->{postgresql}, $machine->{cpus} CPUs, $machine->{memory_gb} GB; preset $result->{settings}{name}, "
		  . 'medians of the runs. Each row opens the report of the server in its last run.') . "</p>\n<div class=\"scroll\"><table>\n<tr>";
	$text .= join('', map { "<th class=\"text\">$_->[1]</th>" } @LABELS) . '<th>runs</th><th class="bar"></th><th>ratio</th>' . join('', map { '<th>' . escaped($_->[1]) . '</th>' } @MEASURES) . "</tr>\n";
	for my $row (@{ $result->{cells} })
	{
		my $link = 'reports/' . ($row->{cell} =~ tr/ /-/r) . '.html';
		$text .= '<tr>' . join('', map { "<td class=\"text\">" . ($_->[0] eq 'memory' ? "<a href=\"$link\">$row->{memory}</a>" : escaped($row->{ $_->[0] })) . '</td>' } @LABELS)
		  . '<td>' . @{ $row->{runs} } . sprintf('</td><td class="bar"><span style="width:%.1f%%"></span></td><td>%.2f</td>', 100 * $row->{median}{tps} / $most, $row->{times})
		  . join('', map { '<td>' . grouped($row->{median}{ $_->[0] }) . '</td>' } @MEASURES) . "</tr>\n";
	}
	return "$text</table></div>\n</body>\n</html>\n";
}

1;
