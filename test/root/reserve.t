#!/usr/bin/env bash
# kernel_advisor reserve and rollback on the real kernel: all pages, a part, nothing; undone; by a helper and without
# one; before the start of a real server, as systemd would call it.  Changes vm.nr_hugepages and puts it back.
set -euo pipefail
# A mount namespace of its own: the journal of this machine's helper, its bounds and its socket are not for tests.
if [[ -z ${KA_RESERVE_NAMESPACE:-} && $EUID == 0 ]]; then
	exec env KA_RESERVE_NAMESPACE=1 unshare --mount --propagation private bash "${BASH_SOURCE[0]}" "$@"
fi
# shellcheck source=test/root/common.sh
. "$(dirname "$0")/common.sh"

pool=/proc/sys/vm/nr_hugepages
page_kb=$(awk '/^Hugepagesize:/ { print $2 }' /proc/meminfo)
meminfo() { awk -v key="$1:" '$1 == key { print $2 }' /proc/meminfo; }

[[ -w $pool && -n $page_kb ]] || { say "1..0 # SKIP this kernel has no huge pages, or vm.nr_hugepages cannot be written here"; exit 0; }
before=$(<$pool) threshold=$(</proc/sys/vm/extfrag_threshold)
(($(meminfo HugePages_Free) == before)) || { say "1..0 # SKIP others use the pool of $before huge pages"; exit 0; }
at_exit "echo $threshold >/proc/sys/vm/extfrag_threshold"
at_exit "echo $before >$pool"
# of its own in this namespace: the helper's state, its bounds, and where its socket is looked for
cp -a /etc "$scratch/etc"
mkdir "$scratch/lib"
mount --bind "$scratch/lib" /var/lib
mount --bind "$scratch/etc" /etc
mount -t tmpfs tmpfs /run
at_exit 'umount /var/lib /etc /run'
rm -rf /etc/kernel_advisor
echo 0 >$pool

