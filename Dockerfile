# The image of all processes: docker build -t formgate .
# Both base images are arguments, so that you can use mirrors or your own images. BUILD_IMAGE needs npm and a shell.
# RUN_IMAGE needs /nodejs/bin/node, version 26 or newer, but no shell and no package manager.
ARG BUILD_IMAGE=docker.io/library/node:26-trixie-slim
ARG RUN_IMAGE=gcr.io/distroless/nodejs26-debian13:nonroot

FROM ${BUILD_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY web/package.json ./web/
# To use another registry than npm's, build with --secret id=npmrc,src=$HOME/.npmrc
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc \
    npm ci --omit=dev --omit=optional --omit=peer --ignore-scripts --no-audit --no-fund --cache=/tmp/npm \
 && rm -rf node_modules/.package-lock.json node_modules/formgate-web /tmp/npm

# Builds the pages. The built pages need no packages at run time.
FROM ${BUILD_IMAGE} AS pages
WORKDIR /app
COPY package.json package-lock.json tsconfig.json .npmrc ./
COPY web/package.json ./web/
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc \
    npm ci --workspace=web --ignore-scripts --no-audit --no-fund --cache=/tmp/npm \
 && rm -rf /tmp/npm
COPY web ./web
RUN node web/build.ts

# Bundles the program (decision 0082). The bundler comes with the packages that build the pages.
FROM pages AS program
COPY --from=dependencies /app/node_modules ./node_modules
COPY src ./src
COPY reconciler ./reconciler
COPY dev/image ./dev/image
RUN node dev/image/bundle.ts /program \
 && mkdir /compile-cache

# For `skaffold dev`: runs the code in /tmp/app, to which skaffold copies changes, and restarts after each change.
FROM ${BUILD_IMAGE} AS development
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json ./
COPY --from=pages /app/web/dist ./web/dist
COPY src ./src
COPY reconciler ./reconciler
USER 65532:65532
ENTRYPOINT ["/bin/sh", "-c", "mkdir -p /tmp/app && cp -R /app/package.json /app/src /app/reconciler /app/web /tmp/app && ln -sfn /app/node_modules /tmp/app/node_modules && exec node --watch --watch-preserve-output --max-semi-space-size=8 --heap-growing-percent=30 /tmp/app/src/image/main.ts \"$@\"", "formgate"]

FROM ${RUN_IMAGE}
ARG VERSION=0.2.0
ARG REVISION=unknown
ARG SOURCE=https://github.com/formgate/formgate
LABEL org.opencontainers.image.title="Formgate" \
      org.opencontainers.image.description="A form service and a token handler for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
WORKDIR /app
COPY LICENSE ./
COPY --from=program /program ./
# Node keeps a separate compile cache for each user, so the user of the image must be able to write this folder.
COPY --from=program --chown=65532:65532 /compile-cache ./compile-cache
USER 65532:65532
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/compile-cache
RUN ["/nodejs/bin/node", "--max-semi-space-size=8", "--heap-growing-percent=30", "src/image/warm-up/main.js"]
# Half of these threads look up host names. Upstreams and identity providers may use three quarters of that half
# (src/service/http/host-lookups.ts). The 20 threads beyond Node's default cost about 0.5 MiB of memory per process.
ENV NODE_COMPILE_CACHE_READONLY=1 UV_THREADPOOL_SIZE=24
EXPOSE 8080 9090
ENTRYPOINT ["/nodejs/bin/node", "--max-semi-space-size=8", "--heap-growing-percent=30", "/app/src/image/main.js"]
