# megawrap on top of an image that has Megatron-LM: ROCm's by default, any other by
#   docker build --build-arg BASE=IMAGE -t megawrap .
ARG BASE=rocm/megatron-lm:v25.4
FROM ${BASE}

WORKDIR /opt/megawrap
COPY . .
# The image's own torch, Transformer Engine and Megatron stay as they are: only the light core is installed.
RUN pip install --no-cache-dir . \
    && useradd --create-home --user-group megawrap \
    && install -d -o megawrap -g megawrap /workspace
USER megawrap
WORKDIR /workspace
ENTRYPOINT ["megawrap"]
CMD ["--help"]
