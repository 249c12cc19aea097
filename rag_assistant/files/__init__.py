"""Where uploaded files lie: a folder of this machine, or an S3 bucket that all servers share."""
