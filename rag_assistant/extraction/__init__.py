"""From a hostile file to text, in a sandbox. Libraries for file formats are used only here."""
