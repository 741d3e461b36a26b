#!/bin/bash
# Strings that grow, knobs with defaults, branches, and an eval at the end.
for ARGUMENT in "$@"; do
    export "${ARGUMENT%%=*}"="${ARGUMENT#*=}"
done

TP="${TP:-2}"
SIZE="${SIZE:-small}"
FP8="${FP8:-0}"
STAMP=$(date +%s)
LOG_DIR="logs/${SIZE}/tp${TP}"
export HSA_NO_SCRATCH_RECLAIM=${HSA_NO_SCRATCH_RECLAIM:-1}
export STALE=1
unset STALE

if [[ "$SIZE" == "small" ]]; then
    LAYERS=4
    HIDDEN=128
elif [ "$SIZE" = large ]; then
    LAYERS=32
    HIDDEN=4096
else
    echo "no such size"
    exit 1
fi
HEADS=$(( HIDDEN / 32 ))

ARGS="
    --num-layers $LAYERS \
    --hidden-size ${HIDDEN} \
    --num-attention-heads $HEADS \
    --seq-length 256 --max-position-embeddings 256 \
    --micro-batch-size 1 --global-batch-size 8 --train-iters 10 \
    --tensor-model-parallel-size $TP \
    --lr 1e-3 --tokenizer-type NullTokenizer --vocab-size 4096 \
"
if [ "$FP8" -eq 1 ]; then
    ARGS="$ARGS --fp8-format=hybrid --fp8-recipe=delayed"
fi
if [ -z "${DATA_PATH}" ]; then
    ARGS+=" --mock-data"
else
    ARGS+=" --data-path $DATA_PATH"
fi
if [ -f /etc/special ]; then
    ARGS="$ARGS --use-flash-attn"
fi
[ "$TP" -gt 1 ] && ARGS="$ARGS --sequence-parallel"

run_cmd="
    torchrun --nproc_per_node=4 pretrain_gpt.py \
        $ARGS \
        --eval-iters '-1' --tensorboard-dir $LOG_DIR/$STAMP \
        --bf16
"
run_cmd="$run_cmd |& tee $LOG_DIR/log"
echo $run_cmd
eval $run_cmd
