"""What a machine with a CUDA device shows: ``make gpu-check``. Each part prints one JSON object."""
