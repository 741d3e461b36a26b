#!/bin/bash
# A small pretraining in the shape of the scripts that come with Megatron-LM: arrays and a torchrun line.
set -euo pipefail

export CUDA_DEVICE_MAX_CONNECTIONS=1
export NCCL_DEBUG=${NCCL_DEBUG:-"WARN"}

GPUS_PER_NODE=8
NUM_NODES=2
MASTER_PORT=6001
CHECKPOINT_PATH=/data/checkpoints/"my run"   # a blank in a path

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr node-0
    --master_port $MASTER_PORT
)

GPT_MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096       # don't forget: the width
    --ffn-hidden-size 11008
    --num-attention-heads 32
    --seq-length 4096
    --max-position-embeddings 4096
    --position-embedding-type rope
    --normalization RMSNorm
    --swiglu
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --attention-dropout 0.0
    --hidden-dropout 0.0
)

TRAINING_ARGS=(--micro-batch-size 1 --global-batch-size $((GPUS_PER_NODE * NUM_NODES * 4)))
TRAINING_ARGS+=(
    --train-iters 500
    --lr 3.0e-4
    --min-lr 3e-5
    --lr-decay-style cosine
    --bf16
)

DATA_ARGS=(
    --data-path 0.7 /data/first_text_document 0.3 /data/second_text_document
    --split 949,50,1
    --tokenizer-type Llama2Tokenizer
    --tokenizer-model /data/tokenizer.model
)

mkdir -p "$CHECKPOINT_PATH" && torchrun "${DISTRIBUTED_ARGS[@]}" pretrain_gpt.py \
    "${GPT_MODEL_ARGS[@]}" \
    ${TRAINING_ARGS[@]} \
    "${DATA_ARGS[@]}" \
    --tensor-model-parallel-size 2 --sequence-parallel \
    --save "$CHECKPOINT_PATH" 2>&1 | tee train.log
