# The service as an image (docs/images.md). amd64 and arm64; either builder.
#
#   docker build -t sandboxd .
#
# BASE          a Debian 12, for the build and for the image itself
# PREBUILT      folder of this context that holds `sandboxd` and `sandboxd-agent` as scripts/build has made them,
#               stripped, for the image's architecture: nothing is compiled then
# DOCKER_CLI    an image with the docker command and its buildx plugin, such as docker:cli: images of runtimes are
#               built by BuildKit then, which keeps what package managers download
ARG BASE=debian:bookworm-slim
ARG DOCKER_CLI=${BASE}

FROM ${BASE} AS build
ARG PREBUILT=
WORKDIR /source
COPY . .
RUN if [ -n "$PREBUILT" ]; then exit 0; fi; \
    apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        binutils clang-19 cmake libc6-dev libstdc++-12-dev lld-19 libboost-json1.81-dev libboost-test1.81-dev libboost-url1.81-dev libboost1.81-dev \
        libspdlog-dev libsqlite3-dev libssl-dev libuchardet-dev ninja-build pkg-config \
    && cmake --preset release -DSANDBOXD_TESTS=OFF \
    && cmake --build build/release --target sandboxd sandboxd-agent \
    && strip build/release/sandboxd build/release/sandboxd-agent
RUN from="${PREBUILT:-build/release}" \
    && install -D -m 0755 "$from/sandboxd" /out/usr/local/bin/sandboxd \
    && install -D -m 0755 "$from/sandboxd-agent" /out/usr/local/libexec/sandboxd/sandboxd-agent \
    && install -D -m 0755 docker/healthcheck /out/usr/local/libexec/sandboxd/healthcheck \
    && install -D -m 0644 LICENSE /out/usr/share/doc/sandboxd/copyright

FROM ${DOCKER_CLI} AS cli
# Never empty: the classic builder loses the layer of a COPY that brings nothing.
RUN mkdir -p /out/usr/share/sandboxd && : >/out/usr/share/sandboxd/docker-cli; \
    for one in /usr/local/bin/docker /usr/local/libexec/docker/cli-plugins/docker-buildx; do \
        if [ -e "$one" ]; then \
            mkdir -p "/out${one%/*}" && cp "$one" "/out$one" && echo "$one" >>/out/usr/share/sandboxd/docker-cli; \
        fi; \
    done

FROM ${BASE}
# Fonts and the files of a display come with pdftotext's libraries, and nothing here draws. Each library of Boost brings
# the same 2 MB of copyright. Without --no-log-init a user of this id makes a file of 3 MB that is mostly empty, which a
# layer stores in full.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        ca-certificates libboost-container1.81.0 libboost-json1.81.0 libboost-url1.81.0 libspdlog1.10 libsqlite3-0 libssl3 libuchardet0 poppler-utils \
    && rm -rf /usr/share/fonts /usr/share/X11 /var/cache/fontconfig /var/cache/debconf/*-old /var/cache/ldconfig/aux-cache \
        /var/lib/apt/lists/* /var/lib/dpkg/*-old /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/log/apt /var/log/dpkg.log \
    && for one in container url; do \
        ln -sf ../libboost-json1.81.0/copyright /usr/share/doc/libboost-${one}1.81.0/copyright || exit 1; \
    done \
    && useradd --no-log-init --uid 10001 --home-dir /state --no-create-home --shell /usr/sbin/nologin sandboxd \
    && install -d -m 0700 -o 10001 -g 10001 /state \
    && install -d -m 0755 -o 10001 -g 10001 /workspaces
COPY --from=cli /out/ /
COPY --from=build /out/ /

ENV HOME=/state \
    SANDBOXD_HOST=0.0.0.0 \
    SANDBOXD_PORT=8080 \
    SANDBOXD_STATE_DIR=/state \
    SANDBOXD_WORKSPACE_ROOT=/workspaces
USER 10001:10001
VOLUME ["/state", "/workspaces"]
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/usr/local/libexec/sandboxd/healthcheck"]
ENTRYPOINT ["/usr/local/bin/sandboxd"]
