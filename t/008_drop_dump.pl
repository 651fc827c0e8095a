# DROP EXTENSION while sampling goes on; dump and restore of the extension.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('dump');

wait_for($node, q{SELECT count(*) > 2 FROM kernel_advisor.samples});
my $pid = sampler_pid($node);
my $oldest = $node->safe_psql('postgres', 'SELECT min(at) FROM kernel_advisor.samples');

# A reader that is in the middle of it holds the extension.
$node->safe_psql('postgres', 'DROP EXTENSION pg_kernel_advisor');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_namespace WHERE nspname = 'kernel_advisor'}), '0', 'nothing is left behind');
$node->safe_psql('postgres', 'CREATE EXTENSION pg_kernel_advisor');
wait_for($node, "SELECT count(*) > 2 FROM kernel_advisor.samples WHERE at > '$oldest'::timestamptz + interval '500 ms'");
is($node->safe_psql('postgres', 'SELECT min(at) FROM kernel_advisor.samples'), $oldest, 'sampling went on meanwhile');
is(sampler_pid($node), $pid, 'in the same process');

# A grant of the user's is part of the dump.
$node->safe_psql('postgres', 'CREATE ROLE operator; GRANT EXECUTE ON FUNCTION kernel_advisor.reset() TO operator');
my $dump = $node->backup_dir;
mkdir $dump;
$node->command_ok([ 'pg_dump', '-f', "$dump/dump.sql", '-d', $node->connstr('postgres') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$dump/dump.sql", '-d', $node->connstr('restored') ], 'restore');

my $objects = q{
	SELECT string_agg(o, E'\n' ORDER BY o) FROM (
		SELECT p.oid::regprocedure || ' ' || coalesce(p.proacl::text, '') AS o FROM pg_proc p WHERE pronamespace = 'kernel_advisor'::regnamespace
		UNION ALL
		SELECT c.oid::regclass || ' ' || coalesce(c.relacl::text, '') FROM pg_class c WHERE relnamespace = 'kernel_advisor'::regnamespace) t};
is($node->safe_psql('restored', $objects), $node->safe_psql('postgres', $objects), 'same objects, same privileges');
like($node->safe_psql('restored', $objects), qr/reset\(\) .*operator=X/, 'the grant came along');
is($node->safe_psql('restored', 'SELECT min(at) FROM kernel_advisor.samples'), $oldest, 'the restored database sees the same samples');

# A database that goes does not make a sample with a wrong number of transactions.
$node->safe_psql('postgres', 'DROP DATABASE restored');
wait_for($node, "SELECT count(*) > 3 FROM kernel_advisor.samples WHERE at > now() - interval '1 s'");
is($node->safe_psql('postgres', 'SELECT count(*) FROM kernel_advisor.samples WHERE transactions < 0'), '0', 'no negative number of transactions');

done_testing();
