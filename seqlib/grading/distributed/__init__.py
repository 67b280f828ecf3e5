"""Grading on a Dask cluster: a coordinator here, workers there, and the copies they grade."""
