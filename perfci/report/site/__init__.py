"""An analysed history as a static site, Markdown and JSON. Pure: it writes nothing itself."""
