#!/usr/bin/env bash
# kernel_advisor_contiguity on this kernel: files on XFS and ext4, memory that lies in a known way, what it refuses;
# each number against a second reader (contiguity_check.py), requests against the device's own count.
# Changes vm.nr_hugepages and puts it back.  A quarter of a minute.
set -euo pipefail
# shellcheck source=test/root/common.sh
. "$(dirname "$0")/common.sh"

tool=${KA_CONTIGUITY:-$PWD/contrib_tools/contiguity/kernel_advisor_contiguity}
check=$PWD/test/root/contiguity_check.py
page=$(getconf PAGESIZE)
"$tool" file /proc/self/exe >/dev/null 2>"$scratch/why" || true
if grep -q 'hides page frame numbers\|CONFIG_PROC_PAGE_MONITOR' "$scratch/why"; then say "1..0 # SKIP $(<"$scratch/why")"; exit 0; fi
command -v fincore >/dev/null || { say '1..0 # SKIP no fincore'; exit 0; }
gcc -std=gnu11 -O2 -Wall -Wextra -Werror -o "$scratch/map" test/root/contiguity_map.c

# value KEY.KEY...: of the last JSON; a list as JSON
value() { awk -v key="$1" -F '\t' '$1 == key { print $2 }' "$scratch/flat"; }
# true_of EXPRESSION: of the last JSON, called d
true_of() { python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))' "$scratch/json" "$1" || { cat "$scratch/json"; return 1; }; }
json() {
	local status=0
	"$tool" "$@" --json >"$scratch/json" || status=$?
	python3 -c 'import json, sys
def flat(name, value):
    if isinstance(value, dict):
        for key in value: flat(f"{name}.{key}" if name else key, value[key])
    else: print(name, value if isinstance(value, str) else json.dumps(value), sep="\t")
flat("", json.load(sys.stdin))' <"$scratch/json" >"$scratch/flat"
	return $status
}
as_counted_here() { python3 "$check" "$@" <"$scratch/json"; }
uncache() { sync "$1"; dd if="$1" iflag=nocache count=0 status=none; }
cached() { fincore --bytes --noheadings --output PAGES "$1" | tr -d ' '; }

# refused NAME TEXT ARGUMENT...: exit status 2, and a message with the text
refused() {
	local name=$1 text=$2 status=0 said
	shift 2
	said=$("$tool" "$@" 2>&1) || status=$?
	is "$name: exit status" $status 2
	ok "$name: $text" grep -q -- "$text" <<<"$said"
}

# filesystem TYPE: on a loop device, mounted at $scratch/TYPE; false where there is none
filesystem() {
	local device
	truncate -s 2G "$scratch/$1.img"
	"mkfs.$1" -q "$scratch/$1.img" >/dev/null 2>&1 || return 1
	device=$(losetup --find --show "$scratch/$1.img") || return 1
	at_exit "losetup --detach $device"
	mkdir "$scratch/$1"
	mount -t "$1" "$device" "$scratch/$1" || return 1
	at_exit "umount $scratch/$1"
}

# hold KIND ARGUMENT: memory of contiguity_map; sets pid and range
hold() {
	release
	coproc MAP { "$scratch/map" "$@"; }
	map_pid=$MAP_PID
	read -r pid range <&"${MAP[0]}" || return 1
}
map_pid=
release() {
	[[ -n $map_pid ]] || return 0
	kill "$map_pid" 2>/dev/null || true
	wait "$map_pid" 2>/dev/null || true
	map_pid=
}
at_exit release

# ---- files

for type in xfs ext4; do
	if ! filesystem $type; then skip "$type" "cannot be made here"; continue; fi
	file=$scratch/$type/file
	dd if=/dev/zero of="$file" bs=1M count=16 status=none
	sync "$file"
	json file "$file"
	pages=$((16 * 1024 * 1024 / page))
	is "$type: pages of the file" "$(value memory.pages)" $pages
	is "$type: in memory" "$(value memory.present)" $pages
	ok "$type: as counted here" as_counted_here "$file"
	queue=/sys/block/$(device=$(findmnt -no SOURCE -T "$file"); say "${device##*/}")/queue
	is "$type: file system" "$(value device.filesystem)" "$type"
	is "$type: max_segments" "$(value device.max_segments)" "$(<"$queue/max_segments")"
	is "$type: max_segment_size" "$(value device.max_segment_bytes)" "$(<"$queue/max_segment_size")"
	is "$type: max_sectors_kb" "$(value device.max_request_bytes)" $(($(<"$queue/max_sectors_kb") * 1024))
	is "$type: all of it would be written" "$(value write.bytes)" $((16 * 1024 * 1024))
	ok "$type: where it lies on the disk is known" true_of 'd["extents_known"]'

	# a part of it in memory, in single pages; looking at it changes nothing
	uncache "$file"
	dd if="$file" of="$scratch/read" bs=$page skip=100 count=20 status=none
	before=$(cached "$file")
	json file "$file"
	is "$type: pages in memory, as fincore has them" "$(value memory.present)" "$before"
	ok "$type: not all of it" test "$before" -lt $pages
	is "$type: looking brings nothing into memory" "$(cached "$file")" "$before"
	uncache "$file"
	status=0
	json file "$file" || status=$?
	is "$type: nothing in memory: exit status" $status 1
	is "$type: nothing in memory" "$(value memory.present)" 0
	is "$type: and nothing to say of the order" "$(value memory.runs.order)" null