# run ARGUMENTS...: the tool as root; sets status, and the output is in $scratch/out and err
run() {
	status=0
	PATH=$PGBIN:$PATH "$cli" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
}
shows() { grep -qE -- "$1" "$scratch/out" || { cat "$scratch/out" "$scratch/err"; return 1; }; }
says() { grep -qE -- "$1" "$scratch/err" || { cat "$scratch/out" "$scratch/err"; return 1; }; }
json() { python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
	value = value[int(key) if isinstance(value, list) else key]
print(value)' "$scratch/out" "$1"; }
between() { [[ $1 =~ ^[0-9]+$ ]] && (($1 >= $2 && $1 <= $3)) || { say "${1:-nothing} is not in $2..$3"; return 1; }; }
set_buffers() { printf '%s\n' "shared_buffers = $1" "huge_pages = ${2:-on}" >"$data/postgresql.auto.conf"; }
starts() { server start; }
stops() { server -m fast stop; }
does_not_start() { ! server start; }
on_huge_pages() {
	awk -v page="$page_kb" '/^[0-9a-f]+-[0-9a-f]+ / { shared = $2 ~ /s/ }
		shared && $1 == "KernelPageSize:" && $2 == page { huge = 1 }
		END { exit !huge }' "/proc/$(head -1 "$data/postmaster.pid")/smaps"
}

make_server
set_buffers 256MB
needed=$(setting shared_memory_size_in_huge_pages)

# ---------------------------------------------------------------- without a helper

by='this process'
ok 'huge_pages = on does not start without a pool' does_not_start
run reserve -D "$data" --json
is 'all: exit status' $status 0
is 'all: the outcome' "$(json outcome)" full
is 'all: by whom' "$(json by)" "$by"
is 'all: pages asked' "$(json pools.0.pages_asked)" "$needed"
is 'all: the kernel has them' "$(<$pool)" "$needed"
first=$(json pools.0.change)
ok 'all: the free costly blocks left are told' between "$(json pools.0.free_costly_blocks)" 1 100000000
ok 'now it starts' starts
ok 'on huge pages' on_huge_pages
run reserve -D "$data"
is 'a server that has its pages: exit status' $status 0
ok 'a server that has its pages: nothing to reserve' shows 'Nothing to reserve: the server is running on huge pages'
ok 'stop' stops

run reserve -D "$data" --json
is 'again: exit status' $status 0
is 'again: no change' "$(json pools.0.change)" None
is 'again: the pool is as it was' "$(<$pool)" "$needed"
echo $((needed + 7)) >$pool
run reserve -D "$data"
is 'a larger pool: exit status' $status 0
is 'a larger pool is not made smaller' "$(<$pool)" $((needed + 7))
echo "$needed" >$pool

run rollback --list
is 'list: exit status' $status 0
ok 'list: the change' shows "^ *$first  .* reserve +vm\.nr_hugepages +0 -> $needed +by root, in effect"
run rollback "$first"
is 'rollback: exit status' $status 0
ok 'rollback: says so' shows "^Change $first is rolled back: vm.nr_hugepages is 0"
is 'rollback: the pool is as it was' "$(<$pool)" 0
run rollback "$first"
is 'rollback of the same again: exit status' $status 3
ok 'rollback of the same again: why' says 'is not rolled back: this change had no effect, or was rolled back already'
run rollback 4711
is 'rollback of no change: exit status' $status 3
run rollback --list --json
is 'list as JSON: the first change' "$(json 0.state)" 'rolled back'

# somebody else was there meanwhile
run reserve -D "$data" --json
second=$(json pools.0.change)
echo 3 >$pool
run rollback "$second"
is 'rollback over another value: exit status' $status 3
ok 'rollback over another value: what there is, and what to do' says 'vm.nr_hugepages is 3 now; --force puts 0 back all the same'
is 'rollback over another value: nothing was done' "$(<$pool)" 3
run rollback "$second" --force
is 'rollback --force: exit status' $status 0
is 'rollback --force: the old value' "$(<$pool)" 0

# another server that starts at the same moment has the journal: wait for it
flock /var/lib/kernel_advisord sleep 2 &
sleep 0.2
run reserve -D "$data"
is 'while another reserves: exit status' $status 0
is 'while another reserves: the pages are there in the end' "$(<$pool)" "$needed"
echo 0 >$pool

# on one memory node
node_pool=/sys/devices/system/node/node0/hugepages/hugepages-${page_kb}kB/nr_hugepages
if [[ -e $node_pool ]]; then
	run reserve -D "$data" --node 0 --json
	is 'on node 0: exit status' $status 0
	is 'on node 0: its pool' "$(json pools.0.subject)" "node0.hugepages-${page_kb}kB.nr_hugepages"
	is 'on node 0: the kernel has the pages there' "$(<"$node_pool")" "$needed"
	run rollback "$(json pools.0.change)"
	is 'on node 0: rolled back' "$(<"$node_pool")" 0
else
	skip 'on node 0' 'no memory nodes here'
fi

# the policy does not stand in the way, and is back afterwards
echo 1000 >/proc/sys/vm/extfrag_threshold
run reserve -D "$data" --drop-caches
is 'with vm.extfrag_threshold = 1000: exit status' $status 0
is 'vm.extfrag_threshold afterwards' "$(</proc/sys/vm/extfrag_threshold)" 1000
echo "$threshold" >/proc/sys/vm/extfrag_threshold
echo 0 >$pool

# ---------------------------------------------------------------- bounds

total_mb=$(($(meminfo MemTotal) / 1024))
set_buffers $((total_mb * 9 / 10))MB
run reserve -D "$data"
is 'more than the bounds: exit status' $status 3
ok 'more than the bounds: says so' shows 'No huge page was reserved'
ok 'more than the bounds: why' shows 'why not all +(outside the bounds: at most [0-9]+ pages|.*pool_max_percent)'
is 'more than the bounds: nothing was done' "$(<$pool)" 0
set_buffers 256MB
mkdir /etc/kernel_advisor
echo 'pool_max_percent = 1' >/etc/kernel_advisor/bounds.conf
set_buffers $((total_mb / 20))MB
run reserve -D "$data"
is 'bounds.conf allows less: exit status' $status 3
ok 'bounds.conf allows less: the number' shows "at most $((total_mb * 1024 / 100 / page_kb - 1))|at most $((total_mb * 1024 / 100 / page_kb))"
is 'bounds.conf allows less: nothing was done' "$(<$pool)" 0
set_buffers 256MB
echo 'pool_max_percnt = 5' >/etc/kernel_advisor/bounds.conf
run reserve -D "$data"
is 'a mistake in bounds.conf: exit status' $status 2
ok 'a mistake in bounds.conf: file and line' says '/etc/kernel_advisor/bounds.conf:1: '
echo 'drop_caches = off' >/etc/kernel_advisor/bounds.conf
run reserve -D "$data" --drop-caches
is 'drop_caches = off: exit status' $status 3
chmod 666 /etc/kernel_advisor/bounds.conf
run reserve -D "$data"
is 'bounds.conf that anybody can write: exit status' $status 2
rm -r /etc/kernel_advisor
is 'nothing was done by any of them' "$(<$pool)" 0

# ---------------------------------------------------------------- a part

# The kernel grows a pool by 100 000 pages a second and more, so a millisecond is too little for thousands.
pages_mb=$((total_mb * 25 / 100))
set_buffers ${pages_mb}MB
wanted=$(setting shared_memory_size_in_huge_pages)
run reserve -D "$data" --time-limit 0.001 --json
granted=$(<$pool)
if ((granted > 0 && granted < wanted)); then
	is 'a part: exit status' $status 1
	is 'a part: the outcome' "$(json outcome)" partial
	is 'a part: asked' "$(json pools.0.pages_asked)" "$wanted"
	is 'a part: the report is what the kernel has' "$(json pools.0.pages_granted)" "$granted"
	part=$(json pools.0.change)
	run rollback --list
	ok 'a part: the journal has asked and granted' shows "^ *$part  .* 0 -> $granted +of $wanted "
	run rollback "$part"
	is 'a part, rolled back' "$(<$pool)" 0
	run reserve -D "$data" --time-limit 0.001
	ok 'a part: in words' shows '^Huge pages are reserved in part'
	ok 'a part: why' shows 'why not all +the time limit of 0.001 s was over'
	ok 'a part: the server will tell, and what may help' shows 'with on it does not start.*--drop-caches'
	ok 'and does: it does not start' does_not_start
	echo 0 >$pool
	run reserve -D "$data" --time-limit 0.001 --undo --json
	is '--undo: exit status' $status 3
	is '--undo: nothing is left' "$(<$pool)" 0
	ok '--undo: how far it came' between "$(json pools.0.pages_reached)" 1 $((wanted - 1))
else
	skip 'a part' "the kernel gave $granted of $wanted pages in a millisecond"
	echo 0 >$pool
fi
set_buffers 256MB

# ---------------------------------------------------------------- by a helper

advisord=${KA_ADVISORD:-$PWD/contrib_tools/kernel_advisord/kernel_advisord}
mkdir /run/kernel_advisord
"$advisord" --socket /run/kernel_advisord/socket 2>"$scratch/advisord.log" &
helper=$!
at_exit 'kill $helper || true'
wait_until 20 grep -q 'ready: ' "$scratch/advisord.log" || bail "no helper: $(<"$scratch/advisord.log")"
ok 'the helper read the journal of before' grep -qE 'ready: [1-9][0-9]* changes' "$scratch/advisord.log"
run reserve -D "$data" --json
is 'by the helper: exit status' $status 0
is 'by the helper: by whom' "$(json by)" kernel_advisord
is 'by the helper: the kernel has them' "$(<$pool)" "$needed"
change=$(json pools.0.change)
run rollback --list
ok 'the list has the changes of both ways' shows "^ *$first  "
ok 'and the last one' shows "^ *$change  .*in effect"
status=0
as_user "$cli" rollback "$change" >"$scratch/out" 2>"$scratch/err" || status=$?
is 'the user postgres may roll back through the helper: exit status' $status 0
is 'and did' "$(<$pool)" 0
status=0
as_user env PATH="$PGBIN:$PATH" "$cli" reserve -D "$data" --json >"$scratch/out" 2>"$scratch/err" || status=$?
is 'and reserve: exit status' $status 0
is 'and the kernel has them' "$(<$pool)" "$needed"
status=0
as_user env PATH="$PGBIN:$PATH" "$cli" reserve -D "$data" --estimate --json >"$scratch/out" 2>"$scratch/err" || status=$?
ok 'through the helper anybody learns what compaction could make' between "$(json pools.0.pages_compaction)" 0 100000000
status=0
as_user "$cli" rollback "$change" --force >"$scratch/out" 2>"$scratch/err" || status=$?
is '--force is for root: exit status' $status 2
run rollback --list --socket "$scratch/none"
is 'another socket, where nobody listens: exit status' $status 2
echo 0 >$pool

# the journal has one writer: the daemon does not listen where it is looked for
mv /run/kernel_advisord/socket /run/kernel_advisord/elsewhere
run reserve -D "$data"
is 'a helper that cannot be reached has the journal: exit status' $status 2
ok 'a helper that cannot be reached has the journal: why' says 'journal: another daemon has it'
is 'a helper that cannot be reached has the journal: nothing was done' "$(<$pool)" 0
run reserve -D "$data" --socket /run/kernel_advisord/elsewhere
is 'it can, when it is named: exit status' $status 0
echo 0 >$pool
kill $helper
wait $helper 2>/dev/null || true

# ---------------------------------------------------------------- before each start

# as systemd does it: the line of the drop-in, as root, then the server
line=$(sed -n 's/^ExecStartPre=-+//p' contrib_tools/kernel_advisor/postgresql-reserve.conf)
line=${line/#*\/kernel_advisor /$cli } line=${line//\/var\/lib\/postgresql\/%I/$data}
for round in 1 2; do
	status=0
	PATH=$PGBIN:$PATH eval "$line" >"$scratch/out" 2>"$scratch/err" || status=$?
	is "start $round: ExecStartPre" $status 0
	ok "start $round: huge_pages = on starts" starts
	ok "start $round: on huge pages" on_huge_pages
	ok "start $round: stop" stops
done
is 'the second start found the pages of the first' "$(<$pool)" "$needed"

# a second server beside one that runs gets pages of its own
ok 'the first server runs' starts
first_data=$data data=$scratch/second
as_user "$PGBIN/initdb" -D "$data" -U postgres -A trust --no-sync --locale=C.UTF-8 >"$scratch/initdb.log" 2>&1
printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$PGHOST'" "port = $((PGPORT + 1))" >>"$data/postgresql.conf"
at_exit '[[ ! -f $scratch/second/postmaster.pid ]] || as_user "$PGBIN/pg_ctl" -D "$scratch/second" -m immediate stop'
set_buffers 128MB
run reserve -D "$data" --json
is 'a second server: exit status' $status 0
is 'a second server: the pages of the first are not counted twice' "$(<$pool)" \
	$(($(json pools.0.pages_asked)))
ok 'a second server: more than it needs alone' test "$(<$pool)" -gt "$needed"
ok 'a second server starts beside the first' starts
ok 'on huge pages' on_huge_pages
stops >/dev/null
data=$first_data
stops >/dev/null
finish
