#!/bin/sh
# make-secrets.sh [FOLDER] writes every password, key and certificate of compose.yml to a folder (`secrets` by default), each in
# a file of its own. It needs only openssl. An existing folder is left alone: delete a file's folder only together with the volumes.
#
# make-secrets.sh renew [FOLDER] replaces the certificates of postgres and redis, which last 825 days, and nothing else. It needs
# ca.key in the folder. Restart both servers then.
set -eu
umask 077
command=new
[ "${1:-}" != renew ] || { command=renew; shift; }
dir="${1:-secrets}"

# Issues a certificate for the host name of a server. The former one is replaced at the end.
issue() {
  openssl req -newkey rsa:2048 -nodes -sha256 -subj "/CN=$1" -keyout "$dir/$1.key.new" -out "$dir/$1.csr" 2>/dev/null
  printf 'subjectAltName=DNS:%s,DNS:localhost\nbasicConstraints=CA:FALSE\n' "$1" >"$dir/$1.ext"
  openssl x509 -req -in "$dir/$1.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -CAcreateserial -sha256 -days 825 \
    -extfile "$dir/$1.ext" -out "$dir/$1.crt.new" 2>/dev/null
  rm "$dir/$1.csr" "$dir/$1.ext"
  chmod 644 "$dir/$1.key.new" "$dir/$1.crt.new"
  mv "$dir/$1.key.new" "$dir/$1.key"
  mv "$dir/$1.crt.new" "$dir/$1.crt"
}

if [ "$command" = renew ]; then
  [ -f "$dir/ca.key" ] || { echo "$dir/ca.key is missing, which signs the certificates; nothing was changed" >&2; exit 1; }
  issue postgres
  issue redis
  echo "renewed the certificates of postgres and redis; restart both, and take $dir/ca.key away again"
  exit 0
fi

[ ! -e "$dir" ] || { echo "$dir exists already; nothing was changed" >&2; exit 1; }
acl="$(dirname "$0")/../redis/users.acl"
mkdir -p "$dir"

password() { openssl rand -hex 24; }
sha256() { printf %s "$1" | openssl dgst -sha256 -r | cut -d ' ' -f 1; }
save() { printf '%s\n' "$2" >"$dir/$1"; }

# A private certificate authority, and a certificate for each server.
openssl req -x509 -newkey rsa:3072 -nodes -sha256 -days 3650 -subj "/CN=payment service" \
  -addext "keyUsage=critical,keyCertSign" -keyout "$dir/ca.key" -out "$dir/ca.crt" 2>/dev/null
issue postgres
issue redis

# Postgres: the owner, who migrates, and a login for each role of db/grants.ts.
database_url() { echo "postgres://$1:$2@postgres:5432/pay?sslmode=verify-full&sslrootcert=/run/secrets/ca.crt"; }
owner="$(password)"
save postgres-password "$owner"
save owner-database-url "$(database_url pay "$owner")"
for role in api worker board admin reader; do
  secret="$(password)"
  save "$role-database-url" "$(database_url "pay_$role" "$secret")"
  echo "create role pay_$role login password '$secret';" >>"$dir/logins.sql"
done
# The exporter of Prometheus sees the server's statistics and no table.
secret="$(password)"
save exporter-database-uri "postgres:5432/pay?sslmode=verify-full&sslrootcert=/run/secrets/ca.crt"
save exporter-database-password "$secret"
echo "create role pay_exporter login password '$secret' in role pg_monitor;" >>"$dir/logins.sql"

# Redis: a user for each role of ops/redis/users.acl, which stores only the hashes of the passwords.
cp "$acl" "$dir/users.acl"
for role in api worker board exporter operator; do
  secret="$(password)"
  case "$role" in
    # Versions of the exporter differ in whether the user is part of the name.
    exporter)
      url="redis:6379"
      save exporter-redis-passwords "{\"rediss://$url\": \"$secret\", \"rediss://pay_exporter@$url\": \"$secret\"}"
      ;;
    operator) save operator-redis-password "$secret" ;;
    *) save "$role-redis-url" "rediss://pay_$role:$secret@redis:6379/0" ;;
  esac
  name="$(echo "$role" | tr '[:lower:]' '[:upper:]')_PASSWORD_SHA256"
  sed "s/$name/$(sha256 "$secret")/" "$dir/users.acl" >"$dir/users.acl.new"
  mv "$dir/users.acl.new" "$dir/users.acl"
done

# Key pairs (X25519) for buyer data, webhook secrets and TOTP secrets, as `admin data-keys new` writes them.
key_pair() {
  openssl genpkey -algorithm x25519 -outform DER -out "$dir/pair.der"
  private="$(tail -c 32 "$dir/pair.der" | openssl base64 -A)"
  public="$(openssl pkey -inform DER -in "$dir/pair.der" -pubout -outform DER | tail -c 32 | openssl base64 -A)"
  rm "$dir/pair.der"
  save "$1-private-keys" "first:$private"
  save "$1-public-key" "first:$public"
}
key_pair buyer-data
key_pair webhook
key_pair totp

save grafana-password "$(password)"

# Who receives the heads of the audit logs, for you to fill in: https://user:password@host/path. Empty: no one.
save audit-sink ""
save api-replica-url ""
save signer-audit-sink ""

# The containers run as several users. The folder keeps everyone else on this machine out.
chmod 644 "$dir"/*
chmod 600 "$dir/ca.key"
# For the private keys of the lanes and of the treasury, which the networks files name.
mkdir -m 755 "$dir/lanes" "$dir/treasury"
echo "wrote $dir; keep a copy of $dir/*-private-keys apart from the backups"
