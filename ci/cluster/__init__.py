"""Shards of a campaign and of mutation on the workers of a Dask cluster (docs/scale.md)."""
