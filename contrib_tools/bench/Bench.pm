# Bench.pm: what the benchmarks of whole servers share: a private server, kernel settings that are put back, runs that
# are kept one by one and taken up again, medians, tables.
package Bench;

use strict;
use warnings;
use Exporter qw(import);
use FindBin;
use Fcntl qw(:flock);
use JSON::PP ();
use List::Util qw(max min sum);
use POSIX ();
use Time::HiRes qw(sleep time);
use lib "$FindBin::Bin/../kernel_advisor_probe/t";
use Probe;

our @EXPORT = qw(with_server kernel_value set_kernel thp_file bin machine start_own_probe progress percentile median range grouped bench_log start_pgbench
	pool_pages set_pool write_results INSERT_TABLE insert_script json markdown escaped);

# The script starts again below with_server, with a server, the extension and the probe of its own.
sub with_server
{
	return if $ENV{KA_BENCH_SCRATCH};
	exec("$FindBin::Bin/with_server", $0, @ARGV) or die "with_server: $!\n";
}

my $began = time();
sub progress { printf STDERR "%4d:%02d  %s\n", int((time() - $began) / 60), (time() - $began) % 60, join('', @_); return; }

sub json { return JSON::PP->new->canonical; }

# ---------------------------------------------------------------- the kernel

my %was;

sub thp_file { my ($name) = @_; return "/sys/kernel/mm/transparent_hugepage/$name"; }

