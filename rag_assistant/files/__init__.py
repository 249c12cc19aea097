"""Storage of uploaded files: a folder on this machine, or an S3 bucket that all servers share."""
