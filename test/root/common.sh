# shellcheck shell=bash
# common.sh: what the tests that need root share: a private server of the unprivileged user postgres, and a
# clean-up that runs however the test ends.  PG_CONFIG names the server that has the extension.

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=contrib_tools/lib.sh
. contrib_tools/lib.sh
# shellcheck source=test/tap.sh
. test/tap.sh

((EUID == 0)) || { say "1..0 # SKIP needs root"; exit 0; }
PG_CONFIG=${PG_CONFIG:-pg_config}
PGBIN=$("$PG_CONFIG" --bindir)
cli=${KA_CLI:-$PWD/contrib_tools/kernel_advisor/kernel_advisor}
unset PGSERVICE PGOPTIONS

scratch=$(mktemp -d /var/tmp/pg_kernel_advisor-root.XXXXXX)
chmod 755 "$scratch"
chown postgres: "$scratch"
install -d -o postgres -m 700 "$scratch/socket"
export PGHOST=$scratch/socket PGPORT=54322 PGUSER=postgres PGDATABASE=postgres
data=$scratch/data

undo=() # commands, the last one first
at_exit() { undo=("$1" "${undo[@]}"); }
clean_up() {
	local status=$? command
	for command in "${undo[@]}"; do eval "$command" >/dev/null 2>&1 || note "clean-up failed: $command"; done
	rm -rf --one-file-system "$scratch"
	exit $status
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

query() { "$PGBIN/psql" -XAtq -v ON_ERROR_STOP=1 "$@"; }
fact() { query -c "SELECT kernel_advisor.facts() #>> '{${1//./,}}'"; }
server() { as_user "$PGBIN/pg_ctl" -D "$data" -l "$scratch/server.log" -w "$@"; }
setting() { as_user "$PGBIN/postgres" -D "$data" -C "$1" 2>/dev/null; }

# make_server [initdb's options]
make_server() {
	as_user "$PGBIN/initdb" -D "$data" -U postgres -A trust --no-sync --locale=C.UTF-8 "$@" >"$scratch/initdb.log" 2>&1 ||
		bail "initdb: $(<"$scratch/initdb.log")"
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$PGHOST'" "port = $PGPORT" \
		"shared_preload_libraries = 'pg_kernel_advisor'" "shared_buffers = ${shared_buffers:-128MB}" >>"$data/postgresql.conf"
	at_exit '[[ ! -f $data/postmaster.pid ]] || server -m immediate stop'
}
