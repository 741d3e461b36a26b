#!/bin/bash
#SBATCH --nodes=4
# A batch script: srun starts a shell on each machine, and that starts torchrun.
source ./site.sh
NNODES=4
main() {
    local port=29511
    srun --nodes=$NNODES --ntasks-per-node=1 bash -c "torchrun --nnodes $NNODES --nproc_per_node 8 \
        --rdzv_endpoint \$HEAD_NODE:$port --node_rank \$SLURM_NODEID \
        pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 \
        --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 32 --train-iters 5 --lr 1e-4 \
        --load \$WORK/checkpoints --mock-data --bf16"
}
main
