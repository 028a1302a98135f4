#!/bin/bash
# What late and narrow rows save and cost on a graph: time, bytes, waiting and final accuracy beside exact training.
#
#     ./communication_study.sh [GRAPH [EPOCHS [PARTS ...]]]        writes study/bench.json and study/figures/
set -eu
graph=${1:-communities:nodes=30000}
epochs=${2:-100}
parts=("${@:3}")
[ ${#parts[@]} -gt 0 ] || parts=(2 4)

folders=()
for count in "${parts[@]}"; do
    distgnn partition "$graph" --parts "$count" --out "study/parts-$count" --overwrite
    folders+=("study/parts-$count")
done
# cd-5: rows count 5 epochs late. int8: one byte a number. 0c: nothing is exchanged in training steps.
distgnn bench "${folders[@]}" --algorithms cd-0,cd-5,cd-5/int8,0c --accuracy --epochs "$epochs" \
    --out study/bench.json --figures study/figures
