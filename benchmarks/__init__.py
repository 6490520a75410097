"""Speed, memory and accuracy, measured: each module prints tables and keeps its last results in results/."""
