"""A record as JSON or as a sentence. Pure: values in, values out, the same for every way in."""
