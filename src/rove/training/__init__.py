"""Training: lanes, training loops, checkpoints and executors."""
