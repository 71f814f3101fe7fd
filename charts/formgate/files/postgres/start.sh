#!/bin/sh
# Starts Postgres for a trial: makes the cluster at the first start, and at every start the roles and databases of the
# services, with the passwords of the Secret. It listens for nobody before that.
set -eu
umask 077
for folder in /usr/lib/postgresql/*/bin; do PATH=$PATH:$folder; done
export PATH
data=/var/lib/postgresql/formgate
sockets=/var/run/postgresql
secrets=/etc/formgate-secrets
hba=/etc/formgate/pg_hba.conf

if [ ! -e "$data/PG_VERSION" ]; then
  # What a crash left half made is made again.
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

# Kubernetes ends a pod by SIGTERM, on which Postgres would wait for its clients.
stop() { kill -INT "$server"; }
postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories="$sockets" -c hba_file="$hba" &
server=$!
trap stop TERM INT
code=0
wait "$server" || code=$?
# A trap ends the first wait; the server is still stopping then.
while kill -0 "$server" 2>/dev/null; do wait "$server" && code=0 || code=$?; done
exit "$code"
