"""Assess large numbers of images in shards, on this machine or a cluster, with a Parquet file for each shard."""
