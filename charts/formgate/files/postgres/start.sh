#!/bin/sh
# Starts Postgres for trials. The first start runs initdb. Every start creates missing roles and databases of the
# services, and sets the passwords from the Secret. Only then does Postgres listen on the network.
set -eu
umask 077
for folder in /usr/lib/postgresql/*/bin; do PATH=$PATH:$folder; done
export PATH
data=/var/lib/postgresql/formgate
sockets=/var/run/postgresql
secrets=/etc/formgate-secrets
hba=/etc/formgate/pg_hba.conf

if [ ! -e "$data/PG_VERSION" ]; then
  # Starts again if a crash interrupted an earlier initdb.
  rm -rf "$data.new"
  initdb --pgdata="$data.new" --username=postgres --auth-local=trust --auth-host=reject --encoding=UTF8 --locale=C.UTF-8
  rm -rf "$data"
  mv "$data.new" "$data"
fi

pg_ctl start -w -t 300 -D "$data" -o "-c listen_addresses='' -c unix_socket_directories=$sockets -c hba_file=$hba"
for role in forms token_handler platform_server; do
  psql -X -q -v ON_ERROR_STOP=1 -h "$sockets" -U postgres -d postgres \
    -v role="$role" -v password="$(cat "$secrets/$role-password")" -f /etc/formgate/role.sql
done
pg_ctl stop -w -m fast -D "$data"

# Kubernetes stops a pod with SIGTERM, on which Postgres would wait until its clients disconnect. On SIGINT, it closes
# their connections.
stop() { kill -INT "$server"; }
# During an upgrade, old and new pods use up to 170 connections together (docs/operations.md, Sizing).
postgres -D "$data" -c max_connections=200 -c listen_addresses='*' \
  -c unix_socket_directories="$sockets" -c hba_file="$hba" &
server=$!
trap stop TERM INT
code=0
wait "$server" || code=$?
# A trapped signal interrupts the first wait while the server is still stopping.
while kill -0 "$server" 2>/dev/null; do wait "$server" && code=0 || code=$?; done
exit "$code"
