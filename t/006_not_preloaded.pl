# A server that did not preload the library: clear errors, and the rest works.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('not_preloaded');
$node->init;

# The settings of a server that is to preload it after the next restart.
$node->append_conf('postgresql.conf', <<'END');
kernel_advisor.sample_interval = '500ms'
kernel_advisor.history_size = '16MB'
END
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_kernel_advisor');

foreach my $object ('samples', 'checkpoints', 'reset()')
{
	my $query = $object =~ /\)/ ? "SELECT kernel_advisor.$object" : "SELECT * FROM kernel_advisor.$object";
	my ($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$query");

	isnt($status, 0, "$object fails");
	like($stderr, qr/ERROR:  55000: pg_kernel_advisor is not loaded by the server/, "$object says why");
	like($stderr, qr/HINT:  Add pg_kernel_advisor to shared_preload_libraries and restart the server\./, "$object says what to do");
}

my ($status, $stdout, $stderr) = $node->psql('postgres',
	q{SELECT state, hint FROM kernel_advisor.status WHERE component = 'sampler'});
is($status, 0, 'status works');
like($stdout, qr/^absent\|Add pg_kernel_advisor to shared_preload_libraries/, 'and says what to do');
is($stderr, '', 'without a warning about settings');

is($node->safe_psql('postgres', q{SELECT kernel_advisor.facts() ? 'kernel', kernel_advisor.facts() ? 'window'}),
	't|f', 'facts works, without what was never sampled');
ok($node->poll_query_until('postgres', q{
	SELECT (kernel_advisor.facts() #>> '{postgres,backends}')::int = count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'}),
	'backends are client connections, no launchers or workers');
cmp_ok($node->safe_psql('postgres', q{SELECT count(*) FROM kernel_advisor.advice}), '>', 0, 'advice works');

done_testing();