done

# ---- mappings of a known order

if [[ -d $scratch/xfs ]]; then
	file=$scratch/xfs/file
	dd if=/dev/zero of="$file" bs=1M count=16 status=none
	json file "$file"
	ok 'written by 1 MB: ascending' true_of 'd["memory"]["runs"]["order"] == "ascending"'
	cp "$scratch/json" "$scratch/forwards"
	hold reverse "$file"
	json process "$pid" "$range"
	ok 'backwards: descending' true_of 'd["memory"]["runs"]["order"] == "descending"'
	ok 'backwards: as counted here' as_counted_here "$pid" "$range"
	ok 'backwards: what ascended descends' python3 -c 'import json, sys
a, b = (json.load(open(name))["memory"] for name in sys.argv[1:])
same = lambda x, y: abs(x - y) < 0.01
sys.exit(not (same(a["runs"]["ascending_share"], b["runs"]["descending_share"]) and
	a["runs"]["longest_pages"] == b["runs"]["longest_pages"] and
	{o["order"]: o["pages"] for o in a["folios"]["orders"]} == {o["order"]: o["pages"] for o in b["folios"]["orders"]}))' \
		"$scratch/forwards" "$scratch/json"
	hold scatter "$file"
	json process "$pid" "$range"
	ok 'scattered' true_of 'd["memory"]["runs"]["order"] == "scattered"'
	ok 'scattered: single pages' true_of 'd["memory"]["runs"]["single_share"] > 0.95 and d["memory"]["runs"]["median_pages"] == 1'
	ok 'scattered: as counted here' as_counted_here "$pid" "$range"
fi

huge_kb=$(meminfo Hugepagesize)
pool=/proc/sys/vm/nr_hugepages
if [[ -n $huge_kb && -w $pool ]]; then
	keep_kernel_file $pool
	echo $(($(<$pool) + 4)) >$pool
fi
if [[ -n $huge_kb ]] && hold hugetlb 4 2>/dev/null; then
	per_page=$((huge_kb * 1024 / page))
	order=$(python3 -c "print(($per_page).bit_length() - 1)")
	json process "$pid"
	is 'huge pages: the largest shared memory is found' "$(value range)" "$range"
	is 'huge pages: all in memory' "$(value memory.present)" $((4 * per_page))
	is "huge pages: all of order $order" "$(value memory.folios.orders)" \
		"[{\"order\": $order, \"pages\": $((4 * per_page)), \"folios\": 4}]"
	is 'huge pages: counted as such' "$(value memory.folios.hugetlb_pages)" $((4 * per_page))
	ok 'huge pages: as counted here' as_counted_here "$pid" "$range"
	mkdir "$scratch/hugetlbfs"
	if mount -t hugetlbfs none "$scratch/hugetlbfs"; then
		at_exit "umount $scratch/hugetlbfs"
		fallocate -l $((huge_kb * 1024)) "$scratch/hugetlbfs/file" 2>/dev/null || : >"$scratch/hugetlbfs/file"
		refused 'hugetlbfs' 'look at a process' file "$scratch/hugetlbfs/file"
	fi
	release
else
	skip 'huge pages' 'no pool of four huge pages can be had'
fi

if hold thp 4 && (($(awk -v from="${range%-*}" '$1 ~ "^" from "-" { here = 1 } here && /^AnonHugePages:/ { print $2; exit }' "/proc/$pid/smaps") == 8192)); then
	json process "$pid" "$range"
	is 'transparent huge pages: order 9' "$(value memory.folios.orders)" '[{"order": 9, "pages": 2048, "folios": 4}]'
	is 'transparent huge pages: counted as such' "$(value memory.folios.thp_pages)" 2048
	is 'transparent huge pages: no others' "$(value memory.folios.hugetlb_pages)" 0
	ok 'transparent huge pages: as counted here' as_counted_here "$pid" "$range"
else
	skip 'transparent huge pages' 'none of 2 MB can be had'
fi

