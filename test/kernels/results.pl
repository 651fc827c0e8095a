#!/usr/bin/env perl
# results.pl: what the boots reported, for people and for the rules' tests.
#
#	results.pl --tap KERNEL CHECKS FILE	as TAP: each test, each check that did not end, each behaviour that is not
#						the recorded one of results.json
#	results.pl --tables FILE...		the two tables, kernel x check and kernel x policy
#	results.pl --update FILE...		writes results.json, and the tables into doc/kernels.md
#
# FILE is what test/kernels/boot leaves as OUT.lines; its name is the kernel's, as in sid.lines.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use JSON::PP;
use POSIX qw(strftime);
use Results;

my $recorded_file = "$FindBin::Bin/results.json";
my $document = "$FindBin::Bin/../../doc/kernels.md";
my @columns = qw(server facts helper probe policy);

sub recorded
{
	open(my $in, '<', $recorded_file) or return {};
	local $/;
	return decode_json(scalar <$in>);
}

# What a kernel does, in words that do not change from run to run.
sub behaviour
{
	my ($results) = @_;
	my $policy = $results->{check}{policy} // {};
	my %sum;
	for my $row (@{ $policy->{rows} // [] })
	{
		my $sum = $sum{"$row->{threshold}/$row->{proactiveness}"} //= {};
		# of costly orders, where the probe told the orders
		$sum->{stalls} += $row->{costly_stalls} // $row->{compact_stall};
		$sum->{reclaims} += $row->{costly_reclaims} // $row->{allocstall};
	}
	return {} if !$sum{'500/0'} || !$sum{'1000/0'};
	my ($default, $set) = @sum{ '500/0', '1000/0' };
	my $stalls = $default->{stalls} >= 20;
	my %is = (large_writes_compact => $stalls ? 'yes' : 'no');
	if ($stalls)
	{
		$is{threshold_1000_ends_compaction} = $set->{stalls} <= 0.05 * $default->{stalls} ? 'yes' : 'no';
		$is{threshold_1000_leaves_reclaim} = $set->{reclaims} >= 20 ? 'yes' : 'no';
	}
	return \%is;
}

# { release, date, postgres, checks, behaviour, policy, fields } of one file
sub summary
{
	my ($results) = @_;
	my $boot = $results->{check}{boot}{json};
	my (%checks, %policy);
	for my $check (grep { $_ ne 'boot' } keys %{ $results->{check} })
	{
		my $r = $results->{check}{$check};
		for my $test (@{ $r->{tests} })
		{
			my $column = $check eq 'policy' && $test->{name} =~ /^probe:/ ? 'probe' : $check;
			$checks{$column}{ $test->{ok} ? 'passed' : 'failed' }++;
		}
		$checks{$check}{failed}++ if !defined $r->{status} || ($r->{status} && !grep { !$_->{ok} } @{ $r->{tests} });
	}
	my %n;
	for my $row (@{ $results->{check}{policy}{rows} // [] })
	{
		my $key = "$row->{threshold}/$row->{proactiveness}";
		push @{ $policy{$key}{$_} }, $row->{$_} for grep { !/^(threshold|proactiveness|writes|probe_\w+)$/ } keys %$row;
	}
	my %fields = map { %{ $_->{json} } } @{ $results->{check} }{ grep { $_ ne 'boot' } keys %{ $results->{check} } };
	delete $fields{advice};
	return { %$boot, checks => \%checks, policy => \%policy, behaviour => behaviour($results), fields => \%fields };
}

sub name_of { my ($file) = @_; return $file =~ m{([^/]+)\.lines$} ? $1 : $file; }

sub tap
{
	my ($kernel, $checks, $file) = @_;
	my $results = read_results($file);
	my ($n, $failed) = (0, 0);
	my $tell = sub {
		my ($ok, $name, @notes) = @_;
		$n++;
		$failed++ if !$ok;
		print $ok ? 'ok' : 'not ok', " $n - $kernel: $name\n", map { "#   $_\n" } @notes;
	};
	for my $check (split /,/, $checks)
	{
		my $r = $results->{check}{$check};
		$tell->($_->{ok}, "$check: $_->{name}", @{ $_->{notes} }) for @{ $r->{tests} };
		my $ended = defined $r->{status} && $r->{status} == 0 && @{ $r->{tests} // [] };
		$tell->($ended, "$check: " . (defined $r->{status} ? "ended with status $r->{status} after $r->{seconds} s" : 'did not end'));
	}
	my $now = summary($results);
	my $then = recorded()->{kernels}{$kernel};
	if ($checks =~ /\bpolicy\b/ && $then)
	{
		my $which = "$now->{release}, recorded with $then->{release}";
		$tell->(($now->{behaviour}{$_} // 'not measured') eq $then->{behaviour}{$_}, "$_ is $then->{behaviour}{$_} ($which)",
			'now: ' . ($now->{behaviour}{$_} // 'not measured')) for sort keys %{ $then->{behaviour} };
		for my $field (sort keys %{ $then->{fields} })
		{
			my ($old, $new) = map { ref $_ ? JSON::PP->new->canonical->encode($_) : $_ // 'none' } $then->{fields}{$field}, $now->{fields}{$field};
			print "# differs from $then->{release}: $field was $old, is $new\n" if $old ne $new;
		}
	}
	print "1..$n\n";
	return $failed ? 1 : 0;
}

sub number { my ($values) = @_; return @{ $values // [] } ? join(', ', map { $_ // '-' } @$values) : '-'; }

sub tables
{
	my ($kernels) = @_;
	my @names = sort { version($kernels->{$a}{release}) cmp version($kernels->{$b}{release}) } keys %$kernels;
	my $text = "| kernel of | release | PostgreSQL | " . join(' | ', @columns) . " |\n|---|---|---|" . '---|' x @columns . "\n";
	for my $name (@names)
	{
		my $k = $kernels->{$name};
		my @cells = map {
			my $c = $k->{checks}{$_};
			!$c ? 'not run' : $c->{failed} ? "$c->{failed} of " . ($c->{failed} + ($c->{passed} // 0)) . ' failed' : "$c->{passed} passed";
		} @columns;
		$text .= "| $name | " . short($k) . " | $k->{postgres} | " . join(' | ', @cells) . " |\n";
	}
	$text .= "\n| kernel | vm.extfrag_threshold | vm.compaction_proactiveness | direct compactions, costly orders | all | direct reclaims, costly orders | all | drained pages | mean write, \xc2\xb5s | p99 write, \xc2\xb5s |\n|---|---|---|---|---|---|---|---|---|---|\n";
	for my $name (@names)
	{
		my $policy = $kernels->{$name}{policy};
		for my $key ('500/0', '1000/0', '500/20', '1000/20')
		{
			my ($threshold, $proactiveness) = split(m{/}, $key);
			my $p = $policy->{$key} // next;
			$text .= '| ' . short($kernels->{$name}) . " | $threshold | $proactiveness | "
				. join(' | ', map { number($p->{$_}) } qw(costly_stalls compact_stall costly_reclaims allocstall drained_pages mean_us p99_us)) . " |\n";
		}
	}
	return $text;
}
# "6.1.176-1": the name of a release, as 6.1.0-50, does not say it
sub short { my ($k) = @_; return $k->{version} =~ /Debian (\S+)/ ? $1 : $k->{release}; }
sub version { my ($release) = @_; return join('.', map { sprintf('%05d', $_) } $release =~ /(\d+)/g); }

my ($mode, @arguments) = @ARGV;
if (($mode // '') eq '--tap' && @arguments == 3) { exit(tap(@arguments)); }
die "usage: results.pl --tap KERNEL CHECKS FILE | --tables FILE... | --update FILE...\n"
	if !defined $mode || $mode !~ /^--(tables|update)$/ || !@arguments;
my %kernels = map { (name_of($_) => summary(read_results($_))) } @arguments;
%kernels = map { ($_ => $kernels{$_}) } grep { defined $kernels{$_}{release} } keys %kernels;
if ($mode eq '--tables')
{
	print tables(\%kernels);
	exit;
}
my $date = strftime('%Y-%m-%d', gmtime);
my $all = recorded();
# machines of other shapes have no experiment, and are no kernels of their own
for my $name (keys %kernels)
{
	$kernels{$name}{date} = $date;
	$all->{ %{ $kernels{$name}{policy} } ? 'kernels' : 'machines' }{$name} = $kernels{$name};
}
open(my $out, '>', $recorded_file) or die "$recorded_file: $!\n";
print $out JSON::PP->new->canonical->pretty->indent_length(1)->encode($all);
close($out) or die "$recorded_file: $!\n";
open(my $in, '<', $document) or die "$document: $!\n";
my $text = do { local $/; <$in> };
my $table = tables({ map { %{ $all->{$_} // {} } } qw(kernels machines) });
my $measured = join('; ', map { short($all->{kernels}{$_}) . " on $all->{kernels}{$_}{date}" } sort keys %{ $all->{kernels} });
$text =~ s/(<!-- tables: [^\n]*-->\n).*?(<!-- end of tables -->)/$1\nMeasured: $measured.\n\n$table\n$2/s
	or die "$document has no place for the tables\n";
open($out, '>', $document) or die "$document: $!\n";
print $out $text;
close($out) or die "$document: $!\n";
