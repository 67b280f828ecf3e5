"""Corpora, generators and batching."""
