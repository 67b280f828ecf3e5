"""Feedback pages that load nothing from elsewhere, packed for learning platforms."""
