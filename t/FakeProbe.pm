# A file as kernel_advisor_probe publishes it, with counters of the test's choice.
#
#	my $probe = FakeProbe->new(file => $path, server_pid => $postmaster);
#	$probe->add(who => 'checkpointer', compactions => 3, compact_ns => 5_000_000, ...);
#	$probe->publish;			# as a probe does when it starts
#	$probe->write_in_place;		# and then ten times a second
#
# It is good for three minutes without that.
#
# The layout is that of contrib_tools/kernel_advisor_probe/probe_file.h; its
# assertions on sizes fail when it changes.

package FakeProbe;

use strict;
use warnings;

use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use constant { GROUPS => 128, PROCESSES => 2048, ORDERS => 16, BUCKETS => 24, RECENT => 32, ALL_SOURCES => 0x3ff };
use constant { TOTALS_SIZE => 8760, GROUP_SIZE => 1024, PROCESS_SIZE => 168, HEADER_SIZE => 96 };

my %kind = ('other process' => 0, 'kernel thread' => 1, checkpointer => 2, walwriter => 3, 'background writer' => 4,
	'client backend' => 5, 'autovacuum worker' => 6);

sub new
{
	my ($class, %options) = @_;

	return bless {
		version => 1, interval_ms => 60_000, sources => ALL_SOURCES, generation => 1, sequence => 2, groups => {}, processes => [], pid => $$,
		%options
	}, $class;
}

