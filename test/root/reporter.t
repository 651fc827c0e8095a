#!/usr/bin/env bash
# The reporter on a full disk: the history tables lie on a file system of 4 MB, which somebody fills.  The server goes
# on, the checkpoints wait in shared memory, and are stored when there is space again.
set -euo pipefail
# shellcheck source=test/root/common.sh
. "$(dirname "$0")/common.sh"

mkdir "$scratch/small"
mount -t tmpfs -o size=4m tmpfs "$scratch/small" || { say "1..0 # SKIP no tmpfs can be mounted here"; exit 0; }
at_exit "umount $scratch/small"
chown postgres: "$scratch/small"

make_server
printf '%s\n' 'kernel_advisor.sample_interval = 100ms' 'kernel_advisor.report_interval = 1s' fsync=off >>"$data/postgresql.conf"
server start >/dev/null || bail "the server does not start: $(tail -n 3 "$scratch/server.log")"
query -c 'CREATE EXTENSION pg_kernel_advisor' -c "CREATE TABLESPACE small LOCATION '$scratch/small'" \
	-c 'ALTER TABLE kernel_advisor.checkpoint_history SET TABLESPACE small' \
	-c 'ALTER INDEX kernel_advisor.checkpoint_history_started_at SET TABLESPACE small'

write="DO 'BEGIN PERFORM pg_current_xact_id(); END'" # while nobody else writes, nothing is stored
reporter() { query -c "SELECT $1 FROM kernel_advisor.status WHERE component = 'reporter'"; }
says() { [[ $(reporter "$1") == t ]] || { reporter detail; return 1; }; }
stored() { [[ $(query -c "SELECT count(*) FROM kernel_advisor.checkpoints AS c LEFT JOIN kernel_advisor.checkpoint_history AS h
	USING (started_at, checkpoint_id) WHERE h.checkpoint_id IS NULL") == 0 ]]; }

query -c "$write" -c CHECKPOINT
ok 'a checkpoint is stored' wait_until 30 stored
is 'on the small file system' "$(query -c "SELECT spcname FROM pg_class JOIN pg_tablespace AS s ON s.oid = reltablespace
	WHERE pg_class.oid = 'kernel_advisor.checkpoint_history'::regclass")" small

dd if=/dev/zero of="$scratch/small/filler" bs=4k 2>/dev/null || true
is 'the file system is full' "$(df --output=avail "$scratch/small" | tail -n 1 | tr -d ' ')" 0
# more rows than fit into the pages that the tables have already
for _ in $(seq 60); do query -c "$write" -c CHECKPOINT; done
ok 'the reporter says that it fails' wait_until 30 says "state = 'failing'"
ok 'and why' says "detail LIKE '%No space left on device%' AND hint LIKE 'Make space:%'"
is 'the server goes on' "$(query -c 'CREATE TABLE t AS SELECT generate_series(1, 10000)' -c 'SELECT count(*) FROM t')" 10000
is 'nobody crashed' "$(grep -cE 'PANIC|terminated by signal|crash' "$scratch/server.log" || true)" 0
sleep 3
complaints=$(grep -c 'ERROR:  could not .*No space left' "$scratch/server.log" || true)
ok "the log has it $complaints times, not at each report" test "$complaints" -ge 1 -a "$complaints" -le 4
query -c "$write" -c CHECKPOINT

rm "$scratch/small/filler"
ok 'with space again it works' wait_until 30 says "state = 'working'"
ok 'and stores what waited in shared memory' wait_until 30 stored
is 'no row twice' "$(query -c "SELECT count(*) FROM (SELECT FROM kernel_advisor.checkpoint_history
	GROUP BY started_at, checkpoint_id HAVING count(*) > 1) AS t")" 0
is 'and none dropped' "$(reporter "detail LIKE '%, 0 checkpoints dropped%'")" t
ok 'the log says that it works again' grep -q 'kernel advisor reporter works again' "$scratch/server.log"
finish
