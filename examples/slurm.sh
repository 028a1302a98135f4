#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=2 --cpus-per-task=12
#SBATCH --time=08:00:00
#SBATCH --signal=USR1@180          # three minutes before the end every rank gets SIGUSR1
#SBATCH --requeue --open-mode=append
# One rank per socket: `distgnn partition GRAPH --parts 8 --out parts-8` first. `--resume` starts from nothing in the
# first job and from the newest checkpoint in the next ones.
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
srun --mpi=pmi2 --cpu-bind=cores --kill-on-bad-exit=1 \
    distgnn train "${1:-parts-8}" --epochs 2000 --run-dir run --checkpoint-every 50 --resume --quiet
code=$?
if [ $code -eq 138 ]; then scontrol requeue "$SLURM_JOB_ID"; fi   # 138: stopped by SIGUSR1, with a checkpoint
exit $code
