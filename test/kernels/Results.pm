# Results.pm: the lines that a boot wrote to its second serial port: "check<TAB>line", a line of TAP, "# json {...}" for
# the tables, or "# status N after S s" at the end of a check.
package Results;

use strict;
use warnings;
use Exporter qw(import);
use JSON::PP;

our @EXPORT = qw(read_results);

# { ended, check => { NAME => { tests => [ { ok, name, skipped, notes } ], json => {...}, status, seconds } } }
sub read_results
{
	my ($file) = @_;
	my %results = (ended => 0, check => {});
	open(my $in, '<', $file) or die "$file: $!\n";
	while (my $line = <$in>)
	{
		$line =~ s/[\r\n]+$//;
		my ($check, $text) = split(/\t/, $line, 2);
		next if !defined $text;
		my $r = $results{check}{$check} //= { tests => [], json => {} };
		if ($text =~ /^(not )?ok(?: \d+)?(?: - | )?(.*)/)
		{
			my ($bad, $name) = ($1, $2);
			push @{ $r->{tests} }, { ok => !$bad ? 1 : 0, name => $name, skipped => $name =~ /^# SKIP/i ? 1 : 0, notes => [] };
		}
		elsif ($text =~ /^# json (.*)/)
		{
			my $json = eval { decode_json($1) } // die "$file: no JSON: $1\n";
			$r->{json}{$_} = $json->{$_} for grep { $_ ne 'row' } keys %$json;
			push @{ $r->{rows} }, $json->{row} if $json->{row};
		}
		elsif ($text =~ /^# status (\d+) after (\d+) s/)
		{
			@$r{qw(status seconds)} = ($1, $2);
		}
		elsif ($text eq 'end')
		{
			$results{ended} = 1;
		}
		elsif (@{ $r->{tests} } && !$r->{tests}[-1]{ok} && $text =~ /^#\s*(.*)/)
		{
			push @{ $r->{tests}[-1]{notes} }, $1;
		}
	}
	return \%results;
}

1;
