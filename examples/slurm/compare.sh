#!/bin/sh
# Compares two commits on a cluster, from a node that submits jobs: what a CI job or a person runs.
#
#     examples/slurm/compare.sh main HEAD
#
# The repository, the environment with perfci and the job's folder lie where all nodes see them.
# The exit code is the verdict's. docs/clusters.md says more.
set -eu
exec perfci compare "${1:-main}" "${2:-HEAD}" \
  --slurm "${SHARDS:-2}" \
  --sbatch "partition=${PARTITION:-gpu} exclusive" \
  --job-dir "${JOB_DIR:-$HOME/perfci-job}" \
  --json report.json --markdown comment.md
