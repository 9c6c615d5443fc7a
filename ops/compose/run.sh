#!/bin/sh
# The entry point of the image: `docker run <image> worker`. `exec` makes Node the process that receives the signals.
set -eu
role="${1:-api}"
[ $# -gt 0 ] && shift
case "$role" in
  # With room for short-lived objects, V8 collects garbage less often.
  api | worker | signer | bull-board | migrate | admin | reconcile | preflight)
    exec node --min-semi-space-size=16 --max-semi-space-size=32 "/app/dist/$role.js" "$@"
    ;;
  node | sh) exec "$role" "$@" ;;
  *)
    echo "unknown command '$role'; expected api, worker, signer, bull-board, migrate, admin, reconcile or preflight" >&2
    exit 64
    ;;
esac
