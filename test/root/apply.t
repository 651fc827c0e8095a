#!/usr/bin/env bash
# apply() and rollback() on the real kernel, through the real helper: from small pages to huge ones and back, a pool that
# fragmented memory does not give, the policy of compaction, transparent huge pages, one node's pool, a reboot, and a dry
# run.  Changes the kernel's settings and puts them back.
set -euo pipefail
# A mount namespace of its own: the journal of this machine's helper, its socket, and what is kept for the next boot are
# not for tests.
if [[ -z ${KA_APPLY_NAMESPACE:-} && $EUID == 0 ]]; then
	exec env KA_APPLY_NAMESPACE=1 unshare --mount --propagation private bash "${BASH_SOURCE[0]}" "$@"
fi
# shellcheck source=test/root/common.sh
. "$(dirname "$0")/common.sh"

vm=/proc/sys/vm thp=/sys/kernel/mm/transparent_hugepage pool=$vm/nr_hugepages
page_kb=$(meminfo Hugepagesize)
[[ -w $pool && -n $page_kb ]] || { say "1..0 # SKIP this kernel has no huge pages, or vm.nr_hugepages cannot be written here"; exit 0; }
(($(<$pool) == 0)) || { say "1..0 # SKIP there is a pool of $(<$pool) huge pages"; exit 0; }
for knob in $pool $vm/extfrag_threshold $vm/compaction_proactiveness $vm/swappiness; do keep_kernel_file "$knob"; done
for knob in $thp/enabled $thp/defrag $thp/shmem_enabled; do [[ ! -e $knob ]] || keep_kernel_file "$knob"; done
private_system

# ---------------------------------------------------------------- what the test looks at

# changed COLUMNS ARGUMENTS: rows of apply(ARGUMENTS)
changed() { query -c "SELECT $1 FROM kernel_advisor.apply($2)"; }
# take_back CHANGE
take_back() { query -c "SELECT state, verified FROM kernel_advisor.rollback($1)"; }
newest() { query -c "SELECT $1 FROM kernel_advisor.changes ORDER BY change_id DESC LIMIT 1"; }
word() { grep -o '\[[^]]*\]' "$1" | tr -d '[]'; }
auto_conf() { grep -c "^$1 " "$data/postgresql.auto.conf" || true; }
matches() { [[ $1 =~ $2 ]] || { say "$1"; return 1; }; }
restart() { server -m fast restart; }
kept() { [[ -f $1 ]] || return 0; grep -v '^#' "$1" || true; }
sysctl_file=/etc/sysctl.d/60-kernel-advisor.conf tmpfiles_file=/etc/tmpfiles.d/kernel-advisor.conf

