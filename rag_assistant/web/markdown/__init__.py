"""From Markdown to HTML: the only place where foreign text becomes HTML, through its sanitiser."""
