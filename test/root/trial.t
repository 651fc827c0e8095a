#!/usr/bin/env bash
# trial() on the real kernel, through the real helper: the policy of compaction in turns, the same value twice, and the
# old value back after the worker and the postmaster were killed.  Changes vm.extfrag_threshold and puts it back.
set -euo pipefail
# A mount namespace of its own: the helper's journal and socket are not this machine's.
if [[ -z ${KA_TRIAL_NAMESPACE:-} && $EUID == 0 ]]; then
	exec env KA_TRIAL_NAMESPACE=1 unshare --mount --propagation private bash "${BASH_SOURCE[0]}" "$@"
fi
# shellcheck source=test/root/common.sh
. "$(dirname "$0")/common.sh"

knob=/proc/sys/vm/extfrag_threshold
[[ -w $knob ]] || { say "1..0 # SKIP vm.extfrag_threshold is not here, or cannot be written"; exit 0; }
old=$(<$knob) other=1000
((old != other)) || other=900
keep_kernel_file $knob
private_system

trial() { query -c "SELECT trial_id FROM kernel_advisor.trial('vm.extfrag_threshold', '$1', '2 s', $2)"; }
newest() { query -F ' ' -c "SELECT $1 FROM kernel_advisor.trials ORDER BY trial_id DESC LIMIT 1"; }
newest_is() { [[ $(newest "$1") == t ]]; }
kernel_has() { (($(<$knob) == $1)); }
worker() { sed -n 's/.*\[\([0-9]*\)\] LOG:  kernel advisor trial [0-9]* of .* in turns.*/\1/p' "$scratch/server.log" | tail -1; }
load() { "$PGBIN/pgbench" -n -c 4 -j 1 -T 120 >"$scratch/pgbench.log" 2>&1 & pgbench=$!; }

make_server
printf '%s\n' 'synchronous_commit = off' 'checkpoint_timeout = 1h' "kernel_advisor.sample_interval = '200ms'" >>"$data/postgresql.conf"
start_helper
server start >/dev/null || bail "the server does not start: $(tail -n 3 "$scratch/server.log")"
query -c 'CREATE EXTENSION pg_kernel_advisor'
"$PGBIN/pgbench" -i -q -s 2 >"$scratch/pgbench.log" 2>&1
load
at_exit 'kill $pgbench || true'

trial $other 6 >/dev/null
ok "the kernel has $other" wait_until 20 kernel_has $other
ok "and $old again" wait_until 20 kernel_has "$old"
ok 'the trial ends' wait_until 60 newest_is "ended_at IS NOT NULL"
is 'with all of its pairs' "$(newest 'state, pairs_done, old, value')" "finished 6 $old $other"
is "the kernel has $old" "$(<$knob)" "$old"
ok 'the throughput was measured, with an interval' newest_is \
	"ratio BETWEEN 0.2 AND 5 AND ratio_low <= ratio AND ratio <= ratio_high AND verdict <> 'not enough data'"
note "$(query -F ' ' -c 'SELECT measure, pairs, round(old_median), round(new_median), round(ratio::numeric, 3), round(ratio_low::numeric, 3),
	round(ratio_high::numeric, 3), verdict FROM kernel_advisor.trial_results')"
is 'the helper has nothing for the next boot' "$(grep -vs '^#' /etc/sysctl.d/60-kernel-advisor.conf || true)" ''

trial "$old" 50 >/dev/null
ok 'the same value twice' wait_until 20 newest_is 'pairs_done >= 1'
is 'stopped' "$(query -F ' ' -c 'SELECT state, detail FROM kernel_advisor.trial_stop()')" 'stopped trial_stop() was called'
is "the kernel has $old" "$(<$knob)" "$old"

# ---------------------------------------------------------------- killed

trial $other 50 >/dev/null
wait_until 20 kernel_has $other || bail "the trial does not run: $(newest detail)"
kill -KILL "$(worker)"
ok 'the worker is killed: after the crash the old value comes back' wait_until 20 kernel_has "$old"
ok 'and the view says so' wait_until 20 newest_is "state = 'interrupted' AND ended_at IS NOT NULL"

trial $other 50 >/dev/null
wait_until 20 kernel_has $other || bail "the trial does not run: $(newest detail)"
stop_helper
kill -KILL "$(head -1 "$data/postmaster.pid")"
ended() { ! kill -0 "$1"; }
wait_until 20 ended "$(worker)" || bail 'the worker did not notice'
is "postmaster killed, no helper: the kernel still has $other" "$(<$knob)" "$other"
start_helper
wait_until 20 server start || bail "the server does not start: $(tail -n 3 "$scratch/server.log")" # when the last process has gone
ok 'after the next start the old value comes back' wait_until 20 kernel_has "$old"
ok 'and the view says so' wait_until 20 newest_is "state = 'interrupted' AND ended_at IS NOT NULL"

server -m fast stop >/dev/null
finish
