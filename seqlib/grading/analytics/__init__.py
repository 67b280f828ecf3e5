"""Analytics of a class over several assignments: mistakes, tasks, scores, who needs help."""