# Adds to one group: compactions, compact_ns, reclaims, reclaim_ns, drained_free, drained_compaction,
# drained_reclaim, drained_all, drain_alls.  server: of another than ours.
sub add
{
	my ($self, %counts) = @_;
	my $who = delete $counts{who};
	my $server = delete $counts{server} // ($who =~ /^(other process|kernel thread)$/ ? 0 : $self->{server_pid});
	my $group = $self->{groups}{"$who/$server"} //= { kind => $kind{$who}, server => $server };

	foreach my $name (keys %counts)
	{
		$group->{$name} = ($group->{$name} // 0) + $counts{$name};
	}
	foreach my $what (qw(compact reclaim))
	{
		my $number = $counts{ $what eq 'compact' ? 'compactions' : 'reclaims' } or next;
		my $each = int($counts{"${what}_ns"} / $number);
		my $bucket = 0;

		$bucket++ while $bucket < BUCKETS - 1 && $each / 1000 >= 2**$bucket;
		$group->{"${what}_buckets"}[$bucket] += $number;
		$group->{"${what}_longest_ns"} = $each if $each > ($group->{"${what}_longest_ns"} // 0);
		$group->{"${what}_recent"}{ int(clock_gettime(CLOCK_MONOTONIC)) % RECENT } = $each;
	}
	return $self;
}

# Another start of the probe: its counters begin at zero.
sub restart
{
	my ($self) = @_;

	$self->{generation}++;
	$self->{groups} = {};
	$self->{processes} = [];
	return $self;
}

# A living process, with the counters of its own.
sub add_process
{
	my ($self, %process) = @_;

	push @{ $self->{processes} }, \%process;
	return $self;
}

sub counters
{
	my ($from) = @_;
	my @values = map { $from->{$_} // 0 }
	  qw(compact_attempts compact_stalls compactions compact_ns compact_longest_ns reclaims reclaim_ns reclaim_longest_ns
	  drained_free drained_compaction drained_reclaim drained_all drain_alls extfrag);

	return pack('Q<14', @values);
}

sub histogram { my ($buckets) = @_; return pack('Q<24', map { $buckets->[$_] // 0 } 0 .. BUCKETS - 1); }
sub recent { my ($seconds) = @_; return pack('Q<32', map { $seconds->{$_} // 0 } 0 .. RECENT - 1); }

# The machine's totals: all of them at order 4, successful.
sub totals
{
	my ($self) = @_;
	my %sum;

	foreach my $group (values %{ $self->{groups} })
	{
		$sum{$_} += $group->{$_} // 0 foreach qw(compactions compact_ns reclaims reclaim_ns);
	}
	my @order4 = (0) x ORDERS;
	my $nothing = pack('Q<16', @order4);
	my $text = $nothing x 4;	# drained blocks, extfrag, attempts, stalls

	$text .= join '', map { pack('Q<10', $_ == 4 ? ($sum{compactions} // 0, $sum{compact_ns} // 0) : (0, 0), (0) x 8) } 0 .. ORDERS - 1;
	$text .= $nothing . "\0" x (ORDERS * BUCKETS * 8);
	$text .= join '', map { pack('Q<4', 0, 0, $_ == 4 ? ($sum{reclaims} // 0, $sum{reclaim_ns} // 0) : (0, 0)) } 0 .. ORDERS - 1;
	$text .= $nothing . "\0" x (ORDERS * BUCKETS * 8);
	$text .= "\0" x 56;			# kcompactd, its wake-ups, by hand
	die 'totals: ' . length($text) if length($text) != TOTALS_SIZE;
	return $text;
}

sub content
{
	my ($self) = @_;
	my @groups = map { $self->{groups}{$_} } sort keys %{ $self->{groups} };
	my $heartbeat = $self->{heartbeat_ns} // int(clock_gettime(CLOCK_MONOTONIC) * 1e9);
	my $size = HEADER_SIZE + TOTALS_SIZE + GROUPS * GROUP_SIZE + PROCESSES * PROCESS_SIZE;
	my $text = pack('Q<L<L<Q<Q<Q<L<6Q<4', $self->{magic} // 0x31454c494650414b, $self->{version}, $size, $self->{sequence},
		$self->{generation}, $heartbeat, $self->{interval_ms}, $self->{pid}, $self->{sources}, $self->{ngroups} // scalar @groups,
		scalar @{ $self->{processes} }, 0, 0, 0, $self->{dropped} // 0, 0);

	die 'header: ' . length($text) if length($text) != HEADER_SIZE;
	$text .= $self->totals;
	foreach my $group (@groups)
	{
		my $row = pack('L<L<Q<', $group->{kind}, $group->{server}, 0) . counters($group)
		  . histogram($group->{compact_buckets} // []) . histogram($group->{reclaim_buckets} // [])
		  . recent($group->{compact_recent} // {}) . recent($group->{reclaim_recent} // {});

		die 'group: ' . length($row) if length($row) != GROUP_SIZE;
		$text .= $row;
	}
	$text .= "\0" x (HEADER_SIZE + TOTALS_SIZE + GROUPS * GROUP_SIZE - length($text));
	foreach my $process (@{ $self->{processes} })
	{
		my $row = pack('L<4Q<Q<L<a16L<', $process->{pid}, $process->{parent}, $process->{namespace_pid} // $process->{pid},
			$process->{namespace} // 0xEFFFFFFC, 1, 0, $kind{ $process->{who} // 'client backend' }, 'postgres', 0) . counters($process);

		die 'process: ' . length($row) if length($row) != PROCESS_SIZE;
		$text .= $row;
	}
	$text .= "\0" x ($size - length($text));
	return $text . ($self->{more} // '');
}

# A new file in the place of the old one, as by a probe that starts; each is whole.
sub publish
{
	my ($self) = @_;
	my $file = "$self->{file}.new";

	open(my $out, '>', $file) or die "$file: $!";
	binmode $out;
	print $out $self->content;
	close($out) or die "$file: $!";
	chmod $self->{mode} // 0644, $file;
	rename($file, $self->{file}) or die "rename: $!";
	return $self;
}

# A probe that loses the CPU in the middle of its writing.
sub begin_write
{
	my ($self) = @_;

	open(my $out, '+<', $self->{file}) or die "$self->{file}: $!";
	sysseek($out, 16, 0) and syswrite($out, pack('Q<', $self->{sequence} + 1));
	close($out);
	return $self;
}

# Into the file that is there, under the eyes of who has mapped it.
sub write_in_place
{
	my ($self) = @_;

	$self->{sequence} += 2;
	open(my $out, '+<', $self->{file}) or die "$self->{file}: $!";
	binmode $out;
	my $content = $self->content;
	my $sequence = substr($content, 16, 8);

	# odd first, even last
	syswrite($out, pack('Q<', $self->{sequence} - 1), 8) if sysseek($out, 16, 0);
	sysseek($out, 24, 0) and syswrite($out, substr($content, 24));
	sysseek($out, 16, 0) and syswrite($out, $sequence);
	close($out);
	return $self;
}

1;