# memory that another process touched, and is gone
hold shared 3000
json process "$pid"
is 'shared memory: as a whole' "$(value whole)" true
is 'shared memory: all of it' "$(value memory.present)" 3000
ok 'shared memory: single pages' true_of '[o["order"] for o in d["memory"]["folios"]["orders"]] == [0]'
status=0
json process "$pid" "$range" || status=$?
is 'what this process mapped of it: nothing' "$status $(value memory.present)" '1 0'
release

# ---- the kernel, and requests

json kernel --dir "$scratch" --size 8 || true
ok 'kernel: six kinds, each with all of its pages' true_of \
	"len(d['rows']) == 6 and all(r['missing'] is None and r['found']['present'] == 8 * 1024 * 1024 // $page for r in d['rows'])"
if [[ $(value order) != null ]]; then
	# true of every kernel since 2017
	is 'kernel: fresh blocks in ascending order' "$(value order)" ascending
else
	skip 'kernel: fresh blocks in ascending order' 'too little memory to use up recycled pages'
fi
if [[ -d $scratch/xfs ]]; then
	rm -f "$scratch/xfs/file"
	status=0
	json measure "$scratch/xfs" --size 32 || status=$?
	ok 'measure: a status of 0, or 1' test $status -le 1
	ok 'measure: what was written reached the device' true_of '32 << 20 <= d["as_found"]["device_bytes"] <= 34 << 20'
	ok 'measure: no fewer requests than predicted, and not twice as many' true_of \
		'all(p["predicted"]["requests"] <= p["requests"] <= 2 * p["predicted"]["requests"] + 4 for p in (d["as_found"], d["fresh_blocks"]))'
	ok 'measure: mean of the requests' true_of \
		'all(abs(p["mean_request_bytes"] - p["device_bytes"] / p["requests"]) < 1 for p in (d["as_found"], d["fresh_blocks"]))'
	is 'measure: nothing is left behind' "$(ls "$scratch/xfs")" ''
	if ((status == 0)); then
		ok 'measure: contiguous memory makes no fewer bytes a request' true_of \
			'd["fresh_blocks"]["contiguous"] and d["fresh_blocks"]["mean_request_bytes"] >= 0.95 * d["as_found"]["mean_request_bytes"]'
		"$tool" measure "$scratch/xfs" --size 32 --facts >"$scratch/json" || true
		ok 'facts: the advisor takes them' "$cli" advise --facts "$scratch/json"
		# the same machine with a mean of half of it and no large block
		python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
d["fragmentation"]["unusable_index_order4"] = 1
d["window"]["write_request_bytes_avg"] = d["window"]["write_request_bytes_unfragmented"] / 2
json.dump(d, open(sys.argv[1], "w"))' "$scratch/json"
		"$cli" advise --json --facts "$scratch/json" >"$scratch/advice" || true
		ok 'facts: the rule io.contiguity reads them' grep -q '"io.contiguity"' "$scratch/advice"
	else
		skip 'measure: contiguous memory' 'no large blocks, or others wrote meanwhile'
	fi
fi

# ---- what it refuses

refused 'a directory' 'not a regular file' file "$scratch"
mkfifo "$scratch/fifo"
refused 'a pipe' 'not a regular file' file "$scratch/fifo"
refused 'no such file' 'No such file' file "$scratch/none"
refused 'no such process' 'not there' process 4194300
refused 'a word for a number' 'not the number of a process' process self
refused 'a range that is none' 'not a range' process $$ 7000-1000
refused 'a range within a page' 'not a range' process $$ 1001-3000
refused 'an option of another command' 'not an option of this command' file /etc/passwd --facts
refused 'a size that is none' 'whole number' measure "$scratch" --size 1e3
refused 'nothing' 'a command is missing'
mkdir "$scratch/tmpfs"
mount -t tmpfs tmpfs "$scratch/tmpfs"
at_exit "umount $scratch/tmpfs"
refused 'measuring on tmpfs' 'no block device' measure "$scratch/tmpfs"
dd if=/dev/zero of="$scratch/tmpfs/file" bs=$page count=10 status=none
json file "$scratch/tmpfs/file"
is 'a file on tmpfs: in memory' "$(value memory.present)" 10
is 'a file on tmpfs: no device' "$(value device.name) $(value write)" 'null null'
status=0
said=$(as_user "$tool" file /etc/passwd 2>&1) || status=$?
is 'without root: exit status' $status 2
ok 'without root: says so' grep -q 'run this as root' <<<"$said"
if unshare --user --map-root-user true 2>/dev/null; then
	status=0
	said=$(setpriv --bounding-set -sys_admin unshare --user --map-root-user "$tool" file /etc/passwd 2>&1) || status=$?
	is 'root of a container: exit status' $status 2
	ok 'root of a container: says so' grep -q 'run this on the host' <<<"$said"
fi

if man --version >/dev/null 2>&1; then
	is 'the man page has no mistakes' "$(MANROFFSEQ= LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$tool.8" 2>&1 >/dev/null)" ''
fi
finish
