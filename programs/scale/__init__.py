"""Judge more images than one file of results is made for: in shards, here or on a cluster, a Parquet file for each."""
