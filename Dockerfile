# Warpline beside PyTorch, on CUDA.
#
#   docker build -t warpline .
#   docker run --rm --gpus all --ipc=host -v "$PWD:/work" --user "$(id -u):$(id -g)" warpline profile train.py
#
# What the script itself needs goes into /opt/script: build an image FROM this one and `pip install` it there.
FROM nvidia/cuda:13.0.1-base-ubuntu24.04 AS base
# Versions of Debian packages are those of the base image's release.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

# For work on Warpline itself (.devcontainer/); the sources are mounted.
FROM base AS dev
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates gcc git libc6-dev make sudo \
    && rm -rf /var/lib/apt/lists/*
USER 1000

FROM base AS run
# The script's interpreter; torch brings its own CUDA libraries.
ARG TORCH=torch==2.13.0
RUN python3 -m venv /opt/script && /opt/script/bin/pip install --no-cache-dir "$TORCH" numpy nvtx nvidia-ml-py
# Warpline has an environment of its own: nothing of it reaches the script.
WORKDIR /opt/warpline-source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY server server
RUN python3 -m venv /opt/warpline \
    && /opt/warpline/bin/pip install --no-cache-dir --constraint constraints.txt '.[mcp]' \
    && ln -s /opt/warpline/bin/warpline /usr/local/bin/warpline
# The active environment is the script's, which is where Warpline looks first.
ENV VIRTUAL_ENV=/opt/script PATH=/opt/script/bin:$PATH HOME=/tmp
WORKDIR /work
USER 1000
ENTRYPOINT ["warpline"]
CMD ["doctor"]
