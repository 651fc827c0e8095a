# No room for the sampler: checkpoints are captured all the same, and status says it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('workers', 'max_worker_processes = 0');

like($node->safe_psql('postgres', q{SELECT state, detail, hint FROM kernel_advisor.status WHERE component = 'sampler'}),
	qr/^absent\|.*no room.*\|Increase max_worker_processes and restart the server\.$/, 'status says what to do');

$node->safe_psql('postgres', 'CREATE TABLE t (a int); CHECKPOINT');
$node->restart;
$node->safe_psql('postgres', 'CHECKPOINT');
compare_with_log($node, 'without a sampler');
is($node->safe_psql('postgres', q{SELECT count(*), count(compact_stall), count(tps_during) FROM kernel_advisor.checkpoints}),
	'3|0|0', 'rows without a kernel part, kept over a restart');
is($node->safe_psql('postgres', q{SELECT count(*) FROM kernel_advisor.samples}), '0', 'no samples');

# With room, it starts.
$node->append_conf('postgresql.conf', 'max_worker_processes = 8');
$node->restart;
wait_for($node, q{SELECT count(*) > 0 FROM kernel_advisor.samples});
is($node->safe_psql('postgres', q{SELECT state FROM kernel_advisor.status WHERE component = 'sampler'}), 'running', 'and runs when there is');

done_testing();
