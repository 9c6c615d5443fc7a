#!/bin/sh
# The entry point of the image: `docker run <image> worker`. `exec` makes Node the process that receives the signals.
set -eu
role="${1:-api}"
[ $# -gt 0 ] && shift
case "$role" in
  api) exec node /app/api/main.ts "$@" ;;
  worker) exec node /app/workers/main.ts "$@" ;;
  bull-board) exec node /app/ops/bull-board/main.ts "$@" ;;
  migrate) exec node /app/db/main.ts migrate "$@" ;;
  node | sh) exec "$role" "$@" ;;
  *)
    echo "unknown command '$role'; expected api, worker, bull-board or migrate" >&2
    exit 64
    ;;
esac
