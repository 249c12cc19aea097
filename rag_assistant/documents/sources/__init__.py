"""Where documents come from by themselves: folders, git repositories and buckets that are looked through again."""
