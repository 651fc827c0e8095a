# The history tables go with the database: to a subscriber that has a reporter of its own, and through pg_upgrade.
# (Dump, restore and physical replication: 013.)

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = new_node('old', "wal_level = logical\nkernel_advisor.report_interval = '1s'");
my $write_and_checkpoint = 'SELECT pg_current_xact_id(); CHECKPOINT';
my $all_stored = q{
	SELECT count(*) > 0 AND bool_and(h.checkpoint_id IS NOT NULL)
	FROM (SELECT * FROM kernel_advisor.checkpoints WHERE kind <> 'shutdown') AS c
	LEFT JOIN kernel_advisor.checkpoint_history AS h USING (started_at, checkpoint_id)};
my $advice_stored = q{SELECT count(*) > 0 FROM kernel_advisor.advice_history WHERE rule = 'checkpoint.spacing'};
my $checkpoints = q{SELECT h::text FROM kernel_advisor.checkpoint_history AS h ORDER BY started_at, checkpoint_id};
my $advice = q{SELECT h::text FROM kernel_advisor.advice_history AS h ORDER BY at, rule, subject};

$old->safe_psql('postgres', $write_and_checkpoint) foreach 1 .. 2;
wait_for($old, $all_stored);
wait_for($old, $advice_stored);

# ---------------------------------------------------------------- logical replication

my $subscriber = new_node('subscriber', "kernel_advisor.report_interval = '1s'");
$subscriber->safe_psql('postgres', $write_and_checkpoint);
wait_for($subscriber, $all_stored);
my %own = map { $_ => 1 } split /\n/, $subscriber->safe_psql('postgres', $checkpoints);

$old->safe_psql('postgres', 'CREATE PUBLICATION everything FOR ALL TABLES');
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION everything CONNECTION 'host=@{[ $old->host ]} port=@{[ $old->port ]} dbname=postgres' PUBLICATION everything");
$subscriber->wait_for_subscription_sync($old, 'everything');
$old->safe_psql('postgres', $write_and_checkpoint);
wait_for($old, $all_stored);
$old->wait_for_catchup('everything');
my $missing = sub {
	my %there = map { $_ => 1 } split /\n/, $subscriber->safe_psql('postgres', $checkpoints);
	return join "\n", grep { !$there{$_} } keys %own, split /\n/, $old->safe_psql('postgres', $checkpoints);
};
is($missing->(), '', 'a subscriber has the rows of both servers');

# What the publisher deletes goes on the subscriber, too; what is gone there already does not stop it.
my $first = q{(SELECT min(started_at) FROM kernel_advisor.checkpoint_history)};
my $gone = $old->safe_psql('postgres', "SELECT $first");
$subscriber->safe_psql('postgres', "DELETE FROM kernel_advisor.checkpoint_history WHERE started_at = '$gone'");
$old->safe_psql('postgres', "DELETE FROM kernel_advisor.checkpoint_history WHERE started_at = $first") foreach 1 .. 2;
$subscriber->safe_psql('postgres', $write_and_checkpoint);
wait_for($subscriber, $all_stored);
$old->safe_psql('postgres', $write_and_checkpoint);
wait_for($old, $all_stored);
$old->wait_for_catchup('everything');
is($missing->(), '', 'and goes on having them');
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM kernel_advisor.checkpoint_history') - $old->safe_psql('postgres', 'SELECT count(*) FROM kernel_advisor.checkpoint_history'),
	$subscriber->safe_psql('postgres', 'SELECT count(*) FROM kernel_advisor.checkpoints'), 'and no others');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION everything');
$subscriber->stop('fast');

# ---------------------------------------------------------------- pg_upgrade

# To a cluster of the same version: dump and restore of the extension are those of any other upgrade.
my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;
$new->append_conf('postgresql.conf', "shared_preload_libraries = 'pg_kernel_advisor'\nlog_line_prefix = '%m [%p] %b '\nautovacuum = off\nkernel_advisor.report_interval = '1s'");
$old->safe_psql('postgres', 'CREATE ROLE keeper; GRANT SELECT ON kernel_advisor.checkpoint_history TO keeper; DROP PUBLICATION everything');
wait_for($old, $all_stored);
$old->safe_psql('postgres', q{ALTER SYSTEM SET kernel_advisor.report_interval = 0});
$old->reload;
wait_for($old, q{SELECT state = 'off' FROM kernel_advisor.status WHERE component = 'reporter'});
my @before = map { $old->safe_psql('postgres', $_) } $checkpoints, $advice;
$old->stop;

my ($bindir) = $new->config_data('--bindir');
chdir $PostgreSQL::Test::Utils::tmp_check or die "chdir: $!"; # pg_upgrade leaves a script where it is
command_ok(
	[
		'pg_upgrade', '--no-sync',
		'--old-datadir', $old->data_dir, '--new-datadir', $new->data_dir,
		'--old-bindir', $bindir, '--new-bindir', $bindir,
		'--old-port', $old->port, '--new-port', $new->port, '--socketdir', $new->host
	],
	'pg_upgrade');
$new->start;
my @after = map { $new->safe_psql('postgres', $_) } $checkpoints, $advice;
ok($after[0] eq $before[0] && $before[0] =~ /\n/, 'the checkpoints are the same') or diag("$before[0]\n---\n$after[0]");
ok(index("$after[1]\n", "$before[1]\n") == 0 && $before[1] ne '', 'and so is the advice') or diag("$before[1]\n---\n$after[1]");
is($new->safe_psql('postgres', q{
	SELECT string_agg(t::regclass::text, ' ' ORDER BY t) FROM pg_extension, unnest(extconfig) AS t WHERE extname = 'pg_kernel_advisor'}),
	'kernel_advisor.checkpoint_history kernel_advisor.advice_history', 'the next dump has them as well');
is($new->safe_psql('postgres', q{SELECT has_table_privilege('keeper', 'kernel_advisor.checkpoint_history', 'SELECT')}), 't', 'a grant came along');
unlike(slurp_file($new->logfile), qr/ kernel advisor (?:sampler|reporter) (?:ERROR|FATAL)/, 'nobody complains');

# The reporter goes on: the numbers begin again, and the rows are told apart by their start.
$new->safe_psql('postgres', $write_and_checkpoint);
wait_for($new, $all_stored);
is($new->safe_psql('postgres', q{SELECT count(*) > 0 FROM (SELECT checkpoint_id FROM kernel_advisor.checkpoint_history GROUP BY 1 HAVING count(*) > 1) AS t}), 't',
	'the same number twice');
is($new->safe_psql('postgres', q{SELECT count(*) FROM (SELECT FROM kernel_advisor.checkpoint_history GROUP BY started_at, checkpoint_id HAVING count(*) > 1) AS t}), '0',
	'but no row twice');
is($new->safe_psql('postgres', $checkpoints) =~ /^\Q$before[0]\E\n/, 1, 'and the old ones are there still');

$new->stop('fast');
done_testing();
