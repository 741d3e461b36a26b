#!/bin/sh
# What must never happen while this is read: any of it.
touch EXECUTED
VALUE=$(touch EXECUTED; echo 3)
: `touch EXECUTED`
cat <<EOF > EXECUTED
it's a "here document" with --num-layers 99
EOF
HIDDEN=64; [ -d /nowhere ] || python -c 'print("pretrain_gpt.py --num-layers 98")' > EXECUTED
python tools/preprocess_data.py --input x --workers 4
env -u OMP_NUM_THREADS LANG=C python -u pretrain_gpt.py --num-layers $VALUE --hidden-size "$HIDDEN" \
  --save "it's; a \"path\" \$HOME \\ [x] ü" --bf16 > log 2>&1 &
wait