# All that apply() could change, bit for bit: the kernel, the files for the next boot, the helper's journal, the server's.
machine_state() {
	local file
	for file in $vm/*_hugepages $vm/extfrag_threshold $vm/compaction_proactiveness $vm/min_free_kbytes $vm/watermark_* \
		$vm/overcommit_* $vm/dirty_*bytes $vm/dirty_*ratio $vm/swappiness $vm/zone_reclaim_mode $vm/percpu_pagelist_high_fraction \
		$thp/enabled $thp/defrag $thp/shmem_enabled /sys/kernel/mm/hugepages/*/nr_hugepages; do
		say "$file $(cat "$file" 2>/dev/null)"
	done
	find /etc/sysctl.d /etc/tmpfiles.d /var/lib/kernel_advisord "$data/postgresql.auto.conf" "$data/pg_stat_tmp"/*.changes \
		-type f -exec sha256sum {} + 2>/dev/null | sort || true # not all of them are there
}

# ---------------------------------------------------------------- from small pages to huge ones

shared_buffers=1GB # with 128 MB huge pages are not worth a word
make_server
start_helper
server start >/dev/null || bail "the server does not start: $(tail -n 3 "$scratch/server.log")"
query -c 'CREATE EXTENSION pg_kernel_advisor'
needed=$(query -c 'SHOW shared_memory_size_in_huge_pages')
is 'pool 0, huge_pages = try: the server runs on small pages' "$(kernel_says)" off
is 'status: the helper answers' "$(query -c "SELECT state FROM kernel_advisor.status WHERE component = 'helper'")" available
is 'the advice says that it fell back' "$(query -c "SELECT count(*) FROM kernel_advisor.advice
	WHERE rule = 'huge_pages.fallback' AND severity IN ('critical', 'warning')")" 1

before=$(machine_state)
dry=$(changed "string_agg(subject || ' ' || state, ', ')" 'dry_run => true')
ok "a dry run tells of the pool: $dry" matches "$dry" 'vm.nr_hugepages dry run'
changed '*' "'vm.extfrag_threshold', '1000', dry_run => true" >/dev/null
changed '*' "'thp.defrag', 'defer', dry_run => true" >/dev/null
changed '*' "'max_wal_size', '3GB', dry_run => true" >/dev/null
is 'a dry run changes nothing, bit for bit' "$(machine_state)" "$before"

rows=$(query -F ' ' -c "SELECT subject, asked, granted, state FROM kernel_advisor.apply()")
note "$rows"
ok 'apply(): the pool is reserved' matches "$rows" 'vm.nr_hugepages ([0-9]+) \1 applied'
ok 'the kernel has the pages' test "$(<$pool)" -ge $((needed - 1))
ok 'and the file for the next boot says so' matches "$(kept $sysctl_file)" "vm.nr_hugepages = $(<$pool)"
row=$(changed 'old, asked, state, detail' "'huge_pages', 'on'")
ok 'then huge_pages = on may be written, since the pool is large enough' matches "$row" '^try\|on\|pending restart\|the pool is large enough'
is 'it is in the file' "$(auto_conf huge_pages)" 1
is 'before the restart: still on small pages' "$(kernel_says)" off
ok 'restart' restart
is 'now it really runs on huge pages' "$(kernel_says)" on
is 'and says so' "$(fact postgres.huge_pages_status)" on
is 'changes: nothing is pending any more' "$(query -c "SELECT string_agg(DISTINCT state, ' ') FROM kernel_advisor.changes
	WHERE subject IN ('vm.nr_hugepages', 'huge_pages')")" applied

# each of them back, the last one first
for change in $(query -c 'SELECT change_id FROM kernel_advisor.changes ORDER BY change_id DESC'); do
	subject=$(query -c "SELECT subject FROM kernel_advisor.changes WHERE change_id = $change")
	ok "rollback of change $change, $subject" take_back "$change"
	if [[ $subject == huge_pages ]]; then ok 'restart on small pages' restart; fi
done
is 'rolled back: the pool is as before' "$(<$pool)" 0
is 'rolled back: the file for the next boot as well' "$(kept $sysctl_file)" ''
is 'rolled back: and the setting' "$(auto_conf huge_pages)" 0
ok 'restart' restart
is 'the server is on small pages as before' "$(kernel_says)" off
is 'changes: all of them are rolled back' "$(query -c "SELECT string_agg(DISTINCT state, ' ') FROM kernel_advisor.changes
	WHERE action <> 'rollback'")" 'rolled back'

# ---------------------------------------------------------------- the policy, and what the next boot makes of it

policy=$vm/extfrag_threshold policy_before=$(<$vm/extfrag_threshold)
is 'policy: set and verified' "$(changed 'asked, granted, verified, state, persisted_in' "'vm.extfrag_threshold', '1000'")" \
	"1000|1000|1000|applied|$sysctl_file"
is 'policy: the kernel has it' "$(<$policy)" 1000
is 'policy: and the file for the next boot' "$(kept $sysctl_file)" 'vm.extfrag_threshold = 1000'
ok 'policy: our file wins at boot' matches "$(newest boot)" "60-kernel-advisor.conf"
change=$(newest change_id)
is 'policy: rolled back' "$(take_back "$change")" "applied|$policy_before"
is 'policy: the kernel has the old value' "$(<$policy) $(kept $sysctl_file)" "$policy_before "

echo 'vm.extfrag_threshold = 300' >/etc/sysctl.d/90-other.conf
row=$(changed "verified, state, boot, hint" "'vm.extfrag_threshold', '1000'")
ok "a later file wins at boot, and the row says so" matches "$row" '1000\|applied\|.*90-other.conf.*\|.*90-other.conf wins'
take_back "$(newest change_id)" >/dev/null
rm /etc/sysctl.d/90-other.conf
is 'policy: back again' "$(<$policy)" "$policy_before"

# ---------------------------------------------------------------- transparent huge pages

for knob in enabled defrag shmem_enabled; do
	if [[ ! -e $thp/$knob ]]; then
		skip "thp.$knob" 'not in this kernel'
		continue
	fi
	old=$(word $thp/$knob)
	case $knob in
		enabled) if [[ $old == madvise ]]; then new=never; else new=madvise; fi ;;
		defrag) if [[ $old == defer ]]; then new=madvise; else new=defer; fi ;;
		*) if [[ $old == advise ]]; then new=never; else new=advise; fi ;;
	esac
	is "thp.$knob: set" "$(changed 'old, verified, state' "'thp.$knob', '$new'")" "$old|$new|applied"
	is "thp.$knob: the kernel has it" "$(word $thp/$knob)" "$new"
	is "thp.$knob: the file for the next boot" "$(kept $tmpfiles_file)" "w $thp/$knob - - - - $new"
	is "thp.$knob: rolled back" "$(take_back "$(newest change_id)")" "applied|$old"
	is "thp.$knob: as before" "$(word $thp/$knob) $(kept $tmpfiles_file)" "$old "
done

# ---------------------------------------------------------------- one node's pool

node_pool=/sys/devices/system/node/node0/hugepages/hugepages-${page_kb}kB/nr_hugepages
if [[ -e $node_pool ]]; then
	subject=node0.hugepages-${page_kb}kB.nr_hugepages
	is 'node 0: reserved' "$(changed 'action, old, granted, verified, state' "'$subject', '16', persist => false")" 'reserve|0|16|16|applied'
	is 'node 0: the kernel has the pages there' "$(<"$node_pool")" 16
	is 'node 0: rolled back' "$(take_back "$(newest change_id)")" 'applied|0'
	is 'node 0: as before' "$(<"$node_pool")" 0
else
	skip 'node 0' 'no memory nodes here'
fi

# ---------------------------------------------------------------- a reboot

swappiness=$(<$vm/swappiness) new=$((swappiness == 11 ? 12 : 11))
changed 1 "'vm.swappiness', '$new'" >/dev/null
change=$(newest change_id)
server -m fast stop >/dev/null
stop_helper
# the kernel comes up with its defaults, and with another boot id
echo "$swappiness" >$vm/swappiness
say 99999999-2222-3333-4444-555555555555 >"$scratch/boot_id"
mount --bind "$scratch/boot_id" /proc/sys/kernel/random/boot_id
at_exit '! mountpoint -q /proc/sys/kernel/random/boot_id || umount /proc/sys/kernel/random/boot_id'
start_helper
server start >/dev/null
is 'after a reboot: the log has the change' "$(query -c "SELECT asked, verified, state FROM kernel_advisor.changes WHERE change_id = $change")" \
	"$new|$swappiness|superseded"
is 'after a reboot: it is still kept for the next one' "$(kept $sysctl_file)" "vm.swappiness = $new"
ok 'after a reboot: it can be rolled back' take_back "$change"
is 'after a reboot: the kernel is as it was, and the file, too' "$(<$vm/swappiness) $(kept $sysctl_file)" "$swappiness "
umount /proc/sys/kernel/random/boot_id

# the helper was killed, and the machine is still up: the journal has the old value
changed 1 "'vm.swappiness', '$new', persist => false" >/dev/null
change=$(newest change_id)
stop_helper KILL
start_helper
is 'the helper was killed: a rollback' "$(take_back "$change")" "applied|$swappiness"
is 'the helper was killed: the kernel has the old value' "$(<$vm/swappiness)" "$swappiness"

# ---------------------------------------------------------------- fragmented memory

# What is left of memory when all else is put aside: less in whole blocks than the server needs, and much more in blocks
# that are spoilt by a page that cannot be moved.
whole_mb=512 spoilt_mb=3072
if (($(meminfo MemAvailable) / 1024 > whole_mb + spoilt_mb + 2048)) && build_fragment; then
	hold_memory huge $(($(meminfo MemAvailable) / 1024 - whole_mb - spoilt_mb)) 1
	hold_memory pinned $spoilt_mb 256
	# with huge_pages = off the advice has two parts, of which the second rests on the first
	query -c "ALTER SYSTEM SET huge_pages = 'off'"
	restart >/dev/null
	rows=$(query -F ' ' -c "SELECT subject, asked, granted, state FROM kernel_advisor.apply()")
	note "$rows"
	if [[ $rows =~ vm.nr_hugepages\ ([0-9]+)\ ([0-9]+)\ partial ]]; then
		asked=${BASH_REMATCH[1]} granted=${BASH_REMATCH[2]}
		ok "fragmented: asked $asked, granted $granted" test "$granted" -lt "$asked"
		is 'fragmented: the kernel has as many' "$(<$pool)" "$granted"
		ok 'fragmented: and the row a remedy' matches "$(newest "hint, detail")" '[Bb]oot|cache|memory'
		ok 'fragmented: what comes after it is skipped' matches "$rows" 'huge_pages (on|try)  skipped'
		is 'fragmented: huge_pages is not written' "$(grep '^huge_pages ' "$data/postgresql.auto.conf")" "huge_pages = 'off'"
		error=$(query -c "SELECT * FROM kernel_advisor.apply('huge_pages', 'on')" 2>&1 || true)
		ok 'fragmented: nor when it is asked for by name' matches "$error" 'could not set "huge_pages" to "on"'
		ok 'fragmented: what is kept for the next boot is all' matches "$(kept $sysctl_file)" "vm.nr_hugepages = $asked"
		ok 'fragmented: rollback' take_back "$(newest change_id)"
	else
		skip 'fragmented memory' "the kernel gave all the pages: $rows"
		ok 'fragmented: the pool was granted' matches "$rows" 'vm.nr_hugepages [0-9]+ [0-9]+ applied'
	fi
	release_memory
	echo 0 >$pool
else
	skip 'fragmented memory' 'too little memory, or no compiler'
fi

server -m fast stop >/dev/null
finish
