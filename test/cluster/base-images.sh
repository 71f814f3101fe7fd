#!/usr/bin/env bash
# Builds the base images of the cluster tests without an image registry: from Debian packages, and from the Node and npm of this
# machine. Needs root, buildah and debootstrap. Prints the names of the images as shell variables:
#   BUILD_IMAGE  Debian with npm, replaces node:26-trixie-slim
#   RUN_IMAGE    only Node and its libraries, replaces the distroless image nodejs26
#   DATA_IMAGE   Debian's Postgres and Redis, replaces postgres and redis; the same image as BUILD_IMAGE
# Existing images are used again.
set -euo pipefail
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=${STORAGE_DRIVER:-overlay}

node=$(readlink -f "$(command -v "${NODE:-node}")")
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
[ "$("$node" -p 'process.versions.node.split(".")[0] >= 26')" = true ] || { echo "base-images.sh: $node is older than 26" >&2; exit 1; }
# shellcheck disable=SC1091
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
# The mirror that this machine uses.
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $suite" | sed -n 1p)}
tag=$( (cat "$0"; "$node" --version; cat "$npm/package.json"; echo "$suite") | sha256sum | head -c 12)
debian=localhost/formgate-tests/debian:$tag
distroless=localhost/formgate-tests/nodejs:$tag

command -v buildah >/dev/null || { echo 'buildah is missing. Install it.' >&2; exit 1; }
present() { buildah inspect --type image "$1" >/dev/null 2>&1; }

if ! present "$debian" || ! present "$distroless"; then
  command -v debootstrap >/dev/null ||
    { echo 'debootstrap is missing. Install it, or set BUILD_IMAGE, RUN_IMAGE and DATA_IMAGE.' >&2; exit 1; }
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  root=$work/debian
  debootstrap --variant=minbase --include=postgresql,redis-server,ca-certificates,libatomic1 "$suite" "$root" "$mirror" >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log" >&2; exit 1; }
  # Remove documents, package lists and Postgres's just-in-time compiler, which it does not need.
  rm -rf "$root"/var/cache/apt "$root"/var/lib/apt/lists "$root"/usr/share/{doc,man,locale,info} "$root"/var/lib/postgresql/*/main
  find "$root/usr/lib" \( -name 'libLLVM*' -o -name 'llvmjit*' -o -name 'libz3.so*' \) -delete
  find "$root/usr/lib/postgresql" -name bitcode -prune -exec rm -rf {} +
  mkdir -p "$root"/{nodejs/bin,usr/local/lib/node_modules}
  cp "$node" "$root/nodejs/bin/node"
  ln -s ../../../nodejs/bin/node "$root/usr/local/bin/node"
  cp -r "$npm" "$root/usr/local/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
  certificates=$work/ca-certificates.crt
  cp "$root/etc/ssl/certs/ca-certificates.crt" "$certificates"
  # npm must trust the same authorities as this machine.
  if [ -e "${NODE_EXTRA_CA_CERTS:-}" ]; then cat "$NODE_EXTRA_CA_CERTS" >>"$root/etc/ssl/certs/ca-certificates.crt"; fi
  if [ -e /etc/ssl/certs/ca-certificates.crt ]; then cat /etc/ssl/certs/ca-certificates.crt >>"$root/etc/ssl/certs/ca-certificates.crt"; fi
  # The same user ids as in the chart's default images.
  sed -i -E '/^(postgres|redis):/d' "$root/etc/passwd"
  echo 'postgres:x:999:999::/var/lib/postgresql:/bin/sh' >>"$root/etc/passwd"

  # Node with its libraries, user names and certificates.
  slim=$work/nodejs
  mkdir -p "$slim"/{nodejs/bin,etc/ssl/certs,home/nonroot,lib64,tmp}
  chmod 1777 "$slim/tmp"
  cp "$node" "$slim/nodejs/bin/node"
  for library in $(chroot "$root" ldd /nodejs/bin/node | grep -oE '/[^ ]+' | sort -u) \
    $(cd "$root" && find usr/lib -name 'libnss_dns.so.2' -o -name 'libnss_files.so.2' -o -name 'libresolv.so.2'); do
    real=$(chroot "$root" readlink -f "/${library#/}")
    mkdir -p "$slim$(dirname "/${library#/}")"
    cp "$root$real" "$slim/${library#/}"
  done
  cp "$certificates" "$slim/etc/ssl/certs/"
  echo 'hosts: files dns' >"$slim/etc/nsswitch.conf"
  echo 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin' >"$slim/etc/passwd"
  echo 'nonroot:x:65532:' >"$slim/etc/group"
  chown 65532:65532 "$slim/home/nonroot"

  commit() { # folder name config...
    local container
    container=$(buildah from scratch)
    buildah copy -q "$container" "$1" / >/dev/null
    buildah config "${@:3}" "$container"
    buildah commit -q "$container" "$2" >/dev/null
    buildah rm "$container" >/dev/null
  }
  commit "$root" "$debian" --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    --env NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
  commit "$slim" "$distroless" --user 65532 --workingdir /home/nonroot --entrypoint '["/nodejs/bin/node"]' \
    --env SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
fi
printf 'BUILD_IMAGE=%s\nRUN_IMAGE=%s\nDATA_IMAGE=%s\n' "$debian" "$distroless" "$debian"
