"""Has a comparison measured in shards by Slurm: commands go in, report files come out.

It knows nothing of measuring. All that it passes to a shard is a command line.
"""
