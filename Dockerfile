# The service as an image: nothing in it is written at run time but /var/lib/streamdedup and /tmp.
#
#   docker build --tag streamdedup:0.1.0 .
#
# The base is pinned to a patch release of the Python that the tests run on.  A tag may be moved; for
# builds that are the same for ever give a digest, as `docker buildx imagetools inspect` prints it:
#   --build-arg PYTHON=python:3.11.14-slim-bookworm@sha256:...
ARG PYTHON=python:3.11.14-slim-bookworm

FROM ${PYTHON} AS build
# Loops are compiled here for any processor of this architecture, not for the builder's own: a cache
# for another processor would be no cache, and was no faster when it was measured.
ENV NUMBA_CPU_NAME=generic \
    NUMBA_CACHE_DIR=/opt/streamdedup/loops \
    PIP_CONSTRAINT=/src/constraints.txt \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ONLY_BINARY=:all:
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY streamdedup ./streamdedup
RUN python -m venv /opt/streamdedup \
    && /opt/streamdedup/bin/pip wheel --no-deps --wheel-dir /wheels . \
    && /opt/streamdedup/bin/pip install /wheels/*.whl
# The second run fails the build if a start would still have to compile something.  It is in another
# directory than the sources, so that what is compiled is what was installed.
WORKDIR /
RUN /opt/streamdedup/bin/python -m streamdedup.warm \
    && /opt/streamdedup/bin/python -m streamdedup.warm --check

FROM ${PYTHON}
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="streamdedup" \
      org.opencontainers.image.description="Tells, in a live stream of articles, what is new and what has been said before" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="docker.io/library/python:3.11.14-slim-bookworm"
# The index lies below the volume, not in its root: a state that is set aside is renamed beside it.
# A name for the user is for people only; Kubernetes wants the number.
ENV PATH=/opt/streamdedup/bin:${PATH} \
    NUMBA_CPU_NAME=generic \
    NUMBA_CACHE_DIR=/opt/streamdedup/loops \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    STREAMDEDUP_STATE__PATH=/var/lib/streamdedup/state
RUN groupadd --gid 65532 streamdedup \
    && useradd --uid 65532 --gid 65532 --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin streamdedup \
    && install --directory --owner=65532 --group=65532 --mode=0750 /var/lib/streamdedup
COPY --from=build /opt/streamdedup /opt/streamdedup
USER 65532:65532
WORKDIR /var/lib/streamdedup
VOLUME ["/var/lib/streamdedup"]
EXPOSE 9109
# The service drains within five seconds and then exits with 0.
STOPSIGNAL SIGTERM
# A new index on a large changelog takes minutes to restore; it is alive all the while.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-m", "streamdedup.observe.probe", "healthz"]
ENTRYPOINT ["streamdedup"]
CMD ["run"]
