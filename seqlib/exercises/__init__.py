"""What is graded: one declarative record per task."""
