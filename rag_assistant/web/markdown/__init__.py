"""From Markdown to HTML: the one place where text that we did not write becomes HTML, behind its sanitiser."""