# A setting; of a list of words the one in brackets.
sub kernel_value { my ($file) = @_; my $text = slurp($file); return $text =~ /\[(\S+)\]/ ? $1 : $text =~ s/\s+\z//r; }

# Writes a setting and remembers what was there.
sub set_kernel
{
	my ($file, $value) = @_;
	my $old = kernel_value($file);
	if (!exists $was{$file})
	{
		$was{$file} = $old;
		restore_with(sub { spew($file, delete $was{$file}) });
	}
	spew($file, $value) if $old ne $value;
	my $now = kernel_value($file);
	die "$file: asked for $value, the kernel has $now\n" if $now ne $value;
	return;
}

sub pool_pages { my ($what) = @_; return (slurp('/proc/meminfo') =~ /^HugePages_$what: +(\d+)/m)[0]; }

# A pool of that many pages of the default size; free memory is made whole first.  Dies when the kernel grants less.
sub set_pool
{
	my ($pages) = @_;
	my $file = '/proc/sys/vm/nr_hugepages';
	return if pool_pages('Total') == $pages;
	if ($pages > pool_pages('Total'))
	{
		spew('/proc/sys/vm/drop_caches', '3');
		spew('/proc/sys/vm/compact_memory', '1');
	}
	for (1 .. 5)
	{
		eval { set_kernel($file, $pages) } and return;
		sleep(1);
	}
	set_kernel($file, $pages);
	return;
}

# The server's programs
sub bin { chomp(my $bin = qx{$ENV{PG_CONFIG} --bindir}); return $bin; }

# What a table of results must say of the machine.
sub machine
{
	my $bin = bin();
	my ($version) = qx{$bin/postgres --version} =~ /\(PostgreSQL\) (\S+)/;
	return {
		kernel => (POSIX::uname())[2],
		cpus => scalar(() = slurp('/proc/cpuinfo') =~ /^processor\s*:/mg),
		memory_gb => sprintf('%.0f', (slurp('/proc/meminfo') =~ /^MemTotal: +(\d+)/m)[0] / 1024 / 1024) + 0,
		postgresql => $version,
		commit => $ENV{KA_BENCH_COMMIT} // '',
		date => POSIX::strftime('%Y-%m-%d', gmtime),
	};
}

# ---------------------------------------------------------------- runs

# A directory for the benchmark and, where it can be, a probe that publishes in it; the file that it publishes.
sub start_own_probe
{
	my ($scratch) = @_;
	my $published = "$scratch/probe";
	mkdir($_) for $scratch, $published;
	my $probe = eval { start_probe(user => 'postgres', scratch => $published) };
	if ($probe) { restore_with(sub { stop_probe($probe) }); }
	else { progress('without the probe: drained pages and times are not known: ', $@); }
	return "$published/run/counters";
}

# A file of runs, one JSON object a line: { settings, runs => [], add => sub }.  Settings other than those of the file
# are refused: what was measured differently is not one table.
sub bench_log
{
	my ($file, $settings) = @_;
	my $text = json()->encode($settings);
	my @runs;
	if (-s $file)
	{
		open(my $in, '<', $file) or die "$file: $!\n";
		chomp(my $first = <$in>);
		die "$file was begun with other settings; choose another --out:\n  there $first\n  now   $text\n" if $first ne $text;
		# A line that was not written to its end is a run that did not happen.
		push @runs, grep { $_ } map { scalar eval { json()->decode($_) } } <$in>;
	}
	else { spew($file, "$text\n"); }
	return {
		runs => \@runs,
		add => sub {
			my ($run) = @_;
			open(my $out, '>>', $file) or die "$file: $!\n";
			print $out json()->encode($run), "\n";
			close($out) or die "$file: $!\n";
			push @runs, $run;
		},
	};
}

# results.json and results.md in a directory.
sub write_results
{
	my ($out, $result, @tables) = @_;
	my $m = $result->{machine};
	spew("$out/results.json", json()->pretty->encode($result));
	spew("$out/results.md", join("\n", "$m->{date}, Linux $m->{kernel}, PostgreSQL $m->{postgresql}, $m->{cpus} CPUs, $m->{memory_gb} GB\n", @tables));
	return;
}

# Fills WAL and a table, some 2 MB a transaction; beforehand INSERT_TABLE, and TRUNCATE load between two runs.
use constant INSERT_TABLE => 'CREATE TABLE load (i int, t text)';
sub insert_script
{
	my ($scratch) = @_;
	spew("$scratch/insert.sql", "INSERT INTO load SELECT i, repeat(i::text, 60) FROM generate_series(1, 3000) AS i;\n");
	return "$scratch/insert.sql";
}

# pgbench beside the script, its transactions logged: { finish => sub { tps, latencies } }, both without the first
# warm_up seconds, which also include the connecting.
sub start_pgbench
{
	my ($s, $scratch, %opt) = @_;
	my ($warm_up, $seconds) = @opt{qw(warm_up seconds)};
	mkdir("$scratch/pgbench");
	unlink glob("$scratch/pgbench/*");
	chown(scalar getpwnam('postgres'), -1, "$scratch/pgbench");
	my $log = "$scratch/pgbench.log";
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		chdir("$scratch/pgbench") or die;
		open(STDOUT, '>', $log) or die;
		open(STDERR, '>&', \*STDOUT) or die;
		$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP PIPE);
		exec('runuser', '-u', 'postgres', '--', "$s->{bin}/pgbench", '-h', $s->{sockets}, '-p', $s->{port}, '-U', 'postgres', '-n', '-P', '1',
			'-l', "--sampling-rate=" . ($opt{sampling} // 0.1), '-T', $warm_up + $seconds, @{ $opt{arguments} }, 'postgres') or POSIX::_exit(99);
	}
	my $running = 1;
	restore_with(sub { if ($running) { kill('TERM', $pid); waitpid($pid, 0) } });
	return {
		finish => sub {
			waitpid($pid, 0);
			$running = 0;
			my $text = slurp($log);
			die "pgbench:\n" . substr($text, -2000) if $?;
			my @tps = map { $_->[1] } grep { $_->[0] > $warm_up } map { [ /^progress: ([\d.]+) s, ([\d.]+) tps/ ] } grep { /^progress: \d/ } split /\n/, $text;
			die "pgbench ran for less than $warm_up s:\n$text" if !@tps;
			my (@latencies, $first);
			for my $file (glob("$scratch/pgbench/pgbench_log.*"))
			{
				for (split /\n/, slurp($file))
				{
					my (undef, undef, $us, undef, $second) = split / /;
					$first = $second if !defined $first || $second < $first;
					push @latencies, [ $second, $us ];
				}
			}
			@latencies = sort { $a <=> $b } map { $_->[1] / 1000 } grep { $_->[0] >= $first + $warm_up } @latencies;
			return { tps => sum(@tps) / @tps, map { ("p${_}_ms" => percentile(\@latencies, $_)) } 50, 95, 99 };
		},
	};
}

# ---------------------------------------------------------------- numbers and tables

# Of sorted values; undef of none.
sub percentile
{
	my ($sorted, $percent) = @_;
	return undef if !@$sorted;	## no critic
	return $sorted->[ min($#$sorted, POSIX::ceil(@$sorted * $percent / 100) - 1) ];
}

# undef of none: it is used in lists.
sub median
{
	my @sorted = sort { $a <=> $b } grep { defined } @_;
	return undef if !@sorted;	## no critic
	return @sorted % 2 ? $sorted[ $#sorted / 2 ] : ($sorted[ @sorted / 2 - 1 ] + $sorted[ @sorted / 2 ]) / 2;
}

# 1234567.8 as "1 234 568", 12.34 as "12.3", 0.123 as "0.12"
sub grouped
{
	my ($value) = @_;
	return '' if !defined $value;
	my $text = sprintf(abs($value) >= 100 || $value == 0 ? '%.0f' : abs($value) >= 10 ? '%.1f' : '%.2f', $value);
	1 while $text =~ s/^(-?\d+)(\d{3})(?!\d*\.)/$1 $2/;
	return $text;
}

# "median (least to most)"
sub range
{
	my @values = grep { defined } @_;
	return 'not known' if !@values;
	my ($low, $middle, $high) = map { grouped($_) } min(@values), median(@values), max(@values);
	return $low eq $high ? $middle : "$middle ($low to $high)";
}

# Rows of a table in Markdown, the first its head; all columns but the first "texts" hold numbers.
sub markdown
{
	my ($texts, $head, @rows) = @_;
	my $line = sub { return '| ' . join(' | ', @_) . " |\n"; };
	return $line->(@$head) . '|' . join('|', map { $_ < $texts ? '---' : '---:' } 0 .. $#$head) . "|\n" . join('', map { $line->(@$_) } @rows);
}

sub escaped { my ($text) = @_; return $text =~ s/&/&amp;/gr =~ s/</&lt;/gr =~ s/"/&quot;/gr; }

1;
