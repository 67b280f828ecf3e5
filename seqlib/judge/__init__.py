"""Judging of answers: criteria, comparison, diagnosis and ``check``."""
