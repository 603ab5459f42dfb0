"""Images in data sets: tar and Parquet files, splits that ``datasets`` saved, and files at addresses."""
