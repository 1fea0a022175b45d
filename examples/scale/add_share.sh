#!/bin/sh
# Adds this task's share of a folder of traces to a data set: each COUNTth, from the INDEXth on. A
# task that failed or was killed is run again as it is.
#
# usage: sbatch --array=0-63 add_share.sh DATASET TRACES      (SLURM)
#        JOB_COMPLETION_INDEX=3 SHARES=64 add_share.sh DATASET TRACES     (Kubernetes, others)
#
#SBATCH --job-name=kymo-dataset
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --requeue
set -eu
dataset=${1:?say DATASET TRACES}
traces=${2:?say DATASET TRACES}
index=${SLURM_ARRAY_TASK_ID:-${JOB_COMPLETION_INDEX:?which share is this?}}
shares=${SLURM_ARRAY_TASK_COUNT:-${SHARES:?how many shares are there?}}

n=0
share=
for trace in "$traces"/*; do
    case $trace in
    *.json | *.json.gz | *.json.zst | *.pftrace | *.pftrace.gz | *.pftrace.zst) ;;
    *) continue ;;
    esac
    if [ $((n % shares)) -eq "$index" ]; then
        set -- "$@" "$trace"
        share=yes
    fi
    n=$((n + 1))
done
[ -n "$share" ] || exit 0
shift 2
exec kymo dataset add "$dataset" "$@"
