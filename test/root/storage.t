#!/usr/bin/env bash
# File systems and devices under the data directory and pg_wal: XFS on two loop devices, through a symbolic link,
# compared with what findmnt says; bytes written compared with /proc/diskstats.
set -euo pipefail
# shellcheck source=test/root/common.sh
. "$(dirname "$0")/common.sh"

# xfs NAME: a file system of its own on a loop device, mounted at $scratch/NAME
xfs() {
	local name=$1 device
	truncate -s 512M "$scratch/$name.img"
	mkfs.xfs -q -f "$scratch/$name.img" || { say "1..0 # SKIP mkfs.xfs does not work here"; exit 0; }
	device=$(losetup --find --show "$scratch/$name.img") || { say "1..0 # SKIP no loop devices here"; exit 0; }
	at_exit "losetup --detach $device"
	mkdir "$scratch/$name"
	mount -t xfs "$device" "$scratch/$name" || { say "1..0 # SKIP this kernel has no XFS"; exit 0; }
	at_exit "umount $scratch/$name"
	chown postgres: "$scratch/$name"
}

# The other tool's answer.
filesystem_of() { findmnt -no FSTYPE -T "$1"; }
device_of() { basename "$(findmnt -no SOURCE -T "$1")"; }
in_diskstats() { awk -v device="$1" '$3 == device { found = 1 } END { exit !found }' /proc/diskstats; }
written() { awk '$3 == "'"$1"'" || $3 == "'"$2"'" { sectors += $10 } END { printf "%.0f\n", sectors * 512 }' /proc/diskstats; }
cli_fact() { python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["storage"][sys.argv[1]][sys.argv[2]])' "$@"; }
close_to() { (($1 * 100 >= $2 * 98 && $1 * 100 <= $2 * 102)) || { say "$1 differs from $2 by more than 2 %"; return 1; }; }

xfs cluster
xfs log
data=$scratch/cluster/data
make_server --waldir="$scratch/log/wal"
printf '%s\n' 'kernel_advisor.sample_interval = 100ms' >>"$data/postgresql.conf"
server start >/dev/null || bail "the server does not start: $(tail -n 3 "$scratch/server.log")"
query -c 'CREATE EXTENSION pg_kernel_advisor'

data_device=$(device_of "$data") wal_device=$(device_of "$scratch/log/wal")
ok 'two devices' test "$data_device" != "$wal_device"
for part in data wal; do
	if [[ $part == data ]]; then path=$data; else path=$data/pg_wal/; fi
	is "$part: file system" "$(fact storage.$part.filesystem)" "$(filesystem_of "$path")"
	is "$part: device" "$(fact storage.$part.device)" "$(device_of "$path")"
	ok "$part: the device is in diskstats" in_diskstats "$(fact storage.$part.device)"
done
is 'the file system is the one made here' "$(fact storage.data.filesystem)" xfs

# the same from outside, for a server that may be down
facts=$(as_user env PATH="$PGBIN:$PATH" "$cli" facts -D "$data") || bail "facts -D fails"
is 'command line: device of the data directory' "$(cli_fact data device <<<"$facts")" "$data_device"
is 'command line: device of pg_wal' "$(cli_fact wal device <<<"$facts")" "$wal_device"
is 'command line: file system of pg_wal' "$(cli_fact wal filesystem <<<"$facts")" xfs

# a data directory that is itself reached through a link
ln -s "$data" "$scratch/link"
facts=$(as_user env PATH="$PGBIN:$PATH" "$cli" facts -D "$scratch/link") || bail "facts -D fails through a link"
is 'through a link: device of the data directory' "$(cli_fact data device <<<"$facts")" "$data_device"

# a root directory that is no mount point, so that the mount of the data is on no list: the file's own number tells the device
plain=$scratch/plain
mkdir -p "$plain"/{usr,proc,sys,data/pg_wal}
for link in bin lib lib64; do ln -s usr/$link "$plain/$link"; done
cp "$data/PG_VERSION" "$plain/data/"
mkdir "$plain/advisor"
cp "$cli" "$plain/advisor/"
facts=$(unshare --mount sh -c 'mount --bind /usr "$1/usr" && mount --rbind /proc "$1/proc" && mount --rbind /sys "$1/sys" &&
	chroot "$1" /advisor/kernel_advisor facts -D /data' sh "$plain") || bail "facts -D fails in another root directory"
is 'in a chroot: device of the data directory' "$(cli_fact data device <<<"$facts")" "$(device_of "$plain")"

# bytes that the samples saw, against the kernel's counters read here
settle() { sync -f "$scratch/cluster"; sync -f "$scratch/log"; sleep 0.5; }
settle
from=$(query -c 'SELECT now()')
first=$(written "$data_device" "$wal_device")
query -c "CREATE TABLE load AS SELECT g, repeat('x', 500) AS filler FROM generate_series(1, 100000) AS g" -c CHECKPOINT
settle
last=$(written "$data_device" "$wal_device")
sampled=$(query -c "SELECT coalesce(sum(write_bytes), 0) FROM kernel_advisor.samples WHERE at > '$from'")
ok 'the load wrote more than 50 MB' test $((last - first)) -gt 50000000
ok "samples: $sampled bytes; diskstats: $((last - first))" close_to "$sampled" $((last - first))
ok 'the checkpoint has its share' test "$(query -c "SELECT write_bytes FROM kernel_advisor.checkpoints
	WHERE started_at > '$from' AND kind = 'requested'")" -gt 0
server -m fast stop >/dev/null
finish
