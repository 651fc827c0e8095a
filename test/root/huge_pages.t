#!/usr/bin/env bash
# Huge pages really on, really fallen back, and a pool that is a little too small: what facts() and advise() say of
# each, and whether following the advice works.  Changes vm.nr_hugepages and puts it back.
set -euo pipefail
# shellcheck source=test/root/common.sh
. "$(dirname "$0")/common.sh"

pool=/proc/sys/vm/nr_hugepages
page_kb=$(awk '/^Hugepagesize:/ { print $2 }' /proc/meminfo)
free_pages() { awk '/^HugePages_Free:/ { print $2 }' /proc/meminfo; }

[[ -w $pool && -n $page_kb ]] || { say "1..0 # SKIP this kernel has no huge pages, or vm.nr_hugepages cannot be written here"; exit 0; }
before=$(<$pool)
(($(free_pages) == before)) || { say "1..0 # SKIP others use the pool of $before huge pages"; exit 0; }
at_exit "echo $before >$pool"

# reserve PAGES: all of them, or the test cannot be done
reserve() {
	local try
	for try in 1 2 3; do
		echo "$1" >$pool
		(($(<$pool) != $1)) || return 0
		sync
		echo 3 >/proc/sys/vm/drop_caches
		echo 1 >/proc/sys/vm/compact_memory
	done
	skip 'the rest' "memory is too fragmented for $1 huge pages, tried $try times"
	finish
	exit
}

rows() { query -c "SELECT count(*) FROM kernel_advisor.advice WHERE $1"; }
advised_pages() {
	query -c "SELECT recommended FROM kernel_advisor.advice
		WHERE subject = 'vm.nr_hugepages' AND recommended IS NOT NULL ORDER BY rule LIMIT 1"
}
between() { [[ $1 =~ ^[0-9]+$ ]] && (($1 >= $2 && $1 <= $3)) || { say "${1:-nothing} is not in $2..$3"; return 1; }; }
starts() {
	printf 'huge_pages = %s\n' "$1" >"$data/postgresql.auto.conf"
	server start
}
does_not_start() { ! starts "$1"; }

shared_buffers=1GB # with 128 MB huge pages are not worth a word
make_server
asked=$(setting shared_memory_size_in_huge_pages) # the server's own number; one too many where it divides
version=$(setting server_version_num)
if ((version >= 170000)); then source=guc; else source=mapping; fi

# on
reserve "$asked"
ok 'huge_pages = on starts with a pool of the size the server asks for' starts on
query -c 'CREATE EXTENSION pg_kernel_advisor'
is 'the kernel shows huge pages in the mapping' "$(kernel_says)" on
is 'huge_pages_status' "$(fact postgres.huge_pages_status)" on
is 'and where it is known from' "$(fact postgres.huge_pages_status_source)" "$source"
is 'the total of the pool' "$(query -c "SELECT p->>'total' FROM jsonb_array_elements(kernel_advisor.facts() #> '{hugepages,pools}') AS p
	WHERE (p->>'size_bytes')::bigint = $page_kb * 1024::bigint")" "$asked"
is 'no word of a fallback or of a short pool' \
	"$(rows "rule IN ('huge_pages.fallback', 'huge_pages.pool_short') AND severity IN ('critical', 'warning')")" 0
is 'nor that the pool is wasted' "$(rows "rule = 'huge_pages.pool_wasted' AND severity IN ('critical', 'warning')")" 0
bytes=$(fact postgres.shared_memory_bytes)
needed=$(((bytes + page_kb * 1024 - 1) / (page_kb * 1024)))
most=$((needed + 1 > needed * 101 / 100 ? needed + 1 : needed * 101 / 100))
server -m fast stop >/dev/null

# fallen back
echo 0 >$pool
ok 'huge_pages = try starts without a pool' starts try
is 'the kernel shows small pages' "$(kernel_says)" off
is 'huge_pages_status' "$(fact postgres.huge_pages_status)" off
is 'and where it is known from' "$(fact postgres.huge_pages_status_source)" "$source"
is 'the fallback is an advice' "$(rows "rule = 'huge_pages.fallback' AND severity IN ('critical', 'warning')")" 1
advised=$(advised_pages)
ok "the number of pages: $advised" between "$advised" "$needed" "$most"
[[ -n $advised ]] || { finish; exit; }
server -m fast stop >/dev/null

# the advice, followed
reserve "$advised"
ok 'huge_pages = on starts with the recommended pool' starts on
is 'on huge pages' "$(fact postgres.huge_pages_status)" on
server -m fast stop >/dev/null
reserve $((needed - 1))
ok 'and does not with a page less than needed' does_not_start on

# a pool that is a little too small
reserve $((needed - 3))
ok 'huge_pages = try starts with a pool that is 3 pages short' starts try
is 'the kernel shows small pages' "$(kernel_says)" off
is 'huge_pages_status' "$(fact postgres.huge_pages_status)" off
is 'the short pool is an advice' "$(rows "rule = 'huge_pages.pool_short' AND severity IN ('critical', 'warning')")" 1
ok "the number of pages: $(advised_pages)" between "$(advised_pages)" "$needed" "$most"
server -m fast stop >/dev/null

# a server that does not start: the command line tool says why
echo 0 >$pool
: >"$scratch/server.log"
ok 'huge_pages = on does not start without a pool' does_not_start on
# as a person would: the error text, copied from the log, hint and all
error=$(grep -A 1 -m 1 FATAL "$scratch/server.log")
for way in without with; do
	arguments=(doctor -D "$data")
	[[ $way == without ]] || arguments+=(--error "$error")
	status=0
	output=$(as_user env PATH="$PGBIN:$PATH" "$cli" "${arguments[@]}" 2>&1) || status=$?
	is "doctor $way the error text: exit status" $status 1
	number=$(sed -n 's/.*vm\.nr_hugepages *= *\([0-9]*\).*/\1/p; s/.*vm\.nr_hugepages[^0-9]*-> *\([0-9]*\).*/\1/p' <<<"$output" | head -1)
	ok "doctor $way the error text names the number of pages" between "$number" "$needed" "$most"
	((tap_failed == 0)) || note "$output"
done
finish
