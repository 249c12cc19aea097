"""Sources of documents that are scanned automatically: folders, git repositories and buckets."""
