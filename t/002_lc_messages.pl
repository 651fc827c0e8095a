# Checkpoints are recognized when the server logs in another language.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use KernelAdvisor;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($localedir) = run_command([ 'pg_config', '--localedir' ]);
plan skip_all => 'the server was built without translations, or they are not installed'
  unless glob("$localedir/de/LC_MESSAGES/postgres-*.mo");

# A German locale of the system, or one of our own made from its sources.
my ($locale) = grep { /^de_DE\.utf-?8$/i } split /\n/, `locale -a`;
if (!defined $locale)
{
	my $directory = PostgreSQL::Test::Utils::tempdir_short();

	$locale = 'de_DE.UTF-8';
	plan skip_all => 'no German locale and no localedef to make one: install locales'
	  unless system("localedef -i de_DE -f UTF-8 --no-archive $directory/$locale >$directory/out 2>&1") == 0;
	# The others are looked for in the same place.
	$ENV{LOCPATH} = $directory;
}

my $node = new_node('german', "lc_messages = '$locale'");

$node->safe_psql('postgres', 'CREATE TABLE t (a int); CHECKPOINT');
like(log_since($node), qr/LOG:  Checkpoint beginnt: (?:immediate|fast) force wait/,
	'the server speaks German');
is($node->safe_psql('postgres', q{
	SELECT kind, source, write_ms IS NOT NULL AND files_synced IS NOT NULL
	FROM kernel_advisor.checkpoints}),
	'requested|hook|t', 'the hook knows the checkpoint and its kind');

$node->restart;
is($node->safe_psql('postgres', q{SELECT count(*) FROM kernel_advisor.checkpoints WHERE kind = 'shutdown' AND source = 'hook'}),
	'1', 'and that of the shutdown');

done_testing();
